//! Tokens: named secrets derived from one secret, each with the permissions of its name.
//!
//! A token is written `NAME:KEY`. Its key is derived from the cluster's secret and the name, so a server need not store
//! tokens to know them. The server defines the permissions of a name ([`super::RouteAuth`]); here a name is only text.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

use super::secret::{Secret, SecretError};

/// Maximum length of a token's name, bytes.
pub(super) const NAME_BYTES_MAX: usize = 64;

/// Access key of a route: a secret, and the name under which the server finds it.
pub trait Key: Sync {
    /// Returns the name; empty if the route has only one secret, such as that of a job.
    fn name(&self) -> &str;

    /// Returns the secret.
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

/// Named secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    name: String,
    secret: Secret,
}

impl Token {
    /// Creates the token of this name under a cluster's secret.
    ///
    /// # Errors
    /// [`TokenError`] for an invalid name.
    pub fn derive(secret: &Secret, name: &str) -> Result<Self, TokenError> {
        check_name(name)?;
        Ok(Token { name: name.to_owned(), secret: secret.derive(&format!("token {name}")) })
    }

    /// Returns `NAME:KEY`: for a join line or an authenticated peer; never for a log.
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

/// Checks a token's name: lower-case letters, digits, hyphens and `@`.
fn check_name(name: &str) -> Result<(), TokenError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-@".contains(&byte);
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(plain);
    if fits { Ok(()) } else { Err(TokenError::Name { name: name.escape_debug().to_string() }) }
}

/// Error of parsing a token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It is not `NAME:KEY`; the text is omitted because it may contain a secret.
    #[error("could not read a token: it has the form NAME:KEY")]
    Form,
    /// The name has other characters than lower-case letters, digits, hyphens and `@`, or is too long.
    #[error(
        "no token can be called {name:?}: names have up to {NAME_BYTES_MAX} lower-case letters, digits and hyphens"
    )]
    Name {
        /// Name, escaped.
        name: String,
    },
    /// The key is not a secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
}
