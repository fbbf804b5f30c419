//! The file in which people write a workload: TOML, every mistake told with its line before anything starts.
//!
//! | table | keys |
//! |---|---|
//! | top | `name`, `seed` |
//! | `[cluster]` | flags of the same names: `workers`, `slots`, `map-slots`, `reduce-slots`, `speed`, `nic-rate`, `memory`, `shuffle`, `estimator` |
//! | `[arrivals]` | `kind` (`batch`, `poisson` with `mean-interval`, `times` with `times`), `jobs`, `order`, `redraw` |
//! | `[[data]]` | `name`, `kind`, `size`, `seed` |
//! | `[[job]]` | `name`, `label`, `args`, `inputs`, `count` or `share`, `reduces`, `split-size`, `deadline`, `weight`, `pool`, `priority`, `map-seconds`, `reduce-seconds`, `shuffle-bytes` |
//! | `[trace]` | `file`, `load`, `time`, `bytes`, `jobs` |
//!
//! Not here: what jobs mean by their arguments (their own flags), and the values of cluster flags (the command line's).

pub(crate) mod table;
#[cfg(test)]
mod tests;
mod trace;

use super::workload::{Amount, Arrivals, DataSet, JOBS_MAX, Kind, Order, Workload};
use clap::ValueEnum;
use gristmill_runtime::api::ExactWork;
use gristmill_runtime::size::parse_bytes;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use std::io;
use std::path::Path;
use table::{Source, Table};
use toml::de::DeTable;

/// A workload file that was read.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkloadFile {
    /// What is to be run.
    pub workload: Workload,
    /// Flags of the cluster as if they had been typed, names without hyphens before them.
    pub cluster: Vec<(&'static str, String)>,
    /// Input files and folders that must be there, and where each is named.
    pub inputs: Vec<(String, FilePlace)>,
    /// The jobs that must be known, and where each is named.
    pub jobs: Vec<(String, FilePlace)>,
    /// Remarks for people, such as lines of a trace that were skipped.
    pub remarks: Vec<String>,
}

/// A place in a text, both numbers from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilePlace {
    /// The line.
    pub line: usize,
    /// The character in it.
    pub column: usize,
}

impl std::fmt::Display for FilePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// What is wrong with a workload file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be read.
    #[error("could not read the workload {file}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no TOML.
    #[error("the workload {file} is no TOML: {source}")]
    Syntax {
        /// The file.
        file: String,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// A key that means nothing.
    #[error(
        "{file}, {place}: {table} has no key `{key}`{}; there is {known}",
        nearest.as_ref().map(|near| format!(", did you mean `{near}`?")).unwrap_or_default()
    )]
    Key {
        /// The file.
        file: String,
        /// Where in it.
        place: FilePlace,
        /// The table.
        table: &'static str,
        /// The key.
        key: String,
        /// The key that was probably meant.
        nearest: Option<String>,
        /// All keys.
        known: Box<str>,
    },
    /// A value that makes no sense.
    #[error("{file}, {place}: `{key}` of {table} is {value}, which is not {wanted}")]
    Value {
        /// The file.
        file: String,
        /// Where in it.
        place: FilePlace,
        /// The table.
        table: &'static str,
        /// The key.
        key: &'static str,
        /// As written.
        value: String,
        /// What it could be, in words.
        wanted: String,
    },
    /// A trace that cannot be read.
    #[error("the trace {file} cannot be used")]
    Trace {
        /// The file.
        file: String,
        /// Why.
        #[source]
        source: gristmill_scheduler::workload::WorkloadError,
    },
}

impl ExitsWith for FileError {
    fn exit(&self) -> Exit {
        match self {
            Self::Read { .. } | Self::Trace { .. } => Exit::with(exit::INPUT),
            _ => Exit::with(exit::USAGE),
        }
    }
}

/// Flags of a cluster that a workload may set.
pub const CLUSTER_KEYS: [&str; 9] =
    ["workers", "slots", "map-slots", "reduce-slots", "speed", "nic-rate", "memory", "shuffle", "estimator"];

/// Reads a workload file. Paths of inputs in it are relative to its folder.
///
/// # Errors
/// The first mistake.
pub fn read(path: &Path) -> Result<WorkloadFile, FileError> {
    let file = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|source| FileError::Read { file: file.clone(), source })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    parse(&file, &stem, &text, folder)
}

/// Reads the text of a workload file called `file`, whose workload is called `stem` unless it says otherwise.
///
/// # Errors
/// The first mistake.
pub fn parse(file: &str, stem: &str, text: &str, folder: &Path) -> Result<WorkloadFile, FileError> {
    let syntax = |source| FileError::Syntax { file: file.to_owned(), source: Box::new(source) };
    let root = DeTable::parse(text).map_err(syntax)?;
    let top = Table::new(Source { name: file, text }, "the workload", root.get_ref(), 0);
    let name = top.text("name")?.unwrap_or_else(|| stem.to_owned());
    let seed = top.whole("seed", 0..i64::MAX)?.unwrap_or(1) as u64;
    let mut cluster = Vec::new();
    if let Some(table) = top.table("cluster", "[cluster]")? {
        for key in CLUSTER_KEYS {
            cluster.extend(table.typed(key)?.map(|value| (key, value)));
        }
        table.done()?;
    }
    let data: Vec<DataSet> =
        top.tables("data", "[[data]]")?.iter().map(data_set).collect::<Result<_, _>>()?;
    let (mut inputs, mut jobs, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
    for table in top.tables("job", "[[job]]")? {
        kinds.push(kind(&table, folder, &mut inputs)?);
        refuse_missing_data(&table, &kinds[kinds.len() - 1], &data)?;
        jobs.push((kinds[kinds.len() - 1].job.clone(), table.place("name")));
    }
    let arrivals_table = top.table("arrivals", "[arrivals]")?;
    let mut workload = match &arrivals_table {
        Some(table) => arrivals(table)?,
        None => Workload::batch("", Vec::new()),
    };
    let mut remarks = Vec::new();
    match top.table("trace", "[trace]")? {
        Some(table) if kinds.is_empty() && arrivals_table.is_none() => {
            trace::read(&table, folder, &mut workload, &mut remarks)?;
        }
        Some(_) => return Err(top.refuse("trace", "allowed beside [[job]] or [arrivals]: it brings its own")),
        None if kinds.is_empty() => return Err(top.refuse("job", "at least one [[job]]")),
        None => workload.kinds = kinds,
    }
    top.done()?;
    let shares = workload.kinds.iter().any(|kind| matches!(kind.amount, Amount::Share(_)));
    if shares && workload.total.is_none() {
        let table = arrivals_table.as_ref().unwrap_or(&top);
        return Err(table.refuse("jobs", "the number of all jobs, which kinds with a share need"));
    }
    (workload.name, workload.seed, workload.data) = (name, seed, data);
    if let Err(error) = workload.draw(0) {
        let (table, key) = match &arrivals_table {
            Some(table) if table.has("times") => (table, "times"),
            _ => (&top, "job"),
        };
        return Err(table.refuse(key, format!("usable: {error}")));
    }
    Ok(WorkloadFile { workload, cluster, inputs, jobs, remarks })
}

fn arrivals(table: &Table<'_>) -> Result<Workload, FileError> {
    let kind = table.text("kind")?;
    let mean = table.seconds("mean-interval")?;
    let times = table.seconds_list("times")?;
    let jobs = table.whole("jobs", 1..JOBS_MAX as i64 + 1)?;
    let order = table.text("order")?;
    let redraw = table.flag("redraw")?.unwrap_or(false);
    table.done()?;
    let arrivals = match (kind.as_deref().unwrap_or("batch"), mean, times) {
        ("batch", None, None) => Arrivals::Batch,
        ("poisson", Some(mean), None) if 0.0 < mean => Arrivals::Poisson(mean),
        ("times", None, Some(times)) => {
            if !times.is_sorted() {
                return Err(table.refuse("times", "a list that never falls"));
            }
            Arrivals::Times(times)
        }
        ("poisson", _, None) => return Err(table.refuse("mean-interval", "a time above 0")),
        ("times", None, None) => return Err(table.refuse("times", "a list of times")),
        ("batch" | "poisson", _, Some(_)) => {
            return Err(table.refuse("times", "allowed with this kind of arrivals"));
        }
        ("batch" | "times", Some(_), _) => {
            return Err(table.refuse("mean-interval", "allowed with this kind of arrivals"));
        }
        _ => return Err(table.refuse("kind", "batch, poisson or times")),
    };
    let drawn = matches!(arrivals, Arrivals::Poisson(_));
    let order = match order.as_deref() {
        Some("listed") => Order::Listed,
        Some("shuffled") => Order::Shuffled,
        None => {
            if drawn {
                Order::Shuffled
            } else {
                Order::Listed
            }
        }
        Some(_) => return Err(table.refuse("order", "listed or shuffled")),
    };
    let total = jobs.map(|jobs| jobs as u32);
    Ok(Workload { arrivals, order, total, redraw, ..Workload::batch("", Vec::new()) })
}

fn data_set(table: &Table<'_>) -> Result<DataSet, FileError> {
    let name = table.text("name")?.ok_or_else(|| table.refuse("name", "a name"))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    if !name.chars().all(plain) || name.starts_with('.') {
        return Err(table.refuse("name", "a name of letters, digits, `-`, `_` and `.`"));
    }
    let kind =
        table.text("kind")?.and_then(|kind| gristmill_runtime::generate::Kind::from_str(&kind, false).ok());
    let kind = kind.ok_or_else(|| table.refuse("kind", "text, records or tables"))?;
    let bytes = size(table, "size")?.ok_or_else(|| table.refuse("size", "a size such as \"16MiB\""))?;
    let seed = table.whole("seed", 0..i64::MAX)?.unwrap_or(1) as u64;
    table.done()?;
    Ok(DataSet { name, kind, bytes, seed })
}

fn size(table: &Table<'_>, key: &'static str) -> Result<Option<u64>, FileError> {
    let Some(text) = table.typed(key)? else { return Ok(None) };
    let bytes = parse_bytes(&text).ok().filter(|&bytes| 0 < bytes);
    bytes.map(Some).ok_or_else(|| table.refuse(key, "a size such as \"16MiB\""))
}

/// Largest number of parts, weight of a pool and so on; beyond it a number is a slip.
const LARGE: i64 = 100_001;

fn kind(table: &Table<'_>, folder: &Path, inputs: &mut Vec<(String, FilePlace)>) -> Result<Kind, FileError> {
    let job = table.text("name")?.ok_or_else(|| table.refuse("name", "the name of a job"))?;
    let mut kind = Kind::new(&job, &[]);
    kind.label = table.text("label")?.unwrap_or(job);
    kind.arguments = table.texts("args")?;
    for input in table.texts("inputs")? {
        if input.starts_with(super::workload::DATA_MARK) || Path::new(&input).is_absolute() {
            kind.arguments.push(input.clone());
        } else {
            kind.arguments.push(folder.join(&input).display().to_string());
        }
        let last = kind.arguments[kind.arguments.len() - 1].clone();
        if !input.starts_with(super::workload::DATA_MARK) {
            inputs.push((last, table.place("inputs")));
        }
    }
    let count = table.whole("count", 1..JOBS_MAX as i64 + 1)?;
    let above_zero = |number: f64| 0.0 < number;
    let share = table.number("share", "a number above 0", above_zero)?;
    kind.amount = match (count, share) {
        (Some(_), Some(_)) => return Err(table.refuse("share", "allowed beside `count`")),
        (None, Some(share)) => Amount::Share(share),
        (count, None) => Amount::Count(count.unwrap_or(1) as u32),
    };
    kind.reduces = table.whole("reduces", 1..LARGE)?.map(|reduces| reduces as u32);
    kind.split_bytes = size(table, "split-size")?;
    kind.deadline = table.seconds("deadline")?;
    if kind.deadline == Some(0.0) {
        return Err(table.refuse("deadline", "a time above 0 after the arrival"));
    }
    kind.weight = table.number("weight", "a number above 0", above_zero)?.unwrap_or(1.0);
    kind.pool = table.text("pool")?;
    kind.priority = table.whole("priority", -1_000_000..1_000_001)?.unwrap_or(0) as i32;
    kind.exact = exact(table, &mut kind.reduces)?;
    kind.plays_exact = kind.exact.is_some() && kind.job == "synthetic";
    table.done()?;
    Ok(kind)
}

/// Refuses arguments that name generated data of which there is none.
fn refuse_missing_data(table: &Table<'_>, kind: &Kind, data: &[DataSet]) -> Result<(), FileError> {
    for argument in &kind.arguments {
        for named in argument.split(super::workload::DATA_MARK).skip(1) {
            let name = named.strip_prefix('/').unwrap_or(named).split(['/', ',', '=']).next();
            if !data.iter().any(|set| Some(set.name.as_str()) == name) {
                let key = if table.has("inputs") { "inputs" } else { "args" };
                let names: Vec<_> = data.iter().map(|set| set.name.as_str()).collect();
                let wanted = format!(
                    "a path of a [[data]] ({}): `{argument}`",
                    if names.is_empty() { "there is none".to_owned() } else { names.join(", ") }
                );
                return Err(table.refuse(key, wanted));
            }
        }
    }
    Ok(())
}

/// Sizes that are known before.
fn exact(table: &Table<'_>, reduces: &mut Option<u32>) -> Result<Option<ExactWork>, FileError> {
    let length = |number: f64| (0.0..=1e6).contains(&number);
    let maps = table.numbers("map-seconds", "a list of seconds", length)?;
    let reduce_seconds = table.numbers("reduce-seconds", "a list of seconds", length)?;
    let bytes = table.number("shuffle-bytes", "a number of bytes", |number| 0.0 <= number)?;
    let Some(map_seconds) = maps else {
        if reduce_seconds.is_some() || bytes.is_some() {
            return Err(table.refuse("map-seconds", "a list of seconds, one for each map"));
        }
        return Ok(None);
    };
    let reduce_seconds = reduce_seconds.unwrap_or_default();
    if map_seconds.is_empty() || reduce_seconds.is_empty() {
        return Err(table.refuse("reduce-seconds", "a list of seconds, one for each reduce"));
    }
    if reduces.is_some_and(|reduces| reduces as usize != reduce_seconds.len()) {
        return Err(table.refuse("reduces", "the number of `reduce-seconds`"));
    }
    *reduces = Some(reduce_seconds.len() as u32);
    Ok(Some(ExactWork { map_seconds, shuffle_bytes: bytes.unwrap_or(0.0), reduce_seconds }))
}
