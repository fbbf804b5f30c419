//! Marks of a chart: lines, steps, points and bars, with the whiskers of their intervals.
//!
//! Not here: axes and text.

use super::drawing::{Drawing, SvgCurve, SvgPoint, px};
use super::frame::Frame;
use super::shapes::{bar_places, mark};
use crate::report::escape::escape;
use crate::report::number;
use crate::report::{Axis, ChartKind};
use std::fmt::Write;

/// Maximum number of points of a line that are marked, with their intervals and with numbers as tooltips.
const MARKED_POINTS_MAX: usize = 60;

/// Share of the width of a group that its bars fill.
const BARS_FILL: f64 = 0.78;

/// Maximum width of a bar, in pixels.
const BAR_WIDTH_MAX: f64 = 46.0;

/// Share of the height of its row that a bar along the horizontal axis fills, minimum number of rows that the height is
/// divided into, and minimum height and length.
const ROW_FILL: f64 = 0.72;
const ROWS_LEAST: usize = 4;
const ROW_HEIGHT_LEAST: f64 = 2.0;
const SPAN_LEAST: f64 = 0.4;

/// Draws all series of a drawing.
pub(super) fn draw(drawing: &Drawing<'_>, frame: &Frame, out: &mut String) {
    match drawing.chart.kind {
        ChartKind::Bars => bars(drawing, frame, out),
        ChartKind::Spans => spans(drawing, frame, out),
        kind @ (ChartKind::Lines | ChartKind::Steps | ChartKind::Points) => {
            drawing.curves.iter().for_each(|curve| line(kind, drawing, curve, frame, out));
        }
    }
}

fn line(kind: ChartKind, drawing: &Drawing<'_>, curve: &SvgCurve<'_>, frame: &Frame, out: &mut String) {
    let points = &curve.points;
    out.push_str(&curve.open(""));
    if kind != ChartKind::Points {
        let _ = write!(out, "<path class=\"line\" d=\"{}\"/>", path(kind, frame, points));
    }
    if kind == ChartKind::Points || points.len() <= MARKED_POINTS_MAX {
        let whiskers: String =
            points.iter().map(|point| whisker(frame, frame.across(point.x), point)).collect();
        let _ = write!(out, "<path class=\"whisker\" d=\"{whiskers}\"/>");
        for point in points {
            let mark = mark(curve, (frame.across(point.x), frame.up(point.y)));
            let _ = write!(
                out,
                "<path class=\"mark\" d=\"{mark}\"><title>{}</title></path>",
                words(drawing, curve, point)
            );
        }
    }
    out.push_str("</g>\n");
}

fn path(kind: ChartKind, frame: &Frame, points: &[SvgPoint]) -> String {
    let mut path = String::new();
    for (place, point) in points.iter().enumerate() {
        let (x, y) = (px(frame.across(point.x)), px(frame.up(point.y)));
        let _ = match (place, kind) {
            (0, _) => write!(path, "M{x} {y}"),
            (_, ChartKind::Steps) => write!(path, "H{x}V{y}"),
            _ => write!(path, "L{x} {y}"),
        };
    }
    path
}

fn whisker(frame: &Frame, x: f64, point: &SvgPoint) -> String {
    if point.half_width == 0.0 {
        return String::new();
    }
    let (low, high) = (px(frame.up(point.y - point.half_width)), px(frame.up(point.y + point.half_width)));
    let (left, right) = (px(x - 3.0), px(x + 3.0));
    format!("M{} {low}V{high}M{left} {low}H{right}M{left} {high}H{right}", px(x))
}

fn bars(drawing: &Drawing<'_>, frame: &Frame, out: &mut String) {
    let places: Vec<f64> = bar_places(drawing).into_iter().map(|place| frame.across(place)).collect();
    let beside = match (places.first(), places.last()) {
        (Some(first), Some(last)) => (first - frame.left).min(frame.right - last),
        _ => 0.0,
    };
    let ends = 2.0 * beside.max(1.0);
    let room = places.windows(2).map(|pair| pair[1] - pair[0]).fold(ends, f64::min);
    let count = drawing.curves.len().max(1) as f64;
    let width = (room * BARS_FILL / count).min(BAR_WIDTH_MAX);
    let base = frame.up(frame.y.base());
    let gap = if 5.0 < width { 1.0 } else { 0.0 };
    for (place, curve) in drawing.curves.iter().enumerate() {
        let _ = writeln!(out, "{}", curve.open(" bars"));
        let shift = (place as f64 - (count - 1.0) / 2.0) * width;
        let mut whiskers = String::new();
        for point in &curve.points {
            let middle = frame.across(point.x) + shift;
            let end = frame.up(point.y);
            let _ = writeln!(
                out,
                "<rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
                px(middle - width / 2.0),
                px(end.min(base)),
                px((width - gap).max(0.3)),
                px((end - base).abs()),
                words(drawing, curve, point)
            );
            whiskers.push_str(&whisker(frame, middle - gap / 2.0, point));
        }
        let _ = writeln!(out, "<path class=\"whisker\" d=\"{whiskers}\"/></g>");
    }
}

/// Draws bars along the horizontal axis, one path for each series.
fn spans(drawing: &Drawing<'_>, frame: &Frame, out: &mut String) {
    let rows = drawing.chart.y.names.len().max(ROWS_LEAST) as f64;
    let height = ((frame.bottom - frame.top) / rows * ROW_FILL).max(ROW_HEIGHT_LEAST);
    let highest = (frame.bottom - height).max(frame.top);
    for curve in &drawing.curves {
        let mut path = String::new();
        for pair in curve.points.chunks_exact(2) {
            let (left, right) = (frame.across(pair[0].x), frame.across(pair[1].x));
            let left = left.min(frame.right - SPAN_LEAST);
            let width = px((right - left).max(SPAN_LEAST));
            let top = px((frame.up(pair[0].y) - height / 2.0).clamp(frame.top, highest));
            let _ = write!(path, "M{} {top}h{width}v{}h-{width}Z", px(left), px(height));
        }
        let name = escape(&curve.series.name);
        let open = curve.open("");
        let _ = writeln!(out, "{open}<path class=\"bar\" d=\"{path}\"><title>{name}</title></path></g>");
    }
}

/// Returns the numbers of a point as text.
fn words(drawing: &Drawing<'_>, curve: &SvgCurve<'_>, point: &SvgPoint) -> String {
    let half_width = (0.0 < point.half_width).then_some(point.half_width);
    let x = labelled(&drawing.chart.x, point.x, None);
    let y = labelled(&drawing.chart.y, point.y, half_width);
    escape(&format!("{}\n{x}\n{y}", curve.series.name))
}

fn labelled(axis: &Axis, value: f64, half_width: Option<f64>) -> String {
    let value = axis.name_at(value).map_or_else(|| number::with_interval(value, half_width), str::to_owned);
    if axis.label.is_empty() { value } else { format!("{}: {value}", axis.label) }
}
