//! The numbers behind a page as CSV, in full: as many digits as it takes to read the same number back.
//!
//! Not here: numbers as people read them ([`super::number`]).

use crate::report::{Axis, Cell, Chart, Claim, Compared, Table, Verdict};

/// All points of a chart, one for each line.
#[must_use]
pub fn chart(chart: &Chart) -> String {
    let label = |axis: &Axis, name: &str| {
        if axis.label.is_empty() { name.to_owned() } else { axis.label.clone() }
    };
    let head =
        ["series".to_owned(), label(&chart.x, "x"), label(&chart.y, "y"), "half width 95 %".to_owned()];
    let mut out = line(&head);
    for series in &chart.series {
        for (place, &(x, y)) in series.points.iter().enumerate() {
            let half_width = series.half_widths.get(place).copied();
            let cells = [
                series.name.clone(),
                on_axis(&chart.x, x),
                on_axis(&chart.y, y),
                half_width.map(number).unwrap_or_default(),
            ];
            out.push_str(&line(&cells));
        }
    }
    out
}

/// A table; a column with intervals is followed by one for their half widths.
#[must_use]
pub fn table(table: &Table) -> String {
    let with_interval: Vec<bool> = (0..table.columns.len())
        .map(|column| {
            let cells = table.rows.iter().filter_map(|row| row.get(column));
            cells.into_iter().any(|cell| matches!(cell, Cell::Number { half_width: Some(_), .. }))
        })
        .collect();
    let mut head = Vec::new();
    for (column, with_interval) in table.columns.iter().zip(&with_interval) {
        let unit = if column.unit.is_empty() { String::new() } else { format!(", {}", column.unit) };
        head.push(format!("{}{unit}", column.name));
        if *with_interval {
            head.push(format!("{} half width 95 %{unit}", column.name));
        }
    }
    let mut out = line(&head);
    for row in &table.rows {
        let mut cells = Vec::new();
        for (cell, with_interval) in row.iter().zip(&with_interval) {
            let (value, interval) = match cell {
                Cell::Empty => (String::new(), String::new()),
                Cell::Text(words) => (words.clone(), String::new()),
                Cell::Number { value, half_width } => {
                    (number(*value), half_width.map(number).unwrap_or_default())
                }
            };
            cells.push(value);
            if *with_interval {
                cells.push(interval);
            }
        }
        out.push_str(&line(&cells));
    }
    out
}

/// Our numbers beside printed ones.
#[must_use]
pub fn comparison(compared: &[Compared]) -> String {
    let head = [
        "what",
        "ours",
        "ours half width 95 %",
        "printed",
        "reference",
        "reference half width 95 %",
        "verdict",
        "note",
    ];
    let mut out = line(&head.map(str::to_owned));
    for one in compared {
        out.push_str(&line(&[
            one.what.clone(),
            number(one.ours),
            one.half_width.map(number).unwrap_or_default(),
            one.printed.map(number).unwrap_or_default(),
            one.reference.map(|reference| number(reference.0)).unwrap_or_default(),
            one.reference.map(|reference| number(reference.1)).unwrap_or_default(),
            verdict(one.verdict).to_owned(),
            one.note.clone(),
        ]));
    }
    out
}

/// Statements of a paper.
#[must_use]
pub fn claims(claims: &[Claim]) -> String {
    let mut out = line(&["place", "statement", "verdict", "evidence"].map(str::to_owned));
    for claim in claims {
        out.push_str(&line(&[
            claim.place.clone(),
            claim.statement.clone(),
            verdict(claim.verdict).to_owned(),
            claim.evidence.clone(),
        ]));
    }
    out
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Partly => "partly",
        Verdict::Fails => "fails",
        Verdict::Open => "open",
        Verdict::Input => "input",
    }
}

fn on_axis(axis: &Axis, value: f64) -> String {
    match axis.names.get(value as usize) {
        Some(name) if 0.0 <= value && value.fract() == 0.0 => name.clone(),
        _ => number(value),
    }
}

/// The shortest text that reads back as the same number; nothing for what is none.
fn number(value: f64) -> String {
    if value.is_nan() { String::new() } else { value.to_string() }
}

pub(crate) fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
    cells.join(",") + "\n"
}

/// In quotes if it holds a comma, a quote or a line's end, or if a spreadsheet would take it for a formula.
fn quoted(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '@', '\t', '\r'])
        || (cell.starts_with('-') && cell.parse::<f64>().is_err());
    let cell = if formula { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests;

    #[test]
    fn cells_with_commas_quotes_or_lines_are_quoted() {
        let cells = ["plain", "a,b", "a \"b\"", "a\nb", "=SUM(A1)", "-x", "-1.5"].map(str::to_owned);
        assert_eq!(line(&cells), "plain,\"a,b\",\"a \"\"b\"\"\",\"a\nb\",'=SUM(A1),'-x,-1.5\n");
    }

    #[test]
    fn table_gets_a_column_for_half_widths_where_there_are_some() {
        let text = table(&tests::table());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "policy,\"mean, s\",\"mean half width 95 %, s\",\"jobs, 1\",remark");
        assert_eq!(lines[1], "max-srpt,3.326,0.012,50000000,\"best, by far\"");
        assert_eq!(lines[2], "<fcfs>,inf,,5,");
    }

    #[test]
    fn chart_gives_every_point_in_full() {
        let text = chart(&tests::bars());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "series,size of the job,\"slowdown, 1\",half width 95 %");
        assert_eq!(lines[1], "max-srpt,small,1.5,0.1");
        assert_eq!(
            lines.len(),
            1 + tests::bars().series.iter().map(|series| series.points.len()).sum::<usize>()
        );
    }

    #[test]
    fn comparison_and_claims_have_a_line_each() {
        let text = comparison(&tests::comparison());
        assert!(
            text.lines()
                .nth(1)
                .is_some_and(|line| line.starts_with("\"load 0.75, max-srpt\",3.326,0.012,3.32,"))
        );
        assert_eq!(claims(&tests::claims()).lines().count(), 1 + tests::claims().len());
    }
}
