//! What the master remembers beside the core's books: names, frames to workers, reports, logs, the trace.
//!
//! Inputs (frames, requests, lost connections) become facts for the core; the core's commands become frames.
//! Nothing here decides: no branch depends on policy. Not here: sockets and clocks (`master`).

use super::translate;
use crate::api::{
    ApiError, AttemptCounts, AttemptEnd, AttemptRecord, FetchRecord, INCIDENTS_MAX, JobFailure, JobState,
    JobStatus, JobTotals, JobTrace, LogEntry, SCHEMA, Submission, TaskCounts, WorkerEnded, WorkerStatus,
};
use crate::exit;
use crate::output_dir::{OutputDirectory, Success};
use gristmill_scheduler::command::{Cause, Command, Outcome};
use gristmill_scheduler::core::Core;
use gristmill_scheduler::event::{Event, External, Failure};
use gristmill_scheduler::ids::{AttemptId, HostId, JobId, TaskId, TaskKind, WorkerId};
use gristmill_scheduler::units::{Bytes, Time};
use gristmill_worker::http::{Endpoint, Secret};
use gristmill_worker::input::{Place, Split};
use gristmill_worker::protocol::{
    AttemptReport, FailureClass, Heartbeat, Hello, JobOrder, MasterFrame, Part, WorkerFrame,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

/// Attempts and transfers kept for the trace of one job.
const TRACE_RECORDS_MAX: usize = 200_000;

/// User output kept for one attempt, bytes.
const LOG_BYTES_PER_ATTEMPT_MAX: usize = 64 << 10;

/// User output kept for one job, bytes.
const LOG_BYTES_PER_JOB_MAX: usize = 4 << 20;

/// Ended jobs whose trace and logs are kept.
const TRACED_JOBS_MAX: usize = 20;

/// Ended jobs that are remembered.
const ENDED_JOBS_MAX: usize = 1000;

/// A worker's side of the books.
pub struct Worker {
    hello: Hello,
    endpoint: Endpoint,
    frames: UnboundedSender<MasterFrame>,
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

struct Job {
    /// Without splits, side inputs and cuts once the job has ended: nobody needs them then.
    submission: Submission,
    maps: u32,
    input_bytes: u64,
    key: Secret,
    cuts: Vec<Vec<u8>>,
    state: JobState,
    arrived: Time,
    started: Option<Time>,
    maps_done: Option<Time>,
    shuffle_done: Option<Time>,
    ended: Option<Time>,
    map_reports: BTreeMap<u32, AttemptReport>,
    /// Where each map's last good attempt read its split; maps without input have none.
    nearness: BTreeMap<u32, Nearness>,
    maps_succeeded: BTreeSet<u32>,
    reduces_done: u32,
    running: [u32; 2],
    totals: JobTotals,
    attempts: AttemptCounts,
    counters: BTreeMap<String, u64>,
    parts: BTreeMap<u32, Part>,
    incidents: VecDeque<String>,
    incidents_omitted: u64,
    last_failure: BTreeMap<TaskId, String>,
    failure: Option<JobFailure>,
    records: Vec<AttemptRecord>,
    record_of: BTreeMap<AttemptId, usize>,
    fetches: Vec<FetchRecord>,
    omitted: u64,
    logs: Vec<LogEntry>,
    log_bytes: usize,
    /// Whether the job has ended; sent at every change.
    changed: watch::Sender<bool>,
    /// The client that submitted the job follows it and closes its output.
    followed: bool,
    /// How the job ends once its output is closed.
    closing: Option<Outcome>,
}

/// Where a map read its split, seen from its worker.
enum Nearness {
    /// From a disk that the worker sees.
    Local,
    /// Over HTTP from a process on the same host.
    SameHost,
    /// Over HTTP from another host.
    Remote,
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
        frames: UnboundedSender<MasterFrame>,
    ) -> Result<WorkerId, String> {
        if hello.build != self.build {
            return Err(format!(
                "its program differs from the master's (build {} instead of {}): user functions are compiled in, \
                 so start the same executable everywhere",
                hello.build, self.build
            ));
        }
        if hello.slots == 0 {
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
        let _ = frames.send(MasterFrame::Welcome { worker, heartbeat_ms: self.heartbeat_ms });
        let _ = frames.send(MasterFrame::Ping { master_ns: now.0 });
        self.events.push(Event::WorkerJoined { worker, host, slots: hello.slots });
        let entry = Worker {
            endpoint: hello.shuffle.clone(),
            hello,
            frames,
            knows: BTreeSet::new(),
            running: BTreeMap::new(),
            heartbeat: Heartbeat::default(),
            joined: now,
            heard: now,
            offset_ns,
            round_trip_ns: u64::MAX,
        };
        self.workers.insert(worker, entry);
        Ok(worker)
    }

    /// A worker's connection is gone. `end` says how its process ended, if whoever started it told.
    pub fn lost(&mut self, now: Time, worker: WorkerId, end: Option<&WorkerEnded>) {
        let Some(gone) = self.workers.remove(&worker) else { return };
        let running: Vec<AttemptId> = gone.running.keys().copied().collect();
        let by_itself = end.is_some_and(|end| crashed(end.signal, end.code));
        // With several attempts in one process nobody knows which of them brought it down.
        let culprit = if by_itself && running.len() == 1 { running.clone() } else { Vec::new() };
        let how = match end {
            Some(WorkerEnded { signal: Some(signal), .. }) => format!("ended by {}", signal_name(*signal)),
            Some(WorkerEnded { code: Some(code), .. }) => format!("ended with exit code {code}"),
            _ => "lost: its connection closed".to_owned(),
        };
        // A mapped file that is cut short while it is read ends the process with SIGBUS.
        if let ([attempt], Some(WorkerEnded { signal: Some(SIGBUS), .. })) = (running.as_slice(), end)
            && attempt.task.kind == TaskKind::Map
        {
            self.events.push(Event::AttemptFailed { attempt: *attempt, class: Failure::Input });
        }
        let last_words = end.map(|end| end.last_words.trim()).filter(|words| !words.is_empty());
        let mut concerned: BTreeSet<JobId> = running.iter().map(|attempt| attempt.task.job).collect();
        concerned
            .extend(gone.knows.iter().filter(|job| self.jobs.get(job).is_some_and(|j| !j.state.ended())));
        for attempt in &running {
            let Some(job) = self.jobs.get_mut(&attempt.task.job) else { continue };
            job.running[attempt.task.kind as usize] -= 1;
            let charged = culprit.contains(attempt);
            let words = match end.and_then(|end| end.signal) {
                Some(SIGBUS) => "its input was cut short while it was read",
                _ => last_words.unwrap_or_default(),
            };
            let words = Some(words).filter(|words| !words.is_empty());
            let words = words.map_or_else(String::new, |words| format!(": {}", one_line(words)));
            job.last_failure
                .insert(attempt.task, format!("{attempt} on {worker}: its process was {how}{words}"));
            if charged {
                job.attempts.failed_user += 1;
                job.log(Some(*attempt), worker, last_words.unwrap_or_default().as_bytes());
            } else {
                job.attempts.lost += 1;
            }
            job.end_record(*attempt, now, AttemptEnd::Lost, None, 0);
        }
        for job in concerned {
            let held = self.held_outputs(job, worker);
            if let Some(entry) = self.jobs.get_mut(&job) {
                let attempts = running.iter().filter(|attempt| attempt.task.job == job).count();
                entry.incident(
                    now,
                    &format!(
                        "{worker} (process {} on {}) was {how}; it ran {attempts} attempt(s) and held {held} map \
                         output(s) of this job",
                        gone.hello.pid, gone.hello.host
                    ),
                );
                entry.touch();
            }
        }
        self.events.push(Event::WorkerLost { worker, culprit });
    }

    fn held_outputs(&self, job: JobId, worker: WorkerId) -> usize {
        let Some(job) = self.jobs.get(&job) else { return 0 };
        if job.submission.reduces == 0 {
            return 0;
        }
        let newest: BTreeMap<u32, WorkerId> = job
            .records
            .iter()
            .filter(|record| record.attempt.task.kind == TaskKind::Map && record.end == AttemptEnd::Succeeded)
            .map(|record| (record.attempt.task.index, record.worker))
            .collect();
        newest.values().filter(|holder| **holder == worker).count()
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
    pub fn ping(&self, now: Time) {
        for worker in self.workers.values() {
            let _ = worker.frames.send(MasterFrame::Ping { master_ns: now.0 });
        }
    }

    /// Tells every worker to end.
    pub fn shutdown_workers(&self) {
        for worker in self.workers.values() {
            let _ = worker.frames.send(MasterFrame::Shutdown);
        }
    }

    /// A frame from a worker.
    pub fn frame(&mut self, now: Time, from: WorkerId, frame: WorkerFrame) {
        let Some(worker) = self.workers.get_mut(&from) else { return };
        worker.heard = now;
        match frame {
            WorkerFrame::Hello(_) | WorkerFrame::Goodbye => {}
            WorkerFrame::Heartbeat(heartbeat) => {
                for progress in &heartbeat.running {
                    if let Some(bytes) = worker.running.get_mut(&progress.attempt) {
                        *bytes = progress.bytes_in;
                    }
                }
                let jobs: BTreeSet<JobId> = heartbeat.running.iter().map(|p| p.attempt.task.job).collect();
                worker.heartbeat = heartbeat;
                for job in jobs {
                    if let Some(job) = self.jobs.get_mut(&job) {
                        job.touch();
                    }
                }
            }
            WorkerFrame::Pong { master_ns, worker_ns } => {
                let round_trip = now.0.saturating_sub(master_ns);
                if round_trip <= worker.round_trip_ns {
                    worker.round_trip_ns = round_trip;
                    worker.offset_ns = worker_ns as i64 - (master_ns + round_trip / 2) as i64;
                }
            }
            WorkerFrame::MapFinished { attempt, report } => {
                if worker.running.remove(&attempt).is_none() {
                    return;
                }
                let output_bytes = Bytes(report.bytes_out);
                self.map_finished(now, from, attempt, report);
                self.events.push(Event::MapFinished { attempt, output_bytes });
            }
            WorkerFrame::PartFinished { attempt, part, report } => {
                if worker.running.remove(&attempt).is_none() {
                    return;
                }
                let output_bytes = Bytes(part.bytes);
                let event = match attempt.task.kind {
                    TaskKind::Map => Event::MapFinished { attempt, output_bytes },
                    TaskKind::Reduce => Event::ReduceFinished { attempt, output_bytes },
                };
                self.part_finished(now, from, attempt, part, report);
                self.events.push(event);
            }
            WorkerFrame::AttemptFailed { attempt, class, message, report } => {
                if worker.running.remove(&attempt).is_none() {
                    return;
                }
                self.attempt_failed(now, from, attempt, class, &message, report);
            }
            WorkerFrame::Fetched { map, partitions, bytes, from: holder, started_ns, ended_ns } => {
                let offset = worker.offset_ns;
                let job = map.task.job;
                if let Some(entry) = self.jobs.get_mut(&job) {
                    entry.totals.shuffle_bytes += bytes;
                    entry.totals.shuffle_segments += partitions.len() as u64;
                    if !partitions.is_empty() {
                        entry.shuffle_done = Some(now);
                        entry.keep_fetch(FetchRecord {
                            map,
                            from: holder,
                            to: from,
                            partitions: partitions.len() as u32,
                            bytes,
                            started_ns: shift(started_ns, offset),
                            ended_ns: shift(ended_ns, offset).min(now.0),
                        });
                    }
                    entry.touch();
                }
                self.events.push(Event::Fetched { job, home: from, map, partitions });
            }
            WorkerFrame::FetchFailed { map, from: holder, class, message } => {
                let job = map.task.job;
                if let Some(entry) = self.jobs.get_mut(&job) {
                    entry.incident(now, &format!("{from} could not fetch {map} from {holder}: {message}"));
                    entry.last_failure.insert(map.task, message);
                    entry.touch();
                }
                self.events.push(Event::FetchFailed {
                    job,
                    home: from,
                    map,
                    class: translate::failure(class),
                });
            }
            WorkerFrame::CommitRequest { attempt } => self.events.push(Event::CommitRequested { attempt }),
            WorkerFrame::Log { attempt, bytes } => {
                // Output that no single attempt wrote is kept with every job that runs there.
                let jobs: BTreeSet<JobId> = match attempt {
                    Some(attempt) => [attempt.task.job].into(),
                    None => worker.running.keys().map(|attempt| attempt.task.job).collect(),
                };
                for job in jobs {
                    if let Some(job) = self.jobs.get_mut(&job) {
                        job.log(attempt, from, &bytes);
                    }
                }
            }
        }
    }

    fn map_finished(&mut self, now: Time, from: WorkerId, attempt: AttemptId, report: AttemptReport) {
        let offset = self.workers.get(&from).map_or(0, |worker| worker.offset_ns);
        let same_host = self.same_host_as_submitter(attempt.task.job, from);
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.running[TaskKind::Map as usize] -= 1;
        job.end_record(attempt, now, AttemptEnd::Succeeded, Some(report.clone()), offset);
        // A map that is run again must not count twice: its last report replaces the one before.
        if !job.state.ended() {
            job.maps_succeeded.insert(attempt.task.index);
            job.map_reports.insert(attempt.task.index, report);
            job.note_locality(attempt, same_host);
            if job.maps_succeeded.len() == job.maps as usize {
                job.maps_done = Some(now);
            }
        }
        job.touch();
    }

    fn same_host_as_submitter(&self, job: JobId, worker: WorkerId) -> bool {
        let submitter = self.jobs.get(&job).and_then(|job| job.submission.submitter.as_ref());
        let worker = self.workers.get(&worker);
        matches!((submitter, worker), (Some(a), Some(b)) if a.host == b.endpoint.host)
    }

    fn part_finished(
        &mut self,
        now: Time,
        from: WorkerId,
        attempt: AttemptId,
        part: Part,
        report: AttemptReport,
    ) {
        let offset = self.workers.get(&from).map_or(0, |worker| worker.offset_ns);
        let same_host = self.same_host_as_submitter(attempt.task.job, from);
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.running[attempt.task.kind as usize] -= 1;
        job.end_record(attempt, now, AttemptEnd::Succeeded, Some(report.clone()), offset);
        if job.state.ended() {
            return;
        }
        job.totals.records_out += part.records;
        job.totals.bytes_out += part.bytes;
        job.parts.insert(attempt.task.index, part);
        if attempt.task.kind == TaskKind::Map {
            job.maps_succeeded.insert(attempt.task.index);
            job.map_reports.insert(attempt.task.index, report);
            job.note_locality(attempt, same_host);
            if job.maps_succeeded.len() == job.maps as usize {
                job.maps_done = Some(now);
            }
        } else {
            job.reduces_done += 1;
            job.totals.reduce_records_in += report.records_in;
            job.add_report(&report);
        }
        job.touch();
    }

    fn attempt_failed(
        &mut self,
        now: Time,
        from: WorkerId,
        attempt: AttemptId,
        class: FailureClass,
        message: &str,
        report: AttemptReport,
    ) {
        let offset = self.workers.get(&from).map_or(0, |worker| worker.offset_ns);
        self.events.push(Event::AttemptFailed { attempt, class: translate::failure(class) });
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.running[attempt.task.kind as usize] -= 1;
        let word = translate::class_word(class);
        let end = AttemptEnd::Failed(word.to_owned(), message.to_owned());
        job.end_record(attempt, now, end, Some(report), offset);
        match class {
            FailureClass::User | FailureClass::Hang => job.attempts.failed_user += 1,
            FailureClass::Cancelled => job.attempts.cancelled += 1,
            _ => job.attempts.failed_other += 1,
        }
        if class != FailureClass::Cancelled {
            job.last_failure.insert(attempt.task, format!("{attempt} on {from}: {message}"));
            job.incident(now, &format!("{attempt} on {from} failed ({word}): {message}"));
        }
        if class == FailureClass::Output && !job.state.ended() && job.closing.is_none() {
            let detail = Some(format!("{attempt} on {from}: {message}"));
            let message = "the output directory cannot be written".to_owned();
            job.failure = Some(JobFailure { code: "output".to_owned(), message, detail });
            let job = attempt.task.job;
            self.events.push(Event::JobFailed { job, cause: External::OutputUnavailable });
        }
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.touch();
        }
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
                job.omitted += (job.records.len() + job.fetches.len()) as u64;
                (job.records, job.fetches, job.logs) = (Vec::new(), Vec::new(), Vec::new());
                job.record_of = BTreeMap::new();
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

    /// Enters all facts since the last call and carries out what the core orders.
    pub fn settle(&mut self, now: Time) {
        if self.events.is_empty() {
            return;
        }
        let mut commands = std::mem::take(&mut self.commands);
        self.core.handle(now, &self.events, &mut commands);
        self.events.clear();
        for command in commands.drain(..) {
            self.carry_out(now, &command);
        }
        self.commands = commands;
    }

    fn carry_out(&mut self, now: Time, command: &Command) {
        match *command {
            Command::Launch { attempt, worker, reason } => {
                self.launch(now, attempt, worker, reason.to_string());
            }
            Command::Kill { attempt, worker } => {
                self.send(worker, attempt.task.job, MasterFrame::Kill { attempt });
            }
            Command::Home { job, partition, worker } => {
                self.send(worker, job, MasterFrame::Home { job, partition });
            }
            Command::Unhome { job, partition, worker } => {
                self.send(worker, job, MasterFrame::Unhome { job, partition });
            }
            Command::Announce { job, map, from, to } => {
                let Some(holder) = self.workers.get(&from) else { return };
                let endpoint = holder.endpoint.clone();
                self.send(to, job, MasterFrame::Announce { map, from, endpoint });
            }
            Command::Retract { job, map, to } => self.send(to, job, MasterFrame::Retract { map }),
            Command::GrantCommit { attempt, worker, replace } => {
                self.send(worker, attempt.task.job, MasterFrame::CommitGranted { attempt, replace });
            }
            Command::RefuseCommit { attempt, worker } => {
                self.send(worker, attempt.task.job, MasterFrame::CommitRefused { attempt });
            }
            Command::Forget { job, worker } => {
                if let Some(entry) = self.workers.get_mut(&worker)
                    && entry.knows.remove(&job)
                {
                    let _ = entry.frames.send(MasterFrame::Forget { job });
                }
            }
            Command::JobEnded { job, outcome } => self.job_ended(now, job, outcome),
            Command::WakeAt { time } => self.wake = Some(time),
        }
    }

    /// Sends a frame about a job; the job's own description goes before the first.
    fn send(&mut self, worker: WorkerId, job: JobId, frame: MasterFrame) {
        let Some(order) = self.job_order(job, worker) else { return };
        // Only these begin something. Any other frame about a job that the worker has been told to forget comes too
        // late, and must not bring the job back.
        let begins = matches!(
            frame,
            MasterFrame::LaunchMap { .. }
                | MasterFrame::LaunchReduce { .. }
                | MasterFrame::Home { .. }
                | MasterFrame::Announce { .. }
        );
        if order.is_some() && !begins {
            return;
        }
        let Some(entry) = self.workers.get_mut(&worker) else { return };
        if let Some(order) = order {
            entry.knows.insert(job);
            let _ = entry.frames.send(MasterFrame::Job(Box::new(order)));
        }
        // A closed channel means that the connection is ending; its loss is reported on its own way.
        let _ = entry.frames.send(frame);
    }

    /// `Some(Some(order))` if the worker must still be told about the job, `Some(None)` if it knows.
    fn job_order(&self, id: JobId, worker: WorkerId) -> Option<Option<JobOrder>> {
        let job = self.jobs.get(&id)?;
        if self.workers.get(&worker)?.knows.contains(&id) {
            return Some(None);
        }
        let submission = &job.submission;
        let named: BTreeSet<WorkerId> = submission
            .splits
            .iter()
            .flat_map(|split| &split.pieces)
            .chain(submission.side.iter().flat_map(|side| &side.pieces))
            .filter_map(|piece| match piece.place {
                Place::Worker(worker) => Some(worker),
                Place::Submitter => None,
            })
            .collect();
        let peers = named
            .into_iter()
            .filter_map(|worker| Some((worker, self.workers.get(&worker)?.endpoint.clone())))
            .collect();
        Some(Some(JobOrder {
            job: id,
            name: submission.name.clone(),
            parameters: submission.parameters.clone(),
            maps: job.maps,
            partitions: submission.reduces,
            cuts: job.cuts.clone(),
            key: job.key.clone(),
            output: submission.output.clone(),
            output_probe: submission.output_probe.clone(),
            side: submission.side.clone(),
            submitter: submission.submitter.clone(),
            peers,
            record_bytes_max: submission.record_bytes_max,
            expansion_max: submission.expansion_max,
            sync: submission.sync,
            hang_ms: submission.hang_ms,
        }))
    }

    fn launch(&mut self, now: Time, attempt: AttemptId, worker: WorkerId, reason: String) {
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.attempts.launched += 1;
        job.running[attempt.task.kind as usize] += 1;
        job.started.get_or_insert(now);
        if job.state == JobState::Waiting {
            job.state = JobState::Running;
        }
        if attempt.task.kind == TaskKind::Map && job.maps_succeeded.remove(&attempt.task.index) {
            job.attempts.maps_rerun += 1;
            job.incident(now, &format!("{} runs again: its output was lost", attempt.task));
        }
        job.keep_record(AttemptRecord {
            attempt,
            worker,
            launched_ns: now.0,
            started_ns: None,
            ended_ns: None,
            end: AttemptEnd::Running,
            reason,
            report: None,
        });
        let frame = match attempt.task.kind {
            TaskKind::Map => {
                let Some(split) = job.submission.splits.get(attempt.task.index as usize) else { return };
                MasterFrame::LaunchMap { attempt, split: Split::clone(split) }
            }
            TaskKind::Reduce => MasterFrame::LaunchReduce { attempt },
        };
        job.touch();
        if let Some(entry) = self.workers.get_mut(&worker) {
            entry.running.insert(attempt, 0);
        }
        self.send(worker, attempt.task.job, frame);
    }

    /// The core is done with a job. If no client closes its output, it ends when the master has done so.
    fn job_ended(&mut self, now: Time, id: JobId, outcome: Outcome) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let reports: Vec<AttemptReport> = std::mem::take(&mut job.map_reports).into_values().collect();
        for report in reports {
            job.add_map_report(&report);
        }
        if job.followed {
            return job.end(now, outcome);
        }
        job.closing = Some(outcome);
        let (sync, columns) = (job.submission.sync, job.submission.columns.clone());
        let output = OutputDirectory::adopt(&job.submission);
        let status = job.status(now, id, 0, 0, 0);
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
        let job = self.jobs.get(&id)?;
        let in_flight: u64 = self
            .workers
            .values()
            .flat_map(|worker| &worker.running)
            .filter(|(attempt, _)| attempt.task.job == id && attempt.task.kind == TaskKind::Map)
            .map(|(_, bytes)| *bytes)
            .sum();
        let slots = self.workers.values().map(|worker| worker.hello.slots).sum();
        Some(job.status(now, id, in_flight, self.workers.len() as u32, slots))
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
        let (attempts, fetches) = (job.records.clone(), job.fetches.clone());
        Some(JobTrace { status, attempts, fetches, omitted: job.omitted })
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
                slots: worker.hello.slots,
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

impl Job {
    fn new(
        submission: Submission,
        key: Secret,
        cuts: Vec<Vec<u8>>,
        arrived: Time,
        changed: watch::Sender<bool>,
    ) -> Self {
        let followed = submission.attached;
        let maps = submission.splits.len() as u32;
        let input_bytes = submission.splits.iter().map(Split::bytes).sum();
        Self {
            maps,
            input_bytes,
            submission,
            key,
            cuts,
            state: JobState::Waiting,
            arrived,
            started: None,
            maps_done: None,
            shuffle_done: None,
            ended: None,
            map_reports: BTreeMap::new(),
            nearness: BTreeMap::new(),
            maps_succeeded: BTreeSet::new(),
            reduces_done: 0,
            running: [0; 2],
            totals: JobTotals::default(),
            attempts: AttemptCounts::default(),
            counters: BTreeMap::new(),
            parts: BTreeMap::new(),
            incidents: VecDeque::new(),
            incidents_omitted: 0,
            last_failure: BTreeMap::new(),
            failure: None,
            records: Vec::new(),
            record_of: BTreeMap::new(),
            fetches: Vec::new(),
            omitted: 0,
            logs: Vec::new(),
            log_bytes: 0,
            changed,
            followed,
            closing: None,
        }
    }

    fn end(&mut self, now: Time, outcome: Outcome) {
        self.ended = Some(now);
        self.submission.splits = Vec::new();
        self.submission.side = Vec::new();
        self.cuts = Vec::new();
        self.state = match outcome {
            Outcome::Succeeded => JobState::Succeeded,
            Outcome::Failed { .. } => JobState::Failed,
            Outcome::Cancelled => JobState::Cancelled,
        };
        if let Some((mut failure, task)) = translate::job_failure(outcome)
            && self.failure.is_none()
        {
            failure.detail = task.and_then(|task| self.last_failure.get(&task).cloned());
            self.failure = Some(failure);
        }
        self.touch();
    }

    fn touch(&mut self) {
        let ended = self.state.ended();
        self.changed.send_modify(|was| *was = ended);
    }

    fn incident(&mut self, now: Time, text: &str) {
        if self.incidents.len() == INCIDENTS_MAX {
            self.incidents.pop_front();
            self.incidents_omitted += 1;
        }
        let since = now.since(self.arrived).seconds();
        self.incidents.push_back(format!("{since:.3} s: {text}"));
    }

    fn keep_record(&mut self, record: AttemptRecord) {
        if self.records.len() < TRACE_RECORDS_MAX {
            self.record_of.insert(record.attempt, self.records.len());
            self.records.push(record);
        } else {
            self.omitted += 1;
        }
    }

    fn keep_fetch(&mut self, record: FetchRecord) {
        if self.fetches.len() < TRACE_RECORDS_MAX {
            self.fetches.push(record);
        } else {
            self.omitted += 1;
        }
    }

    fn end_record(
        &mut self,
        attempt: AttemptId,
        now: Time,
        end: AttemptEnd,
        report: Option<AttemptReport>,
        offset_ns: i64,
    ) {
        let Some(record) = self.record_of.get(&attempt).and_then(|at| self.records.get_mut(*at)) else {
            return;
        };
        // Until a ping has measured the offset, a worker's time may lie a little outside what the master saw.
        let inside = |ns: u64| shift(ns, offset_ns).clamp(record.launched_ns, now.0);
        match report.as_ref().filter(|report| 0 < report.ended_ns) {
            Some(report) => {
                record.started_ns = Some(inside(report.started_ns));
                record.ended_ns = Some(inside(report.ended_ns));
            }
            None => record.ended_ns = Some(now.0),
        }
        record.end = end;
        record.report = report;
    }

    fn note_locality(&mut self, attempt: AttemptId, same_host: bool) {
        let index = attempt.task.index;
        let Some(report) = self.map_reports.get(&index) else { return };
        // A task without input is near to nothing.
        if 0 < report.bytes_in {
            let nearness = match (0 < report.local_bytes, same_host) {
                (true, _) => Nearness::Local,
                (false, true) => Nearness::SameHost,
                (false, false) => Nearness::Remote,
            };
            self.nearness.insert(index, nearness);
        }
    }

    fn add_report(&mut self, report: &AttemptReport) {
        self.totals.spills += report.spills;
        self.totals.spilled_bytes += report.spilled_bytes;
        self.totals.cpu_ns += report.cpu_ns;
        let peak = self.totals.worker_memory_peak_bytes.max(report.memory_peak_bytes);
        self.totals.worker_memory_peak_bytes = peak;
        for (name, count) in &report.counters {
            let sum = self.counters.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    fn add_map_report(&mut self, report: &AttemptReport) {
        self.totals.map_records_in += report.records_in;
        self.totals.map_bytes_in += report.bytes_in;
        self.totals.map_records_out += report.records_out;
        self.totals.map_bytes_out += report.bytes_out;
        self.add_report(report);
    }

    fn log(&mut self, attempt: Option<AttemptId>, worker: WorkerId, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let same = |entry: &LogEntry| entry.attempt == attempt && entry.worker == worker;
        let at = match self.logs.iter().rposition(same) {
            Some(at) => at,
            None => {
                self.logs.push(LogEntry { attempt, worker, text: String::new(), omitted_bytes: 0 });
                self.logs.len() - 1
            }
        };
        let room = LOG_BYTES_PER_JOB_MAX.saturating_sub(self.log_bytes);
        let entry = &mut self.logs[at];
        let room = room.min(LOG_BYTES_PER_ATTEMPT_MAX.saturating_sub(entry.text.len()));
        let kept = bytes.len().min(room);
        entry.text.push_str(&String::from_utf8_lossy(&bytes[..kept]));
        entry.omitted_bytes += (bytes.len() - kept) as u64;
        self.log_bytes += kept;
    }

    fn status(&self, now: Time, id: JobId, in_flight: u64, workers: u32, slots: u32) -> JobStatus {
        let submission = &self.submission;
        let maps = self.maps;
        let mut totals = self.totals.clone();
        let mut counters = self.counters.clone();
        // While the job runs, maps count as they stand; at the end they are folded into the totals.
        let mut input_bytes_read = totals.map_bytes_in;
        for nearness in self.nearness.values() {
            match nearness {
                Nearness::Local => totals.splits_local += 1,
                Nearness::SameHost => totals.splits_same_host += 1,
                Nearness::Remote => totals.splits_remote += 1,
            }
        }
        for report in self.map_reports.values() {
            input_bytes_read += report.bytes_in;
            totals.map_records_out += report.records_out;
            totals.map_bytes_out += report.bytes_out;
            totals.map_records_in += report.records_in;
            totals.map_bytes_in += report.bytes_in;
            for (name, count) in &report.counters {
                *counters.entry(name.clone()).or_default() += count;
            }
        }
        JobStatus {
            schema: SCHEMA,
            job: id,
            name: submission.name.clone(),
            parameters: submission.parameters.clone(),
            state: self.state,
            maps: TaskCounts {
                total: maps,
                running: self.running[TaskKind::Map as usize],
                done: self.maps_succeeded.len() as u32,
            },
            reduces: TaskCounts {
                total: submission.reduces,
                running: self.running[TaskKind::Reduce as usize],
                done: self.reduces_done,
            },
            segments_total: u64::from(maps) * u64::from(submission.reduces),
            input_bytes: self.input_bytes,
            input_bytes_read: input_bytes_read + in_flight,
            arrived_ns: self.arrived.0,
            started_ns: self.started.map(|at| at.0),
            maps_done_ns: self.maps_done.map(|at| at.0),
            shuffle_done_ns: self.shuffle_done.map(|at| at.0),
            ended_ns: self.ended.map(|at| at.0),
            now_ns: now.0,
            totals,
            attempts: self.attempts,
            counters,
            parts: self.parts.values().cloned().collect(),
            incidents: self.incidents.iter().cloned().collect(),
            incidents_omitted: self.incidents_omitted,
            failure: self.failure.clone(),
            remarks: submission.remarks.clone(),
            workers,
            slots,
            output: submission.output.clone(),
        }
    }
}

/// A worker's clock reading in the master's clock.
fn shift(worker_ns: u64, offset_ns: i64) -> u64 {
    worker_ns.saturating_add_signed(-offset_ns)
}

/// Whether a process that ended so was brought down by what ran in it, not from outside.
fn crashed(signal: Option<i32>, code: Option<i32>) -> bool {
    match (signal, code) {
        // SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS
        (Some(signal), _) => matches!(signal, 4 | 5 | 6 | 7 | 8 | 11 | 31),
        // A worker ends itself with codes of its own alone: user code has called `exit`.
        (None, Some(code)) => !(exit::worker::RENEW..=exit::worker::UNAUTHORISED).contains(&code),
        (None, None) => false,
    }
}

const SIGBUS: i32 = 7;

fn signal_name(signal: i32) -> String {
    let name = match signal {
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

fn one_line(text: &str) -> String {
    gristmill_worker::agent::slots::clean(text)
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
