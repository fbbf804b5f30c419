//! Charts as data: axes, and series of points.

use gristmill_scheduler::metrics::Interval;
use serde::{Deserialize, Serialize};

/// Chart with axes and series.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    /// Identifier for files, unique in its paper: `figure-9-load-075`.
    pub id: String,
    /// Caption of the table.
    pub caption: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Kind of drawing.
    pub kind: ChartKind,
    /// Series in the order of the legend.
    pub series: Vec<Series>,
}

impl Chart {
    /// Creates a chart; the axes are the horizontal and the vertical one.
    #[must_use]
    pub fn new(
        kind: ChartKind,
        id: impl Into<String>,
        caption: impl Into<String>,
        [x, y]: [Axis; 2],
        series: Vec<Series>,
    ) -> Self {
        Self { id: id.into(), caption: caption.into(), x, y, kind, series }
    }
}

/// Kind of drawing of the points of a chart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// Straight lines between points.
    #[default]
    Lines,
    /// The value holds until the next point.
    Steps,
    /// Marks only.
    Points,
    /// Groups of bars: the points of all series share their positions on the horizontal axis.
    Bars,
    /// Bars along the horizontal axis. Points come in pairs, the start and the end of a bar, both at the
    /// height of its row.
    Spans,
}

/// Axis of a chart.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
pub struct Axis {
    /// Label, with the unit: "mean flow time, s".
    pub label: String,
    /// True for a logarithmic axis, whose values are all above 0.
    pub logarithmic: bool,
    /// Names of the positions 0, 1, 2, ... if the axis shows categories instead of numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// Creates a linear axis of numbers.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), ..Self::default() }
    }

    /// Creates a logarithmic axis.
    #[must_use]
    pub fn logarithmic(label: &str) -> Self {
        Self { label: label.to_owned(), logarithmic: true, names: Vec::new() }
    }

    /// Returns the name at this position, if the axis has one.
    pub(crate) fn name_at(&self, value: f64) -> Option<&str> {
        let name = self.names.get(value as usize).filter(|_| 0.0 <= value && value.fract() == 0.0);
        name.map(String::as_str)
    }

    /// Creates an axis of names at the positions 0, 1, 2, ...
    #[must_use]
    pub fn names(label: &str, names: impl IntoIterator<Item = String>) -> Self {
        Self { label: label.to_owned(), logarithmic: false, names: names.into_iter().collect() }
    }
}

/// Series of points.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
pub struct Series {
    /// Name in the legend. The same name has the same colour in all charts of a page.
    pub name: String,
    /// Points (x, y), finite, in the order in which they are connected.
    pub points: Vec<(f64, f64)>,
    /// Half widths of the 95 % intervals of y; empty, or one for each point.
    pub half_widths: Vec<f64>,
    /// True for a printed or reference curve, drawn dashed.
    pub reference: bool,
}

impl Series {
    /// Creates a series of our own points, without intervals.
    #[must_use]
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, ..Self::default() }
    }

    /// Creates a series of our own means with the half widths of their intervals, 0 where there is none.
    #[must_use]
    pub fn means(name: impl Into<String>, means: impl IntoIterator<Item = (f64, Interval)>) -> Self {
        let means = means.into_iter().map(|(x, mean)| ((x, mean.mean), mean.half_width.unwrap_or(0.0)));
        let (points, half_widths) = means.unzip();
        Self { half_widths, ..Self::new(name, points) }
    }

    /// Sets half widths of 95 % intervals, one for each point.
    #[must_use]
    pub fn with_half_widths(self, half_widths: Vec<f64>) -> Self {
        Self { half_widths, ..self }
    }

    /// Marks the series as a printed or reference curve.
    #[must_use]
    pub fn as_reference(self) -> Self {
        Self { reference: true, ..self }
    }
}
