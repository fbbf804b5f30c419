//! Lists of names as Hadoop takes them: with commas, and with braces that stand for several names.

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
    items.retain(|item| !item.is_empty());
    items
}

/// Names that `a{b,c}d` stands for.
pub fn expand_braces(text: &str) -> Vec<String> {
    let Some(open) = text.find('{') else { return vec![text.to_owned()] };
    let mut depth = 0;
    let close = text[open..].char_indices().find_map(|(at, letter)| {
        depth = match letter {
            '{' => depth + 1,
            '}' => depth - 1,
            _ => depth,
        };
        (depth == 0).then_some(open + at)
    });
    let Some(close) = close else { return vec![text.to_owned()] };
    let (before, after) = (&text[..open], &text[close + 1..]);
    let inner = split_list(&text[open + 1..close]);
    inner.iter().flat_map(|inner| expand_braces(&format!("{before}{inner}{after}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_and_commas_stand_for_several_names() {
        assert_eq!(split_list("a,b{c,d},e"), ["a", "b{c,d}", "e"]);
        assert_eq!(expand_braces("x{a,b{c,d}}y"), ["xay", "xbcy", "xbdy"]);
        assert_eq!(expand_braces("x{a"), ["x{a"]);
    }
}
