//! Parts that hold tables by columns: what columns the lines of a job have, and how lines become rows.
//!
//! A job writes lines as ever; each becomes a row. The same lines give the same file. Not here: reading such files
//! (`input::tables`).

#[cfg(feature = "tables")]
mod sink;

#[cfg(feature = "tables")]
pub(super) use sink::TableSink;

use crate::input::TableKind;
use std::io;

/// The columns of the lines that a job writes, for parts that hold tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowLayout {
    pub(super) separator: RowSeparator,
    pub(super) columns: Vec<OutputColumn>,
}

/// What stands between the fields of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RowSeparator {
    /// Tabs; what lies behind the last column's belongs to it.
    Tab,
    /// This byte, with quotes as in RFC 4180.
    Csv(u8),
}

/// A column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OutputColumn {
    name: String,
    kind: ColumnKind,
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// Text in UTF-8.
    Text,
    /// Whole numbers from -2^63 to 2^63 - 1.
    Integer,
}

impl Default for RowLayout {
    /// One column `line`.
    fn default() -> Self {
        Self::tabs([("line", ColumnKind::Text)])
    }
}

impl RowLayout {
    /// Fields with tabs between them.
    pub fn tabs<N: Into<String>>(columns: impl IntoIterator<Item = (N, ColumnKind)>) -> Self {
        let columns = columns.into_iter().map(|(name, kind)| OutputColumn { name: name.into(), kind });
        Self { separator: RowSeparator::Tab, columns: columns.collect() }
    }

    /// Rows of CSV, whose fields are text. Names that are there already get a number.
    pub fn csv<N: Into<String>>(delimiter: u8, names: impl IntoIterator<Item = N>) -> Self {
        let mut columns: Vec<OutputColumn> = Vec::new();
        for name in names {
            let wanted: String = name.into();
            let is_there = |name: &str| columns.iter().any(|column| column.name == name);
            let numbered = (2_u64..).map(|number| format!("{wanted}_{number}"));
            let name = std::iter::once(wanted.clone()).chain(numbered).find(|name| !is_there(name));
            columns.push(OutputColumn { name: name.unwrap_or_default(), kind: ColumnKind::Text });
        }
        Self { separator: RowSeparator::Csv(delimiter), columns }
    }
}

/// A line that is no row of its table.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the part cannot be a row of its {kind} file: {why}")]
pub(super) struct NoRow {
    pub(super) line: u64,
    pub(super) kind: TableKind,
    pub(super) why: String,
}

/// What a part that holds a table by columns is written by, in a program that was built without it.
#[cfg(not(feature = "tables"))]
pub(super) struct TableSink(std::convert::Infallible);

#[cfg(not(feature = "tables"))]
impl TableSink {
    pub fn new(kind: TableKind, _: &RowLayout, _: super::sink::Stored) -> io::Result<Self> {
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

/// Whether what kept a part from being written is a line that is no row.
pub(super) fn is_no_row(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NoRow>())
}
