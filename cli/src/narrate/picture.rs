//! `run --narrate-html`: the story of a job as a moving picture, one HTML file that needs no server.

use super::body::{StoryStep, all, lines, values};
use super::facts::StoryFacts;
use gristmill_runtime::PAGE_TOKENS;
use gristmill_scheduler::ids::TaskKind;
use gristmill_scheduler::units::Span;
use gristmill_worker::narration::{GroupTold, MapStory, ReduceStory, Told};
use gristmill_worker::sanitize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Maximum maps and partitions in the picture, and items of one list.
const MAPS_MAX: usize = 8;
const PARTITIONS_MAX: u32 = 6;
const ITEMS_MAX: usize = 48;

/// Maximum pairs of a map for one partition.
const BIN_MAX: usize = 24;

/// Returns the page.
pub fn html(facts: &StoryFacts, steps: &[StoryStep]) -> String {
    // Text of jobs must not end the element that holds it.
    let story = story(facts, steps).to_string().replace('<', "\\u003c");
    let status = &facts.trace.status;
    let title = sanitize::line(&format!("{} {}", status.job, status.name), 100);
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    let style = format!("{PAGE_TOKENS}{}", include_str!("picture/picture.css"));
    let place = "/*STORY*/";
    let (before, after) = include_str!("picture/picture.html").split_once(place).unwrap_or_default();
    let before = before.replace("/*STYLE*/", &style).replace("/*TITLE*/", &title);
    format!("{before}{story}{}", after.replace("/*SCRIPT*/", include_str!("picture/picture.js")))
}

fn story(facts: &StoryFacts, steps: &[StoryStep]) -> Value {
    let steps: Vec<Value> = steps
        .iter()
        .map(|step| {
            let (at, text) = (Span(step.at_ns).to_string(), step.body.paragraphs());
            json!({"at": at, "title": step.title, "text": text, "scene": step.scene})
        })
        .collect();
    let first = facts.maps.iter().take(MAPS_MAX);
    let maps: Map<String, Value> = first.map(|(map, story)| (map.to_string(), of_map(story))).collect();
    let reduces: Map<String, Value> = facts
        .reduces
        .range(..PARTITIONS_MAX)
        .map(|(&partition, story)| (partition.to_string(), of_reduce(facts, partition, story)))
        .collect();
    let status = &facts.trace.status;
    let more = |total: u32, shown: usize| u64::from(total).saturating_sub(shown as u64);
    json!({
        "steps": steps,
        "has_reduces": status.reduces.total > 0,
        "maps_more": more(status.maps.total, maps.len()),
        "reduces_more": more(status.reduces.total, reduces.len()),
        "maps": maps,
        "reduces": reduces,
        "parts": facts.parts.iter().map(|part| {
            let lines = Told { kept: lines(&part.bytes), omitted: part.is_cut.into() };
            let (shown, more) = cut(&lines);
            json!({"name": part.name, "lines": shown, "more": more})
        }).collect::<Vec<_>>(),
    })
}

/// Returns the first items of a list, and how many more there are.
fn cut<T>(list: &Told<T>) -> (&[T], u64) {
    let shown = &list.kept[..list.kept.len().min(ITEMS_MAX)];
    (shown, all(list) - shown.len() as u64)
}

fn of_map(story: &MapStory) -> Value {
    let (records, lines_more) = cut(&story.input.records);
    let (emitted, emitted_more) = cut(&story.emitted);
    let (mut output, mut bins) = (Vec::new(), BTreeMap::<u32, usize>::new());
    for pair in story.output.kept.iter().filter(|pair| pair.partition < PARTITIONS_MAX) {
        let count = bins.entry(pair.partition).or_default();
        *count += 1;
        if *count <= BIN_MAX {
            output.push((pair.partition, &pair.key, &pair.value));
        }
    }
    let in_bins: usize = bins.values().sum();
    let pieces = story.input.pieces.iter();
    let bins = bins.into_iter().map(|(partition, count)| (partition, count.saturating_sub(BIN_MAX)));
    json!({
        "pieces": pieces
            .map(|piece| format!("{} {}..{}", piece.path, piece.offset, piece.offset + piece.length))
            .collect::<Vec<_>>(),
        "lines": records.iter().map(|record| &record.text).collect::<Vec<_>>(),
        "lines_more": lines_more,
        "emitted": emitted.iter().map(|pair| (&pair.key, &pair.value)).collect::<Vec<_>>(),
        "emitted_more": emitted_more,
        "combines": story.combines,
        "counts": [all(&story.emitted), all(&story.output)],
        "output": output,
        "output_more": all(&story.output) - in_bins as u64,
        "bins": bins.collect::<Vec<_>>(),
    })
}

fn of_reduce(facts: &StoryFacts, partition: u32, story: &ReduceStory) -> Value {
    let (read, read_more) = cut(&story.read);
    let (groups, groups_more) = cut(&story.groups);
    let group = |group: &GroupTold| {
        let written = facts.written(partition, group.from, group.until).map(lines).unwrap_or_default();
        let size = group.values.len() as u64 + group.omitted;
        json!({"key": group.key, "size": size, "values": values(&group.values, group.omitted), "lines": written})
    };
    let worker = facts.winner(TaskKind::Reduce, partition).map(|record| record.worker.to_string());
    json!({
        "worker": worker,
        "combines": story.combines,
        "read": read.iter().map(|pair| (pair.map, &pair.key, &pair.value)).collect::<Vec<_>>(),
        "read_more": read_more,
        "groups": groups.iter().map(group).collect::<Vec<_>>(),
        "groups_more": groups_more,
    })
}
