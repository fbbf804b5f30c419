//! Making, revoking and rotating tokens.

use super::Role;
use serde::{Deserialize, Serialize};

/// What the jobs that are submitted with a token may take together; what is `None` is not limited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Jobs that have not ended.
    pub jobs_max: Option<u32>,
    /// Slots at once.
    pub slots_max: Option<u32>,
    /// Bytes of live jobs: what their maps have put out, parts that are built, and the programs they were shipped with.
    pub disk_bytes_max: Option<u64>,
}

impl Quota {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Owner of a job: the token that it was submitted with, and what that one may take.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct JobOwner {
    /// Role and label of the token, without its generation.
    pub token: String,
    /// As it was when the job was submitted.
    pub quota: Quota,
}

/// Body of `POST /api/v1/tokens`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What it may do.
    pub role: Role,
    /// What it is called besides, so that it can be revoked alone.
    pub label: Option<String>,
    /// What jobs submitted with it may take from now on; `None`: as it was.
    #[serde(default)]
    pub quota: Option<Quota>,
}

/// Its answer.
#[derive(Clone, Serialize, Deserialize)]
pub struct MadeToken {
    /// `NAME:KEY`: a secret.
    pub token: String,
}

/// Answer of `GET /api/v1/tokens`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TokenList {
    /// Generation of tokens that are made now.
    pub generation: u32,
    /// Those that were made, used since the master started, or revoked, by their names.
    pub tokens: Vec<KnownToken>,
}

/// A token of which a master knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KnownToken {
    /// `ROLE[-LABEL]@GENERATION`.
    pub name: String,
    /// False once it is revoked or of an earlier generation.
    pub holds: bool,
    /// Seconds since a request came with it; `None`: none has since the master started.
    pub seen_seconds_ago: Option<u64>,
    /// Limits of the jobs that are submitted with it.
    pub quota: Option<Quota>,
}

/// Body of `POST /api/v1/tokens/revoke`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokeToken {
    /// The token's name.
    pub name: String,
}

/// Body of `POST /api/v1/tokens/rotate`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RotateTokens {
    /// For how long the tokens of before are taken too, seconds.
    pub grace_seconds: u64,
}
