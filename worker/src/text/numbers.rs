//! Integers as decimal digits, without a `String`.

/// Number of digits of the maximum `u64`.
const DIGITS_MAX: usize = 20;

/// Appends `number` in decimal.
pub fn write_u64(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; DIGITS_MAX];
    let mut from = DIGITS_MAX;
    let mut rest = number;
    loop {
        from -= 1;
        digits[from] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[from..]);
}

/// Appends `number` in decimal, with `-` if it is negative.
pub fn write_i64(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    write_u64(number.unsigned_abs(), out);
}

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
