//! Rates as users type them: `50MB/s`, `400Mbit/s`. A bare number is rejected: half of all programs read it as bytes,
//! the other half as bits.

use crate::size::parse_bytes;
use std::num::NonZeroU64;

/// A text that is not a rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// Not a whole number followed by a known unit, or less than a byte per second.
    #[error("{text} is not a rate: write at least a byte in a second, such as 50MB/s, 64MiB/s or 400Mbit/s")]
    Form {
        /// The text as given.
        text: String,
    },
    /// A number alone.
    #[error(
        "{number} has no unit, and may be bytes or bits: write {number}MB/s or {number}Mbit/s, or {number}B/s or \
         {number}bit/s"
    )]
    Unit {
        /// The number.
        number: String,
    },
}

/// Units of bits and their sizes in bits, in lower case.
const BITS: [(&str, u64); 4] = [("bit", 1), ("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000)];

/// Bits of a byte.
const BYTE_BITS: u64 = 8;

/// Parses a rate in bytes per second: a size with a unit as [`parse_bytes`] reads it, or a whole number of `bit`,
/// `Kbit`, `Mbit` or `Gbit` (powers of 1000), each with or without the suffix `/s`.
///
/// # Errors
/// [`RateError::Unit`] for a number alone, [`RateError::Form`] for anything else, and for less than one byte per
/// second.
pub fn parse_rate(text: &str) -> Result<NonZeroU64, RateError> {
    let amount = text.strip_suffix("/s").unwrap_or(text);
    if !amount.is_empty() && amount.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(RateError::Unit { number: amount.to_owned() });
    }
    let rate = bits(amount).map(|bits| bits / BYTE_BITS).or_else(|| parse_bytes(amount).ok());
    rate.and_then(NonZeroU64::new).ok_or_else(|| RateError::Form { text: text.to_owned() })
}

fn bits(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = unit.strip_prefix(' ').unwrap_or(unit).to_ascii_lowercase();
    let (_, factor) = BITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_in_bytes_and_in_bits_with_or_without_the_second() {
        for (text, bytes) in [
            ("1000000B", 1_000_000),
            ("50MB/s", 50_000_000),
            ("50MB", 50_000_000),
            ("64MiB/s", 64 << 20),
            ("64 MiB/s", 64 << 20),
            ("400Mbit/s", 50_000_000),
            ("1Gbit", 125_000_000),
            ("8 kbit/s", 1_000),
            ("8bit/s", 1),
        ] {
            assert_eq!(parse_rate(text).map(NonZeroU64::get), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn nothing_in_a_second_and_what_is_no_rate_are_refused() {
        for text in [
            "",
            "/s",
            "0B",
            "0MB/s",
            "7bit/s",
            "fast",
            "-1",
            "1.5MB/s",
            "50MB/min",
            "50MB/s/s",
            "99999999999Gbit/s",
        ] {
            assert_eq!(parse_rate(text), Err(RateError::Form { text: text.to_owned() }), "{text}");
        }
    }

    #[test]
    fn number_alone_is_refused_with_both_that_it_may_mean() {
        for (text, number) in [("100", "100"), ("100/s", "100"), ("0", "0")] {
            let error = parse_rate(text).unwrap_err();
            assert_eq!(error, RateError::Unit { number: number.to_owned() });
            let [bytes, bits] = [format!(" {number}MB/s "), format!(" {number}Mbit/s,")];
            let words = error.to_string();
            assert!(words.contains(&bytes) && words.contains(&bits), "{words}");
        }
    }
}
