//! Range of the keys that a reduce attempt processes.

use serde::{Deserialize, Serialize};

/// Maximum length of a key at which a running reduce is divided, bytes.
pub const CUT_KEY_BYTES_MAX: usize = 4 << 10;

/// Range of encoded keys: those from `from` on, and before `until`. The default has all keys.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct KeyBounds {
    /// First key that belongs to the range.
    pub from: Vec<u8>,
    /// First key after the range; `None` if it has no end.
    pub until: Option<Vec<u8>>,
}

impl KeyBounds {
    /// True if all keys belong to the range.
    #[must_use]
    pub fn are_all(&self) -> bool {
        self.from.is_empty() && self.until.is_none()
    }

    /// True if this key belongs to the range.
    #[must_use]
    pub fn contain(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && self.until.as_deref().is_none_or(|until| key < until)
    }
}
