//! Measurements from a journal: workers, jobs, times of tasks, overheads.
//!
//! Slots are not in a journal, but their holders follow from it. An attempt that is launched where a slot
//! is free starts at once. Any other starts when an earlier attempt there ends.

mod attempts;
mod book;
mod live;
mod meter;
mod orders;

use super::traffic::Traffic;
use super::{Overheads, RunMeasurements, WorkerShape};
use book::JobBook;
use gristmill_runtime::journal::{JournalHeader, JournalReadError, JournalReader, JournalRecord};
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::job::JobSpec;
use gristmill_scheduler::units::{Bytes, Time};
use gristmill_worker::settings::Shuffle;
use live::LiveWorker;
use meter::{FETCH, RunMeter};
use orders::{Announce, JobEnded, JournalOrder, LaunchOrder, MapAdded, Retract};
use std::collections::{BTreeMap, VecDeque};
use std::io::BufRead;
use std::path::Path;

/// Reason why a journal cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The journal cannot be read.
    #[error("the journal cannot be read")]
    Read {
        /// Cause.
        #[source]
        source: JournalReadError,
    },
    /// An order in the journal is unknown.
    #[error("line {line} holds an order that is none")]
    Order {
        /// Line number.
        line: u64,
        /// Cause.
        #[source]
        source: serde_json::Error,
    },
    /// The journal contains no job.
    #[error("no job arrives in the journal")]
    NoJobs,
}

impl RunMeasurements {
    /// Reads a journal file of workers with this transfer mode to its end.
    ///
    /// # Errors
    /// The file is not a journal, or no job arrives in it.
    pub fn read(path: &Path, shuffle: Shuffle) -> Result<Self, MeasureError> {
        let mut journal = JournalReader::open(path).map_err(|source| MeasureError::Read { source })?;
        Self::from_journal(&mut journal, shuffle)
    }

    /// Reads a journal to its end. It may contain failed attempts, maps that ran again, suspended
    /// reduces, and workers that join and leave.
    ///
    /// # Errors
    /// The input is not a journal, or no job arrives in it.
    pub fn from_journal<R: BufRead>(
        journal: &mut JournalReader<R>,
        shuffle: Shuffle,
    ) -> Result<Self, MeasureError> {
        let mut meter = RunMeter::new(journal.header(), shuffle);
        while let Some(record) = journal.record().map_err(|source| MeasureError::Read { source })? {
            let line = journal.line();
            meter.read_record(record).map_err(|source| MeasureError::Order { line, source })?;
        }
        meter.finish()
    }
}

impl RunMeter {
    fn new(header: &JournalHeader, shuffle: Shuffle) -> Self {
        let result = RunMeasurements {
            policy: header.policy.clone(),
            placement: header.placement.clone(),
            estimator: header.estimator.clone(),
            memory: header.memory.clone(),
            core: header.core.clone(),
            shuffle,
            ..RunMeasurements::default()
        };
        Self {
            result,
            now: Time::ZERO,
            told: BTreeMap::new(),
            stations: BTreeMap::new(),
            ready: Time::ZERO,
            names: BTreeMap::new(),
            jobs: BTreeMap::new(),
            attempts: BTreeMap::new(),
            made: BTreeMap::new(),
            traffic: Traffic::default(),
            samples: [const { Vec::new() }; 4],
            network: header.core.network,
        }
    }

    fn read_record(&mut self, record: JournalRecord) -> Result<(), serde_json::Error> {
        match record {
            JournalRecord::Instant { at, facts, orders, .. } => {
                self.traffic.pass(at.since(self.now));
                self.now = at;
                facts.into_iter().for_each(|fact| self.fact(fact));
                orders
                    .into_iter()
                    .try_for_each(|order| serde_json::from_value(order).map(|order| self.order(order)))?;
            }
            JournalRecord::DecideBy { policy, placement, .. } if self.jobs.is_empty() => {
                self.result.policy = policy;
                self.result.placement = placement;
            }
            JournalRecord::DecideBy { .. } => self.result.policy_changed = true,
            JournalRecord::Job { job, name, .. } => drop(self.names.insert(job, name)),
            JournalRecord::Worker { worker, speed, nic_bytes_per_second } => {
                self.told.insert(worker, (speed, nic_bytes_per_second));
            }
            JournalRecord::Memory { .. } | JournalRecord::Ledger { .. } | JournalRecord::End => {}
        }
        Ok(())
    }

    fn fact(&mut self, fact: Event) {
        match fact {
            Event::WorkerJoined { worker, host, slots } => {
                let (speed, nic_bytes_per_second) = self.told.get(&worker).copied().unwrap_or((1.0, None));
                self.join(WorkerShape { worker, host, slots, speed, nic_bytes_per_second });
            }
            Event::WorkerLost { worker, .. } => self.lose(worker),
            Event::JobArrived { job, spec } => self.arrive(job, &spec),
            Event::MapFinished { attempt, output_bytes, took, .. } => {
                self.finished(attempt, output_bytes, took);
            }
            Event::ReduceFinished { attempt, took, .. } => self.finished(attempt, Bytes::ZERO, took),
            Event::AttemptSuspended { attempt } => self.suspended(attempt),
            Event::AttemptFailed { attempt, .. } => drop(self.leave(attempt)),
            Event::AttemptReturned { attempt } => drop(self.leave(attempt)),
            Event::Fetched { job, home, map, partitions } => self.fetched(job, home, map, partitions.len()),
            Event::FetchFailed { home, map, .. } => self.not_wanted(map, home),
            Event::NetworkRate { per_worker } => self.network = per_worker,
            Event::WorkerSilent { .. }
            | Event::MapDivided { .. }
            | Event::ReduceDivided { .. }
            | Event::DivisionRefused { .. }
            | Event::WorkerDraining { .. }
            | Event::WorkerDiskRoom { .. }
            | Event::MemoryRanOut { .. }
            | Event::FetchRates { .. }
            | Event::SuspensionRefused { .. }
            | Event::JobCancelled { .. }
            | Event::JobFailed { .. }
            | Event::CommitRequested { .. }
            | Event::AttemptProgressed { .. }
            | Event::Tick => {}
        }
    }

    fn order(&mut self, order: JournalOrder) {
        let JournalOrder { launch, announce, retract, map_added, job_ended } = order;
        if let Some(LaunchOrder { attempt, worker }) = launch {
            self.launch(attempt, worker);
        }
        let passes = |order: &Announce| order.from != order.to || self.result.shuffle == Shuffle::Http;
        if let Some(Announce { map, from, to }) = announce.filter(passes) {
            self.traffic.announced(self.now, map, from, to);
        }
        if let Some(Retract { map, to }) = retract {
            self.not_wanted(map, to);
        }
        if let Some(MapAdded { attempt }) = map_added
            && let Some(book) = self.jobs.get_mut(&attempt.task.job)
        {
            book.map_added();
        }
        if let Some(JobEnded { job, outcome }) = job_ended {
            self.traffic.dropped(|of, _, _| of == job);
            self.made.retain(|map, _| map.task.job != job);
            if let Some(book) = self.jobs.get_mut(&job) {
                book.ended = Some(self.now);
                book.measured.succeeded = outcome == "succeeded";
            }
        }
    }

    fn join(&mut self, shape: WorkerShape) {
        self.stations.insert(shape.worker, LiveWorker { shape, running: [0; 2], queue: VecDeque::new() });
        if self.result.workers.len() < self.stations.len() {
            self.result.workers = self.stations.values().map(|station| station.shape).collect();
            self.ready = self.now;
        }
    }

    fn lose(&mut self, worker: WorkerId) {
        self.stations.remove(&worker);
        self.attempts.retain(|_, attempt| attempt.worker != worker);
        self.traffic.dropped(|_, to, from| to == worker || from == worker);
    }

    fn arrive(&mut self, job: JobId, spec: &JobSpec) {
        let name = spec.name.clone().or_else(|| self.names.remove(&job)).unwrap_or_default();
        self.jobs.insert(job, JobBook::new(job, name, self.now, spec));
    }

    fn not_wanted(&mut self, map: AttemptId, home: WorkerId) {
        if let Some(&from) = self.made.get(&map) {
            self.traffic.arrived(map, from, home, 0.0);
        }
    }

    fn fetched(&mut self, job: JobId, home: WorkerId, map: AttemptId, partitions: usize) {
        let Some(book) = self.jobs.get_mut(&job).filter(|book| book.ended.is_none()) else { return };
        book.fetched = Some(self.now);
        let part = partitions as f64 / book.reduce_seconds.len().max(1) as f64;
        let bytes = part * book.measured.output_bytes.get(map.task.index as usize).copied().unwrap_or(0.0);
        let Some(&from) = self.made.get(&map) else { return };
        let alone = self.traffic.arrived(map, from, home, bytes);
        let paced =
            |end: WorkerId| self.stations.get(&end).is_some_and(|end| self.rate(&end.shape).is_some());
        if let Some(announced) = alone
            && !paced(home)
            && !paced(from)
        {
            self.samples[FETCH].push(self.now.since(announced).seconds());
        }
    }

    /// Returns the rate limit of the shuffle of a worker, in bytes per second.
    fn rate(&self, shape: &WorkerShape) -> Option<u64> {
        match self.told.contains_key(&shape.worker) {
            true => shape.nic_bytes_per_second,
            false => self.network.map(|rate| rate.0),
        }
    }

    fn finish(mut self) -> Result<RunMeasurements, MeasureError> {
        let first = self.jobs.values().map(|book| book.arrived).min().ok_or(MeasureError::NoJobs)?;
        let seconds = |time: Time| time.seconds() - first.seconds();
        let mut result = std::mem::take(&mut self.result);
        for shape in &mut result.workers {
            shape.nic_bytes_per_second = self.rate(shape);
        }
        result.carried = self.traffic.carried();
        result.workers_ready = seconds(self.ready);
        let [map, reduce, fetch, suspension] = self.samples.each_mut().map(|samples| median(samples));
        result.overheads = Overheads { map, reduce, fetch, suspension };
        result.jobs = self.jobs.into_values().map(|book| book.close(seconds)).collect();
        Ok(result)
    }
}

/// Returns the median, at least 0; 0 without samples.
fn median(samples: &mut [f64]) -> f64 {
    if samples.is_empty() {
        return 0.0;
    }
    let middle = samples.len() / 2;
    let (_, median, _) = samples.select_nth_unstable_by(middle, f64::total_cmp);
    median.max(0.0)
}
