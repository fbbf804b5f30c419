//! Columns compared by a join: from names and numbers to places in a row.

use super::Join;
use gristmill_worker::input::plan::FirstRecord;
use gristmill_worker::prelude::*;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
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

/// Finds the columns of one side from its first row. Also returns the first rows of all files.
pub(super) fn find(
    join: &Join,
    side: Side,
    header: bool,
    submitter: &dyn Submitter,
) -> Result<(JoinTable, Vec<FirstRecord>), PlanError> {
    // Here the header is read as a row.
    let input = join.input(side, false);
    let bytes = submitter.size(&input)?;
    let first_rows = submitter.first_records(&input)?;
    let fields = match first_rows.first() {
        Some(first) => names(&first.bytes, join.delimiter),
        None => Vec::new(),
    };
    if header && fields.is_empty() {
        let path = input.paths.first().cloned().unwrap_or_default();
        return Err(PlanError::Input { path, reason: "it is empty and has no header row".to_owned() });
    }
    let first_file = first_rows.first().map_or_else(String::new, |first| first.path.to_string());
    let columns = join.on.iter().map(|(left, right)| match side {
        Side::Left => left,
        Side::Right => right,
    });
    let keys = columns.map(|column| {
        place(column, &fields, header).map_err(|reason| PlanError::Parameter {
            parameter: "--on".to_owned(),
            value: column.to_string(),
            reason: in_table(&reason, side, &first_file),
        })
    });
    let keys = keys.collect::<Result<Vec<usize>, PlanError>>()?;
    // A table without rows is as wide as its join columns need: further empty fields make no difference.
    let width = fields.len().max(keys.iter().max().map_or(1, |last| last + 1));
    let names = header.then_some(fields);
    Ok((JoinTable { keys, width, names, first_file, bytes }, first_rows))
}

/// Description of an error in a table, with the file whose first row shows it: an unrelated file may be listed before
/// those of the table.
fn in_table(reason: &str, side: Side, first_file: &str) -> String {
    let by =
        if first_file.is_empty() { String::new() } else { format!(", by the first row of {first_file}") };
    format!("{reason} in the {side} table{by}")
}

/// Fields of a row as text.
fn names(row: &[u8], delimiter: u8) -> Vec<String> {
    text::csv_fields(row, delimiter).map(|field| String::from_utf8_lossy(&field).into_owned()).collect()
}

/// Rejects a table whose files have different headers.
pub(super) fn check_headers(side: Side, headers: &[FirstRecord], delimiter: u8) -> Result<(), PlanError> {
    let Some((first, others)) = headers.split_first() else { return Ok(()) };
    let fields = |header: &FirstRecord| {
        text::csv_fields(&header.bytes, delimiter).map(Cow::into_owned).collect::<Vec<_>>()
    };
    let expected = fields(first);
    let Some(other) = others.iter().find(|header| fields(header) != expected) else { return Ok(()) };
    let listed = |header: &FirstRecord| names(&header.bytes, delimiter).join(", ");
    let reason = format!(
        "its header has the columns {}, but that of {}, the first file of the {side} table, has {}; \
         all files of a table need the same columns in the same order",
        listed(other),
        first.path,
        listed(first)
    );
    Err(PlanError::Input { path: other.path.to_string(), reason })
}

/// Finds the columns of the output.
pub(super) fn find_output(
    wanted: &[JoinedColumn],
    header: bool,
    left: &JoinTable,
    right: &JoinTable,
    left_alone: bool,
) -> Result<Option<Vec<(Side, usize)>>, PlanError> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let found = wanted.iter().map(|output| {
        let table = match output.side {
            Side::Left => left,
            Side::Right => right,
        };
        let numbered: Vec<String> = table
            .names
            .clone()
            .unwrap_or_else(|| (1..=table.width).map(|number| number.to_string()).collect());
        let place = match output.side {
            Side::Right if left_alone => Err("this type of join writes left rows alone".to_owned()),
            side => place(&output.column, &numbered, header)
                .map_err(|reason| in_table(&reason, side, &table.first_file)),
        };
        let refused = |reason| PlanError::Parameter {
            parameter: "--columns".to_owned(),
            value: output.to_string(),
            reason,
        };
        Ok((output.side, place.map_err(refused)?))
    });
    found.collect::<Result<Vec<_>, PlanError>>().map(Some)
}

/// The place of `column` among the fields of the first row, or an error. Names take precedence over numbers.
fn place(column: &JoinColumn, fields: &[String], header: bool) -> Result<usize, String> {
    let name = column.to_string();
    let mut places = (0..fields.len()).filter(|place| header && fields[*place] == name);
    match (places.next(), places.next()) {
        (Some(place), None) => return Ok(place),
        (Some(_), Some(_)) => return Err("there are several columns of that name".to_owned()),
        (None, _) => {}
    }
    match column {
        JoinColumn::Number(number) | JoinColumn::Position(number) => {
            let is_there = fields.is_empty() || *number as usize <= fields.len();
            is_there
                .then(|| *number as usize - 1)
                .ok_or_else(|| format!("there are {} columns", fields.len()))
        }
        JoinColumn::Name(_) if !header => Err("without a header, columns have no names".to_owned()),
        JoinColumn::Name(_) => Err(format!("there are only the columns {}", fields.join(", "))),
    }
}
