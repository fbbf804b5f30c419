//! What there is to look at: sections with charts, tables, comparisons and claims, as plain data.
//!
//! Not here: how any of it looks.

use super::chart::Chart;
use gristmill_scheduler::metrics::Interval;
use serde::Serialize;

/// One figure, table or example of the paper.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Section {
    /// For links and files: `figure-9`, `table-2`, `section-5-3`.
    pub id: String,
    /// As a reader of the paper looks for it: "Figure 9: slowdown by size of the job".
    pub title: String,
    /// What was run, with all parameters and seeds: one paragraph each.
    pub text: Vec<String>,
    /// What came out.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section, as its fields say.
    #[must_use]
    pub fn new<T: Into<String>>(
        id: impl Into<String>,
        title: impl Into<String>,
        text: impl IntoIterator<Item = T>,
        blocks: Vec<Block>,
    ) -> Self {
        Self { id: id.into(), title: title.into(), text: text.into_iter().map(T::into).collect(), blocks }
    }
}

/// Something to look at.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Block {
    /// Curves, bars or points.
    Chart(Chart),
    /// Rows and columns.
    Table(Table),
    /// Our numbers beside printed ones.
    Comparison(Vec<Compared>),
    /// Statements of the paper and whether they hold.
    Claims(Vec<Claim>),
}

/// A table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// For files, unique in its paper: `table-2-uniform`.
    pub id: String,
    /// What is to be seen.
    pub caption: String,
    /// Columns, the first one naming the rows.
    pub columns: Vec<Column>,
    /// One cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table, as its fields say.
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

/// A column.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its unit; empty for none.
    pub unit: String,
}

impl Column {
    /// A column of this name and unit.
    #[must_use]
    pub fn new(name: &str, unit: &str) -> Self {
        Self { name: name.to_owned(), unit: unit.to_owned() }
    }

    /// Columns of these names and units.
    #[must_use]
    pub fn list(columns: &[(&str, &str)]) -> Vec<Self> {
        columns.iter().map(|(name, unit)| Self::new(name, unit)).collect()
    }
}

/// What stands in a table.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// Words.
    Text(String),
    /// A number, shown with four significant digits, and the half width of its 95 % interval.
    Number {
        /// The number; finite or infinite, never NaN.
        value: f64,
        /// Half width of its 95 % interval, if it is a mean.
        half_width: Option<f64>,
    },
}

impl Cell {
    /// A number without interval.
    #[must_use]
    pub fn number(value: f64) -> Self {
        Cell::Number { value, half_width: None }
    }

    /// Words.
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

/// Nothing where there is nothing.
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

/// A number of ours beside a printed one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Compared {
    /// What is compared: "load 0.75, max-srpt, mean response".
    pub what: String,
    /// As the paper prints it; `None` where only an independent reference has it.
    pub printed: Option<f64>,
    /// From an independent reference implementation, with its half width, where there is one.
    pub reference: Option<(f64, f64)>,
    /// Ours.
    pub ours: f64,
    /// Half width of its 95 % interval, if it is a mean.
    pub half_width: Option<f64>,
    /// Whether it agrees.
    pub verdict: Verdict,
    /// Why it differs, or what makes it agree; may be empty.
    pub note: String,
}

impl Compared {
    /// A number of ours beside nothing yet.
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

/// A statement of the paper.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Claim {
    /// Where it stands: "Corollary 4".
    pub place: String,
    /// In our words.
    pub statement: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// What was run and seen, in numbers; a counterexample if it fails.
    pub evidence: String,
}

impl Claim {
    /// A statement with its verdict; `true` is [`Verdict::Holds`], `false` [`Verdict::Fails`].
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

/// Whether something came out as printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Holds,
    /// Under some conditions, which the note names.
    Partly,
    /// It does not.
    Fails,
    /// It cannot be judged here; the note says why.
    Open,
    /// Nothing to judge: it was put in, and not found. It is not counted.
    Input,
}

impl Verdict {
    /// The word for it on a statement, in files and on pages.
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

    /// Whether all, some or none of these hold; of nothing all do.
    #[must_use]
    pub fn of_all(holds: impl IntoIterator<Item = bool>) -> Self {
        let holds: Vec<bool> = holds.into_iter().collect();
        match holds.iter().filter(|&&one| one).count() {
            all if all == holds.len() => Self::Holds,
            0 => Self::Fails,
            _ => Self::Partly,
        }
    }

    /// Holds, or is open: for what the experiment can confirm but not refute.
    #[must_use]
    pub fn holds_or_open(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Open }
    }
}

impl From<bool> for Verdict {
    fn from(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Fails }
    }
}
