//! The byte between fields, as users type it.

/// A text that is not a single byte.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a delimiter: it must be one ASCII character, or \\t for a tab")]
pub(super) struct DelimiterError {
    /// The text as given.
    text: String,
}

/// Parses a delimiter: one ASCII character other than those that delimit records and quoted fields.
pub(super) fn parse_delimiter(text: &str) -> Result<u8, DelimiterError> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err(DelimiterError { text: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_single_ascii_characters() {
        assert_eq!(parse_delimiter(","), Ok(b','));
        assert_eq!(parse_delimiter("\\t"), Ok(b'\t'));
        assert_eq!(parse_delimiter("\t"), Ok(b'\t'));
        for text in ["", ",,", "é", "\"", "\n", "\r", "\\n"] {
            assert_eq!(parse_delimiter(text), Err(DelimiterError { text: text.to_owned() }), "{text:?}");
        }
    }
}
