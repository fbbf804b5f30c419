//! Errors of looking up a catalogue name, with the known names and the nearest one.

use super::arguments::ArgumentError;

/// Error of looking up a name.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum CatalogueError {
    /// The name does not exist.
    #[error("there is no {kind} `{name}`; {}", listed(.name, .known))]
    Unknown {
        /// Kind of entry: `policy`, `placement`.
        kind: &'static str,
        /// Given name.
        name: String,
        /// Known names.
        known: Vec<&'static str>,
    },
    /// The entry cannot run on a live cluster.
    #[error("{kind} `{name}` can only be simulated: {reason}")]
    OnlySimulated {
        /// Kind of entry: `policy`, `placement`.
        kind: &'static str,
        /// Given name.
        name: String,
        reason: &'static str,
    },
    /// The parameters are invalid.
    #[error("{kind} `{name}`: {source}")]
    Arguments {
        /// Kind of entry: `policy`, `placement`.
        kind: &'static str,
        name: &'static str,
        source: ArgumentError,
    },
}

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
