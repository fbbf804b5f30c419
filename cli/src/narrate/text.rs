//! A story as text, in colour if the terminal supports it.

use super::step::{Step, StepBlock, StepTable};
use gristmill_scheduler::units::Span;
use gristmill_worker::sanitize;

/// Columns of a line of prose.
const WIDTH: usize = 100;

/// Returns the whole story. Texts from others are sanitized here once more, so that only this module's
/// colours control the terminal.
pub fn text(steps: &[Step], coloured: bool) -> String {
    let style = |code: &str| if coloured { format!("\x1b[{code}m") } else { String::new() };
    let mut out = String::new();
    for (number, step) in steps.iter().enumerate() {
        let colour = step.kind.colour();
        let head = format!("{:>3}. {}", number + 1, sanitize::line(&step.title, WIDTH * 2));
        let moment = format!("{:>10}", Span(step.at_ns).to_string());
        out += &format!(
            "{}{moment}{}  {}{}{head}{}\n",
            style("2"),
            style("0"),
            style("1"),
            style(colour),
            style("0")
        );
        for block in &step.blocks {
            out += &match block {
                StepBlock::Words(words) => wrapped(words.split(' '), " "),
                StepBlock::Row(items) => wrapped(items.iter().map(String::as_str), "   "),
                StepBlock::Table(table) => aligned(table, &style("2"), &style("0")),
            };
        }
        out.push('\n');
    }
    out
}

/// Prefix of each line of a step's body.
const INDENT: &str = "                 ";

/// Joins pieces into lines of at most [`WIDTH`] columns.
fn wrapped<'a>(pieces: impl Iterator<Item = &'a str>, between: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for piece in pieces {
        let piece = sanitize::line(piece, usize::MAX);
        let needed = line.chars().count() + between.len() + piece.chars().count();
        if !line.is_empty() && WIDTH < needed {
            out += &format!("{INDENT}{line}\n");
            line.clear();
        }
        if !line.is_empty() {
            line += between;
        }
        line += &piece;
    }
    out + &format!("{INDENT}{line}\n")
}

/// Aligns the columns of a table.
fn aligned(table: &StepTable, dim: &str, plain: &str) -> String {
    let clean =
        |cells: &[String]| cells.iter().map(|cell| sanitize::line(cell, usize::MAX)).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = table.rows.iter().map(|row| clean(row)).collect();
    let head: Vec<String> = table.head.iter().map(|&word| word.to_owned()).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&head]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("   ").trim_end().to_owned()
    };
    let mut out = format!("{INDENT}  {dim}{}{plain}\n", line(&head));
    for row in &rows {
        out += &format!("{INDENT}  {}\n", line(row));
    }
    out
}
