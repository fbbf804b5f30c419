//! Workload files that users write: TOML, in which every mistake is reported with its line before
//! anything starts.
//!
//! | table | keys |
//! |---|---|
//! | top | `name`, `seed` |
//! | `[cluster]` | flags of the same names: `workers`, `slots`, `map-slots`, `reduce-slots`, `speed`, `nic-rate`, `memory`, `shuffle`, `estimator` |
//! | `[arrivals]` | `kind` (`batch`, `poisson` with `mean-interval`, `times` with `times`), `jobs`, `order`, `redraw` |
//! | `[[data]]` | `name`, `kind`, `size`, `seed` |
//! | `[[job]]` | `name`, `label`, `args`, `inputs`, `count` or `share`, `reduces`, `split-size`, `deadline`, `weight`, `pool`, `priority`, `map-seconds`, `reduce-seconds`, `shuffle-bytes` |
//!
//! Not here: the meaning of job arguments (their own flags), and the values of cluster flags (the command
//! line's).

#[cfg(test)]
mod tests;
mod values;

use super::workload::{Arrivals, DATA_MARK, DataSet, JobKind, Order, Workload};
use gristmill_worker::exit::{self, Exit, ExitsWith};
use std::io;
use std::path::Path;
use toml::Spanned;
use values::{ArrivalsKind, ArrivalsTable, DataTable, JobTable, WorkloadTable};

/// Parsed workload file.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkloadFile {
    /// Workload to run.
    pub workload: Workload,
    /// Flags of the cluster as on the command line, names without leading hyphens.
    pub cluster: Vec<(&'static str, String)>,
    /// Input files and directories that must exist, and the place where each is named.
    pub inputs: Vec<(String, TextPosition)>,
    /// Jobs that must be known, and the place where each is named.
    pub jobs: Vec<(String, TextPosition)>,
}

/// Position in a text, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextPosition {
    /// Line number.
    pub line: usize,
    /// Number of the character in the line.
    pub column: usize,
}

impl std::fmt::Display for TextPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Error in a workload file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file cannot be read.
    #[error("could not read the workload {file}")]
    Read {
        /// Path of the trace.
        file: String,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The file is invalid TOML, or has an unknown key or an invalid value.
    #[error("{file}, {place}: {reason}")]
    Text {
        /// Path of the trace.
        file: String,
        /// Position in the file.
        place: TextPosition,
        /// Description of the error.
        reason: String,
    },
}

impl ExitsWith for FileError {
    fn exit(&self) -> Exit {
        match self {
            Self::Read { .. } => Exit::with(exit::INPUT),
            _ => Exit::with(exit::USAGE),
        }
    }
}

/// Reads a workload file. Paths of inputs in it are relative to its directory.
///
/// # Errors
/// The first mistake in the file.
pub fn read(path: &Path) -> Result<WorkloadFile, FileError> {
    let file = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|source| FileError::Read { file: file.clone(), source })?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    parse(&file, &stem, &text, directory)
}

/// Text of a file, for positions in it.
#[derive(Clone, Copy)]
struct FileText<'a> {
    file: &'a str,
    text: &'a str,
}

impl FileText<'_> {
    fn place(self, at: usize) -> TextPosition {
        let before = &self.text[..self.text.floor_char_boundary(at)];
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
        TextPosition { line, column }
    }

    fn refuse(self, at: usize, reason: impl Into<String>) -> FileError {
        FileError::Text { file: self.file.to_owned(), place: self.place(at), reason: reason.into() }
    }
}

/// Parses the text of a workload file called `file`. The workload is called `stem` unless the file names it.
///
/// # Errors
/// The first mistake in the text.
pub fn parse(file: &str, stem: &str, text: &str, directory: &Path) -> Result<WorkloadFile, FileError> {
    let source = FileText { file, text };
    let refused = |error: toml::de::Error| {
        source.refuse(error.span().map_or(0, |span| span.start), error.message().replace('\n', ", "))
    };
    let top: WorkloadTable = toml::from_str(text).map_err(refused)?;
    let arrivals_at = top.arrivals.as_ref().map_or(0, |table| table.span().start);
    let mut workload = match &top.arrivals {
        Some(table) => arrivals(table.get_ref()).map_err(|reason| source.refuse(arrivals_at, reason))?,
        None => Workload::batch("", Vec::new()),
    };
    workload.name = top.name.unwrap_or_else(|| stem.to_owned());
    workload.seed = top.seed.map_or(1, |seed| seed.0 as u64);
    workload.data = top.data.into_iter().map(data_set).collect();
    let (mut inputs, mut jobs) = (Vec::new(), Vec::new());
    for table in &top.job {
        let refuse = |reason| source.refuse(table.span().start, reason);
        let job = table.get_ref();
        let kind = kind(job, directory);
        refuse_missing_data(&kind, &workload.data).map_err(refuse)?;
        if let Some(list) = &job.inputs {
            let files = list.get_ref().iter().filter(|input| !input.starts_with(DATA_MARK));
            inputs.extend(files.map(|input| (path_in(directory, input), source.place(list.span().start))));
        }
        jobs.push((kind.job.clone(), source.place(job.name.span().start)));
        workload.kinds.push(kind);
    }
    if top.job.is_empty() {
        return Err(source.refuse(0, "there must be at least one [[job]]"));
    }
    workload.draw(0).map_err(|error| source.refuse(arrivals_at, error.to_string()))?;
    let cluster = top.cluster.iter().map(|(key, value)| (key.name(), value.to_string())).collect();
    Ok(WorkloadFile { workload, cluster, inputs, jobs })
}

fn arrivals(table: &ArrivalsTable) -> Result<Workload, String> {
    let times = table.times.as_ref().map(|times| times.iter().map(|time| time.0).collect::<Vec<f64>>());
    let arrivals = match (table.kind, &table.mean_interval, times) {
        (ArrivalsKind::Batch, None, None) => Arrivals::Batch,
        (ArrivalsKind::Poisson, Some(mean), None) => Arrivals::Poisson(mean.0),
        (ArrivalsKind::Times, None, Some(times)) if times.is_sorted() => Arrivals::Times(times),
        (ArrivalsKind::Batch, ..) => {
            return Err("`mean-interval` needs the kind poisson, and `times` the kind times".to_owned());
        }
        (ArrivalsKind::Poisson, ..) => {
            return Err("poisson needs `mean-interval` and nothing else".to_owned());
        }
        (ArrivalsKind::Times, ..) => return Err("times needs `times`, a list that never falls".to_owned()),
    };
    let usual = if matches!(arrivals, Arrivals::Poisson(_)) { Order::Shuffled } else { Order::Listed };
    let order = table.order.unwrap_or(usual);
    Ok(Workload { arrivals, order, redraw: table.redraw, ..Workload::batch("", Vec::new()) })
}

fn data_set(table: DataTable) -> DataSet {
    let seed = table.seed.map_or(1, |seed| seed.0 as u64);
    DataSet { name: table.name.0, kind: table.kind.0, bytes: table.size.0, seed }
}

/// Returns the path of an input. A relative path is below the directory.
fn path_in(directory: &Path, input: &str) -> String {
    directory.join(input).display().to_string()
}

fn kind(table: &JobTable, directory: &Path) -> JobKind {
    let mut kind = JobKind::new(table.name.get_ref(), &[]);
    kind.label = table.label.clone().unwrap_or(kind.label);
    kind.arguments.clone_from(&table.args);
    let inputs = table.inputs.iter().flat_map(Spanned::get_ref);
    kind.arguments.extend(inputs.map(|input| match input.starts_with(DATA_MARK) {
        true => input.clone(),
        false => path_in(directory, input),
    }));
    kind.count = table.count.map_or(1, |count| count.0 as u32);
    kind.reduces = table.reduces.map(|reduces| reduces.0 as u32);
    kind.split_bytes = table.split_size.as_ref().map(|size| size.0);
    kind.deadline = table.deadline.as_ref().map(|span| span.0);
    kind.weight = table.weight.as_ref().map_or(1.0, |weight| weight.0);
    kind.pool.clone_from(&table.pool);
    kind.priority = table.priority.map_or(0, |priority| priority.0 as i32);
    kind
}

/// Refuses arguments that name generated data that does not exist.
fn refuse_missing_data(kind: &JobKind, data: &[DataSet]) -> Result<(), String> {
    for argument in &kind.arguments {
        for named in argument.split(DATA_MARK).skip(1) {
            let name = named.strip_prefix('/').unwrap_or(named).split(['/', ',', '=']).next();
            if !data.iter().any(|set| Some(set.name.as_str()) == name) {
                let names: Vec<_> = data.iter().map(|set| set.name.as_str()).collect();
                let known = if names.is_empty() { "there is none".to_owned() } else { names.join(", ") };
                return Err(format!("`{argument}` is not a path of a [[data]] ({known})"));
            }
        }
    }
    Ok(())
}
