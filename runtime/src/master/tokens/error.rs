//! Why a token cannot be made, revoked or kept.

use super::name::LABEL_BYTES_MAX;
use super::{REVOKED_MAX, SCHEMA};
use gristmill_worker::http::{PrivateFileError, SecretError, TokenError};
use std::path::PathBuf;

/// Why a token cannot be made, revoked or kept.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TokensError {
    /// No token has such a name.
    #[error("no token is called {name:?}: names are like work-laptop@0")]
    Name {
        /// The name, escaped.
        name: String,
    },
    /// The label is none.
    #[error(
        "a token cannot be labelled {label:?}: labels have up to {LABEL_BYTES_MAX} lower-case letters, digits and hyphens"
    )]
    Label {
        /// The label, escaped.
        label: String,
    },
    /// The name of a token to be made is revoked.
    #[error("{name} is revoked: choose another label, or make all tokens new with `gristmill token rotate`")]
    Revoked { name: String },
    /// The token that asked for a page does not hold any more.
    #[error("{name}, which asked for this page, is revoked or of an earlier generation")]
    Ended { name: String },
    /// The token of a page asked for a page of another role.
    #[error("{name} is the token of a page, and opens pages of its own role alone")]
    Page { name: String },
    /// The token in the state folder, without which nobody could make others.
    #[error(
        "{name} is the token of whoever started the master: `gristmill token rotate` makes it and all others new"
    )]
    Own { name: String },
    /// No token of that generation has been made yet.
    #[error("there is no {name} yet: tokens are of generation {generation}")]
    Future {
        name: String,
        /// The present generation.
        generation: u32,
    },
    /// There are too many.
    #[error(
        "{REVOKED_MAX} tokens are revoked already: `gristmill token rotate` makes all others new instead"
    )]
    Full,
    /// The token does not submit jobs.
    #[error("a quota is for tokens of the role submit, and this one is of the role {role}")]
    Quota { role: &'static str },
    /// There are too many.
    #[error("{most} tokens have a quota already: lift that of another first, with no limit")]
    QuotasFull { most: usize },
    /// The name is refused where tokens are made.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A file of the state folder could not be used.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// The secret could not be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The file of tokens is none.
    #[error("could not read {}", path.display())]
    Content {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// The file of tokens is of another version.
    #[error("could not read {}: it has version {found} instead of {SCHEMA}", path.display())]
    Schema {
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// A label that has a meaning.
    #[error(
        "`{label}` labels the token of workers that are started where the state folder is; choose another"
    )]
    Reserved {
        /// As given.
        label: &'static str,
    },
    /// There is a secret and no file of tokens.
    #[error(
        "{} is gone, and with it which tokens were revoked (or the folder is of a version that had none): put it back, or remove {} too, which makes all tokens new",
        path.display(), secret.display()
    )]
    Lost {
        /// The file of tokens.
        path: PathBuf,
        /// That of the secret.
        secret: PathBuf,
    },
    /// All tokens are others now, and the file with the join line has one of before.
    #[error(
        "all tokens were made new, but the join line in {} is still that of before: start the master anew, which \
         writes it",
        path.display()
    )]
    Rotated {
        path: PathBuf,
        #[source]
        source: PrivateFileError,
    },
}
