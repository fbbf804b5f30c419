//! What a token may do. Which route needs what stands with the routes (`master::auth`).

use serde::{Deserialize, Serialize};

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// See the cluster, its jobs and what user code wrote.
    View,
    /// That, and submit and cancel jobs: whoever may submit runs code on the workers.
    Submit,
    /// Join as a worker.
    Work,
    /// Everything: also change the policy, end the master, make and revoke tokens.
    Admin,
}

impl Role {
    /// Whether it may pass a route that is made for `needed`.
    pub(crate) fn may(self, needed: Role) -> bool {
        match self {
            Role::Admin => true,
            Role::Submit => matches!(needed, Role::Submit | Role::View),
            Role::View | Role::Work => self == needed,
        }
    }

    /// As it stands in the name of a token.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Role::View => "view",
            Role::Submit => "submit",
            Role::Work => "work",
            Role::Admin => "admin",
        }
    }
}
