//! Sink of the lines or pairs that a command writes.

use gristmill_worker::prelude::*;

/// Sink of the output of a command.
pub(super) trait LineSink {
    /// Handles complete lines, each with its `\n`, without any `\r`. Returns the number of lines.
    fn lines(&mut self, block: &[u8]) -> TaskResult<u64>;
    /// Handles a pair, if the command does not write lines.
    fn pair(&mut self, key: &[u8], value: &[u8]) -> TaskResult;
    /// True if the attempt is cancelled. May block.
    fn is_cancelled(&self) -> bool;
}
