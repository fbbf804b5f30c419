//! Outcome of a master that ends.

/// Outcome of a master's jobs when it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// Keeps its jobs for the next master of the state directory. Its workers wait for that master.
    Keeps,
    /// Ends its jobs and workers.
    Abandons,
}
