//! Charts as SVG: lines, steps, points and bars with their 95 % intervals, on linear, logarithmic or named axes.
//!
//! A drawing stands alone in a file, or is part of a page with the styles of charts. Numbers that no axis can show are left
//! out, and the drawing says so. Not here: colours (`colour`) and the words around a chart.

mod drawing;
mod frame;
mod marks;
mod shapes;
#[cfg(test)]
mod tests;
mod words;

use super::escape::plain;
use crate::report::Chart;
use drawing::{Drawing, px};
use frame::Frame;
use std::fmt::Write;

/// Draws a chart as a file that stands alone.
pub(super) fn file(chart: &Chart) -> String {
    draw(chart, true)
}

/// Draws a chart for a page that has the [`STYLE`] in its head.
pub(super) fn for_page(chart: &Chart) -> String {
    draw(chart, false)
}

/// Style sheet of drawings. It contains literal colours instead of variables, because not every program
/// that shows SVG files supports variables. The palettes were searched for the largest distance between
/// any two colours, as seen with normal sight and with each of the three kinds of colour blindness. The
/// contrast with the background is at least 3 to 1.
pub(super) const STYLE: &str = include_str!("chart.css");

fn draw(chart: &Chart, alone: bool) -> String {
    let drawing = Drawing::new(chart);
    let frame = Frame::new(&drawing, alone);
    let mut out = String::new();
    let (width, height) = (px(frame.width), px(frame.height));
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{}\"",
        plain(&drawing.description())
    );
    if alone {
        let _ = write!(
            out,
            " width=\"{width}\" height=\"{height}\">\n<title>{}</title>\n<style>\n{}</style>\n<rect class=\"paper\" \
             width=\"{width}\" height=\"{height}\"/>",
            plain(&chart.caption),
            STYLE
        );
    } else {
        out.push('>');
    }
    out.push('\n');
    frame.draw(&drawing, &mut out);
    marks::draw(&drawing, &frame, &mut out);
    out.push_str("</svg>\n");
    out
}
