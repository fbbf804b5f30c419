//! Offsets at which a CSV file can be cut: ends of rows outside quotes.

use crate::input::blocks::BYTE_ORDER_MARK;
use crate::input::border::{self, QUOTE};
use crate::input::error::InputError;
use crate::input::local::LocalFiles;
use crate::input::source::FileAccess;
use crate::input::split::Piece;
use memchr::memchr;
use std::thread;

/// Minimum bytes that one thread searches.
const SCAN_BYTES: usize = 256 << 10;

/// Maximum number of threads that search for quotes. More would only wait for memory.
const SCAN_THREADS_MAX: usize = 8;

/// Reads a CSV file once to find rows that end near multiples of the split size. A file that cannot be mapped is not
/// cut.
pub(super) fn row_cuts(file: &Piece, delimiter: u8, split_bytes: u64) -> Result<Vec<u64>, InputError> {
    let mut open = LocalFiles.open(file)?;
    let Some(bytes) = open.bytes() else { return Ok(Vec::new()) };
    let first = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let cuts = border::row_cuts(bytes, first, delimiter, split_bytes, holds_quotes(bytes));
    // A file that was changed meanwhile is reported as such.
    open.verify_unchanged()?;
    cuts.map_err(|offset| InputError::unclosed_quote(&file.name, offset))
}

/// True if these bytes contain a quote. Several threads search, each in its own range.
fn holds_quotes(bytes: &[u8]) -> bool {
    let threads = thread::available_parallelism().map_or(1, usize::from).clamp(1, SCAN_THREADS_MAX);
    let (own, others) = bytes.split_at(bytes.len().div_ceil(threads).max(SCAN_BYTES).min(bytes.len()));
    let holds = |part: &[u8]| memchr(QUOTE, part).is_some();
    if others.is_empty() || holds(&own[..SCAN_BYTES]) {
        return holds(own);
    }
    thread::scope(|scope| {
        let look = |part| (part, thread::Builder::new().spawn_scoped(scope, move || holds(part)));
        let looking: Vec<_> = others.chunks(own.len()).map(look).collect();
        // If a thread could not be started, this one searches itself.
        let joined = |(part, thread): (&[u8], std::io::Result<thread::ScopedJoinHandle<'_, bool>>)| {
            thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(|| holds(part))
        };
        looking.into_iter().fold(holds(own), |found, thread| joined(thread) || found)
    })
}
