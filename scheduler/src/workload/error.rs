//! Errors of reading workloads, with line, field and value.

use crate::catalogue::listed;

/// Error of one line.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum LineError {
    /// A field is out of range or not a number.
    #[error("`{field}` is `{value}`, which is not {wanted}")]
    Field {
        field: &'static str,
        /// Given value.
        value: String,
        /// Description of valid values.
        wanted: &'static str,
    },
    /// A quote is not closed, or has text after it.
    #[error("a quote is not closed, or is not the end of its cell")]
    Quote,
    /// The number of cells differs from the number of columns.
    #[error("the number of cells is {found}, not {wanted}")]
    Cells {
        /// Number of cells.
        found: usize,
        /// Description of the expected number.
        wanted: String,
    },
    /// The text is not JSON of a job.
    #[error("it is no job: {words}")]
    Json {
        /// Message of the parser.
        words: String,
    },
    /// No task of the job succeeded.
    #[error("none of the job's tasks succeeded")]
    NoTasks,
}

/// Line that cannot be read.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("line {line}: {error}")]
pub struct BadLine {
    /// Line number, from 1.
    pub line: u64,
    /// Error of the line.
    pub error: LineError,
}

/// Invalid load, for which no jobs can be drawn.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error("`load` is {load}, which is not a finite number above 0")]
pub struct LoadError {
    /// Given value; not a finite number above 0.
    pub load: f64,
}

/// Error of reading a workload.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum WorkloadError {
    /// The text has no jobs.
    #[error("there is no job in it{}", .first.as_ref().map_or(String::new(), |first| format!("; {first}")))]
    Empty {
        /// The first unreadable line, if there is one.
        first: Option<BadLine>,
    },
    /// A line cannot be read, in a format where no line may be skipped.
    #[error("{0}")]
    Line(BadLine),
    /// Too many lines cannot be read.
    #[error("more than {limit} lines cannot be read, the first of them {first}")]
    TooManyBad {
        /// Maximum number of skipped lines.
        limit: u64,
        first: BadLine,
    },
    /// A column is unknown or duplicate.
    #[error("line {line}: {}", column(.name, *.twice))]
    Column {
        /// Line number of the header.
        line: u64,
        name: String,
        /// True if it is a duplicate.
        twice: bool,
    },
    /// The text is not TOML, or not a list of jobs.
    #[error("{}", .error.to_string().trim_end())]
    Toml {
        /// Error of the parser, with the line.
        error: Box<toml::de::Error>,
    },
    /// More tasks than the limit.
    #[error("line {line}: with this job there are more than {limit} tasks{}", fewer(*.limit, *.needed))]
    Tasks {
        /// Line at which the limit was exceeded.
        line: u64,
        /// Maximum number of tasks of one workload.
        limit: usize,
        /// Factor on the bytes with which the trace would fit into the limit, if the number of tasks follows from
        /// bytes.
        needed: Option<f64>,
    },
    /// A factor or cost is not a number above 0.
    #[error("`{name}` is {value}, which is not a finite number above 0")]
    Setting {
        name: &'static str,
        /// Given value.
        value: f64,
    },
}

fn column(name: &str, twice: bool) -> String {
    match twice {
        true => format!("column `{name}` stands twice"),
        false => format!("there is no column `{name}`; {}", listed(name, &super::columns::COLUMNS)),
    }
}

fn fewer(limit: usize, needed: Option<f64>) -> String {
    match needed {
        Some(needed) => format!(
            ", and {needed:.1e} in all; {} times the bytes make few enough (scale-bytes), or splits and partitions as \
             much larger",
            rounded_down(limit as f64 / needed)
        ),
        None => "; give fewer, or work without tasks, which is cut when it is simulated".to_owned(),
    }
}

/// Rounds a number below 1 down to one digit.
fn rounded_down(number: f64) -> f64 {
    let inverse_step = 10_f64.powf((-number.log10()).ceil());
    (number * inverse_step).floor() / inverse_step
}
