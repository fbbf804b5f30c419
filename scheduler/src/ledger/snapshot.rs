//! Snapshots of the ledger for the command line, the API and the live page.

use crate::command::Outcome;
use crate::event::Failure;
use crate::ids::{HostId, JobId, WorkerId};
use crate::job::Locality;
use crate::ledger::attempts::{Attempt, DivisionState, SlotHold};
use crate::ledger::job_parts::BackupTotals;
use crate::ledger::tasks::ReduceState;
use crate::ledger::{Job, Ledger, Worker};
use crate::units::{Bytes, Time};

/// State of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum CoreJobState {
    /// No attempt was launched yet.
    Waiting,
    /// An attempt was launched and the job is not over.
    Running,
    /// The job is over.
    Ended(Outcome),
}

/// Number of maps of a job by state; the sum is the number of maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct MapCounts {
    /// Neither running nor done, or no longer done; some may be queued on a worker.
    pub pending: u32,
    /// An attempt holds a slot.
    pub running: u32,
    /// Done; becomes pending again if the output is lost while it is needed.
    pub done: u32,
}

/// Number of reduces of a job by state; the sum is the number of reduces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct ReduceCounts {
    /// No worker gathers its segments yet.
    pub pending: u32,
    /// A home gathers its segments.
    pub gathering: u32,
    /// All segments are at its home; it waits for a slot.
    pub ready: u32,
    /// An attempt holds a slot.
    pub running: u32,
    /// An attempt left its slot and keeps its state.
    pub suspended: u32,
    /// Its part is published.
    pub done: u32,
}

/// Snapshot of a job.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct JobSnapshot {
    pub id: JobId,
    /// State of the job.
    pub state: CoreJobState,
    pub maps: MapCounts,
    pub reduces: ReduceCounts,
    /// Segments at their homes, of `maps * reduces`.
    pub segments_fetched: u64,
    pub weight: f64,
    /// Pool of the job; `None` is a pool of its own.
    pub pool: Option<u32>,
    /// Time of arrival.
    pub arrival: Time,
    /// Time when its first attempt was launched; `None` if none was.
    pub first_launch: Option<Time>,
    /// Last time when all maps became done; `None` if they never were.
    pub maps_done: Option<Time>,
    /// Time when it ended; `None` while it is live.
    pub ended: Option<Time>,
    pub attempts: AttemptTotals,
    /// Bytes of map outputs, repeated maps included.
    pub map_output: Bytes,
    /// Bytes of parts written by reduces.
    pub reduce_output: Bytes,
}

/// Totals of a job's attempts so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct AttemptTotals {
    /// Number of attempts launched.
    pub launched: u32,
    /// Number of failed attempts, by [`Failure::index`]; lost ones included.
    pub failed: [u32; Failure::ALL.len()],
    /// Number of attempts launched, by [`Locality`] in the order of its declaration.
    pub localities: [u32; 4],
    /// Number of suspensions.
    pub suspended: u32,
    /// Speculative attempts.
    pub backups: BackupTotals,
}

impl JobSnapshot {
    /// Number of attempts that were lost with their worker, without those that caused the loss.
    #[cfg(test)]
    pub(crate) fn attempts_lost(&self) -> u32 {
        self.attempts.failed[Failure::Lost.index()]
    }

    /// Number of attempts launched with this locality.
    #[must_use]
    pub fn launched(&self, locality: Locality) -> u32 {
        self.attempts.localities[locality as usize]
    }

    pub(crate) fn from_job(job: &Job, end: Option<(Time, Outcome)>) -> Self {
        let reduces = |state: ReduceState| job.counts.reduces[state as usize];
        let pending = job.homes.unassigned.len() as u32;
        let started = job.tally.first_launch.is_some();
        JobSnapshot {
            id: job.id,
            state: match end {
                Some((_, outcome)) => CoreJobState::Ended(outcome),
                None if started => CoreJobState::Running,
                None => CoreJobState::Waiting,
            },
            maps: MapCounts {
                pending: job.counts.maps_waiting + job.counts.maps_queued,
                running: job.counts.maps_running - job.counts.maps_queued,
                done: job.counts.maps_done,
            },
            reduces: ReduceCounts {
                pending,
                gathering: reduces(ReduceState::Gathering) - pending,
                ready: reduces(ReduceState::Ready),
                running: reduces(ReduceState::Running),
                suspended: reduces(ReduceState::Suspended),
                done: reduces(ReduceState::Done),
            },
            segments_fetched: job.counts.segments_fetched,
            weight: job.spec.weight,
            pool: job.spec.pool,
            arrival: job.arrival,
            first_launch: job.tally.first_launch,
            maps_done: job.tally.maps_done_at,
            ended: end.map(|(time, _)| time),
            attempts: AttemptTotals {
                launched: job.tally.launched,
                failed: job.tally.failed,
                localities: job.tally.localities,
                suspended: job.tally.suspended,
                backups: job.tally.backups,
            },
            map_output: job.tally.map_bytes,
            reduce_output: job.tally.reduce_bytes,
        }
    }
}

/// Snapshot of a live worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct WorkerSnapshot {
    pub id: WorkerId,
    /// Machine of the worker.
    pub host: HostId,
    /// Attempts that it can run at once.
    pub slots: u32,
    /// Attempts that hold a slot there.
    pub running: u32,
    /// Attempts queued behind those.
    pub queued: u32,
    /// Attempts that are suspended there.
    pub suspended: u32,
    /// Live jobs that the worker runs, keeps or gathers something of.
    pub jobs: u32,
    /// Partitions that it gathers or reduces.
    pub homes: u32,
    /// Map outputs that it keeps.
    pub outputs: u32,
}

impl WorkerSnapshot {
    pub(crate) fn from_worker(worker: &Worker, ledger: &Ledger) -> Self {
        let jobs = || worker.marks.jobs.iter().filter_map(|job| ledger.jobs.get(job));
        WorkerSnapshot {
            id: worker.id,
            host: worker.host,
            slots: worker.slots.total(),
            running: worker.running.len() as u32,
            queued: worker.queued(),
            suspended: worker.suspended.len() as u32,
            jobs: worker.marks.jobs.len() as u32,
            homes: jobs().map(|job| job.homes_at(worker.id)).sum(),
            outputs: jobs()
                .map(|job| job.outputs.kept.get(&worker.id).map_or(0, |maps| maps.len() as u32))
                .sum(),
        }
    }
}

/// Snapshot of an attempt that holds a slot, is queued behind one, or is suspended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttemptSnapshot {
    /// Worker of the attempt.
    pub worker: WorkerId,
    /// Time when it got its first slot or, while it is queued, when it was queued.
    pub started: Time,
    /// True if it waits for a slot of its worker.
    pub queued: bool,
    /// True if it left its slot and keeps its state.
    pub suspended: bool,
    /// True if it was ordered to leave its slot and has not done so yet.
    pub leaving: bool,
    /// True if it is a map that was ordered to divide its split and has not responded.
    pub dividing: bool,
    /// True if it was killed.
    pub dying: bool,
    /// Time of the worker's last report of how much it had read.
    pub said: Option<Time>,
}

impl AttemptSnapshot {
    pub(crate) fn from_attempt(attempt: &Attempt) -> Self {
        AttemptSnapshot {
            worker: attempt.worker,
            started: attempt.started,
            queued: attempt.queued,
            suspended: attempt.hold.is_parked(),
            leaving: attempt.hold == SlotHold::Leaving,
            dividing: matches!(attempt.division, DivisionState::Ordered(_)),
            dying: attempt.dying,
            said: attempt.read.map(|(at, _)| at),
        }
    }
}
