//! The invariants of attempts: their tasks, their lines, and which can leave their slot.

use super::Findings;
use crate::ids::{AttemptId, TaskKind};
use crate::ledger::Ledger;
use crate::ledger::attempts::SlotHold;
use crate::ledger::attempts::station_of;
use crate::ledger::tasks::{MapState, ReduceState};
use crate::station::PerStation;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn audit_attempts(ledger: &Ledger, findings: &mut Findings) {
    let mut held: PerStation<BTreeMap<u32, u32>> = PerStation::default();
    for (attempt, record) in &ledger.attempts {
        let worker = ledger.workers.get(record.worker);
        findings.rule(
            worker.is_some_and(|worker| match record.hold.is_parked() {
                true => worker.suspended.contains(attempt),
                false => worker.running.contains(attempt) || worker.queued.contains(attempt),
            }),
            attempt,
            "holds a slot of a live worker, waits for one, or is suspended there",
        );
        let alone = !record.queued || record.line.is_none() && attempt.task.kind == TaskKind::Map;
        findings.rule(alone, attempt, "is a map outside of lines, as it is queued");
        let listed = ledger.ahead.recalled.contains(attempt)
            || ledger.ahead.waiting.contains(&(record.started, *attempt));
        findings.rule(record.queued || !listed, attempt, "is not listed as queued, as it runs");
        if let Some(line) = record.line {
            let station = station_of(attempt.task.kind);
            *held[station].entry(line.0).or_default() += 1;
        }
        let Some(job) = ledger.jobs.get(&attempt.task.job) else {
            findings.rule(record.dying, attempt, "is dying, as its job is over");
            continue;
        };
        let tries = job.tries(attempt.task);
        let listed = job.attempts.live.contains(attempt);
        if record.dying {
            findings.rule(
                !listed && record.place.is_none(),
                attempt,
                "is of no account, as another was faster",
            );
            continue;
        }
        findings.rule(tries.concerns(attempt.epoch), attempt, "is the current attempt or its backup");
        findings.rule(listed, attempt, "is known to its job");
        let running = match attempt.task.kind {
            TaskKind::Map => job.maps[attempt.task.index as usize].state == MapState::Running,
            TaskKind::Reduce => {
                let reduce = &job.reduces[attempt.task.index as usize];
                let parked = record.hold.is_parked();
                let state = if parked { ReduceState::Suspended } else { ReduceState::Running };
                let backup = tries.backup == Some(attempt.epoch);
                let second = || job.second_is_complete(attempt.task.index);
                let home = if backup { second() } else { reduce.home };
                reduce.state == state && home == Some(record.worker)
            }
        };
        findings.rule(running, attempt, "belongs to a task that runs or is suspended, a reduce at its home");
        let firm = tries.permit == Some(attempt.epoch) || tries.backup.is_some();
        let is_firm = record.hold == SlotHold::Firm;
        findings.rule(
            if attempt.task.kind == TaskKind::Map { is_firm || !firm } else { is_firm == firm },
            attempt,
            "has its slot for good if it may publish or races",
        );
    }
    for (held, lines) in held.iter().zip(ledger.lines.iter()) {
        let counted = lines.held.iter().enumerate();
        let right = counted.into_iter().all(|(line, &n)| held.get(&(line as u32)).copied().unwrap_or(0) == n);
        findings.rule(right, "lines", "hold the attempts granted in them");
    }
}

pub(super) fn audit_suspensions(ledger: &Ledger, findings: &mut Findings) {
    let with = |wanted: SlotHold| ledger.attempts.iter().filter(move |(_, record)| record.hold == wanted);
    let suspendable: BTreeSet<_> = with(SlotHold::Suspendable).map(|(&attempt, _)| attempt).collect();
    findings.rule(
        suspendable == ledger.suspensions.suspendable,
        "ledger",
        "list the reduces that can be suspended",
    );
    let mut sums = [0, 0];
    for worker in ledger.workers.iter() {
        let count =
            |hold: SlotHold| with(hold).filter(|(_, record)| record.worker == worker.id).count() as u32;
        let counts = [count(SlotHold::Suspendable), count(SlotHold::Leaving)];
        findings.rule(
            counts == [worker.suspendable, worker.leaving],
            worker.id,
            "counts the reduces that can be suspended, and those that were told to",
        );
        sums = [sums[0] + counts[0], sums[1] + counts[1]];
        let parked =
            |attempt: &AttemptId| ledger.attempts.get(attempt).is_some_and(|record| record.hold.is_parked());
        findings.rule(worker.suspended.iter().all(parked), worker.id, "keeps only suspended attempts");
    }
    let counted = [ledger.workers.suspendable, ledger.workers.leaving];
    findings.rule(sums == counted, "workers", "reduces that can be suspended are counted");
    for job in ledger.jobs.values() {
        let yielding = [TaskKind::Map, TaskKind::Reduce].map(|kind| {
            let own = |attempt: &&AttemptId| {
                let record = ledger.attempts.get(attempt).filter(|_| attempt.task.kind == kind);
                record.is_some_and(|record| record.hold.yields(kind))
            };
            job.attempts.live.iter().filter(own).count() as u32
        });
        findings.rule(
            yielding == [job.counts.maps_yielding, job.counts.yielding],
            job.id,
            "counts its attempts whose slot can be taken back",
        );
    }
}
