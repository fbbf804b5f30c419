//! The invariants of workers: what each counts and lists, and the sums over all.

use super::Findings;
use crate::ids::{TaskKind, WorkerId};
use crate::ledger::workers::{KINDS, Worker};
use crate::ledger::{Job, Ledger};
use std::cmp::Reverse;
use std::collections::BTreeSet;

pub(super) fn audit_workers(ledger: &Ledger, findings: &mut Findings) {
    let workers = &ledger.workers;
    let holds_up = |worker: &&Worker| worker.holds_up();
    let holding_up: BTreeSet<WorkerId> = workers.iter().filter(holds_up).map(|worker| worker.id).collect();
    findings.rule(holding_up == workers.holding_up, "workers", "list those that hold up ready reduces");
    let slow = workers
        .slow
        .iter()
        .all(|(id, times)| workers.get(*id).is_some_and(|worker| worker.slowness == Some(*times)));
    findings.rule(slow, "workers", "list slow ones that are live, as slow as they are");
    let mut idle = [BTreeSet::new(), BTreeSet::new()];
    let mut counted = [[0; 4]; 2];
    let mut behind = BTreeSet::new();
    for (id, worker) in &workers.live {
        findings.rule(*id == worker.id, id, "is filed under its own id");
        audit_worker(ledger, worker, findings);
        if let Some(level) = worker.level() {
            behind.insert((level, *id));
        }
        for (pool, &kind) in KINDS.iter().enumerate().filter(|&(pool, &kind)| workers.pool(kind) == pool) {
            if 0 < worker.free(kind) {
                idle[pool].insert((Reverse(worker.free(kind)), *id));
            }
            counted[pool][0] += worker.slots.count(kind);
            counted[pool][1] += worker.free(kind);
            counted[pool][2] += worker.usable(kind);
            counted[pool][3] += worker.awaited[pool];
        }
    }
    findings.rule(idle == workers.idle, "idle", "lists exactly the workers with free slots");
    findings.rule(behind == workers.behind, "behind", "lists exactly the workers that may queue");
    for (pool, [slots, free, usable, awaited]) in counted.into_iter().enumerate() {
        findings.rule(free == workers.sums.free[pool], "workers", "free slots are counted");
        findings.rule(slots == workers.sums.slots[pool], "workers", "slots are counted");
        findings.rule(awaited == workers.sums.awaited[pool], "workers", "tasks bound to them are counted");
        findings.rule(
            usable == workers.sums.usable[pool],
            "workers",
            "slots that bound tasks can use are counted",
        );
    }
    let unbound: u64 = ledger.jobs.values().map(|job| u64::from(job.queue.unbound())).sum();
    findings.rule(unbound == workers.unbound, "workers", "maps that are not bound are counted");
}

fn audit_worker(ledger: &Ledger, worker: &Worker, findings: &mut Findings) {
    let (id, workers) = (&worker.id, &ledger.workers);
    let mut used = [0; 2];
    for attempt in &worker.running {
        used[worker.pool(attempt.task.kind)] += 1;
    }
    findings.rule(used == worker.used, id, "counts what runs in its pools");
    let within = KINDS.iter().all(|&kind| used[worker.pool(kind)] <= worker.slots.count(kind));
    findings.rule(within, id, "runs no more than its slots");
    findings.rule(worker.slots.unified() != workers.pooled, id, "has slots like all others");
    let idle_queue = 0 < worker.free(TaskKind::Map) && 0 < worker.queued();
    findings.rule(!idle_queue, id, "queues nothing while it has a free slot");
    audit_attempts_at(ledger, worker, findings);
    audit_awaited_at(ledger, worker, findings);
    let known = worker.marks.jobs.iter().chain(&worker.marks.bound).chain(&worker.marks.named);
    findings.rule(known.into_iter().all(|job| ledger.jobs.contains_key(job)), id, "knows only live jobs");
}

fn audit_attempts_at(ledger: &Ledger, worker: &Worker, findings: &mut Findings) {
    let id = &worker.id;
    let mut quick = 0;
    for (attempts, queued) in
        [(worker.running.iter().collect::<Vec<_>>(), false), (worker.queued.iter().collect(), true)]
    {
        for attempt in attempts {
            let record = ledger.attempts.get(attempt);
            let known = record.is_some_and(|record| record.worker == *id && record.queued == queued);
            findings.rule(known, attempt, "runs or is queued where the table has it");
            quick += u32::from(record.is_some_and(|record| record.quick));
        }
    }
    findings.rule(quick == worker.quick, id, "counts its quick attempts");
}

fn audit_awaited_at(ledger: &Ledger, worker: &Worker, findings: &mut Findings) {
    let id = &worker.id;
    let mut awaited = [0; 2];
    let bounds = |job: &'_ Job| {
        [&job.reduce_queue.ready, &job.reduce_queue.parked, &job.queue.pinned, &job.queue.assigned]
            .map(|bound| (bound.kind, bound.at.get(id).map_or(0, BTreeSet::len)))
    };
    for (kind, count) in ledger.jobs.values().flat_map(bounds) {
        awaited[worker.pool(kind)] += count as u32;
    }
    let ready: usize =
        ledger.jobs.values().map(|job| job.reduce_queue.ready.at.get(id).map_or(0, BTreeSet::len)).sum();
    findings.rule(ready as u32 == worker.ready, id, "counts the ready reduces that wait for it");
    findings.rule(awaited == worker.awaited, id, "counts the tasks that wait for it alone");
}
