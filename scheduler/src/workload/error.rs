//! Errors of reading workloads, with line, field and value.

use std::fmt;

/// Error of one line.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum LineError {
    /// A field is out of range or not a number.
    Field {
        field: &'static str,
        /// Given value.
        value: String,
        /// Description of valid values.
        wanted: &'static str,
    },
    /// The number of cells differs from the number of columns.
    Cells {
        /// Number of cells.
        found: usize,
        /// Description of the expected number.
        wanted: String,
    },
    /// A quote is not closed, or has text after it.
    Quote,
    /// The text is not JSON of a job.
    Json {
        /// Message of the parser.
        words: String,
    },
    /// No task of the job succeeded.
    NoTasks,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::Field { field, value, wanted } => {
                write!(f, "`{field}` is `{value}`, which is not {wanted}")
            }
            LineError::Cells { found, wanted } => write!(f, "the number of cells is {found}, not {wanted}"),
            LineError::Quote => f.write_str("a quote is not closed, or is not the end of its cell"),
            LineError::Json { words } => write!(f, "it is no job: {words}"),
            LineError::NoTasks => f.write_str("none of the job's tasks succeeded"),
        }
    }
}

impl std::error::Error for LineError {}

/// Line that cannot be read.
#[derive(Clone, PartialEq, Debug)]
pub struct BadLine {
    /// Line number, from 1.
    pub line: u64,
    /// Error of the line.
    pub error: LineError,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.error)
    }
}

impl std::error::Error for BadLine {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// Invalid load, for which no jobs can be drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LoadError {
    /// Given value; not a finite number above 0.
    pub load: f64,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`load` is {}, which is not a finite number above 0", self.load)
    }
}

impl std::error::Error for LoadError {}

/// Error of reading a workload.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum WorkloadError {
    /// The text has no jobs.
    Empty {
        /// The first unreadable line, if there is one.
        first: Option<BadLine>,
    },
    /// A line cannot be read, in a format where no line may be skipped.
    Line(BadLine),
    /// Too many lines cannot be read.
    TooManyBad {
        /// Maximum number of skipped lines.
        limit: u64,
        first: BadLine,
    },
    /// A column is unknown or duplicate.
    Column {
        /// Line number of the header.
        line: u64,
        name: String,
        /// True if it is a duplicate.
        twice: bool,
    },
    /// The text is not TOML, or not a list of jobs.
    Toml {
        /// Error of the parser, with the line.
        source: Box<toml::de::Error>,
    },
    /// More tasks than the limit.
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
    Setting {
        name: &'static str,
        /// Given value.
        value: f64,
    },
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkloadError::Empty { first: None } => f.write_str("there is no job in it"),
            WorkloadError::Empty { first: Some(first) } => write!(f, "there is no job in it; {first}"),
            WorkloadError::Line(bad) => write!(f, "{bad}"),
            WorkloadError::TooManyBad { limit, first } => {
                write!(f, "more than {limit} lines cannot be read, the first of them {first}")
            }
            WorkloadError::Column { line, name, twice: true } => {
                write!(f, "line {line}: column `{name}` stands twice")
            }
            WorkloadError::Column { line, name, twice: false } => {
                let known = super::table::COLUMNS;
                write!(f, "line {line}: there is no column `{name}`; ")?;
                if let Some(near) = crate::catalogue::nearest(name, known.into_iter()) {
                    write!(f, "did you mean `{near}`? ")?;
                }
                write!(f, "There is {}", known.join(", "))
            }
            WorkloadError::Toml { source } => write!(f, "{}", source.to_string().trim_end()),
            WorkloadError::Tasks { line, limit, needed } => {
                write!(f, "line {line}: with this job there are more than {limit} tasks")?;
                match needed {
                    Some(needed) => write!(
                        f,
                        ", and {needed:.1e} in all; {} times the bytes make few enough (scale-bytes), or splits and \
                         partitions as much larger",
                        rounded_down(*limit as f64 / needed)
                    ),
                    None => {
                        f.write_str("; give fewer, or work without tasks, which is cut when it is simulated")
                    }
                }
            }
            WorkloadError::Setting { name, value } => {
                write!(f, "`{name}` is {value}, which is not a finite number above 0")
            }
        }
    }
}

/// Rounds a number below 1 down to one digit.
fn rounded_down(number: f64) -> f64 {
    let inverse_step = 10_f64.powf((-number.log10()).ceil());
    (number * inverse_step).floor() / inverse_step
}

impl std::error::Error for WorkloadError {}
