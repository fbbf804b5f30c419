//! Outcome of the jobs of a master that ends: they are kept for the next master of its state directory, or end with it.

/// Outcome of a master's jobs when it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// Keeps its jobs for the next master of the state directory. Its workers wait for that master.
    Keeps,
    /// Ends its jobs and workers.
    Abandons,
}
