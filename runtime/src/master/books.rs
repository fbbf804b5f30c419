//! What the master remembers beside the core's books: names, frames to workers, reports, logs, the trace.
//!
//! Inputs (frames, requests, lost connections) become facts for the core; the core's commands become frames.
//! Nothing here decides: no branch depends on policy. Not here: sockets and clocks (`master`).

mod deciders;
mod estimates;
mod explain;
mod frames;
mod handed_over;
mod job;
mod journal_writer;
mod lanes;
mod logs;
mod losses;
mod orders;
mod record;
mod submit;

pub use deciders::Deciders;
pub use explain::TaskName;
pub use submit::ENDED_JOBS_MAX;

use super::register::Register;
use super::tokens::list_key;
use super::translate;
use crate::api::{
    BuiltPart, FailureCode, JobFailure, JobState, JobStatus, JobTrace, LogEntry, Submission, WorkerStatus,
};
use crate::journal::{Journal, Record};
use crate::output_dir::{OutputDirectory, Success};
use gristmill_scheduler::command::{Cause, Command, Outcome};
use gristmill_scheduler::core::Core;
use gristmill_scheduler::event::{Event, External};
use gristmill_scheduler::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::{Bytes, Time};
use gristmill_worker::clean;
use gristmill_worker::http::Endpoint;
use gristmill_worker::http::Secret;
use gristmill_worker::protocol::{Heartbeat, Hello, MasterFrame, SLOTS_MAX, SlotCounts, ended_proof};
use job::{Around, Job};
use journal_writer::JournalWriter;
use lanes::Lanes;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

/// Names of hosts that are kept although no worker is on them.
const HOSTS_KEPT_MAX: usize = 1000;

/// A worker's side of the books.
pub struct Worker {
    hello: Hello,
    endpoint: Endpoint,
    frames: UnboundedSender<Vec<u8>>,
    /// Encoded frames that go out when this instant has been dealt with.
    outbox: Vec<u8>,
    knows: BTreeSet<JobId>,
    /// Jobs of which it gathers partitions, or has.
    gathers: BTreeSet<JobId>,
    /// The revision of the order of lanes that it was told last.
    lanes_told: u64,
    /// Attempts launched there that have not ended.
    running: BTreeMap<AttemptId, u64>,
    /// Those of them that are suspended.
    suspended: BTreeSet<AttemptId>,
    /// Those that were told to hand over: user code of theirs runs outside slots.
    handing_over: BTreeSet<AttemptId>,
    heartbeat: Heartbeat,
    joined: Time,
    /// When it was last heard of.
    pub heard: Time,
    /// Worker's clock minus master's, from the ping with the shortest way.
    offset_ns: i64,
    round_trip_ns: u64,
}

/// An output that the master itself has to finish or abandon.
pub struct Closing {
    /// The job, which ends when this is done.
    pub job: JobId,
    /// Its output, `None` if the master does not see it.
    pub output: Option<OutputDirectory>,
    /// What `_SUCCESS` says; `None`: abandon the output.
    pub success: Option<Success>,
    /// Where the parts of the job were built.
    pub built: Vec<BuiltPart>,
    /// The submission of a job whose client died, which may have closed the output before.
    pub left: Option<Box<Submission>>,
    /// Sync to disk.
    pub sync: bool,
}

/// What the books are given at the start.
pub struct Setting {
    /// Identifies the executable.
    pub build: String,
    /// Workers give signs of life so far apart.
    pub heartbeat_ms: u32,
    /// Who decides.
    pub deciders: Deciders,
    /// The pools that there are, with their weights; when empty, every name is a pool.
    pub pools: BTreeMap<String, f64>,
    /// Where facts and orders are written down.
    pub journal: Option<Journal>,
    /// Numbers for jobs, and what became of those of earlier masters.
    pub register: Register,
    /// What the keys of workers' listings are derived from.
    pub list_secret: Secret,
}

/// Why there is nothing to say of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Absence {
    /// An earlier master had it, and only its end is known.
    Past,
    /// It was there, and is not remembered any more.
    Forgotten,
    /// No job has had this number.
    Unknown,
}

/// Everything the master knows.
pub struct Books {
    core: Core,
    deciders: Deciders,
    workers: BTreeMap<WorkerId, Worker>,
    /// Their process ids, which may be the same on several hosts.
    processes: BTreeSet<(u32, WorkerId)>,
    /// Slots of all of them.
    slots: u32,
    /// Numbers of hosts by their names; those that no worker is on are forgotten when they are too many.
    hosts: BTreeMap<String, HostId>,
    hosts_given: u32,
    jobs: BTreeMap<JobId, Job>,
    /// Those of them that have ended, by when.
    ended: BTreeSet<(Time, JobId)>,
    /// Numbers of the pools that were named.
    pools: BTreeMap<String, u32>,
    /// The pools that there are, unless every name is one.
    pool_weights: BTreeMap<String, f64>,
    /// What each worker's shuffle is held to, as the core was told.
    network: Option<Bytes>,
    register: Register,
    list_secret: Secret,
    events: Vec<Event>,
    commands: Vec<Command>,
    /// Outputs to be announced, by home, source and job.
    announced: BTreeMap<(WorkerId, WorkerId, JobId), Vec<AttemptId>>,
    /// Workers with something in their outbox.
    spoken_to: Vec<WorkerId>,
    /// When the core wants to be woken.
    pub wake: Option<Time>,
    /// Outputs that the driver has to finish or abandon, because no submitter does.
    pub closings: Vec<Closing>,
    /// The estimator has learned from a job that has ended since somebody looked last.
    pub learned: bool,
    journal: JournalWriter,
    lanes: Lanes,
    /// Panics of the policy that were counted when it was said last.
    policy_panics_said: u64,
    build: String,
    heartbeat_ms: u32,
}

impl Books {
    /// Empty books around a core.
    pub fn new(core: Core, setting: Setting) -> Self {
        let pools = (0..).zip(setting.pools.keys()).map(|(number, name)| (name.clone(), number)).collect();
        Self {
            core,
            deciders: setting.deciders,
            workers: BTreeMap::new(),
            processes: BTreeSet::new(),
            slots: 0,
            hosts: BTreeMap::new(),
            hosts_given: 0,
            jobs: BTreeMap::new(),
            ended: BTreeSet::new(),
            pools,
            pool_weights: setting.pools,
            network: None,
            register: setting.register,
            list_secret: setting.list_secret,
            events: Vec::new(),
            commands: Vec::new(),
            announced: BTreeMap::new(),
            spoken_to: Vec::new(),
            wake: None,
            closings: Vec::new(),
            learned: false,
            journal: JournalWriter::new(setting.journal),
            lanes: Lanes::default(),
            policy_panics_said: 0,
            build: setting.build,
            heartbeat_ms: setting.heartbeat_ms,
        }
    }

    /// A worker introduces itself; its endpoint is one at which it is reached. `Err` is what it is told.
    ///
    /// # Errors
    /// Another build or protocol.
    pub fn join(
        &mut self,
        now: Time,
        hello: Hello,
        frames: UnboundedSender<Vec<u8>>,
    ) -> Result<WorkerId, String> {
        if hello.build != self.build {
            return Err(format!(
                "its program differs from the master's (build {} instead of {}): user functions are compiled in, \
                 so start the same executable everywhere",
                hello.build, self.build
            ));
        }
        self.check_offer(&hello)?;
        let worker = self.register.take_worker();
        let host = self.host(&hello.host);
        let offset_ns = (hello.worker_ns as i64).wrapping_sub(now.0 as i64);
        self.journal.note(|| Record::Worker {
            worker,
            speed: hello.speed,
            nic_bytes_per_second: hello.nic_bytes_per_second,
        });
        self.events.push(Event::WorkerJoined { worker, host, slots: translate::slots(hello.slots) });
        let entry = Worker {
            endpoint: hello.shuffle.clone(),
            hello,
            frames,
            outbox: Vec::new(),
            knows: BTreeSet::new(),
            gathers: BTreeSet::new(),
            lanes_told: 0,
            running: BTreeMap::new(),
            suspended: BTreeSet::new(),
            handing_over: BTreeSet::new(),
            heartbeat: Heartbeat::default(),
            joined: now,
            heard: now,
            offset_ns,
            round_trip_ns: u64::MAX,
        };
        self.slots += entry.hello.slots.total();
        self.processes.insert((entry.hello.pid, worker));
        self.workers.insert(worker, entry);
        self.learn_network();
        let list_key = list_key(&self.list_secret, worker);
        self.say(worker, &MasterFrame::Welcome { worker, heartbeat_ms: self.heartbeat_ms, list_key });
        self.say(worker, &MasterFrame::Ping { master_ns: now.0 });
        Ok(worker)
    }

    /// The number of a host. One that is forgotten gets another when it comes back: then nothing is known to lie there.
    fn host(&mut self, name: &str) -> HostId {
        if let Some(host) = self.hosts.get(name) {
            return *host;
        }
        if HOSTS_KEPT_MAX <= self.hosts.len() {
            let live: BTreeSet<&str> =
                self.workers.values().map(|worker| worker.hello.host.as_str()).collect();
            self.hosts.retain(|name, _| live.contains(name.as_str()));
        }
        let host = HostId(self.hosts_given);
        self.hosts_given = self.hosts_given.wrapping_add(1);
        self.hosts.insert(name.to_owned(), host);
        host
    }

    /// Whether a worker's slots and rates make sense, and go with those of the others.
    fn check_offer(&self, hello: &Hello) -> Result<(), String> {
        let none = match hello.slots {
            SlotCounts::Unified(slots) => slots == 0,
            SlotCounts::Pools { map, reduce } => map == 0 || reduce == 0,
        };
        if none {
            return Err("it offers no slots of some kind".to_owned());
        }
        let most = match hello.slots {
            SlotCounts::Unified(slots) => slots,
            SlotCounts::Pools { map, reduce } => map.max(reduce),
        };
        if SLOTS_MAX < most {
            return Err(format!("it offers {most} slots of one kind; a worker has {SLOTS_MAX} at most"));
        }
        clean::check_name("its host's name", &hello.host).map_err(|error| error.to_string())?;
        if !hello.shuffle.host.is_empty() {
            let named = clean::check_name("the host of its shuffle server", &hello.shuffle.host);
            named.map_err(|error| error.to_string())?;
        }
        let pooled = |slots: SlotCounts| matches!(slots, SlotCounts::Pools { .. });
        if self.workers.values().any(|other| pooled(other.hello.slots) != pooled(hello.slots)) {
            let (its, others) = match pooled(hello.slots) {
                true => ("map slots and reduce slots", "slots for both"),
                false => ("slots for both maps and reduces", "map slots and reduce slots"),
            };
            return Err(format!(
                "it offers {its}, the other workers {others}: all workers of a cluster are alike in this"
            ));
        }
        if !(0.0 < hello.speed && hello.speed <= 1.0) {
            return Err(format!("its speed {} is not above 0 and at most 1", hello.speed));
        }
        if hello.nic_bytes_per_second == Some(0) {
            return Err("its shuffle is held to 0 bytes in a second".to_owned());
        }
        Ok(())
    }

    /// Tells the core what each worker can take in from others: the least that any is held to, if all are.
    fn learn_network(&mut self) {
        if self.workers.is_empty() {
            return;
        }
        let rates = self.workers.values().map(|worker| worker.hello.nic_bytes_per_second);
        let least = rates.map(|rate| rate.unwrap_or(u64::MAX)).min();
        let all = self.workers.values().all(|worker| worker.hello.nic_bytes_per_second.is_some());
        let network = least.filter(|_| all).map(Bytes);
        if self.network != network {
            self.network = network;
            self.events.push(Event::NetworkRate { per_worker: network });
        }
    }

    /// The live worker with this process id on this host, for whoever started it and so has the key.
    pub fn worker_of_process(&self, host: &str, pid: u32, key: &Secret) -> Option<WorkerId> {
        let proof = ended_proof(key);
        let of_pid = self.processes.range((pid, WorkerId(0))..=(pid, WorkerId(u32::MAX)));
        let is_it = |hello: &Hello| hello.host == host && hello.ended_proof == proof;
        of_pid.map(|(_, worker)| *worker).find(|it| self.workers.get(it).is_some_and(|it| is_it(&it.hello)))
    }

    /// Workers not heard of since `limit`.
    pub fn silent_since(&self, limit: Time) -> Vec<WorkerId> {
        self.workers.iter().filter(|(_, worker)| worker.heard < limit).map(|(worker, _)| *worker).collect()
    }

    /// This process itself has stood still: nobody's silence counts.
    pub fn excuse_silence(&mut self, now: Time) {
        for worker in self.workers.values_mut() {
            worker.heard = now;
        }
    }

    /// Pings everyone, to learn clock offsets.
    pub fn ping(&mut self, now: Time) {
        self.say_to_all(&MasterFrame::Ping { master_ns: now.0 });
    }

    /// Tells every worker to end.
    pub fn shutdown_workers(&mut self) {
        self.say_to_all(&MasterFrame::Shutdown);
    }

    fn say_to_all(&mut self, frame: &MasterFrame) {
        for worker in self.workers.keys().copied().collect::<Vec<_>>() {
            self.say(worker, frame);
        }
        self.flush();
    }

    /// Whether the core has this attempt wait for its slot.
    fn is_queued(&self, attempt: AttemptId) -> bool {
        self.core.attempt(attempt).is_some_and(|attempt| attempt.queued)
    }

    /// Somebody wants a job to stop. Answers whether there is such a job.
    pub fn cancel(&mut self, job: JobId) -> bool {
        self.events.push(Event::JobCancelled { job });
        self.jobs.contains_key(&job)
    }

    /// The client that a job depends on is gone.
    pub fn client_lost(&mut self, job: JobId) {
        let Some(entry) = self.jobs.get_mut(&job) else { return };
        entry.followed = false;
        if entry.state.ended() {
            // It ended while its client was already gone: nobody has closed its output.
            if !*entry.output_closed.borrow() {
                self.close_for_client(job);
            }
        } else {
            self.events.push(Event::JobFailed { job, cause: External::ClientLost });
        }
    }

    /// The core asked to be woken at this time.
    pub fn tick(&mut self) {
        self.wake = None;
        self.events.push(Event::Tick);
    }

    /// The core is done with a job. If no client closes its output, it ends when the master has done so.
    fn job_ended(&mut self, now: Time, id: JobId, outcome: Outcome) {
        self.learned = true;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.followed {
            return self.end(now, id, outcome);
        }
        job.closing = Some(outcome);
        let (sync, columns) = (job.submission.sync, job.submission.columns.clone());
        let output = job.output.take().or_else(|| adopted(&job.submission));
        let status = job.status(now, id, Around { parts: true, built: true, ..Around::default() });
        let success = (outcome == Outcome::Succeeded).then(|| Success::of(&status, columns));
        self.closings.push(Closing { job: id, output, success, built: status.built, left: None, sync });
    }

    /// Closes the output of a job that ended well or badly and whose client died before it had done so.
    fn close_for_client(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        let output = adopted(&job.submission);
        let status = job.status(Time::ZERO, id, Around { parts: true, built: true, ..Around::default() });
        let success =
            (job.state == JobState::Succeeded).then(|| Success::of(&status, job.submission.columns.clone()));
        let left = success.is_some().then(|| Box::new(job.submission.clone()));
        let sync = job.submission.sync;
        self.closings.push(Closing { job: id, output, success, built: status.built, left, sync });
    }

    /// The client that follows a job has closed its output, or could not.
    pub fn client_closed(&mut self, now: Time, id: JobId, failed: Option<String>) {
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.state.ended()) else { return };
        job.output_closed.send_replace(true);
        match failed {
            Some(reason) => job.output_lost(FailureCode::Output, "the output could not be finished", &reason),
            None => job.touch(),
        }
        self.register_end(now, id);
    }

    /// Where it is announced that the client has closed the output of a job.
    pub fn output_closed(&self, job: JobId) -> Option<watch::Receiver<bool>> {
        self.jobs.get(&job).map(|job| job.output_closed.subscribe())
    }

    /// The output of a job has been finished or abandoned.
    pub fn closed(&mut self, now: Time, job: JobId, failed: Option<String>) {
        let Some(entry) = self.jobs.get_mut(&job) else { return };
        entry.output_closed.send_replace(true);
        let Some(outcome) = entry.closing.take() else {
            match (failed, entry.state) {
                (Some(reason), JobState::Succeeded) => {
                    entry.output_lost(
                        FailureCode::ClientLost,
                        "its client died before it had closed the output",
                        &reason,
                    );
                }
                _ => entry.touch(),
            }
            self.register_end(now, job);
            return;
        };
        match failed {
            None => self.end(now, job, outcome),
            Some(reason) => {
                let message = "the output could not be finished".to_owned();
                let detail = Some(clean::message(&reason));
                entry.failure = Some(JobFailure { code: FailureCode::Output, message, detail });
                let cause = Cause::External { cause: External::OutputUnavailable };
                self.end(now, job, Outcome::Failed { cause });
            }
        }
    }

    /// A job has ended, and stays so; the register knows.
    fn end(&mut self, now: Time, id: JobId, outcome: Outcome) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.end(now, outcome);
        let open = job.output_is_open();
        self.ended.insert((now, id));
        // A success without output is none: that of a client is written down once it has closed the output.
        if !open {
            self.register_end(now, id);
        }
    }

    /// Writes into the register how a job has ended.
    fn register_end(&mut self, now: Time, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        let told = job.told.get();
        let status = job.status(now, id, Around::default());
        job.told.set(told);
        self.register.ended(|| Some(status));
    }

    /// The master ends in order, and everything that it had in hand has been given up.
    pub fn rest(&mut self) {
        self.register.rest();
    }

    /// Outputs of jobs that will not end any more because the master does.
    pub fn unfinished(&self) -> Vec<OutputDirectory> {
        let live = self.jobs.values().filter(|job| !job.state.ended() && job.closing.is_none());
        live.filter_map(|job| adopted(&job.submission)).collect()
    }

    /// How a job stands; `None` if there is no such job.
    pub fn status(&self, now: Time, id: JobId) -> Option<JobStatus> {
        self.look(now, id, true, false).or_else(|| self.register.past(id).cloned())
    }

    /// What is said of a job that is not there.
    pub fn absence(&self, id: JobId) -> Absence {
        match (self.register.past(id), self.register.has_given(id)) {
            (Some(_), _) => Absence::Past,
            (None, true) => Absence::Forgotten,
            (None, false) => Absence::Unknown,
        }
    }

    /// Whether it is a job of this master.
    pub fn has(&self, id: JobId) -> bool {
        self.jobs.contains_key(&id)
    }

    /// How a job stands, for somebody who follows it: parts are listed once it has ended, and for whoever closes the
    /// output, once it is to be published, with where they were built.
    pub fn glance(&self, now: Time, id: JobId, closes: bool) -> Option<JobStatus> {
        let Some(job) = self.jobs.get(&id) else { return self.register.past(id).cloned() };
        let publishes = closes && job.output_is_open();
        self.look(now, id, publishes || job.shown_state().ended(), publishes)
    }

    fn look(&self, now: Time, id: JobId, parts: bool, built: bool) -> Option<JobStatus> {
        let job = self.jobs.get(&id)?;
        let in_core = self.core.job(id).filter(|_| !job.state.ended());
        let running = in_core.map_or([0; 2], |job| [job.maps.running, job.reduces.running]);
        let (workers, slots) = (self.workers.len() as u32, self.slots);
        Some(job.status(now, id, Around { running, workers, slots, parts, built }))
    }

    /// All jobs, oldest first, without their parts.
    pub fn statuses(&self, now: Time) -> Vec<JobStatus> {
        let present = self.jobs.keys().filter_map(|job| self.look(now, *job, false, false));
        self.register.all_past().cloned().chain(present).collect()
    }

    /// Where the changes of a job are announced.
    pub fn watch(&self, job: JobId) -> Option<watch::Receiver<bool>> {
        match self.jobs.get(&job) {
            Some(job) => Some(job.changed.subscribe()),
            None => self.register.past(job).map(|_| watch::channel(true).1),
        }
    }

    /// Everything that happened to a job.
    pub fn trace(&self, now: Time, job: JobId) -> Option<JobTrace> {
        let status = self.status(now, job)?;
        let job = self.jobs.get(&job)?;
        let records = &job.records;
        let (attempts, fetches, omitted) = (records.attempts(now), records.fetches.clone(), records.omitted);
        Some(JobTrace { status, attempts, fetches, estimates: job.estimates.records(), omitted })
    }

    /// User output of a job.
    pub fn logs(&self, job: JobId) -> Option<Vec<LogEntry>> {
        self.jobs.get(&job).map(|job| job.logs.entries())
    }

    /// Live workers.
    pub fn workers(&self) -> Vec<WorkerStatus> {
        self.workers
            .iter()
            .map(|(id, worker)| WorkerStatus {
                worker: *id,
                host: worker.hello.host.clone(),
                pid: worker.hello.pid,
                slots: worker.hello.slots.total(),
                slot_counts: worker.hello.slots,
                speed: worker.hello.speed,
                nic_bytes_per_second: worker.hello.nic_bytes_per_second,
                running: worker.running.keys().filter(|attempt| !worker.suspended.contains(attempt)).count()
                    as u32,
                endpoint: worker.endpoint.clone(),
                memory_budget_bytes: worker.hello.memory_bytes,
                memory_bytes: worker.heartbeat.memory_bytes,
                disk_free_bytes: worker.heartbeat.disk_free_bytes,
                clock_offset_ns: worker.offset_ns,
                joined_ns: worker.joined.0,
            })
            .collect()
    }

    /// What the estimator has learned so far; null if there is none, or it learns nothing.
    pub fn memory(&self) -> serde_json::Value {
        self.core.memory()
    }

    /// Jobs that have not ended.
    pub fn jobs_live(&self) -> u32 {
        (self.jobs.len() - self.ended.len()) as u32
    }

    /// An attempt does not run on this worker any more; says whether it did.
    fn stopped_there(&mut self, worker: WorkerId, attempt: AttemptId) -> bool {
        let bytes = self.workers.get_mut(&worker).and_then(|worker| worker.running.remove(&attempt));
        let Some(bytes) = bytes else { return false };
        self.read_in_flight(attempt, bytes, 0);
        true
    }

    /// A running attempt has read so much, and had read so much before.
    fn read_in_flight(&mut self, attempt: AttemptId, before: u64, bytes: u64) {
        if attempt.task.kind == TaskKind::Map
            && let Some(job) = self.jobs.get_mut(&attempt.task.job)
        {
            job.bytes_in_flight = job.bytes_in_flight.saturating_add(bytes).saturating_sub(before);
        }
    }
}

/// A worker's clock reading in the master's clock.
fn shift(worker_ns: u64, offset_ns: i64) -> u64 {
    worker_ns.saturating_add_signed(offset_ns.saturating_neg())
}

/// The output of a job whose client does not close it, if this master sees it.
fn adopted(submission: &Submission) -> Option<OutputDirectory> {
    match OutputDirectory::adopt(submission, None) {
        Ok(output) => Some(output),
        Err(error) => {
            tracing::debug!(output = %submission.output, error = crate::chain(&error), "not adopted");
            None
        }
    }
}

#[cfg(test)]
pub mod tests;
