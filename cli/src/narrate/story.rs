//! The steps of a job, from its arrival to its output.

use super::body::{Scene, StepKind, StoryBody, StoryStep, all, lines};
use super::facts::StoryFacts;
use super::{maps, reduces, shuffle};
use gristmill_runtime::api::{AttemptEnd, AttemptFailure, AttemptRecord, JobState};
use gristmill_runtime::plural::counted;
use gristmill_scheduler::ids::TaskKind;
use gristmill_scheduler::units::Bytes;
use gristmill_worker::narration::TASKS_MAX;
use gristmill_worker::protocol::FailureClass;
use gristmill_worker::sanitize;
use std::collections::BTreeSet;

/// Returns the steps of a job, in the order of time.
pub fn steps(facts: &StoryFacts) -> Vec<StoryStep> {
    let mut steps = vec![job(facts), input(facts)];
    let told = facts.trace.attempts.iter().filter(|record| record.attempt.task.index < TASKS_MAX);
    let first = first_map(facts);
    for (number, record) in told.enumerate() {
        steps.push(placement(facts, record, number == 0));
        steps.extend(ending(facts, record, first));
    }
    steps.extend(shuffle::fetches(facts));
    steps.push(output(facts));
    // Simultaneous steps are in the order of kinds, and then of numbers.
    steps.sort_by_key(|step| (step.at_ns, step.kind));
    steps
}

/// Step of the job's arrival.
fn job(facts: &StoryFacts) -> StoryStep {
    let status = &facts.trace.status;
    let mut body = StoryBody::default();
    let maps = counted(status.maps.total.into(), "map task", "map tasks");
    let cut = format!(
        "{} of input become {maps}. Each turns the records of its split into",
        Bytes(status.input_bytes)
    );
    body.words(match status.reduces.total {
        0 => format!(
            "{cut} a part of the output. The job has no reduce, so nothing is sorted and nothing travels."
        ),
        reduces => format!(
            "{cut} pairs of a key and a value. The shuffle brings all pairs of one key, whichever map emitted them, to one \
             reduce task, which turns its keys with their values into a part of the output. The job has {}.",
            counted(reduces.into(), "reduce task", "reduce tasks")
        ),
    });
    body.words(format!(
        "The cluster has {} with {} in all. A worker is a process; a slot runs one task at a time.",
        counted(status.workers.into(), "worker", "workers"),
        counted(status.slots.into(), "slot", "slots")
    ));
    if facts.trace.omitted > 0 || status.maps.total.max(status.reduces.total) > TASKS_MAX {
        body.words(format!(
            "The job is too long to be told whole: only of the first {TASKS_MAX} maps and reduces is anything told here, and \
             some attempts and fetches may be missing."
        ));
    }
    let title = format!("{} `{}` arrives", status.job, sanitize::line(&status.name, 100));
    StoryStep { at_ns: 0, kind: StepKind::Job, scene: Scene::Arrived, title, body }
}

/// Step of the input's splits.
fn input(facts: &StoryFacts) -> StoryStep {
    let total = facts.trace.status.maps.total;
    let rows = facts.maps.iter().flat_map(|(map, story)| {
        let records = all(&story.input.records).to_string();
        story.input.pieces.iter().enumerate().map(move |(number, piece)| {
            let first = |text: String| if number == 0 { text } else { String::new() };
            let bytes = format!("{}..{}", piece.offset, piece.offset + piece.length);
            vec![first(format!("map-{map}")), piece.path.clone(), bytes, first(records.clone())]
        })
    });
    let mut body = StoryBody::default();
    body.words(
        "Each map task reads one split. Splits are cut by bytes, but no record is torn: a record belongs to the split \
         in which its first byte lies, and the map of that split reads it to its end.",
    );
    body.table(&["task", "file", "bytes", "records"], &rows.collect::<Vec<_>>(), 0);
    if total == 1 {
        body.words("A smaller --split-size, such as 100B, makes several splits and maps.");
    }
    let title = format!("The input is cut into {}", counted(total.into(), "split", "splits"));
    StoryStep { at_ns: 0, kind: StepKind::Input, scene: Scene::Input, title, body }
}

/// Step of an attempt's launch: the queue, and the reasons for this attempt.
fn placement(facts: &StoryFacts, record: &AttemptRecord, first: bool) -> StoryStep {
    let now = record.launched_ns;
    let status = &facts.trace.status;
    let (job, worker) = (status.job, record.worker);
    let task = format!("{}-{}", record.attempt.task.kind, record.attempt.task.index);
    let mut body = StoryBody::default();
    if first {
        body.words(
            "Two rules decide what runs next: the policy says which job gets a slot that is free, the placement which of its \
             tasks, on which worker. Each gives its reason.",
        );
    }
    // Of simultaneous orders the trace has the first one first.
    let own = facts.trace.attempts.iter().position(|other| other.attempt == record.attempt).unwrap_or(0);
    let order = |place: usize, other: &AttemptRecord| (other.launched_ns, place) < (now, own);
    let before = facts.trace.attempts.iter().enumerate().filter(|(place, other)| order(*place, other));
    let before: Vec<&AttemptRecord> = before.map(|(_, other)| other).collect();
    let running = before.iter().filter(|other| other.ended_ns.is_none_or(|ended| now < ended)).count();
    let free = u64::from(status.slots).saturating_sub(running as u64);
    let begun = |kind: TaskKind| {
        let tasks = before.iter().map(|other| other.attempt.task).filter(|task| task.kind == kind);
        tasks.map(|task| task.index).collect::<BTreeSet<_>>().len() as u64
    };
    body.words(format!(
        "The queue at that moment: {job}. Free: {free} of {}. Waiting: {} and {}.",
        counted(status.slots.into(), "slot", "slots"),
        counted(u64::from(status.maps.total).saturating_sub(begun(TaskKind::Map)), "map", "maps"),
        counted(u64::from(status.reduces.total).saturating_sub(begun(TaskKind::Reduce)), "reduce", "reduces"),
    ));
    let (grant, place) = record.reason.rsplit_once("; ").unwrap_or((&record.reason, "it says no more"));
    let grant = sanitize::message(grant);
    // The master sends short maps ahead when no slot is free, so that a slot need not wait for its next
    // order.
    let ahead = if free == 0 { " ahead" } else { "" };
    if free == 0 {
        body.words(format!("{task} begins when a task before it on {worker} has ended."));
    }
    body.words(format!("The policy `{}` gives {job} a slot{ahead}: {grant}.", facts.deciders.policy));
    body.words(format!("The placement `{}` chooses {task} and {worker}: {place}.", facts.deciders.placement));
    if first {
        body.words(
            "This job is alone on its cluster, so every policy would have given it the slot. Policies differ when jobs \
             compete: `gristmill lab whatif JOURNAL --policy fifo,max-srpt` simulates a master's journal under others, and \
             `gristmill lab compare` runs the same jobs under several.",
        );
    }
    let races = before.iter().any(|other| {
        other.attempt.task == record.attempt.task && other.ended_ns.is_none_or(|ended| now < ended)
    });
    let again = match record.attempt.epoch {
        0 => "",
        _ if races => " as a speculative attempt",
        _ => " again",
    };
    let title = format!("{task} is sent{ahead} to {worker}{again}");
    let scene = Scene::Launched { attempt: record.into(), worker: worker.to_string() };
    StoryStep { at_ns: facts.since_arrival(now), kind: StepKind::Placement, scene, title, body }
}

/// The map that ended first: its step explains what all maps have in common.
fn first_map(facts: &StoryFacts) -> Option<u32> {
    let ended = |map: u32| Some((facts.winner(TaskKind::Map, map)?.ended_ns?, map));
    (0..facts.trace.status.maps.total.min(TASKS_MAX)).filter_map(ended).min().map(|(_, map)| map)
}

/// The end of an attempt; `first` is the map that ended first.
fn ending(facts: &StoryFacts, record: &AttemptRecord, first: Option<u32>) -> Option<StoryStep> {
    let index = record.attempt.task.index;
    let kind = record.attempt.task.kind;
    let counts = facts.winner(kind, index).is_some_and(|winner| winner.attempt == record.attempt);
    // A job may end before its workers have reported the end of attempts that it no longer needs.
    let race = facts.winner(kind, index).filter(|winner| {
        let ended = record.ended_ns.or(winner.ended_ns);
        winner.attempt != record.attempt && winner.ended_ns <= ended
    });
    match (&record.end, race) {
        (AttemptEnd::Running, None) => None,
        (AttemptEnd::Succeeded, _) if !counts => {
            let lost = "Its worker was lost later, and its output with it.";
            Some(failure(facts, record, "its output was lost with its worker", lost))
        }
        (AttemptEnd::Succeeded, _) if kind == TaskKind::Map => {
            Some(maps::ended(facts, record, first == Some(index)))
        }
        (AttemptEnd::Succeeded, _) => Some(reduces::ended(facts, record)),
        (AttemptEnd::Lost, _) => {
            let lost = "Its worker was lost: its process ended or stopped responding. Another worker takes over. Output that \
                        was stored only on the lost one is computed again.";
            Some(failure(facts, record, "its worker was lost", lost))
        }
        (
            AttemptEnd::Running | AttemptEnd::Failed(AttemptFailure::Known(FailureClass::Cancelled), _),
            race,
        ) => {
            let (why, words) = match race {
                Some(winner) => (
                    "the other attempt was first",
                    format!(
                        "The other attempt of the task, on {}, succeeded first, so the master stops this one. Both \
                         have the same input and call the same functions, so it does not matter which one counts.",
                        winner.worker
                    ),
                ),
                None => ("the master stopped it", "The master stopped it.".to_owned()),
            };
            let record = AttemptRecord {
                ended_ns: record.ended_ns.or(race.and_then(|winner| winner.ended_ns)),
                ..record.clone()
            };
            Some(failure(facts, &record, why, &words))
        }
        (end, _) => {
            let (class, message) = end.shown().unwrap_or_default();
            let why = format!("{class}: {message}");
            Some(failure(facts, record, &why, &why))
        }
    }
}

/// Maximum bytes of the reason in the picture.
const WHY_BYTES_MAX: usize = 80;

/// Step of an attempt that was discarded: the reason for the picture, and in words.
fn failure(facts: &StoryFacts, record: &AttemptRecord, why: &str, words: &str) -> StoryStep {
    let task = format!("{}-{}", record.attempt.task.kind, record.attempt.task.index);
    let mut body = StoryBody::default();
    body.words(sanitize::message(words));
    body.words("An attempt is one try of a task. Nothing that this one has done counts.");
    StoryStep {
        at_ns: facts.since_arrival(record.ended_ns.unwrap_or(record.launched_ns)),
        kind: StepKind::Failure,
        scene: Scene::Discarded { attempt: record.into(), why: sanitize::line(why, WHY_BYTES_MAX) },
        title: format!("An attempt at {task} on {} is discarded", record.worker),
        body,
    }
}

/// Step of the output.
fn output(facts: &StoryFacts) -> StoryStep {
    let status = &facts.trace.status;
    let at_ns = facts.since_arrival(status.ended_ns.unwrap_or(status.now_ns));
    let mut body = StoryBody::default();
    if status.state != JobState::Succeeded {
        let failure = status.failure.iter();
        for text in failure.flat_map(|failure| [Some(&failure.message), failure.detail.as_ref()]).flatten() {
            body.words(sanitize::message(text));
        }
        body.words("Its output was removed: a part of it would be mistaken for the whole.");
        let title = format!("The job has {}", status.state.word());
        return StoryStep { at_ns, kind: StepKind::Output, scene: Scene::Failed, title, body };
    }
    body.words(
        "Each task built its part under a name of its own. Now the parts get their names one by one, and last of all \
         `_SUCCESS` is written: a program that sees that file sees the whole output.",
    );
    for (part, entry) in facts.parts.iter().zip(&status.parts) {
        let records = counted(entry.records, "record", "records");
        body.words(format!("{}: {records}, {}", part.name, Bytes(entry.bytes)));
        body.row(&lines(&part.bytes), 0);
        if part.is_cut {
            body.words(format!("… These are its first {}.", Bytes(part.bytes.len() as u64)));
        }
    }
    let records = counted(status.totals.records_out, "record", "records");
    let title = format!("The output is published: {records}");
    StoryStep { at_ns, kind: StepKind::Output, scene: Scene::Published, title, body }
}
