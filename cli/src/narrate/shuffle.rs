//! Story of the shuffle of a `--narrate` run: each fetch of segments by a home, and which maps still ran meanwhile.

use super::body::{Scene, StepKind, StoryBody, StoryStep};
use super::facts::StoryFacts;
use gristmill_runtime::api::FetchRecord;
use gristmill_runtime::plural::counted;
use gristmill_scheduler::ids::TaskKind;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::narration::TASKS_MAX;

/// Returns a step for each fetch.
pub fn fetches(facts: &StoryFacts) -> impl Iterator<Item = StoryStep> + '_ {
    let told = facts.trace.fetches.iter().filter(|fetch| fetch.map.task.index < TASKS_MAX);
    told.enumerate().map(|(place, fetch)| step(facts, fetch, place == 0))
}

/// Step of a fetch; with `first`, it explains the rules that hold for all fetches.
fn step(facts: &StoryFacts, fetch: &FetchRecord, first: bool) -> StoryStep {
    let (map, from, to) = (fetch.map.task.index, fetch.from, fetch.to);
    let mut body = StoryBody::default();
    if first {
        body.words(
            "Each partition has a home, the worker on which its reduce is to run. That worker gathers the segments of the \
             partition, one of each map, as soon as they are made.",
        );
    }
    let partitions = counted(fetch.partitions.into(), "partition", "partitions");
    let (title, how) = match fetch.bytes {
        0 => (
            format!("{to} reads what map-{map} made for it where it lies"),
            format!("it reads the output of map-{map} on the same machine. Nothing travels."),
        ),
        bytes => (
            format!("{to} fetches what map-{map} made for it from {from}: {}", Bytes(bytes)),
            format!(
                "it requested the output of map-{map} from {from} over HTTP: {} in {}.",
                Bytes(bytes),
                Span(fetch.ended_ns.saturating_sub(fetch.started_ns))
            ),
        ),
    };
    body.words(format!("The input of {partitions} is gathered at {to}; {how}"));
    let began = Span(facts.since_arrival(fetch.started_ns));
    body.words(match running_maps(facts, fetch.started_ns) {
        0 => format!("That began at {began}, when all maps had ended."),
        running => format!(
            "That began at {began}, when {} not ended yet: the shuffle does not wait for the last map.",
            counted(running, "map had", "maps had")
        ),
    });
    let scene = Scene::Fetched { map, to: to.to_string() };
    StoryStep { at_ns: facts.since_arrival(fetch.ended_ns), kind: StepKind::Fetch, scene, title, body }
}

/// Number of maps that had not ended at this time.
fn running_maps(facts: &StoryFacts, at_ns: u64) -> u64 {
    let ended = |map: &u32| facts.winner(TaskKind::Map, *map).and_then(|record| record.ended_ns);
    let maps = 0..facts.trace.status.maps.total;
    maps.filter(|map| ended(map).is_none_or(|ended| at_ns < ended)).count() as u64
}
