//! Charts, tables, comparisons and claims as HTML.
//!
//! Not here: the page around them.

use super::escape::{escape, plain, prose};
use super::number::{self, NOTHING};
use super::svg;
use crate::report::{Axis, Block, Cell, Chart, Claim, Compared, ReportTable, Verdict};
use std::fmt::Write;

/// Maximum number of points of a chart whose numbers are listed next to it. Files hold those of larger
/// charts.
const LISTED_POINTS_MAX: usize = 240;

/// Maximum number of rows of a table on a page. Files hold the others.
const ROWS_MAX: usize = 500;

/// Path of the files of a block without the extension, if there are any.
pub(super) type DataFiles<'a> = Option<&'a str>;

/// Writes a block as HTML.
pub(super) fn html(block: &Block, files: DataFiles<'_>, out: &mut String) {
    match block {
        Block::Chart(chart) => figure(chart, files, out),
        Block::Table(found) => table(found, files, out),
        Block::Comparison(compared) => comparison(compared, files, out),
        Block::Claims(found) => claims(found, files, out),
    }
}

/// Returns the mark and word of a verdict on a number or on a statement.
pub(super) fn verdict(verdict: Verdict, word: &str) -> String {
    let (class, mark) = kind(verdict);
    format!("<span class=\"verdict {class}\"><span aria-hidden=\"true\">{mark}</span> {word}</span>")
}

/// Returns the class and mark of a verdict.
pub(super) fn kind(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Holds => ("holds", "✓"),
        Verdict::Partly => ("partly", "◐"),
        Verdict::Fails => ("fails", "✗"),
        Verdict::Open => ("open", "○"),
        Verdict::Input => ("input", "·"),
    }
}

/// Returns the word for a verdict on a number.
pub(super) fn of_number(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "agrees",
        Verdict::Fails => "differs",
        other => other.word(),
    }
}

fn links(files: DataFiles<'_>, endings: &[&str]) -> String {
    let Some(path) = files else { return String::new() };
    let path = escape(path);
    let links = endings
        .iter()
        .map(|ending| format!(" <a href=\"{path}.{ending}\" download=\"\">{}</a>", ending.to_uppercase()));
    format!("<span class=\"files\">{}</span>", links.collect::<String>())
}

fn figure(chart: &Chart, files: DataFiles<'_>, out: &mut String) {
    let (caption, links) = (prose(&chart.caption), links(files, &["svg", "csv"]));
    let drawing = svg::for_page(chart);
    let _ = writeln!(out, "<figure class=\"figure\">\n<figcaption>{caption}{links}</figcaption>\n{drawing}");
    let points: usize = chart.series.iter().map(|series| series.points.len()).sum();
    if 0 < points && points <= LISTED_POINTS_MAX {
        numbers(chart, out);
    }
    out.push_str("</figure>\n");
}

/// Writes the numbers of a chart, for readers who cannot see it or need exact values.
fn numbers(chart: &Chart, out: &mut String) {
    let head =
        |axis: &Axis, name: &str| if axis.label.is_empty() { name.to_owned() } else { plain(&axis.label) };
    let columns = [("series".to_owned(), false), (head(&chart.x, "x"), true), (head(&chart.y, "y"), true)];
    let rows = chart.series.iter().flat_map(|series| {
        series.points.iter().enumerate().map(|(place, &(x, y))| {
            let half_width = series.half_widths.get(place).copied();
            vec![escape(&series.name), on_axis(&chart.x, x, None), on_axis(&chart.y, y, half_width)]
        })
    });
    out.push_str("<details class=\"numbers\"><summary>Numbers</summary>\n");
    write_table("numbers", &format!("Numbers: {}", plain(&chart.caption)), &columns, rows, out);
    out.push_str("</details>\n");
}

fn on_axis(axis: &Axis, value: f64, half_width: Option<f64>) -> String {
    axis.name_at(value).map_or_else(|| number::with_interval(value, half_width), escape)
}

/// Writes an HTML table in a frame that scrolls on narrow screens. Columns are heads, and true where
/// numbers are below them. The first cell of a row names it.
pub(super) fn write_table(
    class: &str,
    label: &str,
    columns: &[(String, bool)],
    rows: impl IntoIterator<Item = Vec<String>>,
    out: &mut String,
) {
    let class_of = |numeric: bool| if numeric { " class=\"n\"" } else { "" };
    let _ = writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table class=\"{class}\">"
    );
    out.push_str("<thead><tr>");
    for (head, numeric) in columns {
        let _ = write!(out, "<th scope=\"col\"{}>{head}</th>", class_of(*numeric));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (place, (cell, (_, numeric))) in row.iter().zip(columns).enumerate() {
            let class = class_of(*numeric);
            let _ = match place {
                0 => write!(out, "<th scope=\"row\"{class}>{cell}</th>"),
                _ => write!(out, "<td{class}>{cell}</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn table(table: &ReportTable, files: DataFiles<'_>, out: &mut String) {
    let is =
        |place: usize, of: fn(&Cell) -> bool| table.rows.iter().any(|row| row.get(place).is_some_and(of));
    let columns = table.columns.iter().enumerate().map(|(place, column)| {
        let unit = match column.unit.is_empty() {
            true => String::new(),
            false => format!(" <span class=\"unit\">{}</span>", escape(&column.unit)),
        };
        let numeric = is(place, |cell| matches!(cell, Cell::Number { .. }))
            && !is(place, |cell| matches!(cell, Cell::Text(_)));
        (format!("{}{unit}", prose(&column.name)), numeric)
    });
    let words = |cell: &Cell| match cell {
        Cell::Empty => String::new(),
        Cell::Text(words) => prose(words),
        Cell::Number { value, half_width } => number::with_interval(*value, *half_width),
    };
    let rows = table.rows.iter().take(ROWS_MAX).map(|row| row.iter().map(words).collect());
    let _ = writeln!(out, "<p class=\"caption\">{}{}</p>", prose(&table.caption), links(files, &["csv"]));
    write_table("data", &plain(&table.caption), &columns.collect::<Vec<_>>(), rows, out);
    if ROWS_MAX < table.rows.len() {
        let more = table.rows.len() - ROWS_MAX;
        let _ = writeln!(out, "<p class=\"remark\">{more} more rows stand in the CSV file.</p>");
    }
}

/// Returns the number that ours is compared with.
fn base(compared: &Compared) -> Option<f64> {
    compared.printed.or(compared.reference.map(|reference| reference.0))
}

/// Returns the difference to the printed number, relative to it.
fn difference(compared: &Compared) -> Option<f64> {
    let base = base(compared).filter(|base| *base != 0.0 && base.is_finite())?;
    let difference = (compared.ours - base) / base.abs();
    difference.is_finite().then_some(difference)
}

/// Returns notes that several numbers share, in order. They are written once, below the table.
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

fn comparison(compared: &[Compared], files: DataFiles<'_>, out: &mut String) {
    let notes = shared_notes(compared);
    let printed = compared.iter().any(|one| one.printed.is_some());
    let reference = compared.iter().any(|one| one.reference.is_some());
    let beside = if printed { "the printed ones" } else { "those of a reference" };
    let _ = writeln!(
        out,
        "<p class=\"caption\">Our numbers next to {beside}, ± half width of the 95 % interval{}</p>",
        links(files, &["csv"])
    );
    let columns = [
        (true, "what", false),
        (true, "verdict", false),
        (printed, "printed", true),
        (reference, "reference", true),
        (true, "ours", true),
        (true, "difference", true),
    ];
    let row = |one: &Compared| {
        let note = match notes.iter().position(|&note| note == one.note) {
            Some(place) => format!(" <sup>{}</sup>", place + 1),
            None if one.note.is_empty() => String::new(),
            None => format!("<span class=\"note\">{}</span>", prose(&one.note)),
        };
        let reference = one.reference.map(|(value, half)| number::with_interval(value, Some(half)));
        let cells = [
            format!("{}{note}", prose(&one.what)),
            verdict(one.verdict, of_number(one.verdict)),
            one.printed.map_or_else(|| NOTHING.to_owned(), number::number),
            reference.unwrap_or_else(|| NOTHING.to_owned()),
            format!("<b>{}</b>", number::with_interval(one.ours, one.half_width)),
            difference(one).map_or_else(|| apart(one), number::percent),
        ];
        cells.into_iter().zip(columns).filter_map(|(cell, column)| column.0.then_some(cell)).collect()
    };
    let heads = columns.iter().filter(|column| column.0).map(|column| (column.1.to_owned(), column.2));
    let heads: Vec<(String, bool)> = heads.collect();
    write_table("compared", "Our numbers next to others", &heads, compared.iter().map(row), out);
    if !notes.is_empty() {
        let items = notes.iter().map(|note| format!("<li>{}</li>", prose(note)));
        let _ = writeln!(out, "<ol class=\"notes\">{}</ol>", items.collect::<String>());
    }
}

/// Returns the difference where it cannot be relative.
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

fn claims(claims: &[Claim], files: DataFiles<'_>, out: &mut String) {
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
            verdict(claim.verdict, claim.verdict.word()),
            prose(&claim.place),
            prose(&claim.statement),
            prose(&claim.evidence)
        );
    }
    out.push_str("</ul></div>\n");
}
