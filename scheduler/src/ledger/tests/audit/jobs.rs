//! The invariants of one job: its counts, its maps and reduces with their lines, and who was informed of it.

use super::Findings;
use crate::ids::{TaskId, WorkerId};
use crate::ledger::queue::{Bound, places as places_of};
use crate::ledger::tasks::{MapState, ReduceState};
use crate::ledger::workers::Workers;
use crate::ledger::{Job, Ledger};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn audit_marks(ledger: &Ledger, job: &Job, findings: &mut Findings) {
    let informed: BTreeSet<WorkerId> = ledger
        .workers
        .iter()
        .filter(|worker| worker.marks.jobs.contains(&job.id))
        .map(|worker| worker.id)
        .collect();
    findings.rule(informed == job.workers.informed, job.id, "and the workers agree on who was told of it");
    let touches = job.homes.at.keys().chain(job.outputs.kept.keys());
    findings.rule(
        touches.into_iter().all(|worker| informed.contains(worker)),
        job.id,
        "lives only on workers told of it",
    );
    findings.rule(!job.complete(), job.id, "is not complete, as it is live");
    let since =
        job.workers.orphaned_since.is_some_and(|since| ledger.waits.orphaned.contains(&(since, job.id)));
    let orphaned = !job.queue.orphans.is_empty();
    findings.rule(since == orphaned, job.id, "is listed with the time since which it has orphans");
    findings.rule(
        job.attempts.live.iter().all(|attempt| ledger.attempts.contains_key(attempt)),
        job.id,
        "runs only attempts of the table",
    );
    let placed = job.attempts.runs.iter().enumerate().all(|(place, run)| {
        ledger.attempts.get(run).is_some_and(|record| !record.queued && record.place == Some(place as u32))
    });
    findings.rule(placed, job.id, "knows the places of its running maps");
    let began = job.attempts.runs.len() as u32;
    findings.rule(
        began == job.counts.maps_running - job.counts.maps_queued,
        job.id,
        "lists all its running maps",
    );
    let reduces =
        [ReduceState::Running, ReduceState::Suspended].map(|state| job.counts.reduces[state as usize]);
    let begun = job.counts.maps_running + reduces.iter().sum::<u32>();
    let tries = job.maps.iter().map(|map| &map.tries).chain(job.reduces.iter().map(|reduce| &reduce.tries));
    let backups = tries.filter(|tries| tries.backup.is_some()).count() as u32;
    findings.rule(
        job.attempts.live.len() as u32 == begun + backups,
        job.id,
        "has one attempt for each task that has begun, and its backups",
    );
    findings.rule(
        ledger.backups.racing.iter().filter(|task| task.job == job.id).count() as u32 == backups,
        job.id,
        "has its backups listed",
    );
    let settled = ledger.workers.count() == 0 || job.homes.unassigned.is_empty();
    findings.rule(settled, job.id, "has a home for every partition while there are workers");
    findings.rule(
        job.workers.excluded.iter().all(|&worker| ledger.workers.is_live(worker)),
        job.id,
        "bars only live workers",
    );
}

pub(super) fn audit_counts(job: &Job, findings: &mut Findings) {
    let maps =
        |wanted: fn(&MapState) -> bool| job.maps.iter().filter(|map| wanted(&map.state)).count() as u32;
    let waiting = maps(|state| *state == MapState::Waiting);
    let running = maps(|state| *state == MapState::Running);
    let done = maps(|state| matches!(state, MapState::Done { .. }));
    let counted = (job.counts.maps_waiting, job.counts.maps_running, job.counts.maps_done);
    findings.rule(counted == (waiting, running, done), job.id, "counts its maps by state");
    let mut states = [0; 5];
    for reduce in &job.reduces {
        states[reduce.state as usize] += 1;
    }
    findings.rule(states == job.counts.reduces, job.id, "counts its reduces by state");
    let fetched: u64 = job.reduces.iter().map(|reduce| u64::from(reduce.gathered.count())).sum();
    findings.rule(fetched == job.counts.segments_fetched, job.id, "counts its segments");
}

pub(super) fn audit_maps(job: &Job, workers: &Workers, findings: &mut Findings) {
    let mut outputs: BTreeMap<WorkerId, BTreeSet<u32>> = BTreeMap::new();
    for (index, map) in job.maps.iter().enumerate() {
        let index = index as u32;
        let task = TaskId::map(job.id, index);
        audit_map_line(job, index, workers, findings);
        let lacking = job.reduces.iter().filter(|reduce| !reduce.gathered.get(index)).count() as u32;
        findings.rule(map.lacking == lacking, task, "counts the partitions that lack it");
        if let MapState::Done { output } = map.state {
            match output {
                Some(worker) => {
                    outputs.entry(worker).or_default().insert(index);
                }
                None if job.outputs.empty.get(index) => {
                    findings.rule(map.lacking == 0, task, "is lacked by no reduce, as it is empty");
                }
                None if !job.map_only() && 0 < map.lacking => {
                    findings.rule(
                        !job.homes.unassigned.is_empty(),
                        task,
                        "is made again, as a home lacks it",
                    );
                }
                None => {}
            }
        }
        let permit = map.tries.permit.is_none_or(|epoch| map.tries.concerns(epoch) && job.map_only());
        findings.rule(permit, task, "gave its permit to its current attempt or its backup");
    }
    findings.rule(outputs == job.outputs.kept, job.id, "knows who keeps its outputs");
    findings.rule(
        outputs.keys().all(|&worker| workers.is_live(worker)),
        job.id,
        "keeps outputs on live workers",
    );
    audit_bound(job, &job.queue.pinned, workers, findings);
    audit_bound(job, &job.queue.assigned, workers, findings);
    let assigned: usize = job.queue.assigned.at.values().map(BTreeSet::len).sum();
    let named = job.maps.iter().filter(|map| map.assigned.is_some()).count();
    findings.rule(assigned == named, job.id, "knows where its maps were assigned to");
}

/// Checks that a map is queued once, where it may run, if it waits, and otherwise not at all.
fn audit_map_line(job: &Job, index: u32, workers: &Workers, findings: &mut Findings) {
    let map = &job.maps[index as usize];
    let task = TaskId::map(job.id, index);
    let spec = job.map_spec(index);
    let queue = &job.queue;
    let pinned = queue.pinned.at.iter().filter(|(_, line)| line.contains(&index)).count();
    let places = [
        queue.open.contains(&index),
        queue.preferring.contains(&index),
        queue.retrying.contains(&index),
        queue.backing_off.contains(&index),
        queue.orphans.contains(&index),
        0 < pinned,
        map.assigned.is_some_and(|to| queue.assigned.at.get(&to).is_some_and(|line| line.contains(&index))),
    ];
    let waits = usize::from(map.state == MapState::Waiting);
    let stands = places.iter().filter(|&&stands| stands).count();
    findings.rule(stands == waits, task, "stands in line once if it waits, else not");
    if queue.orphans.contains(&index) {
        let nowhere = spec.pinned && places_of(spec, workers).is_empty();
        findings.rule(nowhere, task, "is pinned to no worker, as it is an orphan");
    }
    if 0 < pinned {
        findings.rule(
            pinned == places_of(spec, workers).len(),
            task,
            "waits at all its live workers, as it is pinned",
        );
    }
    for (worker, line) in &queue.near {
        let near = places[1] && spec.preferred.contains(worker);
        // A worker that joined after the map was put in line is not in its index.
        findings.rule(!line.contains(&index) || near, task, "waits near its input only");
        findings.rule(workers.is_live(*worker), worker, "is live, as maps wait near it");
    }
}

pub(super) fn audit_reduces(job: &Job, workers: &Workers, findings: &mut Findings) {
    let mut homes: BTreeMap<WorkerId, BTreeSet<u32>> = BTreeMap::new();
    let mut unassigned = BTreeSet::new();
    for (partition, reduce) in job.reduces.iter().enumerate() {
        let partition = partition as u32;
        let task = TaskId::reduce(job.id, partition);
        let complete = reduce.gathered.count() as usize == job.maps.len() && reduce.home.is_some();
        let ready = reduce
            .home
            .is_some_and(|home| job.reduce_queue.ready.at.get(&home).is_some_and(|l| l.contains(&partition)));
        let rests = job.reduce_queue.backing_off.contains(&partition);
        let stands = reduce.state == ReduceState::Ready && !rests;
        findings.rule(ready == stands, task, "stands in line if it is ready and does not rest");
        let rightly = !rests || reduce.state == ReduceState::Ready;
        findings.rule(rightly, task, "is ready, as it backs off");
        let parked = reduce.home.is_some_and(|home| {
            job.reduce_queue.parked.at.get(&home).is_some_and(|l| l.contains(&partition))
        });
        findings.rule(
            !parked || reduce.state == ReduceState::Suspended,
            task,
            "may be resumed only if suspended",
        );
        if let Some(second) = job.homes.second.get(&partition) {
            let begun = matches!(reduce.state, ReduceState::Running | ReduceState::Suspended);
            let elsewhere = workers.is_live(second.at) && reduce.home.is_some_and(|home| home != second.at);
            findings.rule(begun && elsewhere, task, "has a second home elsewhere while it runs");
        }
        match (reduce.state, reduce.home) {
            (ReduceState::Done, home) => findings.rule(home.is_none(), task, "has no home, as it is done"),
            (state, Some(home)) => {
                homes.entry(home).or_default().insert(partition);
                findings.rule(
                    complete == (state != ReduceState::Gathering),
                    task,
                    "gathers until it is complete",
                );
                findings.rule(workers.is_live(home), task, "has a live home");
                let begun = matches!(state, ReduceState::Running | ReduceState::Suspended);
                let good = job.may_use(home, workers) || begun;
                findings.rule(good, task, "is not gathered on a excluded worker");
            }
            (state, None) => {
                unassigned.insert(partition);
                findings.rule(state == ReduceState::Gathering, task, "gathers, as it has no home");
                let nothing = reduce.gathered.count() == job.outputs.empty.count();
                findings.rule(nothing, task, "has nothing but empty segments, as it has no home");
            }
        }
        let permit = reduce.tries.permit;
        let held_right = permit.is_none_or(|epoch| reduce.tries.concerns(epoch));
        findings.rule(held_right, task, "gave its permit to its current attempt or its backup");
        let published = reduce.state != ReduceState::Done || permit.is_some();
        findings.rule(published, task, "was allowed to publish, as it is done");
    }
    for (&home, partitions) in &homes {
        let lacks = |map: u32| partitions.iter().any(|&p| !job.reduces[p as usize].gathered.get(map));
        let right = (0..job.maps.len() as u32).all(|map| job.home_lacks(home, map) == lacks(map));
        findings.rule(right, home, "is known to lack what its partitions lack");
    }
    findings.rule(homes == job.homes.at, job.id, "knows its homes");
    findings.rule(unassigned == job.homes.unassigned, job.id, "knows its unassigned partitions");
    audit_bound(job, &job.reduce_queue.ready, workers, findings);
    audit_bound(job, &job.reduce_queue.parked, workers, findings);
}

fn audit_bound(job: &Job, bound: &Bound, workers: &Workers, findings: &mut Findings) {
    let mut startable = 0;
    for (worker, line) in &bound.at {
        let record = workers.get(*worker);
        findings.rule(!line.is_empty(), job.id, "keeps no empty lines");
        findings.rule(
            record.is_some_and(|record| record.marks.bound.contains(&job.id)),
            job.id,
            "is known to workers that its tasks are bound to",
        );
        if workers.shown_idle(*worker, bound.kind) {
            startable += line.len() as u32;
        }
    }
    findings.rule(startable == bound.startable, job.id, "counts its bound tasks at idle workers");
}
