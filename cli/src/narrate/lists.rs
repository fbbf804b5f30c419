//! Lists in words, and remarks on what is missing in them.

use super::step::{StepBlock, StepTable};
use gristmill_scheduler::units::Bytes;
use gristmill_worker::narration::{ITEMS_MAX, TEXT_BYTES_MAX};

/// Items of a list that are shown.
pub const SHOWN_MAX: usize = 500;

/// `one`, or so many of `many`.
pub fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

/// Names one after another, as a sentence has them.
pub fn named(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}

/// The first rows of a table, and a remark if that is not all; `omitted` were not even kept.
pub fn table(head: &[&'static str], mut rows: Vec<Vec<String>>, omitted: u64) -> Vec<StepBlock> {
    let more = rows.len().saturating_sub(SHOWN_MAX) as u64;
    rows.truncate(SHOWN_MAX);
    let table = StepBlock::Table(StepTable { head: head.to_vec(), rows });
    [Some(table), left_out(more, omitted)].into_iter().flatten().collect()
}

/// The first of many short things, likewise.
pub fn row(mut items: Vec<String>, omitted: u64) -> Vec<StepBlock> {
    let more = items.len().saturating_sub(SHOWN_MAX) as u64;
    items.truncate(SHOWN_MAX);
    [Some(StepBlock::Row(items)), left_out(more, omitted)].into_iter().flatten().collect()
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
