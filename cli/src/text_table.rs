//! Plain tables: no lines, columns aligned.

use comfy_table::{CellAlignment, Table};

/// Returns a table with columns aligned to the left, without a line break at its end.
pub fn table<H: AsRef<str>, R: IntoIterator<Item = String>>(
    header: &[H],
    rows: impl IntoIterator<Item = R>,
) -> String {
    text(&filled(header, rows))
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
