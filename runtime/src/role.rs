//! Roles of tokens. The roles required by the routes are in `master::auth`.

use serde::{Deserialize, Serialize};

/// Rights of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// View the cluster, its jobs and the output of user code.
    View,
    /// View, and submit and cancel jobs: a submitter can run code on the workers.
    Submit,
    /// Join as a worker.
    Work,
    /// All rights, including to change the policy, end the master, create and revoke tokens.
    Admin,
}

impl Role {
    /// True if it may use a route that requires `needed`.
    pub(crate) fn may(self, needed: Role) -> bool {
        match self {
            Role::Admin => true,
            Role::Submit => matches!(needed, Role::Submit | Role::View),
            Role::View | Role::Work => self == needed,
        }
    }

    /// Name in a token.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Role::View => "view",
            Role::Submit => "submit",
            Role::Work => "work",
            Role::Admin => "admin",
        }
    }
}
