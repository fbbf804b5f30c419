//! Where parts become files that hold tables by columns: the crate `gristmill-formats` writes them and is
//! [plugged in](plug_in_tables) by the program.
//!
//! A job writes lines as ever; each becomes a row. The same lines give the same file.

use super::layout::RowLayout;
use super::stored::Stored;
use crate::input::TableKind;
use std::io;
use std::sync::OnceLock;

/// Writes lines as rows.
pub trait TableSink: Send {
    /// Bytes and CRC-32C of what has gone to the file.
    fn stored(&self) -> (u64, u32);

    /// Takes lines, or parts of them.
    ///
    /// # Errors
    /// An error of the file system, and [`NoRow`](super::NoRow).
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Ends the file.
    ///
    /// # Errors
    /// As [`TableSink::write_all`].
    fn finish(&mut self) -> io::Result<()>;
}

/// Starts a file of a table.
pub type OpenTable = fn(TableKind, &RowLayout, Stored) -> io::Result<Box<dyn TableSink>>;

static OPEN: OnceLock<OpenTable> = OnceLock::new();

/// Sets what writes tables in this process. Only the first call counts.
pub fn plug_in_tables(open: OpenTable) {
    let _ = OPEN.set(open);
}

/// Starts a file of a table.
///
/// # Errors
/// What keeps it from being written, and a program that was built without what writes such files.
pub(super) fn open(kind: TableKind, layout: &RowLayout, stored: Stored) -> io::Result<Box<dyn TableSink>> {
    let why = || format!("this program was built without writing {kind} files (the feature `formats`)");
    let open = OPEN.get().ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, why()))?;
    open(kind, layout, stored)
}
