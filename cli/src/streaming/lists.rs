//! Lists of names as Hadoop takes them: with commas, and with braces that stand for several names. Within braces a `\` takes
//! the meaning from the sign behind it; it stays, for whoever looks for the names. In lists it has none, as in Hadoop.

/// A list with commas, of which those within braces are no separators.
pub fn split_list(text: &str) -> Vec<String> {
    let (mut items, mut item, mut depth) = (Vec::new(), String::new(), 0_usize);
    for letter in text.chars() {
        match letter {
            ',' if depth == 0 => items.push(std::mem::take(&mut item)),
            _ => {
                depth = match letter {
                    '{' => depth + 1,
                    '}' => depth.saturating_sub(1),
                    _ => depth,
                };
                item.push(letter);
            }
        }
    }
    items.push(item);
    items
}

/// Names that the braces of one name may stand for.
const NAMES_MAX: usize = 10_000;
/// Bytes that are looked at for that: braces within braces may stand for few names and take long.
const LOOKED_MAX: usize = 16 << 20;

/// Braces that stand for more names than are looked at.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}': its braces stand for more than {NAMES_MAX} names, or too deeply nested; use * or ?, or several calls"
)]
pub struct TooManyNames {
    text: String,
}

/// Stand where braces were until all are expanded: those of one name or with no name in them, and those that hold a slash
/// beside one. They begin with the only sign that nobody can type.
const MARKS: [&str; 2] = ["\0n", "\0s"];

/// Names that `a{b,c}d` stands for. As in Hadoop, where braces without a slash are part of the pattern of one name, they
/// make no name that is nothing, `.` or `..`: `a/{b,}` is `a/b` alone, and `a/.{b,}` is `a/.b`, never the folder above.
///
/// # Errors
/// More than anybody types.
pub fn expand_braces(text: &str) -> Result<Vec<String>, TooManyNames> {
    // The last of them is the next that is looked at.
    let (mut names, mut open) = (Vec::new(), vec![text.to_owned()]);
    let mut looked = 0;
    while let Some(name) = open.pop() {
        looked += name.len();
        match expand_first(&name) {
            Some(expanded) => open.extend(expanded.into_iter().rev()),
            None => names.extend(spelt(&name)),
        }
        if NAMES_MAX < names.len() + open.len() || LOOKED_MAX < looked {
            return Err(TooManyNames { text: text.to_owned() });
        }
    }
    Ok(names)
}

/// The name without marks; `None` where braces have made one of its parts to be nothing, `.` or `..`.
fn spelt(name: &str) -> Option<String> {
    let unmarked = |part: &str| part.replace(MARKS[0], "").replace(MARKS[1], "");
    let parts: Vec<&str> = name.split('/').collect();
    let is_made = |(at, part): (usize, &&str)| {
        let typed = part.trim_start_matches(MARKS[1]).trim_end_matches(MARKS[1]);
        match unmarked(part).as_str() {
            "" if part.is_empty() => false,
            // A slash within braces may begin the whole name, or end it.
            "" => part.contains(MARKS[0]) || (0 < at && at + 1 < parts.len()),
            // What is wholly within braces with slashes, or outside of all.
            dots @ ("." | "..") => typed != dots,
            _ => false,
        }
    };
    (!parts.iter().enumerate().any(is_made)).then(|| unmarked(name))
}

/// The names that the first braces stand for; `None` if there are none.
fn expand_first(text: &str) -> Option<Vec<String>> {
    let signs = || meaning_signs(text);
    let (open, _) = signs().find(|(_, sign)| *sign == '{')?;
    let mut depth = 0;
    // Where each of the names inside begins, behind a brace or a comma.
    let mut begins = Vec::new();
    for (at, sign) in signs().skip_while(|(at, _)| *at < open) {
        match sign {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if at == open || (depth == 1 && sign == ',') {
            begins.push(at + 1);
        }
        if depth == 0 {
            let (before, after) = (&text[..open], &text[at + 1..]);
            let ends = begins.iter().skip(1).map(|begin| begin - 1).chain([at]);
            let inner = begins.iter().zip(ends).map(|(begin, end)| &text[*begin..end]);
            let has_slash = text[open..at].contains('/');
            let marked = inner.map(|inner| {
                let is_name = has_slash && inner.bytes().any(|byte| byte != b'/');
                let mark = if is_name { MARKS[1] } else { MARKS[0] };
                format!("{before}{mark}{inner}{mark}{after}")
            });
            return Some(marked.collect());
        }
    }
    None
}

/// The braces and commas of a name that are not escaped, each with its place.
fn meaning_signs(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut is_escaped = false;
    text.char_indices().filter(move |(_, letter)| {
        let means = !is_escaped && matches!(letter, '{' | '}' | ',');
        is_escaped = !is_escaped && *letter == '\\';
        means
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_and_commas_stand_for_several_names() {
        assert_eq!(split_list("a,b{c,d},e"), ["a", "b{c,d}", "e"]);
        let expanded = |text: &str| expand_braces(text).unwrap();
        assert_eq!(expanded("x{a,b{c,d}}y"), ["xay", "xbcy", "xbdy"]);
        assert_eq!(expanded("{a,b}{c,d}"), ["ac", "ad", "bc", "bd"]);
        assert_eq!(expanded("x{a"), ["x{a"]);
        assert_eq!(expanded("part{,-b}"), ["part", "part-b"]);
        assert_eq!(expanded("x{}y"), ["xy"]);
        assert_eq!(expanded(r"x{a\,b,c}"), [r"xa\,b", "xc"]);
        assert_eq!(expanded(r"\{a,b}"), [r"\{a,b}"]);
        assert_eq!(expanded(r"{a,b\}}"), ["a", r"b\}"]);
        assert_eq!(expanded(r"\\{a,b}"), [r"\\a", r"\\b"]);
        assert_eq!(expanded("x}{a,b}"), ["x}a", "x}b"]);
        assert_eq!(split_list("a,,b,"), ["a", "", "b", ""]);
        assert_eq!(expanded("a{,/b}/c"), ["a/c", "a/b/c"]);
        assert_eq!(expanded("a{/,/b/}c"), ["a/c", "a/b/c"]);
        assert_eq!(expanded("{/a,/b}/c"), ["/a/c", "/b/c"]);
        assert_eq!(expanded(&"{a,b}".repeat(13)).len(), 8192);
    }

    #[test]
    fn braces_that_leave_nothing_between_slashes_name_nothing() {
        let expanded = |text: &str| expand_braces(text).unwrap();
        for text in [
            "{}",
            "{,}",
            "{}/",
            "/logs/{}",
            "/logs/{}/*",
            "{{},}/x",
            "/{}{,}/x",
            "hdfs://{}/x",
            "/logs/{/}",
            "{/}*",
            "{//,}",
        ] {
            assert_eq!(expanded(text), [""; 0], "{text}");
        }
        assert_eq!(expanded("/logs/{x,}"), ["/logs/x"]);
        assert_eq!(expanded("/logs/\u{1}/n{a,s}/s"), ["/logs/\u{1}/na/s", "/logs/\u{1}/ns/s"]);
        assert_eq!(expanded("/logs/{x/,/}*"), ["/logs/x/*"]);
        assert_eq!(expanded("/logs/{/*,tmp}"), ["/logs/tmp"]);
        assert_eq!(expanded("{a/,b/}"), ["a/", "b/"]);
        assert_eq!(expanded("{x,}/*"), ["x/*"]);
        assert_eq!(expanded("/{a,}{b,}/*"), ["/ab/*", "/a/*", "/b/*"]);
        assert_eq!(expanded("{a/,}b/{c,/}d"), ["a/b/cd", "b/cd"]);
        // Nor a folder above by another name.
        assert_eq!(expanded("/d/.{tmp,}/*"), ["/d/.tmp/*"]);
        assert_eq!(expanded("/d/{.tmp,.}/*"), ["/d/.tmp/*"]);
        assert_eq!(expanded("/d/..{x,}/*"), ["/d/..x/*"]);
        assert_eq!(expanded("/d/.{.x,.}/*"), ["/d/..x/*"]);
        assert_eq!(expanded(".{a/b,./c}"), [".a/b"]);
        assert_eq!(expanded("{,.}{,.}{x,}"), ["x", ".x", ".x", "..x"]);
        // These were typed.
        assert_eq!(expanded("{./a,../b}/../c{d,e}"), ["./a/../cd", "./a/../ce", "../b/../cd", "../b/../ce"]);
        assert_eq!(expanded("../{a,b}/."), ["../a/.", "../b/."]);
    }

    #[test]
    fn braces_are_refused_when_they_stand_for_too_many_names() {
        for text in [
            "{a,b}".repeat(26),
            format!("{{{}}}", ",a".repeat(NAMES_MAX + 1)),
            "{".repeat(30_000) + &"}".repeat(30_000),
        ] {
            assert!(expand_braces(&text).unwrap_err().to_string().contains("more than 10000 names"));
        }
    }
}
