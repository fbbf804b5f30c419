//! Lists as text, and remarks on what they omit.

use super::step::{StepBlock, StepTable};
pub use gristmill_runtime::plural::counted as count;
use gristmill_scheduler::units::Bytes;
use gristmill_worker::narration::{ITEMS_MAX, TEXT_BYTES_MAX, words_of};
use gristmill_worker::sanitize;

/// Maximum number of items of a list.
pub const SHOWN_MAX: usize = 500;

/// Joins names as in a sentence.
pub fn named(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}

/// Maximum number of values of one key in a cell.
pub const VALUES_SHOWN_MAX: usize = 200;

/// Returns the first values of a key, and how many more there are; `omitted` were not recorded.
pub fn values<'a>(kept: impl ExactSizeIterator<Item = &'a str>, omitted: u64) -> String {
    let more = kept.len().saturating_sub(VALUES_SHOWN_MAX) as u64 + omitted;
    let shown: Vec<&str> = kept.take(VALUES_SHOWN_MAX).collect();
    match (shown.is_empty(), more) {
        (_, 0) => shown.join(" "),
        (true, more) => format!("… {more} values"),
        (false, more) => format!("{} … and {more} more", shown.join(" ")),
    }
}

/// Returns the first rows of a table, and a remark if there are more; `omitted` were not recorded.
pub fn table(head: &[&'static str], mut rows: Vec<Vec<String>>, omitted: u64) -> Vec<StepBlock> {
    let more = rows.len().saturating_sub(SHOWN_MAX) as u64;
    rows.truncate(SHOWN_MAX);
    let table = StepBlock::Table(StepTable { head: head.to_vec(), rows });
    [Some(table), left_out(more, omitted)].into_iter().flatten().collect()
}

/// The first of many short items, and a remark if that is not all.
pub fn row(mut items: Vec<String>, omitted: u64) -> Vec<StepBlock> {
    let more = items.len().saturating_sub(SHOWN_MAX) as u64;
    items.truncate(SHOWN_MAX);
    [Some(StepBlock::Row(items)), left_out(more, omitted)].into_iter().flatten().collect()
}

/// Returns the first few waiting jobs.
pub fn waiting(names: &[String]) -> String {
    const NAMED_MAX: usize = 6;
    match names.len() {
        0..=NAMED_MAX => named(names),
        all => format!("{} and {} more maps", names[..NAMED_MAX].join(", "), all - NAMED_MAX),
    }
}

/// Maximum bytes of a line.
const LINE_BYTES_MAX: usize = 200;

/// Returns the lines of a part, made readable.
pub fn lines(bytes: &[u8]) -> Vec<String> {
    let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let lines = whole.split(|byte| *byte == b'\n').filter(|_| !bytes.is_empty());
    lines.map(shown_line).collect()
}

/// Separates columns, and keeps different lines different; cuts at [`LINE_BYTES_MAX`].
fn shown_line(line: &[u8]) -> String {
    let fields: Vec<String> = line.split(|byte| *byte == b'\t').map(words_of).collect();
    sanitize::line(&fields.join(" ⇥ "), LINE_BYTES_MAX)
}

fn left_out(more: u64, omitted: u64) -> Option<StepBlock> {
    match (more + omitted, omitted) {
        (0, _) => None,
        (all, 0) => {
            Some(StepBlock::words(format!("… and {all} more. A story shows at most {SHOWN_MAX} of a list.")))
        }
        (all, _) => Some(StepBlock::words(format!(
            "… and {all} more. An attempt keeps {ITEMS_MAX} records, pairs and groups at most, and {} of their text: a \
             story is for little input.",
            Bytes(TEXT_BYTES_MAX as u64)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_differ_are_shown_differently() {
        assert_eq!(
            lines(b"a\r\n\nb\t1\n\xff\t2\n\xfe\t2\n\\xff\t2\n\\u000d"),
            ["a\\u000d", "", "b ⇥ 1", "\\xff ⇥ 2", "\\xfe ⇥ 2", "\\\\xff ⇥ 2", "\\\\u000d"]
        );
        assert_eq!(lines(b""), [""; 0]);
        assert_eq!(lines(b"\n"), [""]);
    }

    #[test]
    fn values_beyond_what_is_shown_or_kept_are_counted() {
        let all = vec!["1"; VALUES_SHOWN_MAX + 2];
        assert_eq!(values(all[..3].iter().copied(), 0), "1 1 1");
        assert_eq!(values(all[..2].iter().copied(), 4), "1 1 … and 4 more");
        assert_eq!(values(all[..0].iter().copied(), 4), "… 4 values");
        let shown = values(all.iter().copied(), 5);
        assert!(
            shown.ends_with(" 1 … and 7 more") && shown.matches('1').count() == VALUES_SHOWN_MAX,
            "{shown}"
        );
    }
}
