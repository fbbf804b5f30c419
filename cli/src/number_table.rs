//! Small tables of numbers that commands read: comma-separated, with a header line that names the columns.

use crate::files::{InputFileError, read_text};
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
        let refuse = |error: &dyn fmt::Display| InputFileError::new(path, error);
        if text.contains('"') {
            return Err(refuse(&"cells are numbers, without quotes"));
        }
        let mut reader = csv::ReaderBuilder::new();
        let mut reader = reader.comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| refuse(&error))?.clone();
        let column = |name: &str| match known.iter().find(|&&column| column == name) {
            Some(column) => Ok(*column),
            None => Err(refuse(&format!("column `{name}` does not exist; columns: {}", known.join(", ")))),
        };
        let columns = header.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        if let Some(twice) = (1..columns.len()).find(|&at| columns[..at].contains(&columns[at])) {
            return Err(refuse(&format!("column `{}` stands twice", columns[twice])));
        }
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| refuse(&error))?;
            let line = record.position().map_or(0, csv::Position::line) as usize;
            let number = |(cell, column): (&str, &&str)| match cell.parse::<f64>() {
                _ if cell.is_empty() => Ok(None),
                Ok(number) if number.is_finite() => Ok(Some(number)),
                _ => {
                    Err(refuse(&format!("line {line}: `{column}` is `{cell}`, which is not a finite number")))
                }
            };
            rows.push((line, record.iter().zip(&columns).map(number).collect::<Result<_, _>>()?));
        }
        match rows.is_empty() {
            true => Err(refuse(&"no row follows the header")),
            false => Ok(Self { path: path.to_owned(), columns, rows }),
        }
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
        let table = parse("# rates\nprice, mu\n5, 0.5\n,2\n").unwrap();
        let rows: Vec<_> = table.rows().collect();
        assert_eq!((rows[0].get("mu"), rows[0].get("price")), (Some(0.5), Some(5.0)));
        assert_eq!(rows[1].above_zero("price", Some(3.0)).unwrap(), 3.0);
        assert_eq!(
            rows[1].above_zero("price", None).unwrap_err().to_string(),
            "t.csv: line 4: it has no `price`"
        );
        let error = rows[0].count("mu", 1, 9).unwrap_err().to_string();
        assert_eq!(error, "t.csv: line 3: `mu` is `0.5`, which is not a whole number from 1 to 9");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let mistakes = [
            ("mu\n", "t.csv: no row follows the header"),
            ("mu,prize\n1,1\n", "column `prize` does not exist; columns: mu, price"),
            ("mu\nfast\n", "line 2: `mu` is `fast`, which is not a finite number"),
            ("mu,mu\n1,1\n", "column `mu` stands twice"),
            ("mu\n\"0.5\"1\n", "without quotes"),
            ("mu\nnan\n", "line 2: `mu` is `nan`, which is not a finite number"),
            ("mu,price\n1\n", "line: 2"),
        ];
        for (text, expected) in mistakes {
            let error = parse(text).map(|_| ()).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
