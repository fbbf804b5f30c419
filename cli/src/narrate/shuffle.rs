//! Steps of the shuffle: which data was sent, and when.

use super::facts::Facts;
use super::lists::{count, named, waiting};
use super::step::{Step, StepBlock, StepKind};
use gristmill_runtime::api::FetchRecord;
use gristmill_scheduler::ids::TaskKind;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::narration::TASKS_MAX;

/// Returns a step for each fetch.
pub fn fetches(facts: &Facts) -> impl Iterator<Item = Step> + '_ {
    let told = facts.trace.fetches.iter().enumerate().filter(|(_, fetch)| fetch.map.task.index < TASKS_MAX);
    told.enumerate().map(|(place, (number, fetch))| step(facts, number, fetch, place == 0))
}

/// Returns the name of a fetch in the chart.
pub fn name(number: usize) -> String {
    format!("fetch-{number}")
}

/// Returns the step of a fetch. If `first`, it explains what all fetches have in common.
fn step(facts: &Facts, number: usize, fetch: &FetchRecord, first: bool) -> Step {
    let map = fetch.map.task.index;
    let span = Span(fetch.ended_ns.saturating_sub(fetch.started_ns));
    let at_home = facts.partitions_at(fetch.to);
    if at_home.len() != fetch.partitions as usize {
        return moved(facts, number, fetch, first);
    }
    let filled = facts.filled(map);
    let has_pairs = |partition: &u32| filled.as_ref().is_none_or(|filled| filled.contains(partition));
    // Only partitions collected there: a map may have emitted nothing for some of them.
    let for_some = at_home.iter().any(has_pairs);
    let told: Vec<String> = at_home
        .iter()
        .filter(|partition| !for_some || has_pairs(partition))
        .map(|partition| format!("reduce-{partition}"))
        .collect();
    let reduces = match told.is_empty() {
        // The reduce moved, or its other attempt ended first.
        true => vec!["a reduce that ended elsewhere".to_owned()],
        false => told,
    };
    // Partitions without pairs have no segment, though they are requested with the others.
    let brought = if filled.is_some() && for_some { reduces.len() as u64 } else { fetch.partitions.into() };
    let segments = count(brought, "segment", "segments");
    let what = match (fetch.from == fetch.to, fetch.bytes) {
        _ if !at_home.is_empty() && !for_some => format!(
            "The input of {} is gathered at {}. map-{map} put out no pairs for it, so there is nothing to read, and {} \
             knows now that it need not wait for that map.",
            named(&reduces),
            fetch.to,
            fetch.to
        ),
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
    let title = match fetch.bytes {
        _ if !for_some => format!("{} learns that map-{map} made nothing for it", fetch.to),
        0 => format!("{} reads what map-{map} made for it where it lies", fetch.to),
        bytes => {
            format!("{} fetches what map-{map} made for it from {}: {}", fetch.to, fetch.from, Bytes(bytes))
        }
    };
    fetch_step(facts, (number, fetch, first), title, what)
}

/// A fetch for partitions other than those that were reduced there in the end: some were moved to this keep
/// or away from it.
fn moved(facts: &Facts, number: usize, fetch: &FetchRecord, first: bool) -> Step {
    let map = fetch.map.task.index;
    let span = Span(fetch.ended_ns.saturating_sub(fetch.started_ns));
    let partitions = count(fetch.partitions.into(), "partition", "partitions");
    let (title, how) = match fetch.bytes {
        0 => (
            format!("{} takes note of what map-{map} made for {partitions}", fetch.to),
            "Nothing travels: it lies where it can be read, or there is nothing.".to_owned(),
        ),
        bytes => (
            format!(
                "{} fetches what map-{map} made for {partitions} from {}: {}",
                fetch.to,
                fetch.from,
                Bytes(bytes)
            ),
            format!("{} over HTTP in {span}.", Bytes(bytes)),
        ),
    };
    let what = format!(
        "At that moment the input of {partitions} was gathered at {}: it took what map-{map}, which ran on {}, had made for \
         them. {how} Not all of these were reduced there, or others too: a reduce moves to a worker that has nothing to do, \
         which gathers its segments anew.",
        fetch.to, fetch.from
    );
    fetch_step(facts, (number, fetch, first), title, what)
}

fn fetch_step(
    facts: &Facts,
    (number, fetch, first): (usize, &FetchRecord, bool),
    title: String,
    what: String,
) -> Step {
    let home = first.then(|| {
        StepBlock::words(
            "Each partition has a home, the worker on which its reduce is to run. That worker gathers the segments of the \
             partition, one of each map, as soon as they are made.",
        )
    });
    Step {
        at_ns: facts.since_arrival(fetch.ended_ns),
        kind: StepKind::Fetch,
        title,
        blocks: home
            .into_iter()
            .chain([StepBlock::Words(what), StepBlock::Words(when(facts, fetch))])
            .collect(),
        about: vec![name(number), fetch.map.file_name()],
    }
}

/// Start of a fetch, and the maps that had not ended then.
fn when(facts: &Facts, fetch: &FetchRecord) -> String {
    let running = running_maps(facts, fetch.started_ns);
    let asked = Span(facts.since_arrival(fetch.started_ns));
    match running.len() {
        0 => format!("That began at {asked}, when all maps had ended."),
        1 => format!(
            "That began at {asked}, when {} had not ended yet: the shuffle does not wait for the last map.",
            running[0]
        ),
        _ => format!(
            "That began at {asked}, when {} had not ended yet: the shuffle does not wait for the last map.",
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
