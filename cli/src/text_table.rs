//! Plain tables: no lines, columns aligned. And texts wrapped to a terminal's width.

use comfy_table::{CellAlignment, ContentArrangement, Table};

/// Returns a table with columns aligned to the left, without a line break at its end.
pub fn table<H: AsRef<str>, R: IntoIterator<Item = String>>(
    header: &[H],
    rows: impl IntoIterator<Item = R>,
) -> String {
    text(&filled(header, rows))
}

/// As [`table`], for a terminal of this width. Columns named in `least` are left out one after another until the others
/// fit. If they still do not, their cells are wrapped. Also returns the names of the columns that were left out.
pub fn fitted<'a>(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    least: &[&'a str],
    width: usize,
) -> (String, Vec<&'a str>) {
    let mut header = header.to_vec();
    let mut rows: Vec<Vec<String>> = rows.into_iter().collect();
    let mut omitted = Vec::new();
    let mut least = least.iter();
    loop {
        let mut filled = filled(&header, rows.iter().cloned());
        let fits = filled.lines().all(|line| line.trim_end().chars().count() <= width);
        let next = least.next();
        match (fits, next) {
            (true, _) => return (text(&filled), omitted),
            (false, None) => {
                filled.set_content_arrangement(ContentArrangement::Dynamic);
                filled.set_width(u16::try_from(width).unwrap_or(u16::MAX));
                return (text(&filled), omitted);
            }
            (false, Some(name)) => {
                if let Some(place) = header.iter().position(|title| title == name) {
                    header.remove(place);
                    rows.iter_mut().for_each(|row| drop(row.remove(place)));
                    omitted.push(*name);
                }
            }
        }
    }
}

/// Breaks the lines of a text between words so that they fit a width. Further lines are indented as deep as the last
/// column of the first, which begins after at least two spaces.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut wrapped = String::new();
    for line in text.lines() {
        let column = line.rfind("  ").map(|at| at + 2);
        let indent = column.filter(|column| *column <= width / 2).unwrap_or(0);
        let (start, words) = line.split_at(indent);
        wrapped.push_str(start);
        let mut column = start.chars().count();
        for (place, word) in words.split(' ').enumerate() {
            let length = word.chars().count();
            match place {
                0 => {}
                _ if column + 1 + length <= width => {
                    wrapped.push(' ');
                    column += 1;
                }
                _ => {
                    wrapped.push('\n');
                    wrapped.push_str(&" ".repeat(indent));
                    column = indent;
                }
            }
            wrapped.push_str(word);
            column += length;
        }
        wrapped.push('\n');
    }
    wrapped
}

/// Returns a table with all columns but the first aligned to the right, with a line break at its end.
pub fn aligned<H: AsRef<str>>(header: &[H], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let rows = rows.into_iter().map(|row| row.into_iter().map(|cell| plain(&cell)));
    let mut table = filled(header, rows);
    for place in 1..header.len() {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text(&table) + "\n"
}

fn filled<H: AsRef<str>, R: IntoIterator<Item = String>>(
    header: &[H],
    rows: impl IntoIterator<Item = R>,
) -> Table {
    let mut table = Table::new();
    let header = header.iter().map(|name| name.as_ref().to_owned());
    table.load_style(comfy_table::presets::NOTHING).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    table
}

fn text(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Replaces typographic signs of pages by those that programs read.
pub fn plain(text: &str) -> String {
    text.replace(['−', '–'], "-").replace(['\u{202f}', '\u{2009}', '\u{a0}'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_for_a_narrow_terminal_leaves_out_what_counts_least_and_then_wraps() {
        let rows = || [["job-1", "tenant", "/a/path/of/an/output"].map(str::to_owned).to_vec()];
        let header = ["JOB", "POOL", "OUTPUT"];
        let (whole, omitted) = fitted(&header, rows(), &["POOL"], 80);
        assert_eq!((whole, omitted), (table(&header, rows()), vec![]));
        let (narrow, omitted) = fitted(&header, rows(), &["POOL"], 30);
        assert_eq!(narrow, " JOB    OUTPUT\n job-1  /a/path/of/an/output");
        assert_eq!(omitted, ["POOL"]);
        let (wrapped, _) = fitted(&header, rows(), &["POOL"], 20);
        assert!(wrapped.lines().all(|line| line.chars().count() <= 20), "{wrapped}");
        assert!(2 < wrapped.lines().count(), "{wrapped}");
    }

    #[test]
    fn lines_are_wrapped_between_words_and_indented_as_their_last_column() {
        let text = "Title:\n  fifo    first in first out\n      quantum=1: slice of time\n";
        let narrow =
            "Title:\n  fifo    first in\n          first out\n      quantum=1:\n      slice of time\n";
        assert_eq!(wrapped(text, 20), narrow);
        assert_eq!(wrapped(text, 80), text);
    }
}
