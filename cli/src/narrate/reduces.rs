//! Story of the reduces of a `--narrate` run, in steps: segments, the order in which they were read, groups and output.

use super::body::{Scene, StepKind, StoryBody, StoryStep, all, lines, values};
use super::facts::StoryFacts;
use gristmill_runtime::api::AttemptRecord;
use gristmill_runtime::plural::counted;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::narration::{GroupTold, ReduceStory};

/// Step of a reduce's end.
pub fn ended(facts: &StoryFacts, record: &AttemptRecord) -> StoryStep {
    let partition = record.attempt.task.index;
    let ended_ns = record.ended_ns.unwrap_or(record.launched_ns);
    let ran = Span(ended_ns.saturating_sub(record.started_ns.unwrap_or(record.launched_ns)));
    let story = facts.reduces.get(&partition);
    let mut body = StoryBody::default();
    match story {
        Some(story) if story.segments.is_empty() => {
            body.words("No map put out a pair for this partition, so its part is empty.");
        }
        Some(story) => {
            read(story, &mut body);
            groups(facts, partition, story, &mut body);
        }
        None => body.words("Its pairs were not kept."),
    }
    let groups = counted(story.map_or(0, |story| all(&story.groups)), "group", "groups");
    let title = format!("reduce-{partition} has ended after {ran}: {groups}");
    let scene = Scene::Ended(record.into());
    StoryStep { at_ns: facts.since_arrival(ended_ns), kind: StepKind::Reduce, scene, title, body }
}

fn read(story: &ReduceStory, body: &mut StoryBody) {
    let segments = counted(story.segments.len() as u64, "segment", "segments");
    body.words(format!("It had {segments}, in this order:"));
    let rows = story.segments.iter().map(|segment| {
        vec![format!("map-{}", segment.map), segment.records.to_string(), Bytes(segment.bytes).to_string()]
    });
    body.table(&["from", "pairs", "size"], &rows.collect::<Vec<_>>(), 0);
    body.words(match story.combines {
        true => {
            "It put their pairs into a table, one total for each key, with the same combiner that the maps used, and then \
             sorted the table by key. The pairs went in like this:"
        }
        false => {
            "Each segment is sorted by key, so it merged them: of the first pairs that are left in each, the one with the \
             least key comes next, and of equal keys the one of the lowest map. That gave:"
        }
    });
    let pairs =
        story.read.kept.iter().map(|pair| format!("{} → {} (map-{})", pair.key, pair.value, pair.map));
    body.row(&pairs.collect::<Vec<_>>(), story.read.omitted);
}

fn groups(facts: &StoryFacts, partition: u32, story: &ReduceStory, body: &mut StoryBody) {
    let (head, called) = match story.combines {
        true => ("total", "The reducer was called once for each key, in the order of keys, with its total:"),
        false => (
            "values",
            "All values of a key are a group. The reducer was called once for each, in the order of keys:",
        ),
    };
    body.words(called);
    let cells = |group: &GroupTold| {
        let written = match facts.written(partition, group.from, group.until) {
            Some(bytes) => lines(bytes).join(" | "),
            None => format!("{}, which are not shown", Bytes(group.until - group.from)),
        };
        vec![group.key.clone(), values(&group.values, group.omitted), written]
    };
    let rows: Vec<Vec<String>> = story.groups.kept.iter().map(cells).collect();
    body.table(&["key", head, "what the reducer wrote (⇥ is a tab)"], &rows, story.groups.omitted);
}
