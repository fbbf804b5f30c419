//! Tables of jobs written by hand: CSV with a header line, or TOML with a `[[job]]` for each.
//!
//! Fields, all optional except some work: `name`, `arrival` (s; 0), `map` and `reduce` (slot-seconds), `shuffle`
//! (seconds of the whole network), `maps` and `reduces` (lengths of the tasks in s), `input_bytes`, `shuffle_bytes`,
//! `deadline` (time by which the job should end, s; `goal` is an alias), `weight` (1), `pool` (a name). Lengths are a
//! list, `3;3;4.5` in CSV and `[3, 3, 4.5]` in TOML, where `100x3` stands for a hundred tasks of 3 s; the work is then
//! their sum. Without `shuffle` it is `shuffle_bytes` over the network. In CSV an empty cell has no value, and lines
//! that start with `#` are skipped. A table with an error is rejected as a whole. Traces of real clusters have other
//! formats.

pub use super::columns::COLUMNS;

use super::reading::TASKS_MAX;
use super::{BadLine, Job, LineError, Reading, Trace, WorkloadError};
use crate::station::PerStation;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Maximum relative difference between the sum of the tasks and the given work.
const SUM_TOLERANCE: f64 = 1e-6;

/// Job as written in the table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobRow {
    name: Option<String>,
    arrival: Option<f64>,
    map: Option<f64>,
    shuffle: Option<f64>,
    reduce: Option<f64>,
    maps: Option<Lengths>,
    reduces: Option<Lengths>,
    input_bytes: Option<f64>,
    shuffle_bytes: Option<f64>,
    #[serde(alias = "goal")]
    deadline: Option<f64>,
    weight: Option<f64>,
    pool: Option<String>,
}

/// Lengths of tasks: text such as `100x3;5`, or numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Lengths {
    Words(String),
    Numbers(Vec<f64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    job: Vec<toml::Spanned<JobRow>>,
}

/// Converts rows to jobs. Pools are numbered in the order of first use.
#[derive(Default)]
struct Builder {
    jobs: Vec<Job>,
    pools: BTreeMap<String, u32>,
    tasks: usize,
}

pub(super) fn read_toml(text: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    let file: File = toml::from_str(text).map_err(|error| WorkloadError::Toml { error: Box::new(error) })?;
    let mut builder = Builder::default();
    for row in file.job {
        let line = 1 + text[..row.span().start].bytes().filter(|&byte| byte == b'\n').count() as u64;
        builder.add(line, row.into_inner(), reading)?;
    }
    Ok(Trace { jobs: builder.jobs, ..Trace::default() })
}

pub(super) fn read_csv(text: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    let mut builder = Builder::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines =
        (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty() && !text.starts_with('#'));
    let Some((line, header)) = lines.next() else { return Ok(Trace::default()) };
    let bad = |line: u64, error: LineError| WorkloadError::Line(BadLine { line, error });
    let columns = header_of(line, &cells(header).map_err(|error| bad(line, error))?)?;
    for (line, text) in lines {
        let cells = cells(text).map_err(|error| bad(line, error))?;
        if cells.len() != columns.len() {
            let wanted = format!("{} as in the header", columns.len());
            return Err(bad(line, LineError::Cells { found: cells.len(), wanted }));
        }
        let mut row = JobRow::default();
        for (&column, cell) in columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
            row.set(column, cell).map_err(|error| bad(line, error))?;
        }
        builder.add(line, row, reading)?;
    }
    Ok(Trace { jobs: builder.jobs, ..Trace::default() })
}

fn header_of(line: u64, cells: &[String]) -> Result<Vec<&'static str>, WorkloadError> {
    let mut columns = Vec::new();
    for cell in cells {
        let name = if cell == "goal" { "deadline" } else { cell };
        let column = COLUMNS.into_iter().find(|column| *column == name);
        match column.filter(|column| !columns.contains(column)) {
            Some(column) => columns.push(column),
            None => return Err(WorkloadError::Column { line, name: cell.clone(), twice: column.is_some() }),
        }
    }
    Ok(columns)
}

/// Splits a line into cells without surrounding spaces. A cell in quotes may contain commas, and doubled quotes.
fn cells(line: &str) -> Result<Vec<String>, LineError> {
    let line = line.trim();
    if !has_whole_quotes(line) {
        return Err(LineError::Quote);
    }
    let mut reader = csv::ReaderBuilder::new();
    let mut reader = reader.has_headers(false).trim(csv::Trim::All).from_reader(line.as_bytes());
    let record = reader.records().next().and_then(Result::ok).unwrap_or_default();
    Ok(record.iter().map(str::to_owned).collect())
}

/// True if each quoted text is a whole cell. The library takes other quotes as they come.
fn has_whole_quotes(line: &str) -> bool {
    let line = line.replace("\"\"", "");
    let pieces: Vec<&str> = line.split('"').collect();
    let last = pieces.len() - 1;
    // Every other piece is outside of quotes.
    last.is_multiple_of(2)
        && pieces.iter().enumerate().step_by(2).all(|(at, piece)| {
            (at == 0 || at == last && piece.is_empty() || piece.starts_with(','))
                && (at == last || at == 0 && piece.is_empty() || piece.ends_with(','))
        })
}

impl JobRow {
    fn set(&mut self, column: &'static str, cell: String) -> Result<(), LineError> {
        match column {
            "name" => self.name = Some(cell),
            "pool" => self.pool = Some(cell),
            "maps" => self.maps = Some(Lengths::Words(cell)),
            "reduces" => self.reduces = Some(Lengths::Words(cell)),
            _ => match cell.parse() {
                Ok(number) => *self.number(column) = Some(number),
                Err(_) => return Err(LineError::Field { field: column, value: cell, wanted: "a number" }),
            },
        }
        Ok(())
    }

    fn number(&mut self, column: &str) -> &mut Option<f64> {
        match column {
            "arrival" => &mut self.arrival,
            "map" => &mut self.map,
            "shuffle" => &mut self.shuffle,
            "reduce" => &mut self.reduce,
            "input_bytes" => &mut self.input_bytes,
            "shuffle_bytes" => &mut self.shuffle_bytes,
            "deadline" => &mut self.deadline,
            _ => &mut self.weight,
        }
    }
}

impl Builder {
    fn add(&mut self, line: u64, row: JobRow, reading: &Reading) -> Result<(), WorkloadError> {
        let bad = |error: LineError| WorkloadError::Line(BadLine { line, error });
        let mut lengths = |field, lengths: Option<Lengths>| match lengths {
            None => Ok(Vec::new()),
            Some(lengths) => {
                let list = lengths.list(field, TASKS_MAX - self.tasks).map_err(bad)?;
                let list = list.ok_or(WorkloadError::Tasks { line, limit: TASKS_MAX, needed: None })?;
                self.tasks += list.len();
                Ok(list)
            }
        };
        let maps = lengths("maps", row.maps)?;
        let reduces = lengths("reduces", row.reduces)?;
        let amount = |field, value: Option<f64>| amount(field, value.unwrap_or(0.0)).map_err(bad);
        let shuffle_bytes = amount("shuffle_bytes", row.shuffle_bytes)?;
        let shuffle = row.shuffle.unwrap_or(shuffle_bytes / reading.costs.network);
        let weight = row.weight.unwrap_or(1.0);
        if !(weight.is_finite() && 0.0 < weight) {
            let (field, value) = ("weight", weight.to_string());
            return Err(bad(LineError::Field { field, value, wanted: "a finite number above 0" }));
        }
        let next_pool = self.pools.len() as u32;
        let pool = row.pool.map(|name| *self.pools.entry(name).or_insert(next_pool));
        self.jobs.push(Job {
            arrival: amount("arrival", row.arrival)?,
            work: PerStation::new(
                work("map", row.map, &maps).map_err(bad)?,
                amount("shuffle", Some(shuffle))?,
                work("reduce", row.reduce, &reduces).map_err(bad)?,
            ),
            maps,
            reduces,
            input_bytes: amount("input_bytes", row.input_bytes)?,
            shuffle_bytes,
            deadline: row.deadline.map(|deadline| amount("deadline", Some(deadline))).transpose()?,
            weight,
            pool,
            name: row.name,
            ..Job::default()
        });
        Ok(())
    }
}

fn amount(field: &'static str, value: f64) -> Result<f64, LineError> {
    match value.is_finite() && 0.0 <= value {
        true => Ok(value),
        false => {
            Err(LineError::Field { field, value: value.to_string(), wanted: "a finite number at least 0" })
        }
    }
}

/// Returns the given work, or the sum of the tasks. Both must be equal if given.
fn work(field: &'static str, given: Option<f64>, lengths: &[f64]) -> Result<f64, LineError> {
    let sum: f64 = lengths.iter().sum();
    let Some(given) = given else { return Ok(sum) };
    let given = amount(field, given)?;
    if !lengths.is_empty() && SUM_TOLERANCE * sum.max(given) < (sum - given).abs() {
        let value = given.to_string();
        return Err(LineError::Field { field, value, wanted: "the sum of its tasks" });
    }
    Ok(if lengths.is_empty() { given } else { sum })
}

impl Lengths {
    /// Returns the lengths; `None` if there are more than `most`.
    fn list(self, field: &'static str, most: usize) -> Result<Option<Vec<f64>>, LineError> {
        let mut list = Vec::new();
        match self {
            Lengths::Numbers(numbers) => {
                for number in numbers {
                    list.push(amount(field, number)?);
                }
            }
            Lengths::Words(words) => {
                let pieces = words.split([';', ' ']).map(str::trim).filter(|piece| !piece.is_empty());
                for piece in pieces {
                    let (count, length) = piece.split_once('x').unwrap_or(("1", piece));
                    let read = count.parse::<usize>().ok().zip(length.parse::<f64>().ok());
                    let wanted = "a length or COUNTxLENGTH";
                    let (count, length) =
                        read.ok_or_else(|| LineError::Field { field, value: piece.to_owned(), wanted })?;
                    if most.saturating_sub(list.len()) < count {
                        return Ok(None);
                    }
                    list.resize(list.len() + count, amount(field, length)?);
                }
            }
        }
        Ok((list.len() <= most).then_some(list))
    }
}
