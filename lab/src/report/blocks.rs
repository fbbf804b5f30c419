//! Charts, tables, comparisons and claims as HTML.
//!
//! Not here: the page around them.

use super::colour::Colours;
use super::escape::{escape, plain, prose};
use super::number::{self, NOTHING};
use super::svg;
use crate::report::{Axis, Block, Cell, Chart, Claim, Compared, Table, Verdict};
use std::fmt::Write;

/// Points of a chart whose numbers stand beside it, at most; files hold those of larger ones.
const LISTED_POINTS_MAX: usize = 240;

/// Rows of a table on a page at most; files hold the others.
const ROWS_MAX: usize = 500;

/// Where the files of a block are: their path without the ending, if there are any.
pub(super) type Files<'a> = Option<&'a str>;

/// A block as HTML.
pub(super) fn html(block: &Block, colours: &Colours, files: Files<'_>, out: &mut String) {
    match block {
        Block::Chart(chart) => figure(chart, colours, files, out),
        Block::Table(found) => table(found, files, out),
        Block::Comparison(compared) => comparison(compared, files, out),
        Block::Claims(found) => claims(found, files, out),
    }
}

/// The mark and word of a verdict on a number or on a statement.
pub(super) fn verdict(verdict: Verdict, word: &str) -> String {
    let (class, mark) = kind(verdict);
    format!("<span class=\"verdict {class}\"><span aria-hidden=\"true\">{mark}</span> {word}</span>")
}

/// Class and mark of a verdict.
pub(super) fn kind(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Holds => ("holds", "✓"),
        Verdict::Partly => ("partly", "◐"),
        Verdict::Fails => ("fails", "✗"),
        Verdict::Open => ("open", "○"),
        Verdict::Input => ("input", "·"),
    }
}

/// The word for a verdict on a number.
pub(super) fn of_number(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "agrees",
        Verdict::Partly => "partly",
        Verdict::Fails => "differs",
        Verdict::Open => "open",
        Verdict::Input => "input",
    }
}

/// The word for a verdict on a statement.
pub(super) fn of_claim(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Partly => "partly",
        Verdict::Fails => "fails",
        Verdict::Open => "open",
        Verdict::Input => "input",
    }
}

fn links(files: Files<'_>, endings: &[&str]) -> String {
    let Some(path) = files else { return String::new() };
    let path = escape(path);
    let links = endings
        .iter()
        .map(|ending| format!(" <a href=\"{path}.{ending}\" download=\"\">{}</a>", ending.to_uppercase()));
    format!("<span class=\"files\">{}</span>", links.collect::<String>())
}

fn figure(chart: &Chart, colours: &Colours, files: Files<'_>, out: &mut String) {
    let (caption, links) = (prose(&chart.caption), links(files, &["svg", "csv"]));
    let drawing = svg::for_page(chart, colours);
    let _ = writeln!(out, "<figure class=\"figure\">\n<figcaption>{caption}{links}</figcaption>\n{drawing}");
    let points: usize = chart.series.iter().map(|series| series.points.len()).sum();
    if 0 < points && points <= LISTED_POINTS_MAX {
        numbers(chart, out);
    }
    out.push_str("</figure>\n");
}

/// The numbers of a chart, for those who cannot see it or want to know exactly.
fn numbers(chart: &Chart, out: &mut String) {
    let head = |axis: &Axis, name: &str| plain(if axis.label.is_empty() { name } else { &axis.label });
    let _ = write!(
        out,
        "<details class=\"numbers\"><summary>Numbers</summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Numbers: {}\"><table><thead><tr><th scope=\"col\">series</th><th scope=\"col\" class=\"n\">{}\
         </th><th scope=\"col\" class=\"n\">{}</th></tr></thead><tbody>\n",
        plain(&chart.caption),
        head(&chart.x, "x"),
        head(&chart.y, "y")
    );
    for series in &chart.series {
        for (place, &(x, y)) in series.points.iter().enumerate() {
            let half_width = series.half_widths.get(place).copied();
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                escape(&series.name),
                on_axis(&chart.x, x, None),
                on_axis(&chart.y, y, half_width)
            );
        }
    }
    out.push_str("</tbody></table></div></details>\n");
}

fn on_axis(axis: &Axis, value: f64, half_width: Option<f64>) -> String {
    axis.name_at(value).map_or_else(|| number::with_interval(value, half_width), escape)
}

/// The beginning of a table with its caption, in a frame that scrolls where the screen is too narrow. The caption
/// stands above the frame, so that it is read whole.
fn open_table(class: &str, label: &str, caption: &str, out: &mut String) {
    let _ = writeln!(
        out,
        "<p class=\"caption\">{caption}</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
         aria-label=\"{label}\"><table class=\"{class}\">"
    );
}

fn table(table: &Table, files: Files<'_>, out: &mut String) {
    let numeric: Vec<bool> = (0..table.columns.len())
        .map(|column| {
            table.rows.iter().any(|row| matches!(row.get(column), Some(Cell::Number { .. })))
                && !table.rows.iter().any(|row| matches!(row.get(column), Some(Cell::Text(_))))
        })
        .collect();
    let caption = format!("{}{}", prose(&table.caption), links(files, &["csv"]));
    open_table("data", &plain(&table.caption), &caption, out);
    out.push_str("<thead><tr>");
    for (column, numeric) in table.columns.iter().zip(&numeric) {
        let unit = if column.unit.is_empty() {
            String::new()
        } else {
            format!(" <span class=\"unit\">{}</span>", escape(&column.unit))
        };
        let class = if *numeric { " class=\"n\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}{unit}</th>", prose(&column.name));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in table.rows.iter().take(ROWS_MAX) {
        out.push_str("<tr>");
        for (place, cell) in row.iter().enumerate() {
            let class = if numeric.get(place) == Some(&true) { " class=\"n\"" } else { "" };
            let words = match cell {
                Cell::Empty => String::new(),
                Cell::Text(words) => prose(words),
                Cell::Number { value, half_width } => number::with_interval(*value, *half_width),
            };
            let _ = match place {
                0 => write!(out, "<th scope=\"row\"{class}>{words}</th>"),
                _ => write!(out, "<td{class}>{words}</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    if ROWS_MAX < table.rows.len() {
        let more = table.rows.len() - ROWS_MAX;
        let _ = writeln!(out, "<p class=\"remark\">{more} more rows stand in the CSV file.</p>");
    }
}

/// What ours is compared with, and how far it is from it.
fn base(compared: &Compared) -> Option<f64> {
    compared.printed.or(compared.reference.map(|reference| reference.0))
}

/// The difference from what is printed, relative to it.
fn difference(compared: &Compared) -> Option<f64> {
    let base = base(compared).filter(|base| *base != 0.0 && base.is_finite())?;
    let difference = (compared.ours - base) / base.abs();
    difference.is_finite().then_some(difference)
}

/// Notes that stand at several numbers, in order; they are said once, below the table.
fn shared_notes(compared: &[Compared]) -> Vec<&str> {
    let mut shared: Vec<&str> = Vec::new();
    for one in compared.iter().filter(|one| !one.note.is_empty()) {
        let times = compared.iter().filter(|other| other.note == one.note).count();
        if 1 < times && !shared.contains(&one.note.as_str()) {
            shared.push(&one.note);
        }
    }
    shared
}

fn comparison(compared: &[Compared], files: Files<'_>, out: &mut String) {
    let limit = limit(compared);
    let notes = shared_notes(compared);
    let printed = compared.iter().any(|one| one.printed.is_some());
    let reference = compared.iter().any(|one| one.reference.is_some());
    let beside = if printed { "the printed ones" } else { "those of a reference" };
    let caption =
        format!("Our numbers beside {beside}, ± half width of the 95 % interval{}", links(files, &["csv"]));
    open_table("compared", "Our numbers beside others", &caption, out);
    out.push_str("<thead><tr><th scope=\"col\">what</th><th scope=\"col\">verdict</th>");
    for (shown, name) in
        [(printed, "printed"), (reference, "reference"), (true, "ours"), (true, "difference")]
    {
        if shown {
            let _ = write!(out, "<th scope=\"col\" class=\"n\">{name}</th>");
        }
    }
    if let Some(limit) = limit {
        let _ = write!(out, "<th scope=\"col\" class=\"strip\">±{:.0} %</th>", limit * 100.0);
    }
    out.push_str("</tr></thead><tbody>\n");
    for one in compared {
        let note = match notes.iter().position(|&note| note == one.note) {
            Some(place) => format!(" <sup>{}</sup>", place + 1),
            None if one.note.is_empty() => String::new(),
            None => format!("<span class=\"note\">{}</span>", prose(&one.note)),
        };
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}{note}</th><td>{}</td>",
            prose(&one.what),
            verdict(one.verdict, of_number(one.verdict))
        );
        if printed {
            let words = one.printed.map_or_else(|| NOTHING.to_owned(), number::number);
            let _ = write!(out, "<td class=\"n\">{words}</td>");
        }
        if reference {
            let words =
                one.reference.map(|(value, half_width)| number::with_interval(value, Some(half_width)));
            let _ = write!(out, "<td class=\"n\">{}</td>", words.unwrap_or_else(|| NOTHING.to_owned()));
        }
        let difference = difference(one).map_or_else(|| apart(one), number::percent);
        let _ = write!(
            out,
            "<td class=\"n ours\">{}</td><td class=\"n\">{difference}</td>",
            number::with_interval(one.ours, one.half_width)
        );
        if let Some(limit) = limit {
            let _ = write!(out, "<td class=\"strip\">{}</td>", strip(one, limit));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    if !notes.is_empty() {
        let items = notes.iter().map(|note| format!("<li>{}</li>", prose(note)));
        let _ = writeln!(out, "<ol class=\"notes\">{}</ol>", items.collect::<String>());
    }
}

/// The difference where it cannot be relative.
fn apart(compared: &Compared) -> String {
    match base(compared) {
        Some(base) if base.total_cmp(&compared.ours).is_eq() => "0 %".to_owned(),
        Some(base) if (compared.ours - base).is_finite() && 0.0 < compared.ours - base => {
            format!("+{}", number::number(compared.ours - base))
        }
        Some(base) => number::number(compared.ours - base),
        None => NOTHING.to_owned(),
    }
}

/// How far the strips of a comparison reach: a round share that holds three quarters of the differences, so that one
/// that is far off does not hide how near the others are.
fn limit(compared: &[Compared]) -> Option<f64> {
    let mut differences: Vec<f64> = compared.iter().filter_map(difference).map(f64::abs).collect();
    differences.sort_by(f64::total_cmp);
    let typical = *differences.get((differences.len() * 3).div_ceil(4).checked_sub(1)?)?;
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].into_iter().find(|&limit| typical <= 0.9 * limit).or(Some(1.0))
}

/// Half the width of a strip, in pixels.
const STRIP_HALF: f64 = 58.0;

/// A line with the printed number in the middle, ours as a point with its interval, and the reference below.
fn strip(compared: &Compared, limit: f64) -> String {
    let (Some(base), Some(_)) = (base(compared), difference(compared)) else { return String::new() };
    let place = |value: f64| {
        let share = ((value - base) / base.abs() / limit).clamp(-1.0, 1.0);
        format!("{:.1}", 60.0 + share * STRIP_HALF)
    };
    let span = |value: f64, half_width: f64, y: u32, class: &str| {
        let half_width = if half_width.is_finite() { half_width } else { 0.0 };
        let (low, high) = (place(value - half_width), place(value + half_width));
        format!("<path class=\"{class}\" d=\"M{low} {y}H{high}\"/>")
    };
    let mut out =
        String::from("<svg viewBox=\"0 0 120 20\" width=\"120\" height=\"20\" aria-hidden=\"true\">");
    out.push_str("<path class=\"rule\" d=\"M2 10H118\"/><path class=\"printed\" d=\"M60 2V18\"/>");
    if let Some((value, half_width)) = compared.reference.filter(|reference| reference.0.is_finite()) {
        out.push_str(&span(value, half_width, 15, "beside"));
        let _ = write!(out, "<path class=\"beside\" d=\"M{} 12V18\"/>", place(value));
    }
    let (class, _) = kind(compared.verdict);
    out.push_str(&span(compared.ours, compared.half_width.unwrap_or(0.0), 10, &format!("span {class}")));
    let beyond = difference(compared).filter(|difference| limit < difference.abs());
    let _ = match beyond {
        None => write!(
            out,
            "<circle class=\"{class}\" cx=\"{}\" cy=\"10\" r=\"3.6\"/></svg>",
            place(compared.ours)
        ),
        Some(beyond) if beyond < 0.0 => write!(out, "<path class=\"{class}\" d=\"M2 10L9 5V15Z\"/></svg>"),
        Some(_) => write!(out, "<path class=\"{class}\" d=\"M118 10L111 5V15Z\"/></svg>"),
    };
    out
}

fn claims(claims: &[Claim], files: Files<'_>, out: &mut String) {
    let _ = writeln!(
        out,
        "<div class=\"claims\"><p class=\"caption\">What the paper says, and whether it holds{}</p>\n<ul>",
        links(files, &["csv"])
    );
    for claim in claims {
        let (class, _) = kind(claim.verdict);
        let _ = writeln!(
            out,
            "<li class=\"{class}\"><p class=\"statement\">{} <b>{}</b> {}</p><p class=\"evidence\">{}</p></li>",
            verdict(claim.verdict, of_claim(claim.verdict)),
            prose(&claim.place),
            prose(&claim.statement),
            prose(&claim.evidence)
        );
    }
    out.push_str("</ul></div>\n");
}
