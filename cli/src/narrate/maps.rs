//! Steps of maps: records, pairs, the combiner's output, the partition of each pair and the reason.

use super::body::{Scene, StepKind, StoryBody, StoryStep, all, lines};
use super::facts::StoryFacts;
use gristmill_runtime::api::AttemptRecord;
use gristmill_runtime::plural::counted;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::narration::{MapStory, PartitionRule, PlacedPair, StoryRecord, Told};

/// Step of a map's end; with `first`, it explains the rules that hold for all maps.
pub fn ended(facts: &StoryFacts, record: &AttemptRecord, first: bool) -> StoryStep {
    let map = record.attempt.task.index;
    let ended_ns = record.ended_ns.unwrap_or(record.launched_ns);
    let ran = Span(ended_ns.saturating_sub(record.started_ns.unwrap_or(record.launched_ns)));
    let mut title = format!("map-{map} has ended after {ran}");
    let mut body = StoryBody::default();
    match facts.maps.get(&map) {
        Some(story) => {
            if first {
                sides(story, &mut body);
            }
            body.words(format!("It read {}:", counted(all(&story.input.records), "record", "records")));
            records("byte", &story.input.records, &mut body);
            if facts.trace.status.reduces.total == 0 {
                part(facts, map, &mut body);
            } else {
                title += &format!(": {}", counted(all(&story.emitted), "pair", "pairs"));
                pairs(record, story, first, &mut body);
            }
        }
        None => body.words("Its pairs were not kept."),
    }
    let scene = Scene::Ended(record.into());
    StoryStep { at_ns: facts.since_arrival(ended_ns), kind: StepKind::Map, scene, title, body }
}

/// Side inputs, which all maps share.
fn sides(story: &MapStory, body: &mut StoryBody) {
    for side in &story.sides {
        let files: Vec<&str> = side.pieces.iter().map(|piece| piece.path.as_str()).collect();
        body.words(format!(
            "Beside its split, every map of this job sees one small input as a whole, which its worker read once and holds \
             in memory: {}, with {}:",
            files.join(", "),
            counted(all(&side.records), "record", "records")
        ));
        records("byte of the file", &side.records, body);
    }
}

fn records(offset: &str, records: &Told<StoryRecord>, body: &mut StoryBody) {
    let rows = records.kept.iter().map(|record| vec![record.offset.to_string(), record.text.clone()]);
    body.table(&[offset, "record"], &rows.collect::<Vec<_>>(), records.omitted);
}

/// Output of a map of a job without reduces.
fn part(facts: &StoryFacts, map: u32, body: &mut StoryBody) {
    let shown = facts.parts.get(map as usize).map(|part| lines(&part.bytes)).unwrap_or_default();
    if shown.is_empty() {
        return body.words("It wrote nothing: its part of the output is empty.");
    }
    body.words("What it wrote is one part of the output:");
    body.row(&shown, 0);
}

/// Pairs that the mapper emitted, and those of the output with their partitions.
fn pairs(record: &AttemptRecord, story: &MapStory, first: bool, body: &mut StoryBody) {
    body.words("The mapper emitted these pairs, key → value, in this order:");
    let pairs = story.emitted.kept.iter().map(|pair| format!("{} → {}", pair.key, pair.value));
    body.row(&pairs.collect::<Vec<_>>(), story.emitted.omitted);
    if let Some(report) = record.report.as_ref().filter(|report| report.spills > 0) {
        body.words(format!(
            "Its memory did not suffice: {} of {} went to disk, each sorted, and were merged at the end.",
            counted(report.spills, "run", "runs"),
            Bytes(report.spilled_bytes)
        ));
    }
    let (before, after) = (counted(all(&story.emitted), "pair", "pairs"), all(&story.output));
    body.words(match story.combines {
        true => format!(
            "The combiner merged the values of equal keys before anything travels: {before} became {after}."
        ),
        false => "The job has no combiner, so all of them travel.".to_owned(),
    });
    if first {
        if story.combines {
            body.words(
                "The reducer gets the same total from totals of parts as from single values, so a combiner changes how much \
                 travels, and not the result.",
            );
        }
        body.words("A partition is what one reduce task gets: all pairs for reduce-0 are partition 0.");
        body.words(rule(story));
        body.words(match story.combines {
            true => {
                "Within a partition they lie roughly in the order of their hashes: a reduce that totals needs no sorted input."
            }
            false => {
                "Within a partition they are sorted by key; equal keys stay in the order in which they were emitted."
            }
        });
    }
    let head = ["partition", "key", if story.combines { "combined" } else { "value" }];
    let hash = ["hash", "hash × partitions ÷ 2⁶⁴"];
    let has_hash = matches!(story.rule, PartitionRule::Hash | PartitionRule::FirstComponent);
    let head = [&head[..], if has_hash { &hash } else { &[] }].concat();
    let rows = story.output.kept.iter().map(|pair| placed(story, pair));
    body.table(&head, &rows.collect::<Vec<_>>(), story.output.omitted);
    let segment = |(partition, bytes): &(u32, u64)| format!("{} for partition {partition}", Bytes(*bytes));
    let segments: Vec<String> = story.segments.iter().map(segment).collect();
    body.words(match segments.is_empty() {
        true => "It emitted no pairs, so nothing has to be fetched from it.".to_owned(),
        false => format!(
            "The pairs of one partition are a segment: {}. They stay at {} until the workers that gather these partitions \
             fetch them.",
            segments.join(", "),
            record.worker
        ),
    });
}

fn placed(story: &MapStory, pair: &PlacedPair) -> Vec<String> {
    let mut cells = vec![pair.partition.to_string(), pair.key.clone(), pair.value.clone()];
    if let Some(hash) = pair.hash {
        let share = hash as f64 * f64::from(story.partitions) / 2f64.powi(64);
        cells.extend([format!("{hash:016x}"), format!("{share:.3}")]);
    }
    cells
}

/// Rule that chooses the partition.
fn rule(story: &MapStory) -> String {
    let partitions = story.partitions;
    let of = match &story.rule {
        _ if partitions == 1 => return "There is one partition, so all keys go there.".to_owned(),
        PartitionRule::Hash => "its hash alone",
        PartitionRule::FirstComponent => "the hash of its first component alone",
        PartitionRule::Ranges(cuts) => {
            return format!(
                "The output is to be sorted as a whole, so each partition has a range of keys, cut by a sample that was \
                 taken before the job began. Partition 0 begins with the least key, the others with: {}.",
                cuts.join(", ")
            );
        }
        PartitionRule::Own => return "The job has a rule of its own for a key's partition.".to_owned(),
    };
    format!(
        "A key's partition follows from {of}, so that every map sends a key to the same reduce: the hash is a number below \
         2⁶⁴, shown in hexadecimal; times {partitions} partitions, divided by 2⁶⁴, and rounded down, it is the partition."
    )
}
