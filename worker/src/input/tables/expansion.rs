//! How much may come out of a table's file for what lies in it: the limit of compressed files, for all that is decoded.

use crate::input::path::FilePath;
use crate::input::{InputError, InputLimits};

/// The limit for one file.
#[derive(Clone)]
pub(super) struct Expansion {
    name: FilePath,
    /// Bytes that may come out for each that lies in the file.
    max: u32,
    /// Bytes that may come out whatever the ratio.
    floor: u64,
    /// Bytes of what is held whole.
    held_max: u64,
}

impl Expansion {
    pub fn new(name: FilePath, limits: &InputLimits) -> Self {
        Self { name, max: limits.expansion_max, floor: limits.expansion_floor, held_max: limits.held_max }
    }

    /// Checks bytes that are unpacked and held whole.
    ///
    /// # Errors
    /// [`InputError::TableTooLarge`] if no slot has room for them, and as [`Expansion::expect`].
    pub fn hold(&self, packed: u64, unpacked: u64) -> Result<(), InputError> {
        if unpacked > self.held_max {
            let (path, limit) = (self.name.clone(), self.held_max);
            return Err(InputError::TableTooLarge { path, bytes: unpacked, limit });
        }
        self.expect(packed, unpacked)
    }

    /// Whether so many bytes may come out of so many.
    ///
    /// # Errors
    /// [`InputError::Expansion`] if they are too many.
    pub fn expect(&self, packed: u64, unpacked: u64) -> Result<(), InputError> {
        if unpacked <= self.floor.max(packed.saturating_mul(u64::from(self.max))) {
            return Ok(());
        }
        Err(InputError::Expansion {
            path: self.name.clone(),
            decoded: unpacked,
            compressed: packed,
            ratio_max: self.max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_whole_is_refused_beyond_the_room_of_a_slot() {
        let limits = InputLimits { held_max: 1000, ..InputLimits::default() };
        let expansion = Expansion::new(FilePath::from("t.arrow"), &limits);
        expansion.hold(1, 1000).unwrap();
        expansion.expect(1, 1001).unwrap();
        let refused = expansion.hold(1, 1001).unwrap_err();
        assert!(matches!(refused, InputError::TableTooLarge { bytes: 1001, limit: 1000, .. }), "{refused}");
        assert!(refused.to_string().contains("--memory"), "{refused}");
    }
}
