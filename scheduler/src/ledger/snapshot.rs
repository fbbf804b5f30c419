//! Copies of the state of the ledger, for the command line, the API and the dashboard.

use crate::command::Outcome;
use crate::event::Failure;
use crate::ids::{HostId, JobId, WorkerId};
use crate::job::Locality;
use crate::ledger::attempts::Attempt;
use crate::ledger::suspensions::SlotHold;
use crate::ledger::tasks::ReduceState;
use crate::ledger::{Job, Ledger, Worker};
use crate::units::{Bytes, Span, Time};

/// Where a job stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum JobState {
    /// Nothing of it was launched yet.
    Waiting,
    /// It was launched and is not over.
    Running,
    /// It is over.
    Ended(Outcome),
}

/// Maps of a job by state; their sum is the number of maps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct MapCounts {
    /// Not running and not done (any more); some may be queued on a worker.
    pub pending: u32,
    /// An attempt holds a slot.
    pub running: u32,
    /// Done; may become pending again if the output is lost.
    pub done: u32,
}

/// Reduces of a job by state; their sum is the number of reduces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct ReduceCounts {
    /// Nobody gathers its segments yet.
    pub pending: u32,
    /// A home gathers its segments.
    pub gathering: u32,
    /// All segments are there; it waits for a slot.
    pub ready: u32,
    /// An attempt holds a slot.
    pub running: u32,
    /// An attempt left its slot and keeps what it has.
    pub suspended: u32,
    /// Its part is published.
    pub done: u32,
}

/// A job at one moment.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct JobSnapshot {
    pub id: JobId,
    /// Where it stands.
    pub state: JobState,
    pub maps: MapCounts,
    pub reduces: ReduceCounts,
    /// Segments at their homes, of `maps * reduces`.
    pub segments_fetched: u64,
    pub weight: f64,
    /// The pool it shares; `None` is one of its own.
    pub pool: Option<u32>,
    /// When it arrived.
    pub arrival: Time,
    /// When its first attempt was launched; `None` if none was.
    pub first_launch: Option<Time>,
    /// When all maps were done, the last time; `None` if they never were.
    pub maps_done: Option<Time>,
    /// When it ended; `None` while it is live.
    pub ended: Option<Time>,
    pub attempts: AttemptTotals,
    /// Bytes of map outputs, repeated maps included.
    pub map_output: Bytes,
    /// Bytes of parts written by reduces.
    pub reduce_output: Bytes,
}

/// What became of a job's attempts so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct AttemptTotals {
    /// How many were launched.
    pub launched: u32,
    /// How many failed, by [`Failure::index`]; lost ones included.
    pub failed: [u32; Failure::ALL.len()],
    /// How many were launched, by [`Locality`] in the order of its declaration.
    pub localities: [u32; 4],
    /// Times that one was suspended.
    pub suspended: u32,
    /// Times that a suspended one was handed over to go on elsewhere.
    pub handed_over: u32,
    /// Second attempts of slow tasks.
    pub backups: BackupTotals,
}

/// What became of a job's second attempts of slow tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct BackupTotals {
    /// How many were launched.
    pub launched: u32,
    /// How many ended well before the first attempt of their task did.
    pub won: u32,
    /// How long those that are over have held slots beside the first attempts.
    pub slot_time: Span,
}

impl JobSnapshot {
    /// Attempts that were lost with their worker, culprits not included.
    #[must_use]
    pub fn attempts_lost(&self) -> u32 {
        self.attempts.failed[Failure::Lost.index()]
    }

    /// Attempts launched with this locality.
    #[must_use]
    pub fn launched(&self, locality: Locality) -> u32 {
        self.attempts.localities[locality as usize]
    }

    pub(crate) fn of(job: &Job, end: Option<(Time, Outcome)>) -> Self {
        let reduces = |state: ReduceState| job.counts.reduces[state as usize];
        let pending = job.homes.unassigned.len() as u32;
        let started = job.tally.first_launch.is_some();
        JobSnapshot {
            id: job.id,
            state: match end {
                Some((_, outcome)) => JobState::Ended(outcome),
                None if started => JobState::Running,
                None => JobState::Waiting,
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
                handed_over: job.tally.handed_over,
                backups: BackupTotals {
                    launched: job.tally.backups.launched,
                    won: job.tally.backups.won,
                    slot_time: job.tally.backups.slot_time,
                },
            },
            map_output: job.tally.map_bytes,
            reduce_output: job.tally.reduce_bytes,
        }
    }
}

/// A live worker at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct WorkerSnapshot {
    pub id: WorkerId,
    /// Its machine.
    pub host: HostId,
    /// Attempts that it can run at once.
    pub slots: u32,
    /// Attempts that hold a slot there.
    pub running: u32,
    /// Attempts queued behind those.
    pub queued: u32,
    /// Attempts that are suspended there.
    pub suspended: u32,
    /// Live jobs that it has something of.
    pub jobs: u32,
    /// Partitions that it gathers or reduces.
    pub homes: u32,
    /// Map outputs that it keeps.
    pub outputs: u32,
}

impl WorkerSnapshot {
    pub(crate) fn of(worker: &Worker, ledger: &Ledger) -> Self {
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

/// An attempt that holds a slot, is queued behind one, or is suspended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttemptSnapshot {
    /// Where it runs.
    pub worker: WorkerId,
    /// When it got its first slot; while it is queued, when it was queued.
    pub started: Time,
    /// It waits for a slot of its worker.
    pub queued: bool,
    /// It left its slot and keeps what it has.
    pub suspended: bool,
    /// It was ordered to leave its slot, and has not yet.
    pub leaving: bool,
    /// It is suspended, and was ordered to hand over.
    pub handing_over: bool,
    /// It was killed.
    pub dying: bool,
    /// When its worker said last how much it had read.
    pub said: Option<Time>,
}

impl AttemptSnapshot {
    pub(crate) fn of(attempt: &Attempt) -> Self {
        AttemptSnapshot {
            worker: attempt.worker,
            started: attempt.started,
            queued: attempt.queued,
            suspended: attempt.hold.is_parked(),
            leaving: attempt.hold == SlotHold::Leaving,
            handing_over: attempt.hold == SlotHold::HandingOver,
            dying: attempt.dying,
            said: attempt.read.map(|(at, _)| at),
        }
    }
}
