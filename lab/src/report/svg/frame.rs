//! Where everything in a drawing stands: the plot, its axes, and the words around it.
//!
//! Not here: the marks within the plot.

use super::legend::Legend;
use super::words::{LINE_HEIGHT, shortened, width, wrap};
use super::{Drawing, Medium, px, text};
use crate::report::axis::{AxisScale, Reach, Tick};
use crate::report::{Axis, ChartKind};
use std::fmt::Write;

/// Lines of a label or caption at most.
const LINES_MAX: usize = 3;

/// The widest name on an axis of names, in pixels.
const NAME_WIDTH_MAX: f64 = 150.0;

/// Lesser ticks have a grid line each while there are at most this many ticks.
const GRID_LINES_MAX: usize = 12;

/// Sine and cosine of the angle of names that stand aslant.
const SLANT: (f64, f64) = (0.573_576, 0.819_152);

/// A series with at most this many points keeps its points off the frame.
const SPARSE_POINTS: usize = 40;

/// Places, in pixels from the top left.
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
    pub(super) legend: Legend,
    caption: Vec<String>,
    x_label: Vec<String>,
    y_label: Vec<String>,
    x_ticks: XTicks,
    remark: Option<String>,
}

/// How the words under the horizontal axis stand.
#[derive(Clone, Copy, PartialEq, Debug)]
enum XTicks {
    Level,
    /// In lines of at most this width.
    Wrapped(f64),
    Aslant,
}

impl Frame {
    /// The frame of a drawing.
    pub(super) fn of(drawing: &Drawing<'_>) -> Self {
        let chart = drawing.chart;
        let (width, plot_height) = match drawing.medium {
            Medium::Narrow => (420.0, 250.0),
            Medium::File | Medium::Page => (640.0, 290.0),
        };
        let plot_height = f64::max(plot_height, 22.0 * chart.y.names.len().min(60) as f64);
        let margin = 4.0;
        let y_reach = if drawing.kind == ChartKind::Bars { Reach::Zero } else { Reach::Ticks };
        let y = AxisScale::new(&chart.y, drawing.y_extent, (plot_height / 50.0) as usize, y_reach);
        let widest = y.ticks.iter().map(|tick| self::width(&tick.label)).fold(0.0, f64::max);
        let left = margin + widest.min(NAME_WIDTH_MAX) + 10.0;
        let caption = if drawing.medium == Medium::File {
            wrap(&chart.caption.replace('`', ""), width - 2.0 * margin, LINES_MAX)
        } else {
            Vec::new()
        };
        let y_label = wrap(&chart.y.label, width - 2.0 * margin, LINES_MAX);
        let caption_height = if caption.is_empty() { 0.0 } else { caption.len() as f64 * LINE_HEIGHT + 8.0 };
        let mut frame = Self {
            width,
            height: 0.0,
            left,
            right: width - 14.0,
            top: 0.0,
            bottom: 0.0,
            x: Self::x_scale(drawing, width - left),
            y,
            legend: Legend::None,
            x_label: Vec::new(),
            x_ticks: XTicks::Level,
            remark: drawing.remark(),
            caption,
            y_label,
        };
        let label_height = frame.y_label.len() as f64 * LINE_HEIGHT;
        frame.top = caption_height + label_height + 12.0;
        frame.bottom = frame.top + plot_height;
        frame.legend = Legend::of(drawing, &frame);
        frame.right -= frame.legend.margin();
        let above = frame.legend.height();
        frame.top += above;
        frame.bottom += above;
        let below = frame.words_below(&chart.x);
        frame.x_label = wrap(&chart.x.label, frame.right - frame.left, LINES_MAX);
        let remark = if frame.remark.is_some() { LINE_HEIGHT + 2.0 } else { 0.0 };
        frame.height = frame.bottom + below + frame.x_label.len() as f64 * LINE_HEIGHT + remark + 6.0;
        frame
    }

    fn x_scale(drawing: &Drawing<'_>, width: f64) -> AxisScale {
        let chart = drawing.chart;
        let ticks = (width / 75.0) as usize;
        let sparse = drawing.curves.iter().all(|curve| curve.points.len() <= SPARSE_POINTS);
        match drawing.kind {
            ChartKind::Bars if chart.x.names.is_empty() => {
                let places = super::marks::bar_places(drawing);
                let share = 0.6 / (places.len().max(2) - 1) as f64;
                AxisScale::new(&chart.x, drawing.x_extent, ticks, Reach::Tight).padded(share.min(0.3))
            }
            ChartKind::Points => AxisScale::new(&chart.x, drawing.x_extent, ticks, Reach::Ticks),
            _ if sparse && chart.x.names.is_empty() => {
                AxisScale::new(&chart.x, drawing.x_extent, ticks, Reach::Tight).padded(0.02)
            }
            _ => AxisScale::new(&chart.x, drawing.x_extent, ticks, Reach::Tight),
        }
    }

    /// The height of the words at the ticks of the horizontal axis; chooses how they stand.
    fn words_below(&mut self, axis: &Axis) -> f64 {
        let widest = self.x.ticks.iter().map(|tick| width(&tick.label)).fold(0.0, f64::max);
        let room = (self.right - self.left) / axis.names.len().max(1) as f64;
        if axis.names.is_empty() || widest + 6.0 <= room {
            return 22.0;
        }
        let wrapped: Vec<Vec<String>> =
            axis.names.iter().map(|name| wrap(name, room - 6.0, LINES_MAX)).collect();
        if !wrapped.iter().flatten().any(|line| line.ends_with('…')) {
            self.x_ticks = XTicks::Wrapped(room - 6.0);
            let lines = wrapped.iter().map(Vec::len).max().unwrap_or(1);
            return 22.0 + lines.saturating_sub(1) as f64 * LINE_HEIGHT;
        }
        self.x_ticks = XTicks::Aslant;
        14.0 + widest.min(NAME_WIDTH_MAX) * SLANT.0 + 8.0
    }

    /// Where a value of x is.
    pub(super) fn across(&self, x: f64) -> f64 {
        self.left + self.x.place(x) * (self.right - self.left)
    }

    /// Where a value of y is.
    pub(super) fn up(&self, y: f64) -> f64 {
        self.bottom - self.y.place(y) * (self.bottom - self.top)
    }

    /// Where the label of the vertical axis begins; above it is the legend.
    pub(super) fn label_top(&self) -> f64 {
        self.top - 12.0 - self.y_label.len() as f64 * LINE_HEIGHT
    }

    /// Draws everything but the marks and the legend.
    pub(super) fn draw(&self, drawing: &Drawing<'_>, out: &mut String) {
        for (line, words) in self.caption.iter().enumerate() {
            text(out, "caption", "start", (4.0, 16.0 + line as f64 * LINE_HEIGHT), words);
        }
        for (line, words) in self.y_label.iter().enumerate() {
            text(out, "", "start", (4.0, self.label_top() + (line + 1) as f64 * LINE_HEIGHT - 3.0), words);
        }
        self.draw_y(drawing, out);
        self.draw_x(drawing, out);
        let (left, right, bottom) = (px(self.left), px(self.right), px(self.bottom));
        let _ = writeln!(out, "<path class=\"axis\" d=\"M{left} {bottom}H{right}\"/>");
        if drawing.curves.iter().all(|curve| curve.points.is_empty()) {
            let middle = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
            text(out, "", "middle", middle, "nothing to show");
        }
    }

    fn draw_y(&self, drawing: &Drawing<'_>, out: &mut String) {
        let mut grid = String::new();
        let mut free = f64::INFINITY;
        let crowded = GRID_LINES_MAX < self.y.ticks.len();
        for Tick { value, label } in &self.y.ticks {
            let at = self.up(*value);
            if crowded && label.is_empty() {
                continue;
            }
            let _ = write!(grid, "M{} {}H{}", px(self.left), px(at), px(self.right));
            if label.is_empty() || free < at + LINE_HEIGHT - 3.0 {
                continue;
            }
            free = at;
            let label = shortened(label, NAME_WIDTH_MAX, false);
            text(out, "", "end", (self.left - 7.0, at + 4.5), &label);
        }
        let _ = writeln!(out, "<path class=\"grid\" d=\"{grid}\"/>");
        let zero = self.up(0.0);
        let numbers = drawing.chart.y.names.is_empty();
        if numbers && zero < self.bottom - 1.0 && self.top < zero && self.y.base() == 0.0 {
            let _ = writeln!(
                out,
                "<path class=\"zero\" d=\"M{} {}H{}\"/>",
                px(self.left),
                px(zero),
                px(self.right)
            );
        }
    }

    fn draw_x(&self, drawing: &Drawing<'_>, out: &mut String) {
        let mut ticks = String::new();
        let mut free = f64::NEG_INFINITY;
        for Tick { value, label } in &self.x.ticks {
            let at = self.across(*value);
            let length = if label.is_empty() { 3.0 } else { 5.0 };
            if drawing.chart.x.names.is_empty() {
                let _ = write!(ticks, "M{} {}v{}", px(at), px(self.bottom), px(length));
            }
            let half = match self.x_ticks {
                XTicks::Level => width(label) / 2.0 + 4.0,
                XTicks::Wrapped(room) => room / 2.0,
                XTicks::Aslant => LINE_HEIGHT / 2.0,
            };
            if label.is_empty() || at - half < free {
                continue;
            }
            free = at + half;
            match self.x_ticks {
                XTicks::Level => {
                    // The outermost labels stay within the drawing.
                    let at = at.min(self.width - width(label) / 2.0 - 2.0);
                    text(out, "", "middle", (at, self.bottom + 19.0), label);
                }
                XTicks::Wrapped(room) => {
                    for (line, words) in wrap(label, room, LINES_MAX).iter().enumerate() {
                        let y = self.bottom + 19.0 + line as f64 * LINE_HEIGHT;
                        text(out, "", "middle", (at, y), words);
                    }
                }
                XTicks::Aslant => {
                    let label = shortened(label, NAME_WIDTH_MAX.min((at - 4.0) / SLANT.1), false);
                    let (x, y) = (px(at + 4.0), px(self.bottom + 15.0));
                    let _ = writeln!(
                        out,
                        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\" transform=\"rotate(-35 {x} {y})\">{}</text>",
                        crate::report::escape::escape(&label)
                    );
                }
            }
        }
        if !ticks.is_empty() {
            let _ = writeln!(out, "<path class=\"axis\" d=\"{ticks}\"/>");
        }
        let lines = self.x_label.len() as f64;
        let remark = if self.remark.is_some() { LINE_HEIGHT + 2.0 } else { 0.0 };
        let first = self.height - remark - 8.0 - (lines - 1.0) * LINE_HEIGHT;
        let middle = (self.left + self.right) / 2.0;
        for (line, words) in self.x_label.iter().enumerate() {
            text(out, "", "middle", (middle, first + line as f64 * LINE_HEIGHT), words);
        }
        if let Some(remark) = &self.remark {
            text(out, "", "end", (self.right, self.height - 6.0), remark);
        }
    }
}
