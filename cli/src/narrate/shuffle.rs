//! What travelled, and when.

use super::facts::Facts;
use super::lists::{count, named};
use super::step::{Step, StepBlock, StepKind};
use super::story::waiting;
use gristmill_runtime::api::FetchRecord;
use gristmill_scheduler::ids::TaskKind;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::narration::TASKS_MAX;

/// A step for each fetch.
pub fn fetches(facts: &Facts) -> impl Iterator<Item = Step> + '_ {
    let told = facts.trace.fetches.iter().enumerate().filter(|(_, fetch)| fetch.map.task.index < TASKS_MAX);
    told.map(|(number, fetch)| step(facts, number, fetch))
}

/// The name of a fetch among bars.
pub fn name(number: usize) -> String {
    format!("fetch-{number}")
}

fn step(facts: &Facts, number: usize, fetch: &FetchRecord) -> Step {
    let map = fetch.map.task.index;
    let span = Span(fetch.ended_ns.saturating_sub(fetch.started_ns));
    let reduces: Vec<String> =
        facts.partitions_at(fetch.to).into_iter().map(|partition| format!("reduce-{partition}")).collect();
    let segments = count(fetch.partitions.into(), "segment", "segments");
    let what = match (fetch.from == fetch.to, fetch.bytes) {
        (true, 0) => format!(
            "{} ran map-{map} itself, and is where the input of {} is gathered: {segments} can be read in the memory where \
             the map left it. Nothing travels.",
            fetch.to,
            named(&reduces)
        ),
        (_, 0) => format!("{} reads {segments} of map-{map} where they lie; nothing travels.", fetch.to),
        (_, bytes) => format!(
            "The input of {} is gathered at {}, which asked {} over HTTP for {segments} of map-{map}: {} in {span}.",
            named(&reduces),
            fetch.to,
            fetch.from,
            Bytes(bytes)
        ),
    };
    let running = running_maps(facts, fetch.started_ns);
    let asked = Span(facts.since_arrival(fetch.started_ns));
    let when = match running.len() {
        0 => format!("That began at {asked}, when all maps had ended."),
        1 => format!(
            "That began at {asked}, when {} had not ended yet: the shuffle does not wait for the last map.",
            running[0]
        ),
        _ => format!(
            "That began at {asked}, when {} had not ended yet: the shuffle does not wait for the last map.",
            waiting(&running)
        ),
    };
    let title = match fetch.bytes {
        0 => format!("{} reads what map-{map} made for it where it lies", fetch.to),
        bytes => {
            format!("{} fetches what map-{map} made for it from {}: {}", fetch.to, fetch.from, Bytes(bytes))
        }
    };
    Step {
        at_ns: facts.since_arrival(fetch.ended_ns),
        kind: StepKind::Fetch,
        title,
        blocks: vec![StepBlock::Words(what), StepBlock::Words(when)],
        about: vec![name(number), fetch.map.file_name()],
    }
}

/// Maps that had not ended at some time.
fn running_maps(facts: &Facts, at_ns: u64) -> Vec<String> {
    let still = |map: &u32| {
        facts.winner(TaskKind::Map, *map).and_then(|record| record.ended_ns).is_none_or(|ended| at_ns < ended)
    };
    (0..facts.trace.status.maps.total).filter(still).map(|map| format!("map-{map}")).collect()
}
