//! Steps of maps: records, pairs, the combiner's output, the partition of each pair and the reason.

use super::facts::Facts;
use super::lists::{count, lines, named, row, table, values};
use super::step::{Step, StepBlock, StepKind};
use gristmill_runtime::api::AttemptRecord;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::narration::{MapStory, PartitionRule, PlacedPair};
use std::collections::BTreeMap;

/// Step of a map's end; with `first`, it explains the rules that hold for all maps.
pub fn ended(facts: &Facts, record: &AttemptRecord, first: bool) -> Step {
    let map = record.attempt.task.index;
    let ended_ns = record.ended_ns.unwrap_or(record.launched_ns);
    let ran = Span(ended_ns.saturating_sub(record.started_ns.unwrap_or(record.launched_ns)));
    let mut blocks = Vec::new();
    match facts.maps.get(&map) {
        Some(story) if facts.trace.status.reduces.total == 0 => {
            blocks.extend(sides(facts, record, story));
            blocks.extend(records(story));
            blocks.extend(part(facts, map));
        }
        Some(story) => {
            blocks.extend(sides(facts, record, story));
            blocks.extend(records(story));
            blocks.extend(emitted(story));
            blocks.extend(spills(record));
            blocks.extend(placed(story, first));
            blocks.extend(segments(record, story));
        }
        None => blocks.push(StepBlock::words("Its pairs were not kept.")),
    }
    let emitted =
        facts.maps.get(&map).map_or(0, |story| story.emitted.kept.len() as u64 + story.emitted.omitted);
    let title = match facts.trace.status.reduces.total {
        0 => format!("map-{map} has ended after {ran}"),
        _ => format!("map-{map} has ended after {ran}: {}", count(emitted, "pair", "pairs")),
    };
    Step { at_ns: facts.since_arrival(ended_ns), kind: StepKind::Map, title, blocks }
}

/// Side inputs, which all maps of a worker share.
fn sides(facts: &Facts, record: &AttemptRecord, story: &MapStory) -> Vec<StepBlock> {
    if story.sides.is_empty() {
        return Vec::new();
    }
    let worker = record.worker;
    let first = facts.first_map_on(worker).unwrap_or(record.attempt.task.index);
    if first != record.attempt.task.index {
        let words = format!("Beside its split it saw the table that {worker} has held since map-{first}.");
        return vec![StepBlock::Words(words)];
    }
    let mut blocks = vec![StepBlock::words(format!(
        "Beside its split, every map of this job sees one small input as a whole, a table to look things up in. {worker} \
         read it once and holds it in memory for all its maps; so does each other worker."
    ))];
    for side in &story.sides {
        let files: Vec<String> = side.pieces.iter().map(|piece| piece.path.clone()).collect();
        let all = side.records.kept.len() as u64 + side.records.omitted;
        let words = format!("It is {}, with {}:", named(&files), count(all, "record", "records"));
        blocks.push(StepBlock::Words(words));
        let rows =
            side.records.kept.iter().map(|record| vec![record.offset.to_string(), record.text.clone()]);
        blocks.extend(table(&["byte of the file", "row of the table"], rows.collect(), side.records.omitted));
    }
    blocks
}

/// Output of a map of a job without reduces.
fn part(facts: &Facts, map: u32) -> Vec<StepBlock> {
    let shown = facts.parts.get(map as usize).map(|part| lines(&part.bytes)).unwrap_or_default();
    if shown.is_empty() {
        return vec![StepBlock::words("It wrote nothing: its part of the output is empty.")];
    }
    let mut blocks = vec![StepBlock::words("What it wrote is one part of the output:")];
    blocks.extend(row(shown, 0));
    blocks
}

fn records(story: &MapStory) -> Vec<StepBlock> {
    let records = &story.input.records;
    let all = records.kept.len() as u64 + records.omitted;
    let mut blocks = vec![StepBlock::words(format!("It read {}:", count(all, "record", "records")))];
    let rows = records.kept.iter().map(|record| vec![record.offset.to_string(), record.text.clone()]);
    blocks.extend(table(&["byte", "record"], rows.collect(), records.omitted));
    blocks
}

fn emitted(story: &MapStory) -> Vec<StepBlock> {
    let emitted = &story.emitted;
    let mut blocks = vec![StepBlock::words("The mapper emitted these pairs, key → value, in this order:")];
    let pairs = emitted.kept.iter().map(|pair| format!("{} → {}", pair.key, pair.value));
    blocks.extend(row(pairs.collect(), emitted.omitted));
    blocks
}

/// Runs that were spilled.
fn spills(record: &AttemptRecord) -> Option<StepBlock> {
    let report = record.report.as_ref().filter(|report| 0 < report.spills)?;
    Some(StepBlock::words(format!(
        "Its memory did not suffice: {} of {} went to disk, each sorted, and were merged at the end.",
        count(report.spills, "run", "runs"),
        Bytes(report.spilled_bytes)
    )))
}

/// Returns the pairs of the output, with their partitions.
fn placed(story: &MapStory, first: bool) -> Vec<StepBlock> {
    let output = &story.output;
    let (before, after) =
        (story.emitted.kept.len() as u64 + story.emitted.omitted, output.kept.len() as u64 + output.omitted);
    let made = match story.combines {
        true => format!(
            "The combiner merged the values of equal keys before anything travels: {} became {after}.",
            count(before, "pair", "pairs")
        ),
        false => "The job has no combiner, so all of them travel.".to_owned(),
    };
    let order = match story.combines {
        true => {
            "Within a partition they lie roughly in the order of their hashes: a reduce that totals needs no sorted input."
        }
        false => {
            "Within a partition they are sorted by key; equal keys stay in the order in which they were emitted."
        }
    };
    let mut blocks = vec![StepBlock::Words(made)];
    if first {
        blocks.extend([StepBlock::words(rule(story)), StepBlock::words(order)]);
    }
    if story.combines && 0 < story.emitted.omitted {
        blocks.push(StepBlock::words("Behind … there may be values of pairs that were not kept."));
    }
    let of_keys = values_by_key(story);
    let rows = output.kept.iter().map(|pair| placed_row(story, pair, &of_keys)).collect();
    let mut head = vec!["partition", "key"];
    head.extend(story.combines.then_some("emitted values"));
    head.push(if story.combines { "combined" } else { "value" });
    if matches!(story.rule, PartitionRule::Hash | PartitionRule::FirstComponent) {
        head.extend(["hash", "hash × partitions ÷ 2⁶⁴"]);
    }
    blocks.extend(table(&head, rows, output.omitted));
    blocks
}

fn placed_row(story: &MapStory, pair: &PlacedPair, of_keys: &BTreeMap<u64, Vec<&str>>) -> Vec<String> {
    let mut cells = vec![pair.partition.to_string(), pair.key.clone()];
    if story.combines {
        let of_key = of_keys.get(&pair.sum).map_or(&[][..], Vec::as_slice);
        cells.push(values(of_key.iter().copied(), 0) + if story.emitted.omitted == 0 { "" } else { " …" });
    }
    cells.push(pair.value.clone());
    if let Some(hash) = pair.hash {
        let share = hash as f64 * f64::from(story.partitions) / 2f64.powi(64);
        cells.extend([format!("{hash:016x}"), format!("{share:.3}")]);
    }
    cells
}

/// Emitted values of each key, in order; by the keys' checksums, since the text of long keys is cut.
fn values_by_key(story: &MapStory) -> BTreeMap<u64, Vec<&str>> {
    let mut values: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for pair in &story.emitted.kept {
        values.entry(pair.sum).or_default().push(&pair.value);
    }
    values
}

/// Rule that chooses the partition.
fn rule(story: &MapStory) -> String {
    let partitions = story.partitions;
    match &story.rule {
        _ if partitions == 1 => "There is one partition, so all keys go there.".to_owned(),
        PartitionRule::Hash => format!(
            "A key's partition follows from its hash alone, so that every map sends a key to the same reduce: the hash is \
             a number below 2⁶⁴, shown in hexadecimal; times {partitions} partitions, divided by 2⁶⁴, and rounded down, it is the partition."
        ),
        PartitionRule::FirstComponent => format!(
            "A key's partition follows from the hash of its first component, so that all keys with that component meet \
             in one reduce: the hash is a number below 2⁶⁴, shown in hexadecimal; times {partitions} partitions, divided \
             by 2⁶⁴, and rounded down, it is the partition."
        ),
        PartitionRule::Ranges(cuts) => format!(
            "The output is to be sorted as a whole, so each partition has a range of keys, cut by a sample that was taken \
             before the job began. Partition 0 begins with the least key, the others with: {}.",
            cuts.join(", ")
        ),
        PartitionRule::Own => "The job has a rule of its own for a key's partition.".to_owned(),
    }
}

fn segments(record: &AttemptRecord, story: &MapStory) -> Option<StepBlock> {
    let sizes: Vec<String> = story
        .segments
        .iter()
        .map(|(partition, bytes)| format!("{} for partition {partition}", Bytes(*bytes)))
        .collect();
    if sizes.is_empty() {
        return Some(StepBlock::words("It emitted no pairs, so nothing has to be fetched from it."));
    }
    Some(StepBlock::words(format!(
        "The pairs of one partition are a segment: {}. They stay at {} until the workers that gather these partitions \
         fetch them.",
        sizes.join(", "),
        record.worker
    )))
}
