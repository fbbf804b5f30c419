//! Columns compared by a join: from names and numbers to places in a row.

use gristmill_worker::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One of the two tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The table whose columns come first.
    Left,
    /// The other table.
    Right,
}

impl Side {
    /// The other table.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Left => "left",
            Side::Right => "right",
        })
    }
}

/// A column as the user writes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JoinColumn {
    /// The column named by this number, or else at this place, counted from 1.
    Number(u32),
    /// The column at this place, counted from 1, which is written `#1`.
    Position(u32),
    /// As in the header.
    Name(String),
}

impl JoinColumn {
    pub(super) fn is_name(&self) -> bool {
        matches!(self, JoinColumn::Name(_))
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |digits: &str| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
            digits.parse().ok().filter(|_| is_plain)
        };
        let position = text.strip_prefix('#').and_then(number).map(JoinColumn::Position);
        let column = position.or_else(|| number(text).map(JoinColumn::Number));
        column.or_else(|| Some(JoinColumn::Name(text.to_owned())).filter(|_| !text.is_empty()))
    }
}

impl fmt::Display for JoinColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinColumn::Number(number) => write!(f, "{number}"),
            JoinColumn::Position(number) => write!(f, "#{number}"),
            JoinColumn::Name(name) => f.write_str(name),
        }
    }
}

/// A text that is not a pair of columns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a pair of columns: write left=right with names, numbers from 1 or places as #1")]
pub struct OnError {
    text: String,
}

/// Parses `left=right`, or one column for both sides.
pub(super) fn parse_on(text: &str) -> Result<(JoinColumn, JoinColumn), OnError> {
    let (left, right) = text.split_once('=').unwrap_or((text, text));
    match (JoinColumn::parse(left), JoinColumn::parse(right)) {
        (Some(left), Some(right)) => Ok((left, right)),
        _ => Err(OnError { text: text.to_owned() }),
    }
}

/// A column of one of the tables, as the user writes it for the output: `left.2` or `right.name`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JoinedColumn {
    pub(super) side: Side,
    pub(super) column: JoinColumn,
}

impl fmt::Display for JoinedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.side, self.column)
    }
}

/// A text that is not a column of the output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a column of the output: write left.COLUMN or right.COLUMN with a name, a number from 1 or a place as #1"
)]
pub struct OutputColumnError {
    text: String,
}

/// Parses `left.COLUMN` or `right.COLUMN`.
pub(super) fn parse_output_column(text: &str) -> Result<JoinedColumn, OutputColumnError> {
    let parsed = text.split_once('.').and_then(|(side, column)| {
        let side = match side {
            "left" => Side::Left,
            "right" => Side::Right,
            _ => return None,
        };
        Some(JoinedColumn { side, column: JoinColumn::parse(column)? })
    });
    parsed.ok_or_else(|| OutputColumnError { text: text.to_owned() })
}

/// Facts about the tables found at submission.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PreparedJoin {
    pub(super) header: bool,
    pub(super) left: JoinTable,
    pub(super) right: JoinTable,
    /// Columns to write, as places in their rows; `None` for all.
    pub(super) output: Option<Vec<(Side, usize)>>,
    /// The table that each worker holds; `None` for a repartition join.
    pub(super) broadcast: Option<Side>,
    /// Reason for that.
    pub(super) reason: String,
}

/// One table of a join.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct JoinTable {
    /// Places of the join columns in a row, from 0, in the order of `--on`.
    pub(super) keys: Vec<usize>,
    /// Number of fields of a row.
    pub(super) width: usize,
    /// The header, if there is one.
    pub(super) names: Option<Vec<String>>,
    /// The file with the first row.
    pub(super) first_file: String,
    /// Bytes of all files.
    pub(super) bytes: u64,
}

/// Maximum number of columns of a table.
const COLUMNS_MAX: usize = 1 << 20;

impl PreparedJoin {
    /// Rejects places that no row can have: a submission holds them as text from an untrusted source.
    pub(super) fn check(&self) -> Result<(), PlanError> {
        for side in [Side::Left, Side::Right] {
            let table = self.table(side);
            let selected = self.selected(side).unwrap_or_default();
            let places = table.keys.iter().chain(&selected);
            let fits = (1..=COLUMNS_MAX).contains(&table.width)
                && places.max().is_none_or(|last| *last < table.width)
                && table.names.as_ref().is_none_or(|names| names.len() == table.width);
            if !fits {
                let (parameter, value) = ("prepared".to_owned(), format!("the columns of the {side} table"));
                let reason = format!("a place is beyond the {} columns of the table", table.width);
                return Err(PlanError::Parameter { parameter, value, reason });
            }
        }
        Ok(())
    }

    pub(super) fn table(&self, side: Side) -> &JoinTable {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }

    /// The columns of this side that are written, in the order of the output; `None` for all.
    pub(super) fn selected(&self, side: Side) -> Option<Vec<usize>> {
        let output = self.output.as_ref()?;
        Some(output.iter().filter(|(of, _)| *of == side).map(|(_, place)| *place).collect())
    }

    /// Number of columns of this side that are written.
    pub(super) fn written(&self, side: Side) -> usize {
        self.selected(side).map_or(self.table(side).width, |places| places.len())
    }
}
