//! The steps of a job, from its arrival to its output.

use super::facts::Facts;
use super::lists::{count, lines, row, table, waiting};
use super::step::{Step, StepBlock, StepKind};
use super::{maps, reduces, shuffle};
use gristmill_runtime::api::{AttemptEnd, AttemptRecord, JobState};
use gristmill_scheduler::ids::{TaskId, TaskKind};
use gristmill_scheduler::units::Bytes;
use gristmill_worker::narration::TASKS_MAX;
use gristmill_worker::sanitize;

/// Returns the steps of a job, in the order of time.
pub fn steps(facts: &Facts) -> Vec<Step> {
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
fn job(facts: &Facts) -> Step {
    let status = &facts.trace.status;
    let cluster = format!(
        "The cluster has {} with {} in all. A worker is a process; a slot runs one task at a time.",
        count(status.workers.into(), "worker", "workers"),
        count(status.slots.into(), "slot", "slots")
    );
    let tasks = match status.reduces.total {
        0 => format!(
            "{} of input become {}. Each turns the records of its split into a part of the output. The job \
             has no reduce, so nothing is sorted and nothing travels.",
            Bytes(status.input_bytes),
            count(status.maps.total.into(), "map task", "map tasks")
        ),
        reduces => format!(
            "{} of input become {}. Each turns the records of its split into pairs of a key and a value. The shuffle \
             brings all pairs of one key, whichever map emitted them, to one reduce task, which turns its keys with \
             their values into a part of the output. The job has {}.",
            Bytes(status.input_bytes),
            count(status.maps.total.into(), "map task", "map tasks"),
            count(reduces.into(), "reduce task", "reduce tasks")
        ),
    };
    let mut blocks = vec![StepBlock::Words(tasks), StepBlock::Words(cluster)];
    if 0 < facts.trace.omitted {
        blocks.push(StepBlock::words(
            "The trace of this job is too long to be kept whole: some attempts and fetches are missing.",
        ));
    }
    if TASKS_MAX < status.maps.total.max(status.reduces.total) {
        blocks.push(StepBlock::words(format!(
            "The job has many tasks: only of the first {TASKS_MAX} maps and reduces is anything told here."
        )));
    }
    let title = format!("{} `{}` arrives", status.job, sanitize::line(&status.name, 100));
    Step { at_ns: 0, kind: StepKind::Job, title, blocks }
}

/// Step of the input's splits.
fn input(facts: &Facts) -> Step {
    let status = &facts.trace.status;
    let rows = facts.maps.iter().flat_map(|(map, story)| {
        let records = story.input.records.kept.len() as u64 + story.input.records.omitted;
        story.input.pieces.iter().enumerate().map(move |(number, piece)| {
            let first = number == 0;
            vec![
                if first { format!("map-{map}") } else { String::new() },
                piece.path.clone(),
                format!("{}..{}", piece.offset, piece.offset + piece.length),
                if first { records.to_string() } else { String::new() },
            ]
        })
    });
    let mut blocks = vec![StepBlock::words(
        "Each map task reads one split. Splits are cut by bytes, but no record is torn: a record belongs to the split \
         in which its first byte lies, and whoever reads that split reads it to its end.",
    )];
    blocks.extend(table(&["task", "file", "bytes", "records"], rows.collect(), 0));
    if status.maps.total == 1 {
        blocks.push(StepBlock::words(
            "All input fits into one split, so only one map runs. A smaller --split-size, such as 100B, makes several.",
        ));
    }
    let title = format!("The input is cut into {}", count(status.maps.total.into(), "split", "splits"));
    Step { at_ns: 0, kind: StepKind::Input, title, blocks }
}

/// Step of an attempt's launch: the queue, and the reasons for this attempt.
fn placement(facts: &Facts, record: &AttemptRecord, first: bool) -> Step {
    let now = record.launched_ns;
    let status = &facts.trace.status;
    let attempts = &facts.trace.attempts;
    // Of simultaneous orders the trace has the first one first.
    let own = attempts.iter().position(|other| other.attempt == record.attempt).unwrap_or(0);
    let before: Vec<&AttemptRecord> = (0..)
        .zip(attempts)
        .filter(|(place, other)| (other.launched_ns, *place) < (now, own))
        .map(|(_, other)| other)
        .collect();
    let running: Vec<&AttemptRecord> =
        before.iter().copied().filter(|other| other.ended_ns.is_none_or(|ended| now < ended)).collect();
    let free = u64::from(status.slots).saturating_sub(running.len() as u64);
    // The master sends short maps ahead when no slot is free, so that a slot need not wait for its next
    // order.
    let ahead = free == 0;
    let (grant, place) = record.reason.rsplit_once("; ").unwrap_or((&record.reason, ""));
    let task = format!("{}-{}", record.attempt.task.kind, record.attempt.task.index);
    let mut blocks = Vec::new();
    if first {
        blocks.push(StepBlock::words(
            "Two rules decide what runs next: the policy says which job gets a slot that is free, the placement which of its \
             tasks, on which worker. Each gives its reason.",
        ));
    }
    blocks.extend([
        StepBlock::Words(queue(facts, &before, free)),
        StepBlock::words(match ahead {
            false => format!(
                "The policy `{}` gives {} a slot: {}.",
                facts.deciders.policy,
                status.job,
                sanitize::message(grant)
            ),
            true => format!(
                "No slot is free, so this order is sent ahead: {task} begins when what runs on {} before it has ended. \
                 The policy `{}` puts {} first: {}.",
                record.worker,
                facts.deciders.policy,
                status.job,
                sanitize::message(grant)
            ),
        }),
        StepBlock::words(format!(
            "The placement `{}` chooses {task} and {}: {}.",
            facts.deciders.placement,
            record.worker,
            if place.is_empty() { "it says no more" } else { place }
        )),
    ]);
    if first {
        blocks.push(StepBlock::words(
            "This job is alone on its cluster, so every policy would have given it the slot. Policies differ when jobs \
             compete: `gristmill lab replay JOURNAL --narrate --beside fifo,max-srpt` tells each decision of a master's \
             journal, and `gristmill lab compare` runs the same jobs under several.",
        ));
    }
    let again = if record.attempt.epoch == 0 { "" } else { " once more" };
    Step {
        at_ns: facts.since_arrival(now),
        kind: StepKind::Placement,
        title: format!("{task} is sent {}to {}{again}", if ahead { "ahead " } else { "" }, record.worker),
        blocks,
    }
}

/// Queue after the launch of these attempts, with this number of free slots.
fn queue(facts: &Facts, before: &[&AttemptRecord], free: u64) -> String {
    let status = &facts.trace.status;
    let begun = |task: TaskId| before.iter().any(|other| other.attempt.task == task);
    let job = status.job;
    let waiting_maps: Vec<String> = (0..status.maps.total)
        .filter(|&map| !begun(TaskId::map(job, map)))
        .map(|map| format!("map-{map}"))
        .collect();
    let waiting_reduces =
        (0..status.reduces.total).filter(|&index| !begun(TaskId::reduce(job, index))).count();
    let reduces = match waiting_reduces {
        0 => String::new(),
        1 => "; and 1 reduce, which can begin when its segments of all maps have arrived".to_owned(),
        more => {
            format!(
                "; and {more} reduces, each of which can begin when its segments of all maps have arrived"
            )
        }
    };
    format!(
        "The queue at that moment: {job}. Free: {free} of {}. Waiting: {}{reduces}.",
        count(status.slots.into(), "slot", "slots"),
        if waiting_maps.is_empty() { "no map".to_owned() } else { waiting(&waiting_maps) }
    )
}

/// The map that ended first: its step explains what all maps have in common.
fn first_map(facts: &Facts) -> Option<u32> {
    let ended = |map: u32| Some((facts.winner(TaskKind::Map, map)?.ended_ns?, map));
    (0..facts.trace.status.maps.total.min(TASKS_MAX)).filter_map(ended).min().map(|(_, map)| map)
}

/// The end of an attempt; `first` is the map that ended first.
fn ending(facts: &Facts, record: &AttemptRecord, first: Option<u32>) -> Option<Step> {
    let index = record.attempt.task.index;
    let kind = record.attempt.task.kind;
    let counts = facts.winner(kind, index).is_some_and(|winner| winner.attempt == record.attempt);
    match &record.end {
        AttemptEnd::Running => None,
        AttemptEnd::Succeeded if !counts => {
            Some(failure(facts, record, "its output was lost with its worker later"))
        }
        AttemptEnd::Succeeded if kind == TaskKind::Map => {
            Some(maps::ended(facts, record, first == Some(index)))
        }
        AttemptEnd::Succeeded => Some(reduces::ended(facts, record)),
        AttemptEnd::Lost => Some(failure(facts, record, "its worker was lost")),
        end => {
            let (class, message) = end.shown().unwrap_or_default();
            // A speculative attempt that lost the race has one word for both.
            let why = if class == message { class.to_owned() } else { format!("{class}: {message}") };
            Some(failure(facts, record, &why))
        }
    }
}

/// Step of an attempt that was discarded.
fn failure(facts: &Facts, record: &AttemptRecord, why: &str) -> Step {
    let task = format!("{}-{}", record.attempt.task.kind, record.attempt.task.index);
    let words = format!(
        "{}. An attempt is one try of a task. Nothing of this one counts: its pairs are not told, and if the task runs \
         again, only the attempt that ends well does.",
        sanitize::message(why)
    );
    Step {
        at_ns: facts.since_arrival(record.ended_ns.unwrap_or(record.launched_ns)),
        kind: StepKind::Failure,
        title: format!("An attempt at {task} on {} is discarded", record.worker),
        blocks: vec![StepBlock::Words(words)],
    }
}

/// Step of the output.
fn output(facts: &Facts) -> Step {
    let status = &facts.trace.status;
    let at_ns = facts.since_arrival(status.ended_ns.unwrap_or(status.now_ns));
    if status.state != JobState::Succeeded {
        let said =
            status.failure.iter().flat_map(|failure| [Some(&failure.message), failure.detail.as_ref()]);
        let why: String = said.flatten().map(|text| sanitize::message(text) + ". ").collect();
        let words = format!("{why}Its output was removed: a part of it would be mistaken for the whole.");
        let title = format!("The job has {}", status.state.word());
        return Step { at_ns, kind: StepKind::Output, title, blocks: vec![StepBlock::Words(words)] };
    }
    let mut blocks = vec![StepBlock::words(
        "Each task built its part under a name of its own. Now the parts get their names one by one, and last of all \
         `_SUCCESS` is written: whoever sees that file sees the whole output.",
    )];
    for (part, entry) in facts.parts.iter().zip(&status.parts) {
        blocks.push(StepBlock::words(format!(
            "{}: {}, {}",
            part.name,
            count(entry.records, "record", "records"),
            Bytes(entry.bytes)
        )));
        let mut shown = lines(&part.bytes);
        if part.is_cut
            && let Some(last) = shown.last_mut()
            && !last.ends_with('…')
        {
            last.push('…');
        }
        blocks.extend(row(shown, 0));
        if part.is_cut {
            blocks.push(StepBlock::words(format!(
                "These are its first {}; for the rest --output DIR is the place.",
                Bytes(part.bytes.len() as u64)
            )));
        }
    }
    let title = format!("The output is published: {}", count(status.totals.records_out, "record", "records"));
    Step { at_ns, kind: StepKind::Output, title, blocks }
}
