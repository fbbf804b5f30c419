//! Executes a plan on the ledger: one slot at a time, with the worker and task chosen by the placement.
//!
//! The placement's choice is checked. A choice that breaks the ledger is a bug of the placement and stops the program.

use crate::command::{Command, LaunchReason};
use crate::core::{Core, SHUFFLE_ORDER_MAX, ShuffleOrder};
use crate::ids::{AttemptId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::Locality;
use crate::ledger::tasks::{MapState, ReduceState};
use crate::ledger::{Job, Ledger, Worker, Workers, places, quotas};
use crate::placement::{Choice, Offer, Placement};
use crate::plan::{Floor, Line, Reason, Share};
use crate::station::PerStation;
use crate::view::{Handle, Station};

/// Execution of grants in the live master.
pub(super) struct Executor<'a> {
    pub(super) ledger: &'a mut Ledger,
    pub(super) placement: &'a mut dyn Placement,
    pub(super) handles: &'a [Option<JobId>],
    pub(super) shuffle: &'a mut ShuffleOrder,
    pub(super) commands: &'a mut Vec<Command>,
    pub(super) lines_drawn: PerStation<bool>,
    /// True if no job that could use a slot was turned away in this plan. Only then may places behind running attempts
    /// be given. Otherwise other jobs would always get them, and no slot would become free for the first job.
    pub(super) ahead_open: bool,
}

impl Executor<'_> {
    /// Lines are in force only for the plan that sets them.
    pub(super) fn end(self) {
        for (lines, drawn) in self.ledger.lines.iter_mut().zip(self.lines_drawn) {
            if !drawn {
                lines.split(&[]);
            }
        }
    }

    fn job(&self, handle: Handle) -> JobId {
        self.handles
            .get(handle.index())
            .copied()
            .flatten()
            .unwrap_or_else(|| panic!("granted to {handle:?}, which is no live job"))
    }

    /// Chooses the next task of this kind and the worker where it starts or, for a quick map, is queued.
    fn choose(&mut self, id: JobId, kind: TaskKind, line: Option<Line>) -> Option<Choice> {
        let job = &self.ledger.jobs[&id];
        let waits = match kind {
            TaskKind::Map => 0 < job.queue.startable(),
            TaskKind::Reduce => {
                !job.reduce_queue.ready.at.is_empty() || !job.reduce_queue.parked.at.is_empty()
            }
        };
        if !waits {
            return None;
        }
        let offer = Offer { job, kind, workers: &self.ledger.workers };
        let now = (0 < self.ledger.workers.free_of(kind)).then(|| self.placement.choose(offer)).flatten();
        if let Some(choice) = now {
            let free = self.ledger.workers.get(choice.worker).is_some_and(|worker| 0 < worker.free(kind));
            assert!(free, "{} chose {}, which has no free slot", self.placement.name(), choice.worker);
            return Some(choice);
        }
        let depth = job.attempts.pace.depth(&self.ledger.config.ahead);
        // A line is shared exactly over time, which needs late decisions.
        let may = self.ahead_open && kind == TaskKind::Map && line.is_none() && 0 < depth;
        // Retries come first, and they are not queued.
        let choice =
            (may && job.queue.retrying.is_empty()).then(|| self.placement.choose_ahead(offer, depth));
        let choice = choice.flatten().filter(|choice| {
            let task = TaskId { job: id, kind, index: choice.index };
            job.is_quick(task, &self.ledger.config.ahead)
        });
        self.ahead_open = choice.is_some();
        if let Some(Choice { worker, .. }) = choice {
            let place = self.ledger.workers.get(worker).and_then(Worker::level);
            let open = place.is_some_and(|level| level < Workers::level_of(depth));
            assert!(open, "{} queued on {worker}, which has no place", self.placement.name());
        }
        choice
    }

    /// Resumes a suspended attempt of the job, before any new attempt starts.
    fn resume(&mut self, id: JobId, line: Option<Line>, grant: Reason) -> bool {
        let Some(attempt) = resumable(self.ledger, &self.ledger.jobs[&id]) else { return false };
        let worker = self.ledger.resume(attempt, line);
        // It continues where its segments are.
        let reason = LaunchReason { grant, locality: Locality::Local };
        self.commands.push(Command::Resume { attempt, worker, reason });
        true
    }

    fn check(&self, task: TaskId, choice: &Choice) {
        let placement = self.placement.name();
        let worker = choice.worker;
        let job = &self.ledger.jobs[&task.job];
        match task.kind {
            TaskKind::Map => {
                let waits = job.maps[task.index as usize].state == MapState::Waiting;
                assert!(waits, "{placement} chose {task}, which does not wait");
                let spec = job.map_spec(task.index);
                let assigned = job.maps[task.index as usize].assigned;
                let allowed = assigned.is_none_or(|to| to == worker);
                let allowed =
                    allowed && (!spec.pinned || places(spec, &self.ledger.workers).contains(&worker));
                assert!(allowed, "{placement} chose {worker} for {task}, which is bound elsewhere");
            }
            TaskKind::Reduce => {
                let reduce = &job.reduces[task.index as usize];
                let ready = reduce.state == ReduceState::Ready && reduce.home == Some(worker);
                assert!(ready, "{placement} chose {worker} for {task}, which is not ready there");
            }
        }
    }
}

impl Floor for Executor<'_> {
    fn unified(&self) -> bool {
        !self.ledger.workers.pooled
    }

    fn remaining(&self, station: Station) -> f64 {
        let workers = &self.ledger.workers;
        match station {
            // A place behind running attempts counts as free, so that policies continue to it.
            Station::Map if workers.free_of(TaskKind::Map) == 0 && self.ahead_open => {
                let depth = self.ledger.config.ahead.maps_max;
                f64::from(u8::from(workers.behind(depth).next().is_some()))
            }
            Station::Map => f64::from(workers.startable(TaskKind::Map)),
            Station::Reduce => f64::from(workers.startable(TaskKind::Reduce)),
            Station::Shuffle => (SHUFFLE_ORDER_MAX - self.shuffle.grants.len()) as f64,
        }
    }

    fn held(&self, job: Handle, station: Station) -> f64 {
        let job = &self.ledger.jobs[&self.job(job)];
        f64::from(match station {
            Station::Map => job.counts.maps_running,
            Station::Shuffle => 0,
            Station::Reduce => job.counts.reduces[ReduceState::Running as usize],
        })
    }

    fn start(&mut self, job: Handle, station: Station, line: Option<Line>, grant: Reason) -> bool {
        let id = self.job(job);
        let kind = match station {
            Station::Map => TaskKind::Map,
            Station::Reduce => TaskKind::Reduce,
            Station::Shuffle => return false,
        };
        // The quota overrides the policy's grant, and no other job waits because of it.
        if !quotas::has_room(self.ledger, &self.ledger.jobs[&id]) {
            return false;
        }
        if kind == TaskKind::Reduce && self.resume(id, line, grant) {
            return true;
        }
        let Some(choice) = self.choose(id, kind, line) else { return false };
        let task = TaskId { job: id, kind, index: choice.index };
        self.check(task, &choice);
        let attempt = self.ledger.launch(task, choice.worker, choice.locality, line);
        let reason = LaunchReason { grant, locality: choice.locality };
        self.commands.push(Command::Launch { attempt, worker: choice.worker, reason });
        true
    }

    fn check(&self, job: Handle) {
        self.job(job);
    }

    fn lines(&mut self, station: Station, fractions: &[f64]) {
        self.lines_drawn[station] = true;
        if station == Station::Shuffle {
            self.shuffle.lines = fractions.to_vec();
        } else {
            self.ledger.lines[station].split(fractions);
        }
    }

    fn line_open(&self, station: Station, line: Line) -> bool {
        self.ledger.lines[station].open(line, Core::capacity(self.ledger)[station])
    }

    fn only(&mut self, station: Station) {
        self.shuffle.only |= station == Station::Shuffle;
    }

    fn lane(&mut self, job: Handle, share: Share) -> Option<bool> {
        if self.shuffle.grants.len() < SHUFFLE_ORDER_MAX {
            self.shuffle.grants.push((self.job(job), share));
        }
        Some(self.shuffle.grants.len() < SHUFFLE_ORDER_MAX)
    }
}

/// Returns the first suspended attempt of the job with a free slot at its worker, on the emptiest worker.
fn resumable(ledger: &Ledger, job: &Job) -> Option<AttemptId> {
    let free = |&(&worker, _): &(&WorkerId, _)| {
        ledger.workers.get(worker).map_or(0, |worker| worker.free(TaskKind::Reduce))
    };
    let homes = job.reduce_queue.parked.at.iter().filter(|home| 0 < free(home));
    let (_, line) = homes.min_by_key(|home| (std::cmp::Reverse(free(home)), *home.0))?;
    let index = line.first().copied()?;
    Some(job.current_reduce(index))
}
