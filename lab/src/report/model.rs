//! What there is to look at: sections with charts, tables, comparisons and claims, as plain data.
//!
//! Not here: how any of it looks.

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

/// A chart.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    /// For files, unique in its paper: `figure-9-load-075`.
    pub id: String,
    /// What is to be seen.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// How the points are drawn.
    pub kind: ChartKind,
    /// In the order of the legend.
    pub series: Vec<Series>,
}

/// How the points of a chart are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// Straight lines between points.
    Lines,
    /// The value holds until the next point.
    Steps,
    /// Marks only.
    Points,
    /// Groups of bars: the points of all series share their places on the horizontal axis.
    Bars,
    /// Bars along the horizontal axis: points come in pairs, where a bar begins and where it ends, both at the height of
    /// its row.
    Spans,
}

/// An axis.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
pub struct Axis {
    /// Label, with the unit: "mean flow time, s".
    pub label: String,
    /// Logarithmic; then all values are above 0.
    pub logarithmic: bool,
    /// Names of the places 0, 1, 2, ... where the axis shows kinds and not numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// A linear axis of numbers.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), ..Self::default() }
    }

    /// A logarithmic axis.
    #[must_use]
    pub fn logarithmic(label: &str) -> Self {
        Self { label: label.to_owned(), logarithmic: true, names: Vec::new() }
    }

    /// An axis of names at the places 0, 1, 2, ...
    #[must_use]
    pub fn names(label: &str, names: impl IntoIterator<Item = String>) -> Self {
        Self { label: label.to_owned(), logarithmic: false, names: names.into_iter().collect() }
    }
}

/// Points that belong together.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
pub struct Series {
    /// As in the legend. The same name has the same colour in all charts of a page.
    pub name: String,
    /// (x, y), finite, in the order in which they are connected.
    pub points: Vec<(f64, f64)>,
    /// Half widths of the 95 % intervals of y; empty, or one for each point.
    pub half_widths: Vec<f64>,
    /// A printed or reference curve, drawn dashed.
    pub reference: bool,
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
}
