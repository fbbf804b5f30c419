//! Errors of creating, revoking and storing tokens.

use super::limits::{REVOKED_MAX, SCHEMA};
use gristmill_worker::exit::ExitsWith;
use gristmill_worker::http::{PrivateFileError, SecretError, TokenError};
use std::path::PathBuf;

/// Longest label, bytes.
pub(super) const LABEL_BYTES_MAX: usize = 32;

/// Reason for which a token cannot be created, revoked or stored.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TokensError {
    /// No token has such a name.
    #[error("no token is called {name:?}: names are like work-laptop@0")]
    Name {
        /// The name, escaped.
        name: String,
    },
    /// The label is invalid.
    #[error(
        "a token cannot be labelled {label:?}: labels have up to {LABEL_BYTES_MAX} lower-case letters, digits and hyphens"
    )]
    Label {
        /// The label, escaped.
        label: String,
    },
    /// The name of the token to be created is revoked.
    #[error(
        "{name} is revoked: choose another label, or make all tokens new with `gristmill cluster token rotate`"
    )]
    Revoked { name: String },
    /// The token that requested a page is not valid any more.
    #[error("{name}, which asked for this page, is revoked or of an earlier generation")]
    Ended { name: String },
    /// The token of a page requested a page of another role.
    #[error("{name} is the token of a page, and opens pages of its own role alone")]
    Page { name: String },
    /// The token in the state directory, without which no other token could be created.
    #[error(
        "{name} is the token of the user who started the master: `gristmill cluster token rotate` makes it and all others new"
    )]
    Own { name: String },
    /// No token of that generation has been created yet.
    #[error("there is no {name} yet: tokens are of generation {generation}")]
    Future {
        name: String,
        /// The current generation.
        generation: u32,
    },
    /// Too many tokens are revoked.
    #[error(
        "{REVOKED_MAX} tokens are revoked already: `gristmill cluster token rotate` makes all others new instead"
    )]
    Full,
    /// The token does not submit jobs.
    #[error("a quota is for tokens of the role submit, and this one is of the role {role}")]
    Quota { role: &'static str },
    /// Too many tokens have a quota.
    #[error("{most} tokens have a quota already: lift that of another first, with no limit")]
    QuotasFull { most: usize },
    /// The name was rejected where tokens are derived.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A file of the state directory could not be used.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// The secret could not be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The file of tokens is invalid.
    #[error("could not read {}", path.display())]
    Content {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// The file of tokens has another version.
    #[error("could not read {}: it has version {found} instead of {SCHEMA}", path.display())]
    Schema {
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// The label is reserved.
    #[error(
        "`{label}` labels the token of workers that are started where the state directory is; choose another"
    )]
    Reserved {
        /// The label as given.
        label: &'static str,
    },
    /// A secret exists, but no file of tokens.
    #[error(
        "{} is gone, and with it which tokens were revoked (or the directory is of a version that had none): put it back, or remove {} too, which makes all tokens new",
        path.display(), secret.display()
    )]
    Lost {
        /// The file of tokens.
        path: PathBuf,
        /// The file of the secret.
        secret: PathBuf,
    },
    /// All tokens were replaced, but the file with the join line still holds an old one.
    #[error(
        "all tokens were made new, but the join line in {} is still that of before: restart the master, which \
         writes it",
        path.display()
    )]
    Rotated {
        path: PathBuf,
        #[source]
        source: PrivateFileError,
    },
}

impl ExitsWith for TokensError {}
