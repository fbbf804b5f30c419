//! Tokens: secrets with a name, made from one secret, so that each opens only what its name allows.
//!
//! A token is written `NAME:KEY`; its key is derived from the cluster's secret and the name, so a server need keep
//! none of them to know them all. What a name may do is the server's business ([`super::RouteAuth`]); here a name is
//! only text.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

use super::secret::{Secret, SecretError};

/// Longest name of a token, bytes.
pub(super) const NAME_BYTES_MAX: usize = 64;

/// What opens a route: a secret, and the name under which the server finds it.
pub trait Key: Sync {
    /// The name; empty where the route itself has but one secret, such as that of a job.
    fn name(&self) -> &str;

    /// The secret.
    fn secret(&self) -> &Secret;
}

impl Key for Secret {
    fn name(&self) -> &str {
        ""
    }

    fn secret(&self) -> &Secret {
        self
    }
}

/// A secret with a name.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    name: String,
    secret: Secret,
}

impl Token {
    /// The token of this name under a cluster's secret.
    ///
    /// # Errors
    /// [`TokenError`] for a name that no token can have.
    pub fn of(secret: &Secret, name: &str) -> Result<Self, TokenError> {
        check_name(name)?;
        Ok(Token { name: name.to_owned(), secret: secret.derive(&format!("token {name}")) })
    }

    /// `NAME:KEY`: for a join line or an authenticated peer; never for a log.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{}:{}", self.name, *self.secret.to_text()))
    }
}

impl Key for Token {
    fn name(&self) -> &str {
        &self.name
    }

    fn secret(&self) -> &Secret {
        &self.secret
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}: redacted)", self.name)
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let (name, key) = text.split_once(':').ok_or(TokenError::Form)?;
        check_name(name)?;
        Ok(Token { name: name.to_owned(), secret: key.parse()? })
    }
}

/// Whether a word can be a token's name: lower-case letters, digits, hyphens and `@`.
fn check_name(name: &str) -> Result<(), TokenError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-@".contains(&byte);
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(plain);
    if fits { Ok(()) } else { Err(TokenError::Name { name: name.escape_debug().to_string() }) }
}

/// Why a text is no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It is not `NAME:KEY`; the text is left out because it may hold a secret.
    #[error("could not read a token: it has the form NAME:KEY")]
    Form,
    /// The name has other characters than lower-case letters, digits, hyphens and `@`, or too many.
    #[error(
        "no token can be called {name:?}: names have up to {NAME_BYTES_MAX} lower-case letters, digits and hyphens"
    )]
    Name {
        /// The name, escaped.
        name: String,
    },
    /// The key is no secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
}
