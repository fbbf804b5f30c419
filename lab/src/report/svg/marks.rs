//! The marks of a chart: lines, steps, points, bars, and the bands or whiskers of their intervals.
//!
//! Not here: axes and words.

use super::frame::Frame;
use super::{Curve, Drawing, Point, px};
use crate::report::escape::escape;
use crate::report::number;
use crate::report::{Axis, ChartKind};
use std::fmt::Write;

/// Lines with at most this many points show them.
const MARKED_POINTS_MAX: usize = 30;

/// The same for references.
const MARKED_REFERENCE_MAX: usize = 8;

/// Series with more points show their intervals as a band and not as whiskers.
const WHISKERS_MAX: usize = 12;

/// Series with at most this many points tell their numbers under the mouse.
const HIT_POINTS_MAX: usize = 60;

/// Half the size of a mark, in pixels.
const MARK_RADIUS: f64 = 3.4;

/// The same where there are many.
const SMALL_MARK_RADIUS: f64 = 2.2;

/// Points with at most this many have marks of full size.
const LARGE_MARKS_MAX: usize = 150;

/// Share of the room of a group of bars that the bars fill.
const BARS_FILL: f64 = 0.78;

/// The widest bar, in pixels.
const BAR_WIDTH_MAX: f64 = 46.0;

/// Share of the height of its row that a bar along the horizontal axis fills.
const ROW_FILL: f64 = 0.72;

/// Where fewer rows have names, bars are as high as with this many.
const ROWS_LEAST: usize = 4;

/// The least height of such a bar, in pixels.
const ROW_HEIGHT_LEAST: f64 = 2.0;

/// The least length of such a bar, in pixels.
const SPAN_LEAST: f64 = 0.4;

/// Draws all series of a drawing.
pub(super) fn draw(drawing: &Drawing<'_>, frame: &Frame, out: &mut String) {
    match drawing.kind {
        ChartKind::Bars => return bars(drawing, frame, out),
        ChartKind::Spans => return spans(drawing, frame, out),
        ChartKind::Lines | ChartKind::Steps | ChartKind::Points => {}
    }
    for curve in drawing.curves.iter().filter(|curve| !curve.points.is_empty()) {
        out.push_str(&curve.open(""));
        let points: Vec<Point> = curve.points.clone();
        intervals(drawing, frame, &points, out);
        if drawing.kind != ChartKind::Points {
            let _ = write!(out, "<path class=\"line\" d=\"{}\"/>", path(drawing.kind, frame, &points));
        }
        let marked = match drawing.kind {
            ChartKind::Points => true,
            ChartKind::Lines => marked_line(curve),
            ChartKind::Steps | ChartKind::Bars | ChartKind::Spans => points.len() == 1,
        };
        if marked {
            let radius = if points.len() <= LARGE_MARKS_MAX { MARK_RADIUS } else { SMALL_MARK_RADIUS };
            let shapes = points.iter().map(|point| {
                let at = (frame.across(point.x), frame.up(point.y));
                shape(curve.look.colour + curve.look.round, at, radius)
            });
            let _ = write!(out, "<path class=\"mark\" d=\"{}\"/>", shapes.collect::<String>());
        }
        out.push_str("</g>\n");
    }
    hits(drawing, frame, out);
}

/// The sample of a series in a legend: left end, middle height and width.
pub(super) fn sample(
    drawing: &Drawing<'_>,
    curve: &Curve<'_>,
    (x, y, width): (f64, f64, f64),
    out: &mut String,
) {
    out.push_str(&curve.open(""));
    if matches!(drawing.kind, ChartKind::Bars | ChartKind::Spans) {
        let (x, y) = (px(x + width - 14.0), px(y - 6.0));
        let _ = write!(out, "<rect class=\"bar\" x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\"/>");
    } else {
        if drawing.kind != ChartKind::Points {
            let _ = write!(out, "<path class=\"line\" d=\"M{} {}h{}\"/>", px(x), px(y), px(width));
        }
        let marked =
            drawing.kind == ChartKind::Points || (drawing.kind == ChartKind::Lines && marked_line(curve));
        if marked {
            let mark = shape(curve.look.colour + curve.look.round, (x + width / 2.0, y), MARK_RADIUS);
            let _ = write!(out, "<path class=\"mark\" d=\"{mark}\"/>");
        }
    }
    out.push_str("</g>\n");
}

/// Whether a line shows its points. Marks on dashes are hard to look at, so references show fewer.
fn marked_line(curve: &Curve<'_>) -> bool {
    let most = if curve.series.reference { MARKED_REFERENCE_MAX } else { MARKED_POINTS_MAX };
    curve.points.len() <= most
}

fn path(kind: ChartKind, frame: &Frame, points: &[Point]) -> String {
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

/// Bands, or whiskers where there are few points.
fn intervals(drawing: &Drawing<'_>, frame: &Frame, points: &[Point], out: &mut String) {
    if points.iter().all(|point| point.half_width == 0.0) {
        return;
    }
    if drawing.kind == ChartKind::Points || points.len() <= WHISKERS_MAX {
        let whiskers = points.iter().map(|point| whisker(frame, frame.across(point.x), point));
        let _ = write!(out, "<path class=\"whisker\" d=\"{}\"/>", whiskers.collect::<String>());
        return;
    }
    let shifted = |sign: f64| -> Vec<Point> {
        points.iter().map(|point| Point { y: point.y + sign * point.half_width, ..*point }).collect()
    };
    let upper = path(drawing.kind, frame, &shifted(1.0));
    let mut lower = shifted(-1.0);
    lower.reverse();
    let mut back = String::new();
    let mut before: Option<String> = None;
    for point in &lower {
        let (x, y) = (px(frame.across(point.x)), px(frame.up(point.y)));
        // Steps hold their height until the next point, so on the way back the height changes first.
        let _ = match (&before, drawing.kind) {
            (Some(_), ChartKind::Steps) => write!(back, "V{y}H{x}"),
            _ => write!(back, "L{x} {y}"),
        };
        before = Some(y);
    }
    let _ = write!(out, "<path class=\"band\" d=\"{upper}{back}Z\"/>");
}

fn whisker(frame: &Frame, x: f64, point: &Point) -> String {
    if point.half_width == 0.0 {
        return String::new();
    }
    let (low, high) = (frame.up(point.y - point.half_width), frame.up(point.y + point.half_width));
    let (left, right) = (px(x - 3.0), px(x + 3.0));
    format!("M{} {}V{}M{left} {}H{right}M{left} {}H{right}", px(x), px(low), px(high), px(low), px(high))
}

/// A closed shape around a place. Shapes differ so that series can be told apart without colours.
fn shape(kind: usize, (x, y): (f64, f64), radius: f64) -> String {
    let r = radius;
    match kind % 5 {
        0 => format!("M{} {}a{r} {r} 0 1 0 {} 0a{r} {r} 0 1 0 {} 0Z", px(x - r), px(y), 2.0 * r, -2.0 * r),
        1 => {
            let side = px(1.8 * r);
            format!("M{} {}h{side}v{side}h-{side}Z", px(x - 0.9 * r), px(y - 0.9 * r))
        }
        2 => format!(
            "M{} {}L{} {}L{} {}Z",
            px(x),
            px(y - 1.2 * r),
            px(x + 1.15 * r),
            px(y + 0.9 * r),
            px(x - 1.15 * r),
            px(y + 0.9 * r)
        ),
        3 => format!(
            "M{} {}L{} {}L{} {}L{} {}Z",
            px(x),
            px(y - 1.3 * r),
            px(x + 1.3 * r),
            px(y),
            px(x),
            px(y + 1.3 * r),
            px(x - 1.3 * r),
            px(y)
        ),
        _ => format!(
            "M{} {}L{} {}L{} {}Z",
            px(x),
            px(y + 1.2 * r),
            px(x + 1.15 * r),
            px(y - 0.9 * r),
            px(x - 1.15 * r),
            px(y - 0.9 * r)
        ),
    }
}

/// The places of all bars on the horizontal axis, in order.
pub(super) fn bar_places(drawing: &Drawing<'_>) -> Vec<f64> {
    let mut places: Vec<f64> =
        drawing.curves.iter().flat_map(|curve| &curve.points).map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup_by(|left, right| left.total_cmp(right).is_eq());
    places
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
        for point in &curve.points {
            let middle = frame.across(point.x) + shift;
            let end = frame.up(point.y);
            let (top, height) = (end.min(base), (end - base).abs());
            let _ = writeln!(
                out,
                "<rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
                px(middle - width / 2.0),
                px(top),
                px((width - gap).max(0.3)),
                px(height),
                words(drawing, curve, point)
            );
        }
        let whiskers: String = curve
            .points
            .iter()
            .map(|point| whisker(frame, frame.across(point.x) + shift - gap / 2.0, point))
            .collect();
        if !whiskers.is_empty() {
            let _ = writeln!(out, "<path class=\"whisker\" d=\"{whiskers}\"/>");
        }
        out.push_str("</g>\n");
    }
}

/// Bars along the horizontal axis, one path for each series.
fn spans(drawing: &Drawing<'_>, frame: &Frame, out: &mut String) {
    let rows = drawing.chart.y.names.len().max(ROWS_LEAST) as f64;
    let height = ((frame.bottom - frame.top) / rows * ROW_FILL).max(ROW_HEIGHT_LEAST);
    let highest = (frame.bottom - height).max(frame.top);
    for curve in drawing.curves.iter().filter(|curve| !curve.points.is_empty()) {
        let mut path = String::new();
        for pair in curve.points.chunks_exact(2) {
            let (left, right) = (frame.across(pair[0].x), frame.across(pair[1].x));
            let left = left.min(frame.right - SPAN_LEAST);
            let width = px((right - left).max(SPAN_LEAST));
            let top = px((frame.up(pair[0].y) - height / 2.0).clamp(frame.top, highest));
            let _ = write!(path, "M{} {top}h{width}v{}h-{width}Z", px(left), px(height));
        }
        let name = escape(&curve.series.name);
        let _ = writeln!(
            out,
            "{}<path class=\"bar\" d=\"{path}\"><title>{name}</title></path></g>",
            curve.open("")
        );
    }
}

/// Invisible circles over the points that tell their numbers under the mouse.
fn hits(drawing: &Drawing<'_>, frame: &Frame, out: &mut String) {
    for curve in drawing.curves.iter().filter(|curve| curve.points.len() <= HIT_POINTS_MAX) {
        out.push_str(&curve.open(""));
        for point in &curve.points {
            let _ = writeln!(
                out,
                "<circle class=\"hit\" cx=\"{}\" cy=\"{}\" r=\"7\"><title>{}</title></circle>",
                px(frame.across(point.x)),
                px(frame.up(point.y)),
                words(drawing, curve, point)
            );
        }
        out.push_str("</g>\n");
    }
}

/// The numbers of a point, in words.
fn words(drawing: &Drawing<'_>, curve: &Curve<'_>, point: &Point) -> String {
    let half_width = (0.0 < point.half_width).then_some(point.half_width);
    let chart = drawing.chart;
    let x = told(&chart.x, point.x, None);
    let y = told(&chart.y, point.y, half_width);
    escape(&format!("{}\n{x}\n{y}", curve.series.name))
}

fn told(axis: &Axis, value: f64, half_width: Option<f64>) -> String {
    let value = match axis.names.get(value as usize) {
        Some(name) if 0.0 <= value && value.fract() == 0.0 => name.clone(),
        _ => number::with_interval(value, half_width),
    };
    if axis.label.is_empty() { value } else { format!("{}: {value}", axis.label) }
}
