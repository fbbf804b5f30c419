//! Errors of looking up a catalogue name, with the known names and the nearest one.

use super::arguments::ArgumentError;
use super::spelling::listed;

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
