//! Steps of reduces: segments, the order in which they were read, groups and output.

use super::facts::Facts;
use super::lists::{count, lines, row, table, values};
use super::step::{Step, StepBlock, StepKind};
use gristmill_runtime::api::AttemptRecord;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::narration::{GroupTold, ReduceStory};

/// Step of a reduce's end.
pub fn ended(facts: &Facts, record: &AttemptRecord) -> Step {
    let partition = record.attempt.task.index;
    let ended_ns = record.ended_ns.unwrap_or(record.launched_ns);
    let ran = Span(ended_ns.saturating_sub(record.started_ns.unwrap_or(record.launched_ns)));
    let story = facts.reduces.get(&partition);
    let blocks = match story {
        Some(story) => [read(story), groups(facts, partition, story)].into_iter().flatten().collect(),
        None => vec![StepBlock::words("Its pairs were not kept.")],
    };
    let groups = story.map_or(0, |story| story.groups.kept.len() as u64 + story.groups.omitted);
    Step {
        at_ns: facts.since_arrival(ended_ns),
        kind: StepKind::Reduce,
        title: format!("reduce-{partition} has ended after {ran}: {}", count(groups, "group", "groups")),
        blocks,
    }
}

fn read(story: &ReduceStory) -> Vec<StepBlock> {
    if story.segments.is_empty() {
        return vec![StepBlock::words("No map put out a pair for this partition, so its part is empty.")];
    }
    let mut blocks = vec![StepBlock::words(format!(
        "It had {}, in this order:",
        count(story.segments.len() as u64, "segment", "segments")
    ))];
    let rows = story.segments.iter().map(|segment| {
        vec![format!("map-{}", segment.map), segment.records.to_string(), Bytes(segment.bytes).to_string()]
    });
    blocks.extend(table(&["from", "pairs", "size"], rows.collect(), 0));
    let how = match story.combines {
        true => {
            "It put their pairs into a table, one total for each key, with the same combiner that the maps used, and then \
             sorted the table by key. The pairs went in like this:"
        }
        false => {
            "Each segment is sorted by key, so it merged them: of the first pairs that are left in each, the one with the \
             least key comes next, and of equal keys the one of the lowest map. That gave:"
        }
    };
    blocks.push(StepBlock::words(how));
    let pairs =
        story.read.kept.iter().map(|pair| format!("{} → {} (map-{})", pair.key, pair.value, pair.map));
    blocks.extend(row(pairs.collect(), story.read.omitted));
    blocks
}

fn groups(facts: &Facts, partition: u32, story: &ReduceStory) -> Vec<StepBlock> {
    let mut blocks = Vec::new();
    if 0 < story.groups_before {
        blocks.push(StepBlock::words(format!(
            "{} had been reduced by an earlier attempt, which handed over.",
            count(story.groups_before, "group", "groups")
        )));
    }
    if story.groups.kept.is_empty() && story.groups.omitted == 0 {
        return blocks;
    }
    blocks.push(StepBlock::words(match story.combines {
        true => "The reducer was called once for each key, in the order of keys, with its total:",
        false => {
            "All values of a key are a group. The reducer was called once for each, in the order of keys:"
        }
    }));
    let cells = |group: &GroupTold| {
        let told = values(group.values.iter().map(String::as_str), group.omitted);
        vec![group.key.clone(), told, written(facts, partition, group)]
    };
    let rows: Vec<Vec<String>> = story.groups.kept.iter().map(cells).collect();
    let head = if story.combines { "total" } else { "values" };
    let wrote = match rows.iter().any(|row| row[2].contains('⇥')) {
        true => "what the reducer wrote (⇥ is a tab)",
        false => "what the reducer wrote",
    };
    blocks.extend(table(&["key", head, wrote], rows, story.groups.omitted));
    blocks
}

/// Output of the reducer for a group.
fn written(facts: &Facts, partition: u32, group: &GroupTold) -> String {
    match facts.written(partition, group.from, group.until) {
        Some(bytes) => lines(bytes).join(" | "),
        None if group.from == group.until => String::new(),
        None => format!("{}, which are not shown", Bytes(group.until - group.from)),
    }
}
