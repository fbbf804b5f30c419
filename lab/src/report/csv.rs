//! Numbers of a page as CSV, with enough digits to read the same number back.
//!
//! Not here: numbers for readers ([`super::number`]).

use crate::report::{Axis, Cell, Chart, Claim, Compared, ReportTable};

/// Returns all points of a chart, one per line.
#[must_use]
pub fn chart(chart: &Chart) -> String {
    let label = |axis: &Axis, name: &str| {
        if axis.label.is_empty() { name.to_owned() } else { axis.label.clone() }
    };
    let head =
        ["series".to_owned(), label(&chart.x, "x"), label(&chart.y, "y"), "half width 95 %".to_owned()];
    let points = chart.series.iter().flat_map(|series| {
        series.points.iter().enumerate().map(|(place, &(x, y))| {
            let half_width = series.half_widths.get(place).copied();
            let half_width = half_width.map(number).unwrap_or_default();
            vec![series.name.clone(), on_axis(&chart.x, x), on_axis(&chart.y, y), half_width]
        })
    });
    lines([head.to_vec()].into_iter().chain(points))
}

/// Returns a table. A column with intervals is followed by one for their half widths.
#[must_use]
pub fn table(table: &ReportTable) -> String {
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
    let rows = table.rows.iter().map(|row| {
        let mut cells = Vec::new();
        for (cell, with_interval) in row.iter().zip(&with_interval) {
            let (value, interval) = match cell {
                Cell::Empty => (String::new(), None),
                Cell::Text(words) => (words.clone(), None),
                Cell::Number { value, half_width } => (number(*value), *half_width),
            };
            cells.push(value);
            cells.extend(with_interval.then(|| interval.map(number).unwrap_or_default()));
        }
        cells
    });
    lines([head].into_iter().chain(rows))
}

/// Returns our numbers with the printed ones.
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
    let rows = compared.iter().map(|one| {
        let some = |value: Option<f64>| value.map(number).unwrap_or_default();
        vec![
            one.what.clone(),
            number(one.ours),
            some(one.half_width),
            some(one.printed),
            some(one.reference.map(|reference| reference.0)),
            some(one.reference.map(|reference| reference.1)),
            one.verdict.word().to_owned(),
            one.note.clone(),
        ]
    });
    lines([head.map(str::to_owned).to_vec()].into_iter().chain(rows))
}

/// Returns the statements of a paper.
#[must_use]
pub fn claims(claims: &[Claim]) -> String {
    let head = ["place", "statement", "verdict", "evidence"].map(str::to_owned);
    let rows = claims.iter().map(|claim| {
        let Claim { place, statement, verdict, evidence } = claim;
        vec![place.clone(), statement.clone(), verdict.word().to_owned(), evidence.clone()]
    });
    lines([head.to_vec()].into_iter().chain(rows))
}

fn on_axis(axis: &Axis, value: f64) -> String {
    axis.name_at(value).map_or_else(|| number(value), str::to_owned)
}

/// Returns the shortest text that reads back as the same number; empty for NaN.
fn number(value: f64) -> String {
    if value.is_nan() { String::new() } else { value.to_string() }
}

/// Returns lines of these cells. A cell that a spreadsheet would treat as a formula starts with an
/// apostrophe.
pub(crate) fn lines(lines: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for line in lines {
        // Writing to memory does not fail.
        let _ = writer.write_record(line.into_iter().map(guarded));
    }
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

fn guarded(cell: String) -> String {
    let formula = cell.starts_with(['=', '+', '@', '\t', '\r'])
        || (cell.starts_with('-') && cell.parse::<f64>().is_err());
    if formula { format!("'{cell}") } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests;

    #[test]
    fn cells_with_commas_quotes_or_lines_are_quoted() {
        let cells = ["plain", "a,b", "a \"b\"", "a\nb", "=SUM(A1)", "-x", "-1.5"].map(str::to_owned);
        assert_eq!(lines([cells.to_vec()]), "plain,\"a,b\",\"a \"\"b\"\"\",\"a\nb\",'=SUM(A1),'-x,-1.5\n");
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
