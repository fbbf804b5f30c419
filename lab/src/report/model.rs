//! Content of pages as plain data: sections with charts, tables, comparisons and claims.
//!
//! Not here: its presentation.

use super::chart::Chart;
use gristmill_scheduler::metrics::Interval;
use serde::Serialize;

/// Section for one figure, table or example of the paper.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Section {
    /// Identifier for links and files: `figure-9`, `table-2`, `section-5-3`.
    pub id: String,
    /// Title by which a reader of the paper finds it: "Figure 9: slowdown by size of the job".
    pub title: String,
    /// Sentences about the results, which are read first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Description of the runs, with all parameters and seeds, one paragraph each.
    pub text: Vec<String>,
    /// Results.
    pub blocks: Vec<Block>,
    /// True if readers open it to see more than its title.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub folded: bool,
}

impl Section {
    /// Creates an open section without findings.
    #[must_use]
    pub fn new<T: Into<String>>(
        id: impl Into<String>,
        title: impl Into<String>,
        text: impl IntoIterator<Item = T>,
        blocks: Vec<Block>,
    ) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            findings: Vec::new(),
            text: text.into_iter().map(T::into).collect(),
            blocks,
            folded: false,
        }
    }
}

/// Block of a section.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Block {
    /// Curves, bars or points.
    Chart(Chart),
    /// Rows and columns.
    Table(ReportTable),
    /// Our numbers next to printed ones.
    Comparison(Vec<Compared>),
    /// Statements of the paper and their verdicts.
    Claims(Vec<Claim>),
}

/// Table with rows and columns.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ReportTable {
    /// Identifier for files, unique in its paper: `table-2-uniform`.
    pub id: String,
    /// Caption of the table.
    pub caption: String,
    /// Columns. The first one names the rows.
    pub columns: Vec<Column>,
    /// Rows, each with one cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl ReportTable {
    /// Creates a table from its fields.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        caption: impl Into<String>,
        columns: Vec<Column>,
        rows: Vec<Vec<Cell>>,
    ) -> Self {
        Self { id: id.into(), caption: caption.into(), columns, rows }
    }
}

/// Column of a table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// Unit of its numbers; empty for none.
    pub unit: String,
}

impl Column {
    /// Creates a column of this name and unit.
    #[must_use]
    pub fn new(name: &str, unit: &str) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned() }
    }

    /// Creates columns of these names and units.
    #[must_use]
    pub fn list(columns: &[(&str, &str)]) -> Vec<Self> {
        columns.iter().map(|(name, unit)| Self::new(name, unit)).collect()
    }
}

/// Cell of a table.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// Empty cell.
    Empty,
    /// Text.
    Text(String),
    /// Number, shown with four significant digits, and the half width of its 95 % interval.
    Number {
        /// Value, finite or infinite, never NaN.
        value: f64,
        /// Half width of its 95 % interval, if it is a mean.
        half_width: Option<f64>,
    },
}

impl Cell {
    /// Creates a number without interval.
    #[must_use]
    pub fn number(value: f64) -> Self {
        Cell::Number { value, half_width: None }
    }

    /// Creates a text.
    #[must_use]
    pub fn text(words: impl Into<String>) -> Self {
        Cell::Text(words.into())
    }
}

impl From<Interval> for Cell {
    fn from(interval: Interval) -> Self {
        Cell::Number { value: interval.mean, half_width: interval.half_width }
    }
}

/// Converts `None` to an empty cell.
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(content: Option<T>) -> Self {
        content.map_or(Cell::Empty, T::into)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Cell::number(value)
    }
}

/// One of our numbers and the printed one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Compared {
    /// Compared quantity: "load 0.75, max-srpt, mean response".
    pub what: String,
    /// Number printed in the paper; `None` where only an independent reference has it.
    pub printed: Option<f64>,
    /// Number from an independent reference implementation, with its half width, where it exists.
    pub reference: Option<(f64, f64)>,
    /// Our number.
    pub ours: f64,
    /// Half width of its 95 % interval, if it is a mean.
    pub half_width: Option<f64>,
    /// Verdict on the agreement.
    pub verdict: Verdict,
    /// Reason of a difference or of the agreement; may be empty.
    pub note: String,
}

impl Compared {
    /// Creates one of our numbers without a number to compare it with.
    #[must_use]
    pub fn new(what: impl Into<String>, ours: f64, verdict: impl Into<Verdict>) -> Self {
        Self {
            what: what.into(),
            printed: None,
            reference: None,
            ours,
            half_width: None,
            verdict: verdict.into(),
            note: String::new(),
        }
    }
}

/// Statement of the paper.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Claim {
    /// Location in the paper: "Corollary 4".
    pub place: String,
    /// Statement in our words.
    pub statement: String,
    /// Verdict on the statement.
    pub verdict: Verdict,
    /// Runs and results in numbers; a counterexample if it fails.
    pub evidence: String,
}

impl Claim {
    /// Creates a statement with its verdict; `true` is [`Verdict::Holds`], `false` [`Verdict::Fails`].
    #[must_use]
    pub fn new(
        place: impl Into<String>,
        statement: impl Into<String>,
        verdict: impl Into<Verdict>,
        evidence: impl Into<String>,
    ) -> Self {
        Self {
            place: place.into(),
            statement: statement.into(),
            verdict: verdict.into(),
            evidence: evidence.into(),
        }
    }
}

/// Agreement of a result with the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It agrees.
    Holds,
    /// It agrees under some conditions, which the note names.
    Partly,
    /// It does not agree.
    Fails,
    /// It cannot be judged here. The note gives the reason.
    Open,
    /// It is an input, not a result, so it is not judged and not counted.
    Input,
}

impl Verdict {
    /// Returns the word for it on a statement, in files and on pages.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Partly => "partly",
            Self::Fails => "fails",
            Self::Open => "open",
            Self::Input => "input",
        }
    }
}

impl From<bool> for Verdict {
    fn from(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }
}
