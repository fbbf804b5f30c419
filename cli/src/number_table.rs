//! Small tables of numbers that commands read: comma-separated, with a header line that names the columns.

use crate::files::{InputFileError, read_text};
use gristmill_runtime::plural::counted;
use gristmill_scheduler::catalogue::nearest;
use std::fmt;
use std::path::{Path, PathBuf};

/// Rows of numbers under named columns.
pub struct NumberTable {
    path: PathBuf,
    columns: Vec<&'static str>,
    /// Line number, and a cell for each column; empty cells are `None`.
    rows: Vec<(usize, Vec<Option<f64>>)>,
}

impl NumberTable {
    /// Reads a file whose columns are among these. Lines that start with `#` are skipped.
    ///
    /// # Errors
    /// A file that cannot be read, an unknown column, an invalid number, or no row; with the line.
    pub fn read(path: &Path, known: &[&'static str]) -> Result<Self, InputFileError> {
        Self::parse(path, &read_text(path)?, known)
    }

    fn parse(path: &Path, text: &str, known: &[&'static str]) -> Result<Self, InputFileError> {
        let refuse = |line: usize, words: String| InputFileError::new(path, format!("line {line}: {words}"));
        let lines = (1..).zip(text.lines());
        let mut lines = lines.filter(|(_, text)| !text.trim().is_empty() && !text.starts_with('#'));
        let (line, header) = lines.next().ok_or_else(|| InputFileError::new(path, "it is empty"))?;
        let mut columns: Vec<&'static str> = Vec::new();
        for name in header.split(',').map(str::trim) {
            match known.iter().find(|&&column| column == name) {
                Some(column) if columns.contains(column) => {
                    return Err(refuse(line, format!("column `{name}` is duplicated")));
                }
                Some(column) => columns.push(column),
                None => {
                    let near = nearest(name, known.iter().copied());
                    let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
                    let words =
                        format!("column `{name}` does not exist; {near}Columns: {}", known.join(", "));
                    return Err(refuse(line, words));
                }
            }
        }
        let mut rows = Vec::new();
        for (line, text) in lines {
            let cells: Vec<&str> = text.split(',').map(str::trim).collect();
            if cells.len() != columns.len() {
                return Err(refuse(
                    line,
                    format!("it has {}, not {}", counted(cells.len() as u64, "cell", "cells"), columns.len()),
                ));
            }
            let number = |(cell, column): (&&str, &&str)| match cell.is_empty() {
                true => Ok(None),
                false => match cell.parse::<f64>().ok().filter(|value| value.is_finite()) {
                    Some(value) => Ok(Some(value)),
                    None => {
                        Err(refuse(line, format!("`{column}` is `{cell}`, which is not a finite number")))
                    }
                },
            };
            rows.push((line, cells.iter().zip(&columns).map(number).collect::<Result<_, _>>()?));
        }
        if rows.is_empty() {
            return Err(InputFileError::new(path, "no row follows the header"));
        }
        Ok(Self { path: path.to_owned(), columns, rows })
    }

    /// The rows, at least one.
    pub fn rows(&self) -> impl Iterator<Item = NumberRow<'_>> {
        self.rows.iter().map(|(line, cells)| NumberRow { table: self, line: *line, cells })
    }
}

/// One row.
pub struct NumberRow<'a> {
    table: &'a NumberTable,
    line: usize,
    cells: &'a [Option<f64>],
}

impl NumberRow<'_> {
    /// Returns the number in this column; `None` if the column is missing or its cell is empty.
    pub fn get(&self, column: &str) -> Option<f64> {
        let place = self.table.columns.iter().position(|&other| other == column)?;
        self.cells[place]
    }

    /// Returns the number in this column, which must be above 0, or the default. Without a default it is
    /// required.
    pub fn above_zero(&self, column: &'static str, default: Option<f64>) -> Result<f64, InputFileError> {
        match self.get(column).or(default) {
            Some(value) if 0.0 < value => Ok(value),
            Some(value) => {
                Err(self.refuse(&format!("`{column}` is `{value}`, which is not a number above 0")))
            }
            None => Err(self.refuse(&format!("it has no `{column}`"))),
        }
    }

    /// Returns the whole number in this column, from 1 to `most`, or the default.
    pub fn count(&self, column: &'static str, default: u32, most: u32) -> Result<u32, InputFileError> {
        let value = self.get(column).unwrap_or(f64::from(default));
        if value.fract() == 0.0 && (1.0..=f64::from(most)).contains(&value) {
            return Ok(value as u32);
        }
        Err(self.refuse(&format!("`{column}` is `{value}`, which is not a whole number from 1 to {most}")))
    }

    /// Error of this row.
    pub fn refuse(&self, words: &dyn fmt::Display) -> InputFileError {
        InputFileError::new(&self.table.path, format!("line {}: {words}", self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<NumberTable, String> {
        NumberTable::parse(Path::new("t.csv"), text, &["mu", "price"]).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_give_numbers_defaults_and_errors_with_their_line() {
        let table = parse("# rates\nprice, mu\n5, 0.5\n\n,2\n").unwrap();
        let rows: Vec<_> = table.rows().collect();
        assert_eq!((rows[0].get("mu"), rows[0].get("price")), (Some(0.5), Some(5.0)));
        assert_eq!(rows[1].above_zero("price", Some(3.0)).unwrap(), 3.0);
        assert_eq!(
            rows[1].above_zero("price", None).unwrap_err().to_string(),
            "t.csv: line 5: it has no `price`"
        );
        let error = rows[0].count("mu", 1, 9).unwrap_err().to_string();
        assert_eq!(error, "t.csv: line 3: `mu` is `0.5`, which is not a whole number from 1 to 9");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let mistakes = [
            ("", "t.csv: it is empty"),
            ("mu\n", "t.csv: no row follows the header"),
            ("mu,mu\n1,1\n", "t.csv: line 1: column `mu` is duplicated"),
            (
                "mu,prize\n1,1\n",
                "t.csv: line 1: column `prize` does not exist; did you mean `price`? Columns: mu, price",
            ),
            ("mu\nfast\n", "t.csv: line 2: `mu` is `fast`, which is not a finite number"),
            ("mu\nnan\n", "t.csv: line 2: `mu` is `nan`, which is not a finite number"),
            ("mu,price\n1\n", "t.csv: line 2: it has 1 cell, not 2"),
        ];
        for (text, expected) in mistakes {
            assert_eq!(parse(text).map(|_| ()).unwrap_err(), expected);
        }
    }
}
