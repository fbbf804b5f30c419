//! Bodies of the requests that create, list, revoke and rotate access tokens, and the quota of a token, which limits
//! the jobs submitted with it.

use crate::role::Role;
use serde::{Deserialize, Serialize};

/// Limits on what the jobs submitted with one token may use together; `None` is unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Number of jobs that have not ended.
    pub jobs_max: Option<u32>,
    /// Number of slots at once.
    pub slots_max: Option<u32>,
    /// Bytes of live jobs: outputs of their maps, and parts that are built.
    pub disk_bytes_max: Option<u64>,
}

impl Quota {
    /// True if nothing is limited.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Owner of a job: the token with which it was submitted, and the quota of that token.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct JobOwner {
    /// Role and label of the token, without its generation.
    pub token: String,
    /// The quota at the time of submission.
    pub quota: Quota,
}

/// Body of `POST /api/v1/tokens`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Its role.
    pub role: Role,
    /// Its label, with which it can be revoked alone.
    pub label: Option<String>,
    /// New quota of the jobs submitted with it; `None` to keep it.
    pub quota: Option<Quota>,
}

/// Response of `POST /api/v1/tokens`.
#[derive(Clone, Serialize, Deserialize)]
pub struct MadeToken {
    /// `NAME:KEY`: a secret.
    pub token: String,
}

/// Response of `GET /api/v1/tokens`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TokenList {
    /// Generation of newly created tokens.
    pub generation: u32,
    /// Tokens that were created, used since the master started, or revoked, by name.
    pub tokens: Vec<KnownToken>,
}

/// A token known to a master.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KnownToken {
    /// `ROLE[-LABEL]@GENERATION`.
    pub name: String,
    /// False once it is revoked or of an earlier generation.
    pub holds: bool,
    /// Seconds since the last request with it; `None` if there was none since the master started.
    pub seen_seconds_ago: Option<u64>,
    /// Quota of the jobs submitted with it.
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
    /// Time for which earlier tokens are also accepted, seconds.
    pub grace_seconds: u64,
}
