//! Keeps the rows that policies see, and notifies the policy of changes.

use crate::core::Core;
use crate::estimate::{Facts, ReduceFacts, Sizes};
use crate::ids::JobId;
use crate::ledger::quotas;
use crate::ledger::tasks::ReduceState;
use crate::ledger::workers::KINDS;
use crate::ledger::{Job, Ledger, ReduceQueue, RunChange};
use crate::station::{PerStation, Station};
use crate::units::Time;
use crate::view::{Change, Handle, Row, View};

/// Workers with bound tasks of more jobs than this always count as idle in the rows. Updating all those jobs whenever a
/// slot is taken costs more than visiting some that cannot use it.
const FLIPS_MAX: usize = 16;

impl Core {
    /// Recounts the rows of changed jobs and notifies the policy: first of jobs that left, then of new jobs, then of
    /// other changes, then of the tick. A handle is reused only after the policy saw its job leave.
    pub(super) fn observe(&mut self, ticked: bool) {
        self.flip_workers();
        let ledger = &mut self.ledger;
        ledger.owners.spread(&ledger.jobs, &mut ledger.unseen.dirty);
        for job in std::mem::take(&mut self.ledger.unseen.left) {
            self.part_with(&job);
        }
        for id in std::mem::take(&mut self.ledger.unseen.arrived) {
            self.ledger.unseen.dirty.remove(&id);
            let handle = self.take_handle(id);
            self.notify(&[handle], Change::Arrived(handle));
        }
        let mut touched = Vec::with_capacity(self.ledger.unseen.dirty.len());
        for id in std::mem::take(&mut self.ledger.unseen.dirty) {
            touched.push(self.count(id));
        }
        if !touched.is_empty() {
            self.notify(&touched, Change::Progress);
        }
        if ticked {
            self.notify(&[], Change::Tick);
        }
    }

    /// Shows all live jobs to a new policy, with rows counted as it sees them.
    pub(super) fn introduce_all(&mut self) {
        self.ledger.workers.moved = self.ledger.workers.live.keys().copied().collect();
        self.flip_workers();
        for id in self.ledger.jobs.keys().copied().collect::<Vec<_>>() {
            if self.ledger.jobs[&id].handle.is_some() {
                let handle = self.count(id);
                self.notify(&[handle], Change::Arrived(handle));
            }
        }
    }

    /// Notifies the policy.
    fn notify(&mut self, touched: &[Handle], change: Change) {
        self.policy.observe(view_of(&self.ledger, (&self.rows, &self.runs), touched), change);
    }

    /// Ends a job: the estimator may learn from it, and the policy sees it leave, with its final sizes.
    fn part_with(&mut self, job: &Job) {
        let handle = job.handle.expect("only jobs that the policy knows leave");
        let row = &mut self.rows[handle.index()];
        (row.live, row.abandoned) = (false, !job.complete());
        self.handles[handle.index()] = None;
        self.runs[handle.index()].clear();
        if let Some(estimator) = &mut self.estimator {
            let facts = facts(job, &self.ledger);
            row.whole = estimator.sizes(&facts).whole;
            estimator.learn(&facts);
        }
        self.notify(&[], Change::Left(handle));
        self.spare.push(handle.0);
    }

    /// Recounts the row of a live job.
    fn count(&mut self, id: JobId) -> Handle {
        let job = self.ledger.jobs.get_mut(&id).expect("jobs that ended are not dirty");
        let handle = job.handle.expect("jobs that arrived have a handle by now");
        let runs = &mut self.runs[handle.index()];
        for change in job.attempts.run_changes.drain(..) {
            match change {
                RunChange::Started(time) => runs.push(time),
                RunChange::Ended(place) => {
                    runs.swap_remove(place as usize);
                }
            }
        }
        let job = &self.ledger.jobs[&id];
        let row = &mut self.rows[handle.index()];
        *row = row_of(job, row.seq, self.ledger.preempts, quotas::room(&self.ledger, job));
        if let Some(estimator) = &mut self.estimator {
            let facts = facts(job, &self.ledger);
            row.known = estimator.knows(&facts);
            let sizes = estimator.sizes(&facts);
            row.whole = sizes.whole;
            row.left = sizes.left;
            row.feed = if 0.0 < sizes.whole[Station::Map] {
                sizes.whole[Station::Shuffle] / sizes.whole[Station::Map]
            } else {
                0.0
            };
        }
        handle
    }

    /// Updates jobs bound to workers that became idle or busy.
    fn flip_workers(&mut self) {
        let ledger = &mut self.ledger;
        for id in std::mem::take(&mut ledger.workers.moved) {
            let Some(worker) = ledger.workers.live.get_mut(&id) else { continue };
            let many = FLIPS_MAX < worker.marks.bound.len();
            for (place, &kind) in KINDS.iter().enumerate() {
                let idle = 0 < worker.free(kind) || ledger.preempts && 0 < worker.yielding(kind);
                let pool = worker.pool(kind);
                if pool != place || worker.shown_idle[pool] == idle || many && !idle {
                    continue;
                }
                worker.shown_idle[pool] = idle;
                let jobs = &mut ledger.jobs;
                let dirty = &mut ledger.unseen.dirty;
                let unified = worker.slots.unified();
                worker.marks.bound.retain(|job| {
                    let Some(record) = jobs.get_mut(job) else { return false };
                    let mut any = false;
                    let Job { reduce_queue: ReduceQueue { ready, parked, .. }, queue, .. } = record;
                    for bound in [ready, parked, &mut queue.pinned, &mut queue.assigned] {
                        any |= bound.at.contains_key(&id);
                        if unified || bound.kind == kind {
                            bound.flip(id, idle);
                        }
                    }
                    if any {
                        dirty.insert(*job);
                    }
                    any
                });
            }
        }
    }

    fn take_handle(&mut self, id: JobId) -> Handle {
        let handle = match self.spare.pop() {
            Some(spare) => Handle(spare),
            None => {
                self.rows.push(Row::default());
                self.runs.push(Vec::new());
                self.handles.push(None);
                Handle((self.rows.len() - 1) as u32)
            }
        };
        let job = self.ledger.jobs.get_mut(&id).expect("jobs that ended did not arrive");
        job.handle = Some(handle);
        self.handles[handle.index()] = Some(id);
        self.rows[handle.index()].seq = self.next_seq;
        self.next_seq += 1;
        self.count(id)
    }
}

/// Builds the policies' view of a ledger and the rows of its jobs.
pub(super) fn view_of<'a>(
    ledger: &Ledger,
    (rows, runs): (&'a [Row], &'a [Vec<Time>]),
    touched: &'a [Handle],
) -> View<'a> {
    let (now, cap, unified) = (ledger.now, Core::capacity(ledger), !ledger.workers.pooled);
    View { now, rows, touched, cap, unified, runs }
}

/// Builds the estimators' view of a job.
pub(super) fn facts<'a>(job: &'a Job, ledger: &Ledger) -> Facts<'a> {
    let reduces = job.reduces.len() as u32;
    let made = f64::from(job.counts.maps_done) * f64::from(reduces);
    let output_bytes = job.work.maps_done.output.0 as f64;
    // The segments of a map are assumed to have equal sizes.
    let fetched = if 0.0 < made { job.counts.segments_fetched as f64 / made } else { 0.0 };
    let network = ledger.inbound().map_or(f64::INFINITY, |rate| rate * ledger.workers.count() as f64);
    Facts {
        name: job.spec.name.as_deref(),
        maps: job.maps.len() as u32,
        maps_done: job.counts.maps_done,
        usual_map: ledger.usual_map.seconds(),
        input_bytes: job.work.input.0 as f64,
        input_bytes_done: job.work.input_done.0 as f64,
        map_time: job.work.maps_done.took.seconds(),
        output_bytes,
        fetched_bytes: output_bytes * fetched.min(1.0),
        reduces: ReduceFacts {
            count: reduces,
            done: job.counts.reduces[ReduceState::Done as usize],
            time: job.tally.reduce_time.seconds(),
        },
        network,
        exact: exact_sizes(job, network),
    }
}

/// Returns the job's work as given by its submitter, minus the finished part.
fn exact_sizes(job: &Job, network: f64) -> Option<Sizes> {
    let exact = job.spec.exact.as_ref()?;
    let segments = job.maps.len() as f64 * job.reduces.len() as f64;
    let shuffle = if 0.0 < segments && 0.0 < network { exact.shuffle_bytes / network } else { 0.0 };
    let lacking = 1.0 - job.counts.segments_fetched as f64 / segments.max(1.0);
    let [maps, reduces] = job.work.exact_whole;
    let [maps_left, reduces_left] = job.work.exact_left;
    Some(Sizes {
        whole: PerStation::new(maps, shuffle, reduces),
        left: PerStation::new(maps_left, shuffle * lacking, reduces_left),
    })
}

/// Builds the policies' view of a job, with its work counted in tasks and segments. Under a preemptive policy, an
/// attempt that can be ordered to leave its slot counts as startable and not as held. The number of startable tasks is limited by the owner's
/// quota.
pub(super) fn row_of(job: &Job, seq: u64, preempts: bool, room: Option<u32>) -> Row {
    let maps = job.maps.len() as f64;
    let reduces = job.reduces.len() as f64;
    let count = |state: ReduceState| job.counts.reduces[state as usize];
    let segments = job.maps.len() as u64 * job.reduces.len() as u64;
    let segments_left = (segments - job.counts.segments_fetched) as f64;
    let has_output = !job.outputs.kept.is_empty();
    let (yielding, maps_yielding) =
        if preempts { (job.counts.yielding, job.counts.maps_yielding) } else { (0, 0) };
    let within = |tasks: u32, given_back: u32| match room {
        Some(room) => f64::from(tasks.min(room + given_back)),
        None => f64::from(tasks),
    };
    Row {
        seq,
        arrival: job.arrival,
        deadline: job.spec.deadline,
        weight: job.spec.weight,
        pool: job.spec.pool,
        pool_weight: job.spec.pool_weight,
        priority: job.spec.priority,
        started: 0 < job.tally.launched,
        live: true,
        abandoned: false,
        known: 0 < job.counts.maps_done,
        whole: PerStation::new(maps, segments as f64, reduces),
        left: PerStation::new(
            maps - f64::from(job.counts.maps_done),
            segments_left,
            reduces - f64::from(count(ReduceState::Done)),
        ),
        can: PerStation::new(
            within(job.queue.startable() + maps_yielding, maps_yielding),
            if has_output { segments_left } else { 0.0 },
            within(job.reduce_queue.ready.startable + job.reduce_queue.parked.startable + yielding, yielding),
        ),
        held: PerStation::new(
            f64::from(job.counts.maps_running - maps_yielding),
            0.0,
            f64::from(count(ReduceState::Running) - yielding),
        ),
        yields: 0 < yielding + maps_yielding,
        pend: PerStation::new(
            job.counts.maps_waiting,
            segments_left.min(f64::from(u32::MAX)) as u32,
            count(ReduceState::Gathering) + count(ReduceState::Ready) + count(ReduceState::Suspended),
        ),
        done: job.counts.maps_done,
        done_time: job.work.maps_done.took.seconds(),
        feed: reduces,
    }
}
