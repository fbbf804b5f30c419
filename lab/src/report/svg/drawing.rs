//! Chart without the points that cannot be drawn, and the writing of positions and text.

use super::super::axis::drawable;
use super::super::colour::{Look, looks};
use super::super::escape::escape;
use crate::report::{Chart, Series};
use std::fmt::Write;

/// Maximum number of points drawn of a series. Files of numbers hold all of them.
pub(super) const POINTS_MAX: usize = 900;

/// Point with its interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct SvgPoint {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) half_width: f64,
}

/// Series as drawn.
#[derive(Debug)]
pub(super) struct SvgCurve<'a> {
    pub(super) series: &'a Series,
    pub(super) look: Look,
    pub(super) points: Vec<SvgPoint>,
}

impl SvgCurve<'_> {
    /// Opens a group for marks of this series.
    pub(super) fn open(&self, class: &str) -> String {
        let reference = if self.series.reference { " reference" } else { "" };
        format!("<g class=\"c{} r{}{reference}{class}\">", self.look.colour, self.look.round % 3)
    }
}

/// Chart without the points that cannot be drawn.
#[derive(Debug)]
pub(super) struct Drawing<'a> {
    pub(super) chart: &'a Chart,
    pub(super) curves: Vec<SvgCurve<'a>>,
    pub(super) x_extent: Option<(f64, f64)>,
    pub(super) y_extent: Option<(f64, f64)>,
    /// Number of points that no axis can show.
    pub(super) left_out: usize,
}

impl<'a> Drawing<'a> {
    pub(super) fn new(chart: &'a Chart) -> Self {
        let mut drawing = Self { chart, curves: Vec::new(), x_extent: None, y_extent: None, left_out: 0 };
        for (series, look) in chart.series.iter().zip(looks(chart)) {
            let points = points_of(chart, series);
            drawing.left_out += series.points.len() - points.len();
            for point in &points {
                widen(&mut drawing.x_extent, point.x);
                // The end of an interval may be outside the range of a logarithmic axis.
                let ends = [point.y, point.y - point.half_width, point.y + point.half_width];
                ends.into_iter()
                    .filter(|y| drawable(&chart.y, *y))
                    .for_each(|y| widen(&mut drawing.y_extent, y));
            }
            drawing.curves.push(SvgCurve { series, look, points: thinned(points) });
        }
        drawing
    }

    /// Returns a remark about omitted points.
    pub(super) fn remark(&self) -> Option<String> {
        let points = if self.left_out == 1 { "point" } else { "points" };
        (0 < self.left_out).then(|| format!("{} {points} beyond what the axes can show", self.left_out))
    }

    /// Returns a description for readers who cannot see the drawing.
    pub(super) fn description(&self) -> String {
        let chart = self.chart;
        let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
        let [across, up] = [&chart.x.label, &chart.y.label]
            .map(|label| if label.is_empty() { "no label" } else { label.as_str() });
        format!("{}. Across: {across}. Up: {up}. Shown: {}.", chart.caption, names.join(", "))
    }
}

fn points_of(chart: &Chart, series: &Series) -> Vec<SvgPoint> {
    let with_width = |(index, &(x, y)): (usize, &(f64, f64))| {
        let half_width = series.half_widths.get(index).copied();
        SvgPoint { x, y, half_width: half_width.filter(|half| drawable(&chart.y, *half)).unwrap_or(0.0) }
    };
    let points = series.points.iter().enumerate().map(with_width);
    points.filter(|point| drawable(&chart.x, point.x) && drawable(&chart.y, point.y)).collect()
}

/// Thins too many points: keeps those at the ends of equal ranges, with the lowest and the highest of each.
fn thinned(points: Vec<SvgPoint>) -> Vec<SvgPoint> {
    let count = points.len();
    if count <= POINTS_MAX {
        return points;
    }
    let ranges = POINTS_MAX / 4;
    let mut kept = Vec::new();
    for range in 0..ranges {
        let (start, end) = (range * count / ranges, (range + 1) * count / ranges);
        let by_height = |one: &usize, other: &usize| points[*one].y.total_cmp(&points[*other].y);
        kept.extend([start, end - 1]);
        kept.extend((start..end).min_by(by_height));
        kept.extend((start..end).max_by(by_height));
    }
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|place| points[place]).collect()
}

fn widen(extent: &mut Option<(f64, f64)>, value: f64) {
    let (low, high) = extent.unwrap_or((value, value));
    *extent = Some((low.min(value), high.max(value)));
}

/// Formats a position in the drawing, to a tenth of a pixel; 0 for a number that is not finite.
pub(super) fn px(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Writes text in the drawing.
pub(super) fn text(out: &mut String, class: &str, anchor: &str, (x, y): (f64, f64), words: &str) {
    let anchor = if anchor == "start" { String::new() } else { format!(" text-anchor=\"{anchor}\"") };
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(out, "<text x=\"{}\" y=\"{}\"{class}{anchor}>{}</text>", px(x), px(y), escape(words));
}
