//! Columns of the tables, found in their first rows.

use super::arguments::Join;
use super::columns::{JoinColumn, JoinTable, JoinedColumn, Side};
use gristmill_worker::input::plan::FirstRecord;
use gristmill_worker::prelude::*;
use std::borrow::Cow;

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
pub(super) fn names(row: &[u8], delimiter: u8) -> Vec<String> {
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
pub(super) fn place(column: &JoinColumn, fields: &[String], header: bool) -> Result<usize, String> {
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
