//! Escapes text inside markup.
//!
//! Not here: markup itself.

/// Escapes text for an element or an attribute in double quotes, in HTML and XML. Control characters,
/// which neither allows, become spaces.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push('\n'),
            '\u{fffe}' | '\u{ffff}' => out.push(' '),
            other if other.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

/// Escapes text, and formats text between backticks as code.
pub(super) fn prose(text: &str) -> String {
    let pieces: Vec<&str> = text.split('`').collect();
    let mut out = String::with_capacity(text.len());
    // With an odd number of backticks the last one is unpaired and stays.
    let paired = pieces.len() % 2 == 1;
    for (place, piece) in pieces.iter().enumerate() {
        let last = place + 1 == pieces.len();
        match place % 2 {
            1 if paired || !last => {
                out.push_str("<code>");
                out.push_str(&escape(piece));
                out.push_str("</code>");
            }
            1 => {
                out.push('`');
                out.push_str(&escape(piece));
            }
            _ => out.push_str(&escape(piece)),
        }
    }
    out
}

/// Returns the text without backticks, for places without code formatting.
pub(super) fn plain(text: &str) -> String {
    escape(&text.replace('`', ""))
}

#[cfg(test)]
mod tests {
    use super::{escape, plain, prose};

    #[test]
    fn markup_in_text_becomes_text() {
        assert_eq!(escape("a < b & \"c\" > 'd'\u{7}"), "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39; ");
        assert_eq!(prose("<b> `x < y` and `z`"), "&lt;b&gt; <code>x &lt; y</code> and <code>z</code>");
        assert_eq!(prose("a ` b"), "a ` b");
        assert_eq!(prose("`a` ` b"), "<code>a</code> ` b");
        assert_eq!(plain("`a` < b"), "a &lt; b");
    }
}
