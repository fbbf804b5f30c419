//! Parts that hold tables by columns: how lines become rows.
//!
//! A job writes lines as ever; each becomes a row. The same lines give the same file. Not here: reading such files
//! (`input::tables`).

#[cfg(feature = "tables")]
mod sink;

#[cfg(feature = "tables")]
pub(super) use sink::TableSink;

#[cfg(not(feature = "tables"))]
use super::layout::RowLayout;
#[cfg(not(feature = "tables"))]
use super::stored::Stored;
#[cfg(not(feature = "tables"))]
use crate::input::TableKind;
#[cfg(not(feature = "tables"))]
use std::io;

/// What a part that holds a table by columns is written by, in a program that was built without it.
#[cfg(not(feature = "tables"))]
pub(super) struct TableSink(std::convert::Infallible);

#[cfg(not(feature = "tables"))]
impl TableSink {
    pub fn new(kind: TableKind, _: &RowLayout, _: Stored) -> io::Result<Self> {
        let why = format!("this program was built without writing {kind} files (the feature `tables`)");
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    pub fn stored(&self) -> (u64, u32) {
        match self.0 {}
    }

    pub fn write_all(&mut self, _: &[u8]) -> io::Result<()> {
        match self.0 {}
    }

    pub fn finish(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
