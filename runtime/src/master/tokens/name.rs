//! Names of tokens: `ROLE[-LABEL]@GENERATION`, and `ROLE@NAME` of a page that the token NAME has requested.

use super::error::{LABEL_BYTES_MAX, TokensError};
use crate::role::Role;
use std::fmt;
use std::str::FromStr;

/// Name of a token. Label and generation are those of its asker if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TokenName {
    pub(super) role: Role,
    /// Role of the token that requested a page with this one. This token ends with it.
    pub(super) asker: Option<Role>,
    pub(super) label: Option<String>,
    pub(super) generation: u32,
}

impl fmt::Display for TokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.role.word())?;
        if let Some(asker) = self.asker {
            write!(f, "@{}", asker.word())?;
        }
        if let Some(label) = &self.label {
            write!(f, "-{label}")?;
        }
        write!(f, "@{}", self.generation)
    }
}

impl FromStr for TokenName {
    type Err = TokensError;

    fn from_str(text: &str) -> Result<Self, TokensError> {
        let wrong = || TokensError::Name { name: text.escape_debug().to_string() };
        let roles = [Role::View, Role::Submit, Role::Work, Role::Admin];
        let role = |word: &str| roles.into_iter().find(|known| known.word() == word).ok_or_else(wrong);
        let (rest, generation) = text.rsplit_once('@').ok_or_else(wrong)?;
        let (page, rest) = rest.split_once('@').map_or((None, rest), |(page, rest)| (Some(page), rest));
        let (own, label) = match rest.split_once('-') {
            Some((own, label)) => (role(own)?, Some(label.to_owned())),
            None => (role(rest)?, None),
        };
        check_label(label.as_deref())?;
        let (role, asker) = match page {
            Some(page) => (role(page)?, Some(own)),
            None => (own, None),
        };
        let name = TokenName { role, asker, label, generation: generation.parse().map_err(|_| wrong())? };
        // Each name has one spelling, so that a revoked name cannot be written differently.
        if name.to_string() == text { Ok(name) } else { Err(wrong()) }
    }
}

impl TokenName {
    /// The token that requested the page that has this one.
    pub(super) fn asker(&self) -> Option<TokenName> {
        Some(TokenName { role: self.asker?, asker: None, ..self.clone() })
    }
}

pub(super) fn check_label(label: Option<&str>) -> Result<(), TokensError> {
    let Some(label) = label else { return Ok(()) };
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match (1..=LABEL_BYTES_MAX).contains(&label.len()) && label.bytes().all(plain) {
        true => Ok(()),
        false => Err(TokensError::Label { label: label.escape_debug().to_string() }),
    }
}
