//! How charts look, as a style sheet: thin lines, quiet axes, light or dark as the reader has it.
//!
//! Colours stand in it as they are and not as variables, because not every program that shows SVG files knows those.

use crate::report::colour::{COLOURS, DARK, LIGHT};
use std::fmt::Write;

/// What does not depend on light or dark.
const SHAPES: &str = "\
.chart text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;\
font-variant-numeric:tabular-nums}
.chart .caption{font-weight:600}
.chart .grid,.chart .axis,.chart .zero{fill:none;stroke-width:1;shape-rendering:crispEdges}
.chart .line{fill:none;stroke:currentColor;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}
.chart .r1 .line,.chart .r1.bar{stroke-dasharray:1 4}
.chart .r2 .line,.chart .r2.bar{stroke-dasharray:9 3 1 3}
.chart .reference .line{stroke-dasharray:6 4;stroke-width:1.5}
.chart .whisker{fill:none;stroke:currentColor;stroke-width:1.25}
.chart .mark{fill:currentColor;stroke-width:1}
.chart .reference .mark{stroke:currentColor;stroke-width:1.5}
.chart .bar{fill:currentColor}
.chart .r1 .bar{fill-opacity:.6}
.chart .r2 .bar{fill-opacity:.35}
.chart .reference .bar{fill-opacity:.12;stroke:currentColor;stroke-width:1.25;stroke-dasharray:4 3}
.chart .bars .whisker{stroke-width:1.5}
";

struct Theme {
    paper: &'static str,
    ink: &'static str,
    quiet: &'static str,
    axis: &'static str,
    grid: &'static str,
    palette: [&'static str; COLOURS],
}

const ON_LIGHT: Theme = Theme {
    paper: "#ffffff",
    ink: "#1b1f24",
    quiet: "#4d5661",
    axis: "#8a94a0",
    grid: "#e4e8ec",
    palette: LIGHT,
};

const ON_DARK: Theme = Theme {
    paper: "#14171c",
    ink: "#eceff3",
    quiet: "#b3bcc7",
    axis: "#6c7683",
    grid: "#2b3139",
    palette: DARK,
};

/// The style sheet.
pub(super) fn sheet() -> String {
    let mut sheet = SHAPES.to_owned();
    rules(&mut sheet, &ON_LIGHT);
    sheet.push_str("@media screen and (prefers-color-scheme:dark){\n");
    rules(&mut sheet, &ON_DARK);
    sheet.push_str("}\n");
    sheet
}

fn rules(sheet: &mut String, theme: &Theme) {
    let Theme { paper, ink, quiet, axis, grid, palette } = theme;
    let _ = write!(
        sheet,
        ".chart .paper{{fill:{paper}}}\n.chart text{{fill:{quiet}}}\n.chart .caption,.chart .name{{fill:{ink}}}\n\
         .chart .mark{{stroke:{paper}}}\n.chart .reference .mark{{fill:{paper};stroke:currentColor}}\n\
         .chart .bars .whisker{{stroke:{ink}}}\n.chart .axis,.chart .zero{{stroke:{axis}}}\n\
         .chart .grid{{stroke:{grid}}}\n"
    );
    for (place, colour) in palette.iter().enumerate() {
        let _ = writeln!(sheet, ".chart .c{place}{{color:{colour}}}");
    }
}
