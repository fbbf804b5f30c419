//! Sizes in bytes as users type them: `64MiB`, `500MB`, `4096`.

/// A text that is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// Not a whole number followed by a known unit.
    #[error(
        "{text} is not a size: write a whole number of bytes, or one with a unit, such as 64MiB or 500MB"
    )]
    Form {
        /// The text as given.
        text: String,
    },
    /// More bytes than fit into 64 bits.
    #[error("{text} is more than 2^64 bytes")]
    TooLarge {
        /// The text as given.
        text: String,
    },
}

/// Units and their bytes. Letters match in either case. A bare `K` is rejected because half of all programs read it as
/// 1000 and the other half as 1024.
const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("b", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];

/// Parses a number of bytes. Units: none or `B`, `KiB` to `TiB` (powers of 1024), `KB` to `TB` (powers of 1000).
///
/// # Errors
/// [`SizeError::Form`] for anything else, [`SizeError::TooLarge`] from 2^64 bytes on.
pub fn parse_bytes(text: &str) -> Result<u64, SizeError> {
    let form = || SizeError::Form { text: text.to_owned() };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(form());
    }
    let unit = unit.strip_prefix(' ').unwrap_or(unit).to_ascii_lowercase();
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(form)?;
    // Only digits are left, so parsing fails only if the number is too large.
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(*factor))
        .ok_or_else(|| SizeError::TooLarge { text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_binary_decimal_and_no_units() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("7B", 7),
            ("1KiB", 1024),
            ("64MiB", 64 << 20),
            ("64 MiB", 64 << 20),
            ("1gib", 1 << 30),
            ("500MB", 500_000_000),
            ("2TB", 2_000_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_without_number_or_with_an_unknown_unit_are_refused() {
        for text in ["", "MiB", "-1", "1.5GiB", "1K", "1 M", "1  MiB", "1MiBx", " 1", "1é"] {
            assert_eq!(parse_bytes(text), Err(SizeError::Form { text: text.to_owned() }), "{text}");
        }
    }

    #[test]
    fn sizes_over_64_bits_are_refused() {
        for text in ["18446744073709551616", "16777216TiB"] {
            assert_eq!(parse_bytes(text), Err(SizeError::TooLarge { text: text.to_owned() }), "{text}");
        }
    }
}
