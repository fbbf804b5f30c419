//! Nearest known name to one that was typed.

/// Lists the known names, after the one that is probably meant.
pub(crate) fn listed(name: &str, known: &[&'static str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? There is {}", known.join(", ")),
        None => format!("there is {}", known.join(", ")),
    }
}

/// Returns the word with the smallest edit distance to `name`, if it is small enough for a typing error.
#[must_use]
pub fn nearest<'a>(name: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let best =
        words.map(|word| (strsim::osa_distance(name, word), word)).min_by_key(|&(distance, _)| distance)?;
    (best.0 * 3 <= name.chars().count().max(3)).then_some(best.1)
}
