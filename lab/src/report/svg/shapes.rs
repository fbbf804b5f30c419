//! Shapes that marks and the samples of a legend share, and the places of bars.

use super::drawing::{Drawing, SvgCurve, px};
use crate::report::ChartKind;
use std::fmt::Write;

/// Half the size of a mark, in pixels.
const MARK_RADIUS: f64 = 3.2;

/// Draws the sample of a series in a legend: left end, middle height and width.
pub(super) fn sample(
    kind: ChartKind,
    curve: &SvgCurve<'_>,
    (x, y, width): (f64, f64, f64),
    out: &mut String,
) {
    out.push_str(&curve.open(""));
    if matches!(kind, ChartKind::Bars | ChartKind::Spans) {
        let (x, y) = (px(x + width - 14.0), px(y - 6.0));
        let _ = write!(out, "<rect class=\"bar\" x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\"/>");
    } else {
        if kind != ChartKind::Points {
            let _ = write!(out, "<path class=\"line\" d=\"M{} {}h{}\"/>", px(x), px(y), px(width));
        }
        let _ = write!(out, "<path class=\"mark\" d=\"{}\"/>", mark(curve, (x + width / 2.0, y)));
    }
    out.push_str("</g>\n");
}

/// Corners of marks, in radii from their centre. Shapes differ so that series can be distinguished
/// without colours.
const SHAPES: [&[(f64, f64)]; 5] = [
    &[(-0.5, -1.0), (0.5, -1.0), (1.0, -0.5), (1.0, 0.5), (0.5, 1.0), (-0.5, 1.0), (-1.0, 0.5), (-1.0, -0.5)],
    &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    &[(0.0, -1.2), (1.15, 0.9), (-1.15, 0.9)],
    &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
    &[(0.0, 1.2), (1.15, -0.9), (-1.15, -0.9)],
];

/// Returns the closed shape of a series around a position.
pub(super) fn mark(curve: &SvgCurve<'_>, (x, y): (f64, f64)) -> String {
    let shape = SHAPES[(curve.look.colour + curve.look.round) % SHAPES.len()];
    let corner = |(right, down): &(f64, f64)| {
        format!("{} {}", px(x + MARK_RADIUS * right), px(y + MARK_RADIUS * down))
    };
    format!("M{}Z", shape.iter().map(corner).collect::<Vec<_>>().join("L"))
}

/// Returns the positions of all bars on the horizontal axis, in order.
pub(super) fn bar_places(drawing: &Drawing<'_>) -> Vec<f64> {
    let mut places: Vec<f64> =
        drawing.curves.iter().flat_map(|curve| &curve.points).map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup_by(|left, right| left.total_cmp(right).is_eq());
    places
}
