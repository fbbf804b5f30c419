//! Sanitizing of untrusted text before display: names, messages, task logs.
//!
//! Text is sanitized when it is received, and again when it is displayed. Characters that could control a
//! terminal or disguise a text are written as `\u` and four digits, as in JSON, so that JSON stays valid.
//! These are control characters including C1, and marks that change the direction of writing or are
//! invisible. File names are handled in `directory`.

use std::borrow::Cow;
use std::fmt::Write;

/// Maximum length of a name, such as a label, a pool or a host; bytes.
pub const NAME_BYTES_MAX: usize = 256;

/// Maximum length of a message, bytes; the rest is cut.
pub const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// Error of an invalid name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum NameError {
    /// The name is empty or too long.
    #[error("{what} has {bytes} bytes; a name has 1 to {NAME_BYTES_MAX}")]
    Length {
        what: &'static str,
        /// Length of the name.
        bytes: usize,
    },
    /// The name contains invalid characters.
    #[error("{what} `{name}` holds characters that control a terminal or cannot be seen")]
    Unclean {
        what: &'static str,
        /// Name, sanitized.
        name: String,
    },
}

/// Rejects a name that is empty, too long, or contains invalid characters.
///
/// # Errors
/// The first detected error.
pub fn check_name(what: &'static str, name: &str) -> Result<(), NameError> {
    if !(1..=NAME_BYTES_MAX).contains(&name.len()) {
        return Err(NameError::Length { what, bytes: name.len() });
    }
    match name.chars().any(is_harmful) {
        true => Err(NameError::Unclean { what, name: line(name, NAME_BYTES_MAX) }),
        false => Ok(()),
    }
}

/// Sanitizes a message to approximately [`MESSAGE_BYTES_MAX`]; it may have several lines.
#[must_use]
pub fn message(text: &str) -> String {
    cut(text, MESSAGE_BYTES_MAX, "\n")
}

/// Sanitizes text to one line of at most this many bytes, or one more character; a cut is shown by `…`.
#[must_use]
pub fn line(text: &str, bytes_max: usize) -> String {
    cut(text, bytes_max, " | ")
}

fn cut(text: &str, bytes_max: usize, end_of_line: &str) -> String {
    let mut out = String::with_capacity(text.len().min(bytes_max));
    for character in text.chars() {
        if bytes_max <= out.len() {
            out.push('…');
            break;
        }
        match character {
            '\n' => out.push_str(end_of_line),
            '\t' => out.push(' '),
            character => push(&mut out, character),
        }
    }
    out
}

/// Sanitizes text for a terminal: line ends and tabs stay. JSON stays JSON with the same meaning.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    let harmful = |character| is_harmful(character) && !matches!(character, '\n' | '\t');
    if !text.chars().any(harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '\n' | '\t' => out.push(character),
            character => push(&mut out, character),
        }
    }
    Cow::Owned(out)
}

fn push(out: &mut String, character: char) {
    if !is_harmful(character) {
        return out.push(character);
    }
    for unit in character.encode_utf16(&mut [0; 2]) {
        // Writing to a text does not fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

/// True if a character affects a terminal or its neighbours.
fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Direction of writing.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Ends of lines and paragraphs.
            | '\u{2028}' | '\u{2029}'
            // Invisible: soft hyphen, fillers, spaces without width, byte order mark, annotations, tags. Joiners stay:
            // words of some languages and composed emoji need them.
            | '\u{ad}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{3164}' | '\u{ffa0}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sequences that set the title and the clipboard, clear the screen, reverse the text.
    const HARM: &str = "\u{1b}]0;title\u{7}\u{1b}]52;c;eA==\u{7}\u{1b}[2J\u{9b}31m\u{90}x\u{9c}\u{202e}txt.exe\u{2066}\r\u{8}\u{7f}\u{feff}\u{e0041}";

    #[test]
    fn nothing_that_drives_a_terminal_is_left() {
        assert_eq!(message("a\nb | c\td"), "a\nb | c d");
        for cleaned in [line(HARM, 1000), lines(HARM).into_owned(), message(HARM)] {
            assert!(!cleaned.chars().any(is_harmful), "{cleaned}");
            assert!(
                cleaned.contains("\\u001b]0;title\\u0007") && cleaned.contains("\\u009b31m"),
                "{cleaned}"
            );
        }
        assert_eq!(line("a\nb\tc\r", 100), "a | b c\\u000d");
        assert_eq!(lines("a\nb\tc é 漢 👩‍💻"), "a\nb\tc é 漢 👩‍💻");
    }

    #[test]
    fn names_are_refused_when_too_long_or_unclean() {
        check_name("the pool", "reports é").unwrap();
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for (name, words) in [
            ("", "the pool has 0 bytes; a name has 1 to 256"),
            (&*long, "the pool has 257 bytes; a name has 1 to 256"),
            (
                "a\u{1b}[2J",
                "the pool `a\\u001b[2J` holds characters that control a terminal or cannot be seen",
            ),
            (
                "a\u{200b}\u{3164}",
                "the pool `a\\u200b\\u3164` holds characters that control a terminal or cannot be seen",
            ),
            ("a\nb", "the pool `a | b` holds characters that control a terminal or cannot be seen"),
        ] {
            assert_eq!(check_name("the pool", name).unwrap_err().to_string(), words);
        }
    }

    proptest! {
        #[test]
        fn texts_are_clean_and_short_whatever_they_were(text in any::<String>(), bytes_max in 0..100usize) {
            let line = line(&text, bytes_max);
            prop_assert!(!line.chars().any(is_harmful) && line.len() <= bytes_max + 16);
            prop_assert!(!lines(&text).chars().any(|c| is_harmful(c) && c != '\n' && c != '\t'));
        }

        #[test]
        fn json_means_the_same_when_cleaned(text in any::<String>()) {
            let text = format!("{text}{HARM}");
            let json = serde_json::to_string_pretty(&[&text]).unwrap();
            let cleaned = lines(&json);
            let cleaned_of_c1 = !cleaned.contains('\u{9b}');
            prop_assert!(cleaned_of_c1);
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&cleaned).unwrap(), vec![text]);
        }
    }
}
