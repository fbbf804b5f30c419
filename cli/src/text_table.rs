//! Plain tables on stdout without lines: columns aligned, numbers to the right.

use comfy_table::{CellAlignment, Table};

/// A table; all columns but the first are aligned to the right. Ends in a line break.
pub fn aligned<H: AsRef<str>>(header: &[H], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_header(header.iter().map(|name| name.as_ref().to_owned()));
    for row in rows {
        table.add_row(row.iter().map(|cell| plain(cell)));
    }
    for place in 1..header.len() {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    format!("{}\n", lines.join("\n"))
}

/// Replaces typographic characters by ASCII, for programs.
pub fn plain(text: &str) -> String {
    text.replace(['−', '–'], "-").replace(['\u{202f}', '\u{2009}', '\u{a0}'], "")
}
