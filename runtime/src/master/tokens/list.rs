//! List of known tokens: those that were created, used or revoked.

use super::{Tokens, TokensError, owner_name, since_1970};
use crate::api::{KnownToken, TokenList};
use std::collections::BTreeSet;
use std::sync::PoisonError;

/// Maximum number of remembered token names.
const NAMES_MAX: usize = 10_000;

impl Tokens {
    /// Remembers that a token was created.
    ///
    /// # Errors
    /// A file that cannot be written. Nothing has changed then.
    pub(in crate::master) fn note_made(&self, name: &str) -> Result<(), TokensError> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.kept();
        if kept.made.len() < NAMES_MAX && kept.made.insert(name.to_owned()) {
            self.keep(kept)
        } else {
            Ok(())
        }
    }

    /// Remembers that a request used the token of this name.
    pub(in crate::master) fn note_seen(&self, name: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = seen.get_mut(name) {
            *at = since_1970();
        } else if seen.len() < NAMES_MAX && !name.is_empty() {
            seen.insert(name.to_owned(), since_1970());
        }
    }

    /// All tokens known to this master. A token whose file was copied before it was remembered is missing.
    pub(in crate::master) fn list(&self) -> TokenList {
        let (kept, now) = (self.kept(), since_1970());
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let names: BTreeSet<&String> = seen.keys().chain(&kept.made).chain(&kept.revoked).collect();
        let known = |name: &String| {
            let parsed: Option<super::TokenName> = name.parse().ok();
            let owner = parsed.map(|name| owner_name(name.role, name.label.as_deref()));
            KnownToken {
                name: name.clone(),
                holds: self.find(name).is_some(),
                seen_seconds_ago: seen.get(name).map(|at| now.saturating_sub(*at)),
                quota: owner.and_then(|owner| kept.quotas.get(&owner).copied()),
            }
        };
        TokenList { generation: kept.generation, tokens: names.into_iter().map(known).collect() }
    }
}
