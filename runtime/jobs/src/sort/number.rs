//! Encoding of decimal numbers of any length as bytes in numeric order. No number is rounded.
//!
//! A number is defined as for `sort -n`: blanks, an optional `-`, digits, optionally `.` and digits. Anything else
//! counts as zero, and the text behind the number is ignored. Its bytes are `1` for zero; `2` and the magnitude for
//! positive numbers; `0` and the magnitude with all bits inverted for negative ones. The magnitude starts with the
//! count of the digits before the point (a byte if below 255, else 255 and 8 bytes). It continues with these digits,
//! the digits after the point without trailing zeros, and a zero byte.
//!
//! Exponents, the sign `+` and thousands separators are not supported; neither does `sort -n` in the C locale.

/// Counts from this value on take nine bytes.
const LONG_COUNT: usize = 255;

/// Digits of a number: before the point without leading zeros, after it without trailing zeros.
struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl<'a> Decimal<'a> {
    fn parse(text: &'a [u8]) -> Self {
        let blanks = count(text, |byte| matches!(byte, b' ' | b'\t'));
        let text = &text[blanks..];
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let (whole, rest) = text.split_at(count(text, |byte| byte.is_ascii_digit()));
        let fraction = match rest {
            [b'.', rest @ ..] => &rest[..count(rest, |byte| byte.is_ascii_digit())],
            _ => &[],
        };
        let zeros_at_end = fraction.iter().rev().take_while(|digit| **digit == b'0').count();
        Self {
            negative,
            whole: &whole[count(whole, |byte| byte == b'0')..],
            fraction: &fraction[..fraction.len() - zeros_at_end],
        }
    }
}

/// Number of bytes of that kind at the start of `text`.
fn count(text: &[u8], is_kind: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|byte| is_kind(**byte)).count()
}

/// Appends the encoding of the number at the start of `text`. No encoding is a prefix of another.
pub fn push_number(text: &[u8], out: &mut Vec<u8>) {
    let Decimal { negative, whole, fraction } = Decimal::parse(text);
    if whole.is_empty() && fraction.is_empty() {
        out.push(1);
        return;
    }
    out.push(2);
    let magnitude = out.len();
    if whole.len() < LONG_COUNT {
        out.push(whole.len() as u8);
    } else {
        out.push(LONG_COUNT as u8);
        out.extend_from_slice(&(whole.len() as u64).to_be_bytes());
    }
    out.extend_from_slice(whole);
    out.extend_from_slice(fraction);
    out.push(0);
    if negative {
        out[magnitude - 1] = 0;
        for byte in &mut out[magnitude..] {
            *byte = !*byte;
        }
    }
}
