//! Block of input of the current call of a mapper, so that keys in it can be loaded from there.
//!
//! Loading sixteen bytes at a short key and masking the rest is faster than loading just its bytes. It
//! requires that the bytes after the key may be read, which a slice alone does not guarantee.

/// Bytes loaded at once.
const LOAD_BYTES: usize = 16;

/// Address range of the current block; empty between blocks.
///
/// Invariant: from `set` to `clear`, sixteen bytes may be read at each of the `loadable` addresses from `base` on, and
/// they are not modified. The code that sets a window clears it before the borrow of the block ends.
pub(super) struct KeyWindow {
    base: *const u8,
    loadable: usize,
}

impl KeyWindow {
    pub fn none() -> Self {
        Self { base: std::ptr::null(), loadable: 0 }
    }

    pub fn set(&mut self, block: &[u8]) {
        (self.base, self.loadable) = (block.as_ptr(), (block.len() + 1).saturating_sub(LOAD_BYTES));
    }

    pub fn clear(&mut self) {
        *self = Self::none();
    }

    /// Returns sixteen bytes from the first of `key` on, if they are in the block.
    #[inline(always)]
    pub fn load(&self, key: &[u8]) -> Option<[u8; LOAD_BYTES]> {
        let at = (key.as_ptr() as usize).wrapping_sub(self.base as usize);
        if self.loadable <= at {
            return None;
        }
        #[allow(unsafe_code, reason = "a slice of the block cannot be kept: the emitter has no lifetime")]
        // SAFETY: by the invariant these bytes may be read. They need no alignment and may have any value.
        Some(unsafe { self.base.add(at).cast::<[u8; LOAD_BYTES]>().read_unaligned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_loads_what_lies_in_it_with_sixteen_bytes_and_nothing_else() {
        let block: Vec<u8> = (0..40).collect();
        let mut window = KeyWindow::none();
        assert_eq!(window.load(&block[3..5]), None);
        window.set(&block[2..38]);
        assert_eq!(window.load(&block[3..5]).unwrap()[..], block[3..19]);
        assert_eq!(window.load(&block[22..23]).unwrap()[..], block[22..38]);
        assert_eq!(window.load(&block[23..24]), None);
        assert_eq!(window.load(&block[1..5]), None);
        assert_eq!(window.load(b"elsewhere"), None);
        window.set(b"too short");
        assert_eq!(window.load(b"too short"), None);
        window.set(&block[2..38]);
        window.clear();
        assert_eq!(window.load(&block[3..5]), None);
    }
}
