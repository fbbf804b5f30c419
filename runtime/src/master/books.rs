//! What the master remembers beside the core's books: names, frames to workers, reports, logs, the trace.
//!
//! Inputs (frames, requests, lost connections) become facts for the core; the core's commands become frames.
//! Nothing here decides: no branch depends on policy. Not here: sockets and clocks (`master`).

mod frames;
mod job;
mod losses;
mod orders;
mod record;

use super::translate;
use crate::api::{ApiError, JobFailure, JobStatus, JobTrace, LogEntry, SCHEMA, Submission, WorkerStatus};
use crate::output_dir::{OutputDirectory, Success};
use gristmill_scheduler::command::{Cause, Command, Outcome};
use gristmill_scheduler::core::Core;
use gristmill_scheduler::event::{Event, External};
use gristmill_scheduler::ids::{AttemptId, HostId, JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::http::{Endpoint, Secret};
use gristmill_worker::protocol::{Heartbeat, Hello, MasterFrame};
use job::{Around, Job};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

/// Ended jobs whose trace and logs are kept.
const TRACED_JOBS_MAX: usize = 20;

/// Ended jobs that are remembered.
const ENDED_JOBS_MAX: usize = 1000;

/// A worker's side of the books.
pub struct Worker {
    hello: Hello,
    endpoint: Endpoint,
    frames: UnboundedSender<Vec<u8>>,
    /// Encoded frames that go out when this instant has been dealt with.
    outbox: Vec<u8>,
    knows: BTreeSet<JobId>,
    /// Attempts launched there that have not ended.
    running: BTreeMap<AttemptId, u64>,
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
    /// Sync to disk.
    pub sync: bool,
}

/// Everything the master knows.
pub struct Books {
    core: Core,
    workers: BTreeMap<WorkerId, Worker>,
    hosts: BTreeMap<String, HostId>,
    jobs: BTreeMap<JobId, Job>,
    pools: BTreeMap<String, u32>,
    next_worker: u32,
    next_job: u32,
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
    build: String,
    heartbeat_ms: u32,
}

impl Books {
    /// Empty books around a core.
    pub fn new(core: Core, build: String, heartbeat_ms: u32) -> Self {
        Self {
            core,
            workers: BTreeMap::new(),
            hosts: BTreeMap::new(),
            jobs: BTreeMap::new(),
            pools: BTreeMap::new(),
            next_worker: 1,
            next_job: 1,
            events: Vec::new(),
            commands: Vec::new(),
            announced: BTreeMap::new(),
            spoken_to: Vec::new(),
            wake: None,
            closings: Vec::new(),
            build,
            heartbeat_ms,
        }
    }

    /// A worker introduces itself. `Err` is what it is told.
    ///
    /// # Errors
    /// Another build or protocol.
    pub fn join(
        &mut self,
        now: Time,
        mut hello: Hello,
        peer: IpAddr,
        frames: UnboundedSender<Vec<u8>>,
    ) -> Result<WorkerId, String> {
        if hello.build != self.build {
            return Err(format!(
                "its program differs from the master's (build {} instead of {}): user functions are compiled in, \
                 so start the same executable everywhere",
                hello.build, self.build
            ));
        }
        if hello.slots.total() == 0 {
            return Err("it offers no slots".to_owned());
        }
        let worker = WorkerId(self.next_worker);
        self.next_worker += 1;
        if hello.shuffle.host.is_empty() {
            hello.shuffle.host = peer.to_string();
        }
        let hosts = self.hosts.len() as u32;
        let host = *self.hosts.entry(hello.host.clone()).or_insert(HostId(hosts));
        let offset_ns = hello.worker_ns as i64 - now.0 as i64;
        self.events.push(Event::WorkerJoined { worker, host, slots: translate::slots(hello.slots) });
        let entry = Worker {
            endpoint: hello.shuffle.clone(),
            hello,
            frames,
            outbox: Vec::new(),
            knows: BTreeSet::new(),
            running: BTreeMap::new(),
            heartbeat: Heartbeat::default(),
            joined: now,
            heard: now,
            offset_ns,
            round_trip_ns: u64::MAX,
        };
        self.workers.insert(worker, entry);
        self.say(worker, &MasterFrame::Welcome { worker, heartbeat_ms: self.heartbeat_ms });
        self.say(worker, &MasterFrame::Ping { master_ns: now.0 });
        Ok(worker)
    }

    /// The live worker with this process id on this host.
    pub fn worker_of_process(&self, host: &str, pid: u32) -> Option<WorkerId> {
        let found =
            self.workers.iter().find(|(_, worker)| worker.hello.pid == pid && worker.hello.host == host);
        found.map(|(worker, _)| *worker)
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

    /// A job is submitted. Answers its number and where its changes are announced.
    ///
    /// # Errors
    /// A submission that cannot be carried out.
    pub fn submit(
        &mut self,
        now: Time,
        submission: Submission,
    ) -> Result<(JobId, watch::Receiver<bool>), ApiError> {
        let refuse = |code: &str, message: String| ApiError { code: code.to_owned(), message };
        if submission.schema != SCHEMA {
            return Err(refuse("schema", format!("schema {} is not {SCHEMA}", submission.schema)));
        }
        let key: Secret =
            submission.key.parse().map_err(|_| refuse("key", "the job's key is not a secret".to_owned()))?;
        let cuts = submission.cuts.iter().map(|cut| from_hex(cut)).collect::<Option<Vec<_>>>();
        let cuts = cuts.ok_or_else(|| refuse("cuts", "a cut is not hexadecimal text".to_owned()))?;
        let pools = self.pools.len() as u32;
        let pool = submission.pool.as_ref().map(|name| *self.pools.entry(name.clone()).or_insert(pools));
        let spec = translate::job_spec(
            &submission.splits,
            submission.reduces,
            submission.weight,
            pool,
            submission.attempts_max,
        );
        spec.check().map_err(|error| refuse("spec", error.to_string()))?;
        if !submission.attached && OutputDirectory::adopt(&submission).is_none() {
            let message = "the master does not see the output directory of a detached job".to_owned();
            return Err(refuse("not_shared", message));
        }
        let job = JobId(self.next_job);
        self.next_job += 1;
        let (changed, receiver) = watch::channel(false);
        self.jobs.insert(job, Job::new(submission, key, cuts, now, changed));
        self.events.push(Event::JobArrived { job, spec });
        self.forget_old_jobs();
        Ok((job, receiver))
    }

    fn forget_old_jobs(&mut self) {
        let ended: Vec<JobId> =
            self.jobs.iter().filter(|(_, job)| job.state.ended()).map(|(job, _)| *job).collect();
        for job in ended.iter().take(ended.len().saturating_sub(ENDED_JOBS_MAX)) {
            self.jobs.remove(job);
        }
        for job in ended.iter().take(ended.len().saturating_sub(TRACED_JOBS_MAX)) {
            if let Some(job) = self.jobs.get_mut(job) {
                job.records.forget_trace();
                job.logs = Vec::new();
            }
        }
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
            let output = OutputDirectory::adopt(&entry.submission);
            self.closings.push(Closing { job, output, success: None, sync: false });
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
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.followed {
            return job.end(now, outcome);
        }
        job.closing = Some(outcome);
        let (sync, columns) = (job.submission.sync, job.submission.columns.clone());
        let output = OutputDirectory::adopt(&job.submission);
        let status = job.status(now, id, Around { parts: true, ..Around::default() });
        let success = (outcome == Outcome::Succeeded).then(|| Success::of(&status, columns));
        self.closings.push(Closing { job: id, output, success, sync });
    }

    /// The output of a job has been finished or abandoned.
    pub fn closed(&mut self, now: Time, job: JobId, failed: Option<String>) {
        let Some(job) = self.jobs.get_mut(&job) else { return };
        let Some(outcome) = job.closing.take() else { return };
        match failed {
            None => job.end(now, outcome),
            Some(reason) => {
                let message = "the output could not be finished".to_owned();
                job.failure = Some(JobFailure { code: "output".to_owned(), message, detail: Some(reason) });
                let cause = Cause::External { cause: External::OutputUnavailable };
                job.end(now, Outcome::Failed { cause });
            }
        }
    }

    /// Outputs of jobs that will not end any more because the master does.
    pub fn unfinished(&self) -> Vec<OutputDirectory> {
        let live = self.jobs.values().filter(|job| !job.state.ended() && job.closing.is_none());
        live.filter_map(|job| OutputDirectory::adopt(&job.submission)).collect()
    }

    /// How a job stands; `None` if there is no such job.
    pub fn status(&self, now: Time, id: JobId) -> Option<JobStatus> {
        self.look(now, id, true)
    }

    /// How a job stands, for somebody who follows it: parts are listed once it has ended.
    pub fn glance(&self, now: Time, id: JobId) -> Option<JobStatus> {
        let parts = self.jobs.get(&id)?.state.ended();
        self.look(now, id, parts)
    }

    fn look(&self, now: Time, id: JobId, parts: bool) -> Option<JobStatus> {
        let job = self.jobs.get(&id)?;
        let of_job =
            |(attempt, _): &(&AttemptId, &u64)| attempt.task.job == id && attempt.task.kind == TaskKind::Map;
        let running = self.workers.values().flat_map(|worker| &worker.running);
        let bytes_in_flight = running.filter(of_job).map(|(_, bytes)| *bytes).sum();
        let in_core = self.core.job(id).filter(|_| !job.state.ended());
        let running = in_core.map_or([0; 2], |job| [job.maps.running, job.reduces.running]);
        let slots = self.workers.values().map(|worker| worker.hello.slots.total()).sum();
        let workers = self.workers.len() as u32;
        Some(job.status(now, id, Around { running, bytes_in_flight, workers, slots, parts }))
    }

    /// All jobs, oldest first.
    pub fn statuses(&self, now: Time) -> Vec<JobStatus> {
        self.jobs.keys().filter_map(|job| self.status(now, *job)).collect()
    }

    /// Where the changes of a job are announced.
    pub fn watch(&self, job: JobId) -> Option<watch::Receiver<bool>> {
        self.jobs.get(&job).map(|job| job.changed.subscribe())
    }

    /// Everything that happened to a job.
    pub fn trace(&self, now: Time, job: JobId) -> Option<JobTrace> {
        let status = self.status(now, job)?;
        let job = self.jobs.get(&job)?;
        let records = &job.records;
        let (attempts, fetches, omitted) = (records.attempts(), records.fetches.clone(), records.omitted);
        Some(JobTrace { status, attempts, fetches, estimates: Vec::new(), omitted })
    }

    /// User output of a job.
    pub fn logs(&self, job: JobId) -> Option<Vec<LogEntry>> {
        self.jobs.get(&job).map(|job| job.logs.clone())
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
                running: worker.running.len() as u32,
                endpoint: worker.endpoint.clone(),
                memory_budget_bytes: worker.hello.memory_bytes,
                memory_bytes: worker.heartbeat.memory_bytes,
                disk_free_bytes: worker.heartbeat.disk_free_bytes,
                clock_offset_ns: worker.offset_ns,
                joined_ns: worker.joined.0,
            })
            .collect()
    }

    /// Jobs that have not ended.
    pub fn jobs_live(&self) -> u32 {
        self.jobs.values().filter(|job| !job.state.ended()).count() as u32
    }
}

/// A worker's clock reading in the master's clock.
fn shift(worker_ns: u64, offset_ns: i64) -> u64 {
    worker_ns.saturating_add_signed(-offset_ns)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|pair| {
            let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
            Some((high? * 16 + low?) as u8)
        })
        .collect()
}
