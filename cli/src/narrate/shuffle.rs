//! Steps of the shuffle.

use super::facts::Facts;
use super::lists::{count, named, waiting};
use super::step::{Step, StepBlock, StepKind};
use gristmill_runtime::api::FetchRecord;
use gristmill_scheduler::ids::TaskKind;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::narration::TASKS_MAX;

/// Returns a step for each fetch.
pub fn fetches(facts: &Facts) -> impl Iterator<Item = Step> + '_ {
    let told = facts.trace.fetches.iter().filter(|fetch| fetch.map.task.index < TASKS_MAX);
    told.enumerate().map(|(place, fetch)| step(facts, fetch, place == 0))
}

/// Step of a fetch; with `first`, it explains the rules that hold for all fetches.
fn step(facts: &Facts, fetch: &FetchRecord, first: bool) -> Step {
    let map = fetch.map.task.index;
    let span = Span(fetch.ended_ns.saturating_sub(fetch.started_ns));
    let at_home = facts.partitions_at(fetch.to);
    // The reduces of some of these partitions moved to or from this worker later.
    let is_moved = at_home.len() != fetch.partitions as usize;
    let filled = facts.filled(map);
    let has_pairs = |partition: &u32| filled.as_ref().is_none_or(|filled| filled.contains(partition));
    // A map may have emitted nothing for some of the partitions.
    let for_some = is_moved || at_home.iter().any(has_pairs);
    let told: Vec<String> = at_home
        .iter()
        .filter(|partition| !for_some || has_pairs(partition))
        .map(|partition| format!("reduce-{partition}"))
        .collect();
    let reduces = match (is_moved, told.is_empty()) {
        (true, _) => count(fetch.partitions.into(), "partition", "partitions"),
        // It moved, or its other attempt ended first.
        (_, true) => "a reduce that ended elsewhere".to_owned(),
        _ => named(&told),
    };
    // Partitions without pairs have no segment, though they are requested with the others.
    let is_known = !is_moved && filled.is_some() && for_some;
    let brought = if is_known { told.len().max(1) as u64 } else { fetch.partitions.into() };
    let segments = count(brought, "segment", "segments");
    let mut what = match (fetch.from == fetch.to, fetch.bytes) {
        _ if !for_some && !at_home.is_empty() => format!(
            "The input of {reduces} is gathered at {to}. map-{map} put out no pairs for it, so there is nothing to read, and \
             {to} knows now that it need not wait for that map.",
            to = fetch.to
        ),
        (true, 0) => format!(
            "{} ran map-{map} itself, and is where the input of {reduces} is gathered: {segments} can be read in the memory \
             where the map left it. Nothing travels.",
            fetch.to
        ),
        (_, 0) => format!("{} reads {segments} of map-{map} where they lie; nothing travels.", fetch.to),
        (_, bytes) => format!(
            "The input of {reduces} is gathered at {}, which asked {} over HTTP for {segments} of map-{map}: {} in {span}.",
            fetch.to,
            fetch.from,
            Bytes(bytes)
        ),
    };
    if is_moved {
        what += " Some of these were reduced elsewhere: a reduce moves to an idle worker, which gathers its segments again.";
    }
    let title = match fetch.bytes {
        _ if !for_some => format!("{} learns that map-{map} made nothing for it", fetch.to),
        0 => format!("{} reads what map-{map} made for it where it lies", fetch.to),
        bytes => {
            format!("{} fetches what map-{map} made for it from {}: {}", fetch.to, fetch.from, Bytes(bytes))
        }
    };
    let home = first.then(|| {
        StepBlock::words(
            "Each partition has a home, the worker on which its reduce is to run. That worker gathers the segments of the \
             partition, one of each map, as soon as they are made.",
        )
    });
    let words = [StepBlock::Words(what), StepBlock::Words(when(facts, fetch))];
    let blocks = home.into_iter().chain(words).collect();
    Step { at_ns: facts.since_arrival(fetch.ended_ns), kind: StepKind::Fetch, title, blocks }
}

/// Start of a fetch, and the maps that ran at that time.
fn when(facts: &Facts, fetch: &FetchRecord) -> String {
    let running = running_maps(facts, fetch.started_ns);
    let began = Span(facts.since_arrival(fetch.started_ns));
    match running.is_empty() {
        true => format!("That began at {began}, when all maps had ended."),
        false => format!(
            "That began at {began}, when {} had not ended yet: the shuffle does not wait for the last map.",
            waiting(&running)
        ),
    }
}

/// Maps that had not ended at this time.
fn running_maps(facts: &Facts, at_ns: u64) -> Vec<String> {
    let still = |map: &u32| {
        facts.winner(TaskKind::Map, *map).and_then(|record| record.ended_ns).is_none_or(|ended| at_ns < ended)
    };
    (0..facts.trace.status.maps.total).filter(still).map(|map| format!("map-{map}")).collect()
}
