//! What cannot be read as a workload: which line, which field, which value.

use std::fmt;

/// What is wrong with one line.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum LineError {
    /// A field that is out of range or no number at all.
    Field {
        field: &'static str,
        /// As given.
        value: String,
        /// What it could be, in words.
        wanted: &'static str,
    },
    /// Another number of cells than there are columns.
    Cells {
        /// How many there are.
        found: usize,
        /// How many there should be, in words.
        wanted: String,
    },
    /// A quote that is not closed, or something behind one.
    Quote,
    /// No JSON of a job.
    Json {
        /// What the parser says.
        words: String,
    },
    /// A job of which no task succeeded.
    NoTasks,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::Field { field, value, wanted } => {
                write!(f, "`{field}` is `{value}`, which is not {wanted}")
            }
            LineError::Cells { found, wanted } => write!(f, "it has {found} cell(s), not {wanted}"),
            LineError::Quote => f.write_str("a quote is not closed, or is not the end of its cell"),
            LineError::Json { words } => write!(f, "it is no job: {words}"),
            LineError::NoTasks => f.write_str("none of the job's tasks succeeded"),
        }
    }
}

impl std::error::Error for LineError {}

/// A line that cannot be read.
#[derive(Clone, PartialEq, Debug)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong.
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

/// A load at which no jobs can be drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LoadError {
    /// As given; not a finite number above 0.
    pub load: f64,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`load` is {}, which is not a finite number above 0", self.load)
    }
}

impl std::error::Error for LoadError {}

/// Why a text is no workload.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum WorkloadError {
    /// There is no job in it.
    Empty {
        /// The first of the lines that could not be read, if that is why.
        first: Option<BadLine>,
    },
    /// A line that cannot be read, where none may be skipped.
    Line(BadLine),
    /// More lines cannot be read than may be skipped.
    TooManyBad {
        /// How many may be.
        limit: u64,
        first: BadLine,
    },
    /// A column that means nothing here, or stands twice.
    Column {
        /// The line of the header.
        line: u64,
        name: String,
        /// Whether it was there already.
        twice: bool,
    },
    /// Not TOML, or not a list of jobs.
    Toml {
        /// Where and why, with the line.
        source: Box<toml::de::Error>,
    },
    /// More tasks than the limit.
    Tasks {
        /// Where the limit was passed.
        line: u64,
        /// Tasks of one workload.
        limit: usize,
        /// How many there are in all, where the bytes of a trace tell; they would have to be so much fewer.
        needed: Option<f64>,
    },
    /// A factor or cost that is no number above 0.
    Setting {
        name: &'static str,
        /// As given.
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

/// A number below 1 of one digit that is not above this one.
fn rounded_down(number: f64) -> f64 {
    let inverse_step = 10_f64.powf((-number.log10()).ceil());
    (number * inverse_step).floor() / inverse_step
}

impl std::error::Error for WorkloadError {}
