//! Charts as SVG: lines, steps, points and bars with their 95 % intervals, on linear, logarithmic or named axes.
//!
//! A drawing is made for a width: [`chart`] for a file of its own, and two for a page, which shows one of them, since
//! shrinking a wide one makes its words unreadable on a phone. Numbers that no axis can show are left out, and the
//! drawing says so. Not here: colours ([`Colours`]) and the words around a chart.

mod frame;
mod legend;
mod marks;
mod style;
#[cfg(test)]
mod tests;
mod words;

use super::axis::{AxisScale, Reach, drawable};
use super::colour::{Colours, Look};
use super::escape::{escape, plain};
use super::thin::{POINTS_MAX, thin};
use crate::report::{Chart, ChartKind, Series};
use frame::Frame;
use std::fmt::Write;

/// Bars that a series has at most; more are drawn as steps.
const BARS_MAX: usize = 200;

/// Points of a series in a narrow drawing at most.
const NARROW_POINTS_MAX: usize = 600;

/// What a drawing is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Medium {
    /// A file that stands alone.
    File,
    /// A page on a screen or on paper.
    Page,
    /// A page on a phone.
    Narrow,
}

/// A chart as a file that stands alone, with colours of its own.
#[must_use]
pub fn chart(chart: &Chart) -> String {
    file(chart, &Colours::of_charts([chart]))
}

/// A chart as a file that stands alone, with the colours of a page.
#[must_use]
pub fn file(chart: &Chart, colours: &Colours) -> String {
    draw(chart, colours, Medium::File)
}

/// Both drawings for a page that has the [`style`] in its head: for wide screens and for phones.
pub(super) fn for_page(chart: &Chart, colours: &Colours) -> [String; 2] {
    [Medium::Page, Medium::Narrow].map(|medium| draw(chart, colours, medium))
}

/// The style sheet that drawings on a page need.
pub(super) fn style() -> String {
    style::sheet()
}

/// A point with its interval.
#[derive(Clone, Copy, Debug)]
struct Point {
    x: f64,
    y: f64,
    half_width: f64,
}

/// A series as it is drawn.
#[derive(Debug)]
struct Curve<'a> {
    series: &'a Series,
    look: Look,
    points: Vec<Point>,
}

impl Curve<'_> {
    /// Opens a group for marks of this series.
    fn open(&self, class: &str) -> String {
        let reference = if self.series.reference { " reference" } else { "" };
        format!("<g class=\"c{} r{}{reference}{class}\">", self.look.colour, self.look.round % 3)
    }
}

/// A chart with everything that cannot be drawn left out.
#[derive(Debug)]
struct Drawing<'a> {
    chart: &'a Chart,
    kind: ChartKind,
    curves: Vec<Curve<'a>>,
    x_extent: Option<(f64, f64)>,
    y_extent: Option<(f64, f64)>,
    /// Points that no axis can show.
    left_out: usize,
    medium: Medium,
}

impl<'a> Drawing<'a> {
    fn new(chart: &'a Chart, colours: &Colours, medium: Medium) -> Self {
        let mut drawing = Self {
            chart,
            kind: chart.kind,
            curves: Vec::new(),
            x_extent: None,
            y_extent: None,
            left_out: 0,
            medium,
        };
        if drawing.kind == ChartKind::Bars && chart.series.iter().any(|series| BARS_MAX < series.points.len())
        {
            drawing.kind = ChartKind::Steps;
        }
        for series in &chart.series {
            let points = drawing.points_of(series);
            drawing.left_out += series.points.len() - points.len();
            for point in &points {
                widen(&mut drawing.x_extent, point.x);
                for y in [point.y, point.y - point.half_width, point.y + point.half_width] {
                    // The end of an interval may be where a logarithmic axis cannot go.
                    if drawable(&chart.y, y) {
                        widen(&mut drawing.y_extent, y);
                    }
                }
            }
            drawing.curves.push(Curve { series, look: colours.look(series), points });
        }
        drawing.thin();
        drawing
    }

    /// Leaves out what cannot be seen.
    fn thin(&mut self) {
        if self.kind == ChartKind::Spans {
            // A pair without its other half is no bar; whoever makes so many joins them.
            return;
        }
        let most = if self.medium == Medium::Narrow { NARROW_POINTS_MAX } else { POINTS_MAX };
        let scale = |axis, extent| AxisScale::new(axis, extent, 2, Reach::Tight);
        let (x, y) = (scale(&self.chart.x, self.x_extent), scale(&self.chart.y, self.y_extent));
        for curve in &mut self.curves {
            let places: Vec<(f64, f64)> =
                curve.points.iter().map(|point| (x.place(point.x), y.place(point.y))).collect();
            curve.points = thin(&places, most).into_iter().map(|index| curve.points[index]).collect();
        }
    }

    fn points_of(&self, series: &Series) -> Vec<Point> {
        let with_width = |(index, &(x, y)): (usize, &(f64, f64))| {
            let half_width = series.half_widths.get(index).copied().unwrap_or(0.0);
            let half_width = if drawable(&self.chart.y, half_width) { half_width } else { 0.0 };
            Point { x, y, half_width }
        };
        let points = series.points.iter().enumerate().map(with_width);
        points.filter(|point| drawable(&self.chart.x, point.x) && drawable(&self.chart.y, point.y)).collect()
    }

    /// A remark about what is missing.
    fn remark(&self) -> Option<String> {
        let left_out = self.left_out;
        (0 < left_out).then(|| {
            let points = if left_out == 1 { "point" } else { "points" };
            format!("{left_out} {points} beyond what the axes can show")
        })
    }

    /// What a person hears who cannot see it.
    fn description(&self) -> String {
        let chart = self.chart;
        let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
        let across = if chart.x.label.is_empty() { "no label" } else { &chart.x.label };
        let up = if chart.y.label.is_empty() { "no label" } else { &chart.y.label };
        format!("{}. Across: {across}. Up: {up}. Shown: {}.", chart.caption, names.join(", "))
    }
}

fn widen(extent: &mut Option<(f64, f64)>, value: f64) {
    let (low, high) = extent.unwrap_or((value, value));
    *extent = Some((low.min(value), high.max(value)));
}

fn draw(chart: &Chart, colours: &Colours, medium: Medium) -> String {
    let drawing = Drawing::new(chart, colours, medium);
    let frame = Frame::of(&drawing);
    let mut out = String::new();
    let (width, height) = (px(frame.width), px(frame.height));
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{}\"",
        plain(&drawing.description())
    );
    if medium == Medium::File {
        let _ = write!(
            out,
            " width=\"{width}\" height=\"{height}\">\n<title>{}</title>\n<style>\n{}</style>\n<rect class=\"paper\" \
             width=\"{width}\" height=\"{height}\"/>",
            plain(&chart.caption),
            style::sheet()
        );
    } else {
        out.push('>');
    }
    out.push('\n');
    frame.draw(&drawing, &mut out);
    marks::draw(&drawing, &frame, &mut out);
    frame.legend.draw(&drawing, &frame, &mut out);
    out.push_str("</svg>\n");
    out
}

/// A place in the drawing, to a tenth of a pixel. Whatever is no place is at 0.
fn px(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Words in the drawing.
fn text(out: &mut String, class: &str, anchor: &str, (x, y): (f64, f64), words: &str) {
    let anchor = if anchor == "start" { String::new() } else { format!(" text-anchor=\"{anchor}\"") };
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(out, "<text x=\"{}\" y=\"{}\"{class}{anchor}>{}</text>", px(x), px(y), escape(words));
}
