//! Errors of looking up a catalogue name, with the known names and the nearest one.

use super::arguments::ArgumentError;
use std::fmt;

/// Error of looking up a name.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum CatalogueError {
    /// The name does not exist.
    Unknown {
        /// Kind of entry: `policy`, `placement`.
        kind: &'static str,
        /// Given name.
        name: String,
        /// Known names.
        known: Vec<&'static str>,
    },
    /// The entry cannot run on a live cluster.
    OnlySimulated {
        /// Kind of entry: `policy`, `placement`.
        kind: &'static str,
        /// Given name.
        name: String,
        reason: &'static str,
    },
    /// The parameters are invalid.
    Arguments {
        /// Kind of entry: `policy`, `placement`.
        kind: &'static str,
        name: &'static str,
        source: ArgumentError,
    },
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatalogueError::Unknown { kind, name, known } => {
                write!(f, "there is no {kind} `{name}`")?;
                list(f, "; ", name, known)
            }
            CatalogueError::Arguments { kind, name, source } => write!(f, "{kind} `{name}`: {source}"),
            CatalogueError::OnlySimulated { kind, name, reason } => {
                write!(f, "{kind} `{name}` can only be simulated: {reason}")
            }
        }
    }
}

impl std::error::Error for CatalogueError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CatalogueError::Unknown { .. } | CatalogueError::OnlySimulated { .. } => None,
            CatalogueError::Arguments { source, .. } => Some(source),
        }
    }
}

pub(super) fn list(
    f: &mut fmt::Formatter<'_>,
    before: &str,
    name: &str,
    known: &[&'static str],
) -> fmt::Result {
    match nearest(name, known.iter().copied()) {
        Some(near) => write!(f, "{before}did you mean `{near}`? There is {}", known.join(", ")),
        None => write!(f, "{before}there is {}", known.join(", ")),
    }
}

/// Returns the word with the smallest edit distance to `name`, if it is small enough for a typing error.
#[must_use]
pub fn nearest<'a>(name: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let best = words.map(|word| (edits(name, word), word)).min_by_key(|&(distance, _)| distance)?;
    (best.0 * 3 <= name.chars().count().max(3)).then_some(best.1)
}

/// Returns the number of insertions, deletions, replacements and swaps of neighbours that turn one word into another.
fn edits(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            rows[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
                    let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    if 1 < i && 1 < j && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                        least = least.min(rows[i - 2][j - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    rows[from.len()][to.len()]
}
