//! Making, revoking and rotating tokens.

use super::Role;
use serde::{Deserialize, Serialize};

/// Body of `POST /api/v1/tokens`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What it may do.
    pub role: Role,
    /// What it is called besides, so that it can be revoked alone.
    pub label: Option<String>,
}

/// Its answer.
#[derive(Clone, Serialize, Deserialize)]
pub struct MadeToken {
    /// `NAME:KEY`: a secret.
    pub token: String,
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
