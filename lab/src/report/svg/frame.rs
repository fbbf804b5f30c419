//! Layout of a drawing: the plot, its axes, the legend, and the text around them.
//!
//! Not here: the marks within the plot.

use super::drawing::{Drawing, px, text};
use super::shapes;
use super::words::{LINE_HEIGHT, shortened, width, wrap};
use crate::report::ChartKind;
use crate::report::axis::{AxisScale, Reach, Tick};
use crate::report::escape::escape;
use std::fmt::Write;

/// Maximum number of lines of a caption.
const LINES_MAX: usize = 3;

const WIDTH: f64 = 640.0;
const PLOT_HEIGHT: f64 = 290.0;

/// Height of a row of a vertical axis of names, and maximum number of rows for which it applies.
const ROW_HEIGHT: f64 = 22.0;
const ROWS_MAX: usize = 60;

/// Maximum width of a name on an axis, in pixels.
const NAME_WIDTH_MAX: f64 = 150.0;

/// Maximum number of ticks for which minor ticks have a grid line each.
const GRID_LINES_MAX: usize = 12;

/// Sine and cosine of the angle of slanted names.
const SLANT: (f64, f64) = (0.573_576, 0.819_152);

/// Width of the sample of a series in the legend, and maximum width of a name there.
const SAMPLE_WIDTH: f64 = 24.0;
const LEGEND_NAME_MAX: f64 = 330.0;
const LEGEND_ROW: f64 = LINE_HEIGHT + 3.0;

/// Positions, in pixels from the top left.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) x: AxisScale,
    pub(super) y: AxisScale,
    caption: Vec<String>,
    /// Position from the left and row of each series.
    legend: Vec<(f64, usize)>,
    /// True if names under the horizontal axis are too wide to be horizontal.
    aslant: bool,
    remark: Option<String>,
}

impl Frame {
    pub(super) fn new(drawing: &Drawing<'_>, alone: bool) -> Self {
        let chart = drawing.chart;
        let plot = PLOT_HEIGHT.max(ROW_HEIGHT * chart.y.names.len().min(ROWS_MAX) as f64);
        let reach = if chart.kind == ChartKind::Bars { Reach::Zero } else { Reach::Ticks };
        let y = AxisScale::new(&chart.y, drawing.y_extent, (plot / 50.0) as usize, reach);
        let left = 14.0 + widest(&y).min(NAME_WIDTH_MAX);
        let right = WIDTH - 14.0;
        let caption =
            if alone { wrap(&chart.caption.replace('`', ""), WIDTH - 8.0, LINES_MAX) } else { Vec::new() };
        let legend = legend(drawing);
        let legend_height = legend.last().map_or(0.0, |(_, row)| (row + 1) as f64 * LEGEND_ROW + 7.0);
        let above = if caption.is_empty() { 0.0 } else { caption.len() as f64 * LINE_HEIGHT + 8.0 };
        let top = above + legend_height + LINE_HEIGHT + 12.0;
        let x = x_scale(drawing, WIDTH - left);
        let room = (right - left) / chart.x.names.len().max(1) as f64;
        let aslant = !chart.x.names.is_empty() && room < widest(&x) + 6.0;
        let names = if aslant { widest(&x).min(NAME_WIDTH_MAX) * SLANT.0 } else { 0.0 };
        let remark = drawing.remark();
        let below = 22.0 + names + LINE_HEIGHT * (1 + usize::from(remark.is_some())) as f64 + 6.0;
        let bottom = top + plot;
        let (width, height) = (WIDTH, bottom + below);
        Self { width, height, left, right, top, bottom, x, y, caption, legend, aslant, remark }
    }

    /// Returns the position of a value of x.
    pub(super) fn across(&self, x: f64) -> f64 {
        self.left + self.x.place(x) * (self.right - self.left)
    }

    /// Returns the position of a value of y.
    pub(super) fn up(&self, y: f64) -> f64 {
        self.bottom - self.y.place(y) * (self.bottom - self.top)
    }

    /// Draws everything except the marks.
    pub(super) fn draw(&self, drawing: &Drawing<'_>, out: &mut String) {
        let chart = drawing.chart;
        for (line, words) in self.caption.iter().enumerate() {
            text(out, "caption", "start", (4.0, 16.0 + line as f64 * LINE_HEIGHT), words);
        }
        self.draw_legend(drawing, out);
        text(out, "", "start", (4.0, self.top - 15.0), &shortened(&chart.y.label, self.width - 8.0, false));
        self.draw_y(drawing, out);
        self.draw_x(drawing, out);
        let (left, right, bottom) = (px(self.left), px(self.right), px(self.bottom));
        let _ = writeln!(out, "<path class=\"axis\" d=\"M{left} {bottom}H{right}\"/>");
        if drawing.curves.iter().all(|curve| curve.points.is_empty()) {
            let middle = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
            text(out, "", "middle", middle, "nothing to show");
        }
    }

    fn draw_legend(&self, drawing: &Drawing<'_>, out: &mut String) {
        let rows = self.legend.last().map_or(0, |(_, row)| row + 1);
        let first = self.top - 12.0 - LINE_HEIGHT - rows as f64 * LEGEND_ROW;
        for (curve, &(x, row)) in drawing.curves.iter().zip(&self.legend) {
            let y = first + row as f64 * LEGEND_ROW + 4.0;
            shapes::sample(drawing.chart.kind, curve, (x, y, SAMPLE_WIDTH), out);
            let at = x + SAMPLE_WIDTH + 6.0;
            let name = shortened(&curve.series.name, (self.width - 6.0 - at).min(LEGEND_NAME_MAX), false);
            text(out, "name", "start", (at, y + 4.5), &name);
        }
    }

    fn draw_y(&self, drawing: &Drawing<'_>, out: &mut String) {
        let mut grid = String::new();
        let mut free = f64::INFINITY;
        let crowded = GRID_LINES_MAX < self.y.ticks.len();
        for Tick { value, label } in self.y.ticks.iter().filter(|tick| !crowded || !tick.label.is_empty()) {
            let at = self.up(*value);
            let _ = write!(grid, "M{} {}H{}", px(self.left), px(at), px(self.right));
            if !label.is_empty() && at + LINE_HEIGHT - 3.0 <= free {
                free = at;
                text(out, "", "end", (self.left - 7.0, at + 4.5), &shortened(label, NAME_WIDTH_MAX, false));
            }
        }
        let _ = writeln!(out, "<path class=\"grid\" d=\"{grid}\"/>");
        let zero = self.up(0.0);
        let numbers = drawing.chart.y.names.is_empty();
        if numbers && self.top < zero && zero < self.bottom - 1.0 && self.y.base() == 0.0 {
            let (left, right) = (px(self.left), px(self.right));
            let _ = writeln!(out, "<path class=\"zero\" d=\"M{left} {}H{right}\"/>", px(zero));
        }
    }

    fn draw_x(&self, drawing: &Drawing<'_>, out: &mut String) {
        let mut ticks = String::new();
        let mut free = f64::NEG_INFINITY;
        for Tick { value, label } in &self.x.ticks {
            let at = self.across(*value);
            if drawing.chart.x.names.is_empty() {
                let length = if label.is_empty() { 3.0 } else { 5.0 };
                let _ = write!(ticks, "M{} {}v{}", px(at), px(self.bottom), px(length));
            }
            let half = if self.aslant { LINE_HEIGHT / 2.0 } else { width(label) / 2.0 + 4.0 };
            if label.is_empty() || at - half < free {
                continue;
            }
            free = at + half;
            if self.aslant {
                let label = shortened(label, NAME_WIDTH_MAX.min((at - 4.0) / SLANT.1), false);
                let (x, y) = (px(at + 4.0), px(self.bottom + 15.0));
                let _ = writeln!(
                    out,
                    "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\" transform=\"rotate(-35 {x} {y})\">{}</text>",
                    escape(&label)
                );
            } else {
                // Keep the outermost labels within the drawing.
                let at = at.min(self.width - width(label) / 2.0 - 2.0);
                text(out, "", "middle", (at, self.bottom + 19.0), label);
            }
        }
        if !ticks.is_empty() {
            let _ = writeln!(out, "<path class=\"axis\" d=\"{ticks}\"/>");
        }
        let label = shortened(&drawing.chart.x.label, self.right - self.left, false);
        let remark = if self.remark.is_some() { LINE_HEIGHT + 2.0 } else { 0.0 };
        text(out, "", "middle", ((self.left + self.right) / 2.0, self.height - remark - 8.0), &label);
        if let Some(remark) = &self.remark {
            text(out, "", "end", (self.right, self.height - 6.0), remark);
        }
    }
}

fn widest(scale: &AxisScale) -> f64 {
    scale.ticks.iter().map(|tick| width(&tick.label)).fold(0.0, f64::max)
}

fn x_scale(drawing: &Drawing<'_>, width: f64) -> AxisScale {
    let chart = drawing.chart;
    let reach = if chart.kind == ChartKind::Points { Reach::Ticks } else { Reach::Tight };
    let scale = AxisScale::new(&chart.x, drawing.x_extent, (width / 75.0) as usize, reach);
    match chart.kind {
        _ if !chart.x.names.is_empty() => scale,
        ChartKind::Bars => {
            let places = shapes::bar_places(drawing).len();
            scale.padded((0.6 / (places.max(2) - 1) as f64).min(0.3))
        }
        ChartKind::Points => scale,
        ChartKind::Lines | ChartKind::Steps | ChartKind::Spans => scale.padded(0.02),
    }
}

/// Returns the position and row of the name of each series; empty where a single series has no name.
fn legend(drawing: &Drawing<'_>) -> Vec<(f64, usize)> {
    if let [one] = &drawing.curves[..]
        && one.series.name.is_empty()
    {
        return Vec::new();
    }
    let (mut at, mut row) = (4.0, 0);
    let mut places = Vec::new();
    for curve in &drawing.curves {
        let wide = SAMPLE_WIDTH + 6.0 + width(&curve.series.name).min(LEGEND_NAME_MAX);
        if 4.0 < at && WIDTH - 6.0 < at + wide {
            (at, row) = (4.0, row + 1);
        }
        places.push((at, row));
        at += wide + 16.0;
    }
    places
}
