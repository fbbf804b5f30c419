//! Parses integers that consist of decimal digits alone.

/// Parses decimal digits only: at least one, no sign, no space. `None` for anything else, also if the number exceeds a
/// `u64`.
#[must_use]
pub fn parse_u64(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 { number.checked_mul(10)?.checked_add(u64::from(digit)) } else { None }
    })
}
