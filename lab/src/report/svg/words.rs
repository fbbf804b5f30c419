//! Approximate widths of text, and line breaks. The fonts are only known to the program that shows the
//! drawing.
//!
//! Not here: positions of text.

/// Size of all text, in the drawing's pixels.
pub(super) const FONT_SIZE: f64 = 13.0;

/// Distance between two lines of text.
pub(super) const LINE_HEIGHT: f64 = 16.0;

/// Returns an upper estimate of the width of a text in sans-serif fonts.
pub(super) fn width(text: &str) -> f64 {
    let units: f64 = text
        .chars()
        .map(|character| match character {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.29,
            ' ' | 'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' | '\u{202f}' => 0.37,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.9,
            '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.42,
            'A'..='Z' | '×' | '±' | '=' | '<' | '>' | '+' | '−' => 0.69,
            '0'..='9' => 0.64,
            other if other.is_ascii() => 0.6,
            'α'..='ω' => 0.6,
            _ => 0.8,
        })
        .sum();
    units * FONT_SIZE
}

/// Breaks text into lines of at most this width, between words, and within words if necessary. Text that
/// does not fit into `lines` lines ends in an ellipsis.
pub(super) fn wrap(text: &str, most: f64, lines: usize) -> Vec<String> {
    let mut found: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let line = found.last_mut().expect("there is always a line");
        let joined = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if width(&joined) <= most || line.is_empty() {
            *line = joined;
        } else {
            found.push(word.to_owned());
        }
    }
    let cut = lines < found.len();
    found.truncate(lines.max(1));
    let last = found.len() - 1;
    for (place, line) in found.iter_mut().enumerate() {
        let goes_on = cut && place == last;
        if most < width(line) || goes_on {
            *line = shortened(line, most, goes_on);
        }
    }
    found.retain(|line| !line.is_empty());
    found
}

/// Returns as much of a text as fits, with an ellipsis if a part is missing or `goes_on`.
pub(super) fn shortened(text: &str, most: f64, goes_on: bool) -> String {
    if width(text) <= most && !goes_on {
        return text.to_owned();
    }
    let mut kept: Vec<char> = text.chars().collect();
    let ellipsis = |kept: &[char]| kept.iter().collect::<String>().trim_end().to_owned() + "…";
    while most < width(&ellipsis(&kept)) && kept.pop().is_some() {}
    ellipsis(&kept)
}

#[cfg(test)]
mod tests {
    use super::{shortened, width, wrap};
    use proptest::prelude::*;

    #[test]
    fn long_words_end_in_an_ellipsis() {
        assert_eq!(wrap("a short line", 500.0, 2), ["a short line"]);
        assert_eq!(wrap("", 500.0, 2), [""; 0]);
        assert_eq!(shortened("word", 500.0, false), "word");
        assert!(shortened("a very long word", 60.0, false).ends_with('…'));
    }

    proptest! {
        #[test]
        fn wrapped_lines_fit(text in "[a-z ]{0,200}", most in 40.0..400.0_f64, lines in 1..4_usize) {
            let wrapped = wrap(&text, most, lines);
            prop_assert!(wrapped.len() <= lines);
            for line in &wrapped {
                prop_assert!(width(line) <= most + 1e-9, "{line}");
            }
            let whole = wrapped.join(" ");
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert!(whole == words || whole.contains('…'));
        }
    }
}
