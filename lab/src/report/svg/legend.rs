//! Which line is which: names at the ends of the lines where they fit, or a legend above the plot.
//!
//! Not here: colours.

use super::frame::Frame;
use super::marks;
use super::words::{LINE_HEIGHT, shortened, width};
use super::{Drawing, Medium, px, text};
use crate::report::ChartKind;
use std::fmt::Write;

/// Series that are named at their ends at most.
const DIRECT_MAX: usize = 9;

/// The widest name at the end of a line, in pixels.
const DIRECT_WIDTH_MAX: f64 = 165.0;

/// How far a name may be moved from the end of its line, in pixels.
const DIRECT_SHIFT_MAX: f64 = 34.0;

/// From the end of a line to its name.
const DIRECT_GAP: f64 = 16.0;

/// The sample of a line in a legend.
const SAMPLE_WIDTH: f64 = 24.0;

/// The widest name in a legend.
const NAME_WIDTH_MAX: f64 = 330.0;

/// Where the names of the series stand.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Legend {
    /// Nowhere.
    None,
    /// At the ends of the lines: heights of the names as shares of the plot, and the widest name.
    Direct {
        /// Pixels from the top of the plot, for each series.
        heights: Vec<f64>,
        /// Of the widest name.
        width: f64,
    },
    /// In rows above the plot: places in pixels from the left, and rows.
    Rows {
        /// For each series.
        places: Vec<(f64, usize)>,
        /// How many.
        rows: usize,
    },
}

impl Legend {
    /// The legend of a drawing in a frame that has no place for one yet.
    pub(super) fn of(drawing: &Drawing<'_>, frame: &Frame) -> Self {
        let curves = &drawing.curves;
        if curves.is_empty() || (curves.len() == 1 && curves[0].series.name.is_empty()) {
            return Legend::None;
        }
        Self::direct(drawing, frame).unwrap_or_else(|| Self::rows(drawing, frame))
    }

    fn direct(drawing: &Drawing<'_>, frame: &Frame) -> Option<Self> {
        let lines = matches!(drawing.kind, ChartKind::Lines | ChartKind::Steps);
        let curves = &drawing.curves;
        if drawing.medium == Medium::Narrow || !lines || DIRECT_MAX < curves.len() {
            return None;
        }
        let widest = curves.iter().map(|curve| width(&curve.series.name)).fold(0.0, f64::max);
        if DIRECT_WIDTH_MAX < widest {
            return None;
        }
        let mut ends = Vec::new();
        for (place, curve) in curves.iter().enumerate() {
            let last = curve.points.last()?;
            let rightmost = curve.points.iter().all(|point| point.x <= last.x);
            if !rightmost || frame.across(last.x) < frame.right - 0.03 * (frame.right - frame.left) {
                return None;
            }
            ends.push((frame.up(last.y) - frame.top, place));
        }
        let heights = spread(&ends, frame.bottom - frame.top)?;
        Some(Legend::Direct { heights, width: widest })
    }

    fn rows(drawing: &Drawing<'_>, frame: &Frame) -> Self {
        let right = frame.width - 6.0;
        let (mut at, mut row) = (4.0, 0);
        let mut places = Vec::new();
        for curve in &drawing.curves {
            let wide = SAMPLE_WIDTH + 6.0 + width(&curve.series.name).min(NAME_WIDTH_MAX);
            if 4.0 < at && right < at + wide {
                (at, row) = (4.0, row + 1);
            }
            places.push((at, row));
            at += wide + 16.0;
        }
        Legend::Rows { places, rows: row + 1 }
    }

    /// What it takes from the right of the plot.
    pub(super) fn margin(&self) -> f64 {
        match self {
            Legend::Direct { width, .. } => width + DIRECT_GAP - 8.0,
            Legend::None | Legend::Rows { .. } => 0.0,
        }
    }

    /// What it takes above the plot.
    pub(super) fn height(&self) -> f64 {
        match self {
            Legend::Rows { rows, .. } => *rows as f64 * (LINE_HEIGHT + 3.0) + 7.0,
            Legend::None | Legend::Direct { .. } => 0.0,
        }
    }

    /// Draws it.
    pub(super) fn draw(&self, drawing: &Drawing<'_>, frame: &Frame, out: &mut String) {
        match self {
            Legend::None => {}
            Legend::Direct { heights, .. } => {
                for (curve, height) in drawing.curves.iter().zip(heights) {
                    let Some(last) = curve.points.last() else { continue };
                    let (x, y) = (frame.across(last.x), frame.up(last.y));
                    let at = frame.top + height;
                    let name_at = frame.right + DIRECT_GAP;
                    let _ = writeln!(
                        out,
                        "{}<path class=\"leader\" d=\"M{} {}L{} {}\"/></g>",
                        curve.open(""),
                        px(x + 5.0),
                        px(y),
                        px(name_at - 3.0),
                        px(at)
                    );
                    text(out, "name", "start", (name_at, at + 4.5), &curve.series.name);
                }
            }
            Legend::Rows { places, rows } => {
                let height = LINE_HEIGHT + 3.0;
                let first = frame.label_top() - *rows as f64 * height;
                for (curve, &(x, row)) in drawing.curves.iter().zip(places) {
                    let y = first + row as f64 * height + 4.0;
                    marks::sample(drawing, curve, (x, y, SAMPLE_WIDTH), out);
                    let room = (frame.width - 6.0 - x - SAMPLE_WIDTH - 6.0).min(NAME_WIDTH_MAX);
                    let name = shortened(&curve.series.name, room, false);
                    text(out, "name", "start", (x + SAMPLE_WIDTH + 6.0, y + 4.5), &name);
                }
            }
        }
    }
}

/// Heights of names near the heights of their lines, at least a line apart and within the plot; `None` if some would
/// stand too far from their lines.
fn spread(ends: &[(f64, usize)], height: f64) -> Option<Vec<f64>> {
    let mut order: Vec<(f64, usize)> = ends.to_vec();
    order.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
    let mut placed: Vec<f64> = Vec::new();
    for &(wanted, _) in &order {
        let least = placed.last().map_or(0.0, |before| before + LINE_HEIGHT);
        placed.push(wanted.max(least));
    }
    // What was pushed beyond the bottom pushes the others up.
    let mut most = height;
    for place in placed.iter_mut().rev() {
        *place = place.min(most);
        most = *place - LINE_HEIGHT;
    }
    // Half of the crowding goes upwards, so that names stand around their lines.
    for index in (0..placed.len()).rev() {
        let before = if index == 0 { 0.0 } else { placed[index - 1] + LINE_HEIGHT };
        let wanted = order[index].0 + (placed[index] - order[index].0) / 2.0;
        placed[index] = placed[index].min(wanted.max(before));
    }
    let mut heights = vec![0.0; ends.len()];
    for (&(wanted, index), &place) in order.iter().zip(&placed) {
        if DIRECT_SHIFT_MAX < (place - wanted).abs() || place < -1.0 {
            return None;
        }
        heights[index] = place;
    }
    Some(heights)
}

#[cfg(test)]
mod tests {
    use super::{DIRECT_SHIFT_MAX, LINE_HEIGHT, spread};
    use proptest::prelude::*;

    #[test]
    fn names_far_apart_stand_at_their_lines() {
        assert_eq!(spread(&[(100.0, 0), (10.0, 1), (200.0, 2)], 250.0), Some(vec![100.0, 10.0, 200.0]));
        assert_eq!(spread(&[(50.0, 0); 9], 250.0), None, "nine lines that end at one point");
    }

    proptest! {
        #[test]
        fn names_never_stand_upon_each_other(ends in prop::collection::vec(0.0..250.0_f64, 1..9)) {
            let ends: Vec<(f64, usize)> = ends.into_iter().enumerate().map(|(index, end)| (end, index)).collect();
            if let Some(heights) = spread(&ends, 250.0) {
                for (&(wanted, index), &height) in ends.iter().zip(&heights) {
                    prop_assert!((wanted - height).abs() <= DIRECT_SHIFT_MAX);
                    prop_assert!((-1.0..=250.0).contains(&height));
                    for &other in &heights[..index] {
                        prop_assert!(LINE_HEIGHT - 1e-9 <= (height - other).abs());
                    }
                }
            }
        }
    }
}
