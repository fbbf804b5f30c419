//! What the signs of a name with wildcards stand for, character by character: `*` for any, `?` for one, `[a-c]` for one of
//! these, `[!a-c]` or `[^a-c]` for any other, `[c-a]` for none, negated or not. A `\` takes its meaning from the sign behind it. Bytes that are no UTF-8 are
//! each a character of its own. Not here: which files there are, and which of them are passed over.

/// Whether there are wildcards in it, or what takes their meaning from them.
#[must_use]
pub fn has_wildcards(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| b"*?[\\".contains(byte))
}

/// Whether a name fits a pattern. A `[` that is never closed stands for itself, and so does a `\` at the end.
#[must_use]
pub fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (pattern, name) = (signs(pattern), characters(name));
    let (mut at, mut in_name) = (0, 0);
    // Where the pattern goes on behind its last star, and up to where that star takes the name: an earlier one need
    // never take more.
    let mut star = None;
    while in_name < name.len() {
        if pattern.get(at) == Some(&STAR) {
            at += 1;
            star = Some((at, in_name));
        } else if let Some(length) = fitting(&pattern[at..], name[in_name]) {
            at += length;
            in_name += 1;
        } else if let Some((behind, taken)) = star {
            star = Some((behind, taken + 1));
            (at, in_name) = (behind, taken + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|sign| *sign == STAR)
}

/// The only name that fits a pattern; `None` where there are signs that stand for several, and for `.` and `..`, which are
/// names of nothing, written with a `\`.
#[must_use]
pub fn only_name(pattern: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(pattern.len());
    let mut rest = pattern.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'*' | b'?' | b'[' => return None,
            b'\\' => name.push(*rest.next().unwrap_or(byte)),
            byte => name.push(*byte),
        }
    }
    let is_hidden = name != pattern && matches!(&*name, b"." | b"..");
    (!is_hidden).then_some(name)
}

const STAR: u32 = '*' as u32;
const ANY: u32 = '?' as u32;
const OPEN: u32 = '[' as u32;
const CLOSE: u32 = ']' as u32;
const NOT: [u32; 2] = ['!' as u32, '^' as u32];
const TO: u32 = '-' as u32;
const ESCAPE: u32 = '\\' as u32;

/// Set in a character of a pattern that stands for itself whatever it is.
const ESCAPED: u32 = 1 << 31;

fn characters(text: &[u8]) -> Vec<u32> {
    let of_chunk = |chunk: std::str::Utf8Chunk<'_>| {
        let wrong = chunk.invalid().iter().map(|byte| char::MAX as u32 + 1 + u32::from(*byte));
        chunk.valid().chars().map(u32::from).chain(wrong).collect::<Vec<_>>()
    };
    text.utf8_chunks().flat_map(of_chunk).collect()
}

/// The characters of a pattern, without those that escape others.
fn signs(pattern: &[u8]) -> Vec<u32> {
    let mut signs = Vec::with_capacity(pattern.len());
    let mut rest = characters(pattern).into_iter();
    while let Some(sign) = rest.next() {
        signs.push(if sign == ESCAPE { rest.next().unwrap_or(sign) | ESCAPED } else { sign });
    }
    signs
}

/// How much of a pattern stands for one character, if it is this one.
fn fitting(pattern: &[u32], letter: u32) -> Option<usize> {
    match pattern {
        [ANY, ..] => Some(1),
        [OPEN, rest @ ..] if let Some(close) = closing(rest) => {
            let (negated, set) = match &rest[..close] {
                [first, set @ ..] if NOT.contains(first) => (true, set),
                set => (false, set),
            };
            (class_holds(set, letter)? != negated).then_some(close + 2)
        }
        [first, ..] => (plain(*first) == letter).then_some(1),
        [] => None,
    }
}

fn plain(sign: u32) -> u32 {
    sign & !ESCAPED
}

/// Where a class ends; the first sign of it is one of its own, whatever it is.
fn closing(set: &[u32]) -> Option<usize> {
    let first = if set.first().is_some_and(|sign| NOT.contains(sign)) { 2 } else { 1 };
    set.iter().skip(first).position(|sign| *sign == CLOSE).map(|at| at + first)
}

/// Whether a character is of a class; `None` if no class is meant, as a range of it goes backwards.
fn class_holds(mut set: &[u32], letter: u32) -> Option<bool> {
    let mut holds = false;
    loop {
        let (low, high, rest) = match set {
            [low, TO, high, rest @ ..] => (plain(*low), plain(*high), rest),
            [one, rest @ ..] => (plain(*one), plain(*one), rest),
            [] => return Some(holds),
        };
        if high < low {
            return None;
        }
        holds |= (low..=high).contains(&letter);
        set = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        for (pattern, name, expected) in [
            ("part-*", "part-00000", true),
            ("*", "", true),
            ("part-?", "part-10", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbYcZ", false),
            ("*ab", "aab", true),
            ("a", "ab", false),
            ("a[", "a[", true),
            ("[a-]x", "-x", true),
            ("[]a]x", "]x", true),
            ("[!]a]x", "]x", false),
            ("[!]a]x", "bx", true),
            ("[!]", "[!]", true),
            (r"[a\-z]", "b", false),
            (r"[a\-z]", "-", true),
            (r"[a\-z]", "z", true),
            (r"[a\-z]", r"\", false),
            (r"[\]a]", "]", true),
            (r"[\!a]", "!", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            (r"\[a]", "[a]", true),
            (r"a\", r"a\", true),
            (r"a\\*", r"a\b", true),
            ("[z-a]", "m", false),
            ("[!z-a]", "m", false),
            ("[!z-a]", "z", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn characters_fit_whole_when_they_have_several_bytes() {
        for (pattern, name, expected) in [
            ("[ä]*", "ärger".as_bytes(), true),
            ("[ä]*", "über".as_bytes(), false),
            ("[ä]*", b"\xc3\xff", false),
            ("?", "é".as_bytes(), true),
            ("??", "é".as_bytes(), false),
            ("[à-é]", "è".as_bytes(), true),
            ("[!a]", "é".as_bytes(), true),
            ("a?b", b"a\xffb", true),
            ("a?b", b"a\xff\xfeb", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name), expected, "{pattern} {}", name.escape_ascii());
        }
        assert!(fits(b"\xff*", b"\xffa") && !fits(b"\xfe*", b"\xffa"));
    }

    #[test]
    fn pattern_of_many_stars_is_done_when_nothing_fits() {
        assert!(!fits(format!("{}b", "*a".repeat(60)).as_bytes(), "a".repeat(200).as_bytes()));
    }

    #[test]
    fn pattern_stands_for_one_name_when_all_its_wildcards_are_escaped() {
        for (pattern, expected) in [
            ("a", Some("a")),
            (r"\*\[", Some("*[")),
            (r"\\", Some(r"\")),
            (r"a\", Some(r"a\")),
            ("a?", None),
            (r"\\*", None),
            (r"\.", None),
            (r".\.", None),
            ("..", Some("..")),
        ] {
            assert_eq!(only_name(pattern.as_bytes()).as_deref(), expected.map(str::as_bytes), "{pattern}");
        }
    }
}
