//! Names of tokens: `ROLE[-LABEL]@GENERATION`.

use super::TokensError;
use crate::role::Role;
use std::fmt;
use std::str::FromStr;

/// Longest label, bytes.
pub(super) const LABEL_BYTES_MAX: usize = 32;

/// The name of a token, `ROLE[-LABEL]@GENERATION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TokenName {
    pub(super) role: Role,
    pub(super) label: Option<String>,
    pub(super) generation: u32,
}

impl fmt::Display for TokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.role.word())?;
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
        let (rest, generation) = text.split_once('@').ok_or_else(wrong)?;
        let (role, label) = match rest.split_once('-') {
            Some((role, label)) => (role, Some(label.to_owned())),
            None => (rest, None),
        };
        let roles = [Role::View, Role::Submit, Role::Work, Role::Admin];
        let role = roles.into_iter().find(|known| known.word() == role).ok_or_else(wrong)?;
        check_label(label.as_deref())?;
        let name = TokenName { role, label, generation: generation.parse().map_err(|_| wrong())? };
        // One way of writing each: a revoked name has no second spelling.
        if name.to_string() == text { Ok(name) } else { Err(wrong()) }
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
