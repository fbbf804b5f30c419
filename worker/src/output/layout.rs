//! Columns of the lines of a job, for parts that hold columnar tables.

use crate::input::TableKind;
use std::io;

/// Columns of the lines that a job writes, for parts that hold tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowLayout {
    /// Separator of the fields of a line.
    pub separator: RowSeparator,
    /// In their order.
    pub columns: Vec<OutputColumn>,
}

/// Separator of the fields of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowSeparator {
    /// Tab. Tabs after the last column's start belong to that column.
    Tab,
    /// This byte, with quotes as in RFC 4180.
    Csv(u8),
}

/// Column of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputColumn {
    /// Unlike those of the others.
    pub name: String,
    /// Content.
    pub kind: ColumnKind,
}

/// Type of the values of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// Text in UTF-8.
    Text,
    /// Integers from -2^63 to 2^63 - 1.
    Integer,
}

impl Default for RowLayout {
    /// Returns one column `line`.
    fn default() -> Self {
        Self::tabs([("line", ColumnKind::Text)])
    }
}

impl RowLayout {
    /// Creates a layout of fields with tabs between them.
    pub fn tabs<N: Into<String>>(columns: impl IntoIterator<Item = (N, ColumnKind)>) -> Self {
        let columns = columns.into_iter().map(|(name, kind)| OutputColumn { name: name.into(), kind });
        Self { separator: RowSeparator::Tab, columns: columns.collect() }
    }

    /// Creates a layout of CSV rows, whose fields are text. Duplicate names get a number.
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

/// Line that is not a row of its table.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the part cannot be a row of its {kind} file: {why}")]
pub struct NoRow {
    /// Of the part, from 1.
    pub line: u64,
    /// Of the part's file.
    pub kind: TableKind,
    /// Reason.
    pub why: String,
}

/// True if a part could not be written because of a line that is not a row.
pub(super) fn is_no_row(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NoRow>())
}
