//! Frames of workers: each becomes a fact for the core, and numbers of its job.
//!
//! A worker's report is accepted for what it holds: attempts that it was ordered to run and has not ended, and
//! partitions whose home it is. Reports about anything else change nothing.

use super::super::recovery::RecoveryNote;
use super::super::translate;
use super::MasterState;
use super::attempts::ReportedEnd;
use super::bad_records;
use super::fleet::shift;
use super::quotas::hold_to_quota;
use crate::api::FetchRecord;
use crate::journal::Encoded;
use gristmill_scheduler::event::{Event, External};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskKind, WorkerId};
use gristmill_scheduler::rules::{Rule, holds};
use gristmill_scheduler::units::{Bytes, Span, Time};
use gristmill_worker::commit::NAMED_OUTPUTS_MAX;
use gristmill_worker::input::FileStamp;
use gristmill_worker::protocol::{
    AttemptProgress, AttemptReport, DiskRoom, FailureClass, FetchedOutput, Heartbeat, MasterFrame, Part,
    WorkerFrame,
};
use gristmill_worker::sanitize;
use gristmill_worker::segment::{CUT_KEY_BYTES_MAX, Fingerprint};
use std::collections::BTreeSet;

/// Run time after which an attempt's progress is first reported. It is reported again each time the run time has grown
/// by one part in [`PROGRESS_PARTS`].
const PROGRESS_FIRST: Span = Span::milliseconds(200);
const PROGRESS_PARTS: u64 = 4;

/// Message for an attempt that succeeded just before it was stopped.
const OTHER_COUNTS: &str = "another attempt of its task ended before it";

/// A failed transfer, as reported by its home.
struct FailedFetch {
    home: WorkerId,
    holder: WorkerId,
    map: AttemptId,
    class: FailureClass,
    message: String,
}

impl MasterState {
    /// Notes a sign of life of a worker, and writes down frames that count.
    fn hear(&mut self, now: Time, from: WorkerId, frame: &mut WorkerFrame) {
        let Some(worker) = self.fleet.get_mut(from) else { return };
        worker.last_heard = now;
        if std::mem::take(&mut worker.silent) {
            self.events.push(Event::WorkerSilent { worker: from, silent: false });
        }
        if frame.is_numbered() {
            worker.heard += 1;
            shorten(frame);
            self.journal.keep(|| RecoveryNote::Said { at: now, worker: from, frame: Encoded::new(frame) });
        }
    }

    /// Handles a frame of a worker.
    pub(crate) fn frame(&mut self, now: Time, from: WorkerId, mut frame: WorkerFrame) {
        if !holds(Rule::LostWorkersAreFenced) && !self.fleet.workers.contains_key(&from) {
            return self.heed_lost(now, from, frame);
        }
        self.hear(now, from, &mut frame);
        let Some(worker) = self.fleet.get_mut(from) else { return };
        let ended = |attempt, report| ReportedEnd { attempt, worker: from, report };
        match frame {
            WorkerFrame::Hello(_) | WorkerFrame::Goodbye => {}
            WorkerFrame::Leave => drop(self.drain(from)),
            WorkerFrame::Heartbeat(heartbeat) => self.heartbeat(now, from, heartbeat),
            WorkerFrame::Pong { master_ns, worker_ns } => worker.measure_clock(now, master_ns, worker_ns),
            WorkerFrame::MapFinished { attempt, fingerprint, report } => {
                if self.stopped_there(from, attempt) {
                    self.map_reported(now, ended(attempt, report), fingerprint);
                }
            }
            WorkerFrame::PartFinished { attempt, part, stamp, report } => {
                if self.stopped_there(from, attempt) {
                    self.part_reported(now, ended(attempt, report), part, stamp);
                }
            }
            WorkerFrame::AttemptFailed { attempt, class, message, report } => {
                if self.stopped_there(from, attempt) {
                    self.attempt_failed(now, ended(attempt, report), class, &message);
                }
            }
            WorkerFrame::Returned { attempt } => {
                if self.stopped_there(from, attempt) {
                    self.returned(now, attempt);
                }
            }
            WorkerFrame::Suspended { attempt } => {
                if worker.running.contains_key(&attempt) {
                    worker.suspended.insert(attempt);
                    self.suspended(now, attempt);
                }
            }
            WorkerFrame::NotSuspended { attempt } => {
                if worker.running.contains_key(&attempt) {
                    self.events.push(Event::SuspensionRefused { attempt });
                }
            }
            WorkerFrame::Divided { attempt, .. }
            | WorkerFrame::ReduceDivided { attempt, .. }
            | WorkerFrame::NotDivided { attempt } => self.divided(now, from, attempt, frame),
            WorkerFrame::Fetched { outputs, from: holder, started_ns, ended_ns } => {
                let times = (shift(started_ns, worker.offset_ns), shift(ended_ns, worker.offset_ns));
                for output in outputs {
                    self.fetched(now, from, holder, output, times);
                }
            }
            WorkerFrame::FetchFailed { map, from: holder, class, message } => {
                self.fetch_failed(now, FailedFetch { home: from, holder, map, class, message });
            }
            WorkerFrame::CommitRequest { attempt } => {
                if worker.running.contains_key(&attempt) {
                    self.events.push(Event::CommitRequested { attempt });
                }
            }
            WorkerFrame::Log { attempt, bytes } => self.logged(from, attempt, &bytes),
            WorkerFrame::Holding(holding) => self.reconcile(now, from, &holding),
        }
    }

    /// Enters that an attempt has given up the end of its input, or cannot. If the order was withdrawn, or the input cannot be
    /// divided there, no task reads the end, so that the attempt does not count.
    fn divided(&mut self, now: Time, from: WorkerId, attempt: AttemptId, frame: WorkerFrame) {
        if self.fleet.get(from).is_none_or(|worker| !worker.running.contains_key(&attempt)) {
            return;
        }
        let division = match frame {
            WorkerFrame::Divided { kept, .. } => Event::MapDivided { attempt, kept: Bytes(kept), work: None },
            WorkerFrame::ReduceDivided { key, left, .. } => {
                Event::ReduceDivided { attempt, key, left: left.map(Bytes), work: None }
            }
            _ => return self.events.push(Event::DivisionRefused { attempt }),
        };
        let is_possible = self.jobs.get(attempt.task.job).is_some_and(|job| match &division {
            Event::MapDivided { kept, .. } if attempt.task.kind == TaskKind::Map => {
                let split = job.submission.splits.get(attempt.task.index as usize);
                split.is_some_and(|split| split.divide(kept.0).is_some())
            }
            Event::ReduceDivided { key, .. } if attempt.task.kind == TaskKind::Reduce => {
                let bounds = job.input.reduce(attempt.task.index).bounds;
                key.len() <= CUT_KEY_BYTES_MAX && bounds.from < *key && bounds.contain(key)
            }
            _ => false,
        });
        let (class, reason) = match is_possible {
            true if self.core.is_dividing(attempt) || self.core.is_dying(attempt) => {
                return self.events.push(division);
            }
            true => (FailureClass::Cancelled, "it gave up the end of its input too late"),
            false => (FailureClass::Worker, "it gave up an end that its input does not have"),
        };
        self.stopped_there(from, attempt);
        self.fleet.queue(from, &MasterFrame::Kill { attempt });
        let ended = ReportedEnd { attempt, worker: from, report: AttemptReport::default() };
        self.attempt_failed(now, ended, class, reason);
    }

    /// Handles a frame of a lost worker like a master without a fence would.
    fn heed_lost(&mut self, now: Time, from: WorkerId, frame: WorkerFrame) {
        if let WorkerFrame::PartFinished { attempt, part, stamp, report } = frame {
            self.part_reported(now, ReportedEnd { attempt, worker: from, report }, part, stamp);
        }
    }

    /// Stores output of user code.
    fn logged(&mut self, from: WorkerId, attempt: Option<AttemptId>, bytes: &[u8]) {
        let Some(worker) = self.fleet.get(from) else { return };
        if attempt.is_some_and(|attempt| !worker.running.contains_key(&attempt)) {
            return;
        }
        // Output of an unknown attempt is kept with every job that runs there.
        let mut jobs: Vec<JobId> = match attempt {
            Some(attempt) => vec![attempt.task.job],
            None => worker.running.keys().map(|attempt| attempt.task.job).collect(),
        };
        // The jobs are sorted.
        jobs.dedup();
        self.jobs.add_log(&jobs, from, attempt, bytes);
    }

    fn heartbeat(&mut self, now: Time, from: WorkerId, mut heartbeat: Heartbeat) {
        let Some(worker) = self.fleet.get_mut(from) else { return };
        heartbeat.running.retain(|progress| worker.running.contains_key(&progress.attempt));
        heartbeat.running.shrink_to_fit();
        let rates = std::mem::take(&mut heartbeat.fetches);
        let room = heartbeat.disk_room;
        if !rates.is_empty() {
            self.events.push(Event::FetchRates { home: from, routes: rates });
        }
        let mut moved = Vec::new();
        for progress in &heartbeat.running {
            if let Some(bytes) = worker.running.get_mut(&progress.attempt) {
                let before = std::mem::replace(bytes, progress.bytes_in);
                moved.push((*progress, before));
            }
        }
        let jobs: BTreeSet<JobId> = heartbeat.running.iter().map(|p| p.attempt.task.job).collect();
        worker.heartbeat = heartbeat;
        for (progress, before) in moved {
            self.jobs.read_in_flight(progress.attempt, before, progress.bytes_in);
            self.progressed(now, progress);
        }
        for job in jobs {
            if let Some(job) = self.jobs.get_mut(job) {
                job.touch();
            }
        }
        if let Some(room) = room {
            self.notice_disk_room(now, from, room);
        }
    }

    /// Reports to the core how much an attempt has read, where that matters: a map, or a reduce that may be divided.
    /// Short attempts are not reported, and long ones at ever longer intervals, so that an attempt costs few facts
    /// however long it runs.
    fn progressed(&mut self, now: Time, progress: AttemptProgress) {
        let AttemptProgress { attempt, bytes_in, divisible_bytes, .. } = progress;
        let reports = attempt.task.kind == TaskKind::Map || 0 < divisible_bytes;
        let known = self.core.attempt(attempt).filter(|_| reports);
        let Some(known) = known.filter(|known| self.core.wants_progress() && !known.queued && !known.dying)
        else {
            return;
        };
        let ran = now.since(known.started);
        let due = known.said.map_or(PROGRESS_FIRST, |said| {
            let before = said.since(known.started).0;
            Span(before.saturating_add(before / PROGRESS_PARTS))
        });
        if due <= ran {
            let of = if attempt.task.kind == TaskKind::Reduce { divisible_bytes } else { 0 };
            self.events.push(Event::AttemptProgressed { attempt, read: Bytes(bytes_in), of: Bytes(of) });
        }
    }

    fn fetched(
        &mut self,
        now: Time,
        home: WorkerId,
        holder: WorkerId,
        output: FetchedOutput,
        (started_ns, ended_ns): (u64, u64),
    ) {
        let FetchedOutput { map, mut partitions, bytes, resent } = output;
        let job = map.task.job;
        partitions.retain(|partition| self.core.awaits(home, map, *partition));
        if partitions.is_empty() {
            return;
        }
        let at_home = partitions.iter().filter(|&&partition| self.core.is_home(home, job, partition)).count();
        if let Some(entry) = self.jobs.get_mut(job) {
            let sum = &mut entry.records.sums.totals.shuffle_bytes;
            *sum = sum.saturating_add(bytes);
            entry.records.sums.totals.shuffle_segments += at_home as u64;
            entry.arrived_damaged(now, (holder, home), resent);
            // A worker's clock measures durations well. A transfer cannot have ended after it was reported, so the
            // whole interval is moved.
            let late_ns = ended_ns.saturating_sub(now.0);
            entry.records.fetched(FetchRecord {
                map,
                from: holder,
                to: home,
                partitions: partitions.len() as u32,
                bytes,
                started_ns: started_ns.min(ended_ns).saturating_sub(late_ns),
                ended_ns: ended_ns - late_ns,
            });
            entry.touch();
        }
        self.events.push(Event::Fetched { job, home, map, partitions });
    }

    fn fetch_failed(&mut self, now: Time, failed: FailedFetch) {
        let FailedFetch { home, holder, map, class, message } = failed;
        if !self.core.could_fetch(home, map, holder) {
            return;
        }
        let (job, message) = (map.task.job, sanitize::message(&message));
        if let Some(entry) = self.jobs.get_mut(job) {
            entry.incident(now, &format!("{home} could not fetch {map} from {holder}: {message}"));
            entry.failures.note(map.task, Some(class), message);
            entry.touch();
        }
        let class = translate::failure(class);
        self.events.push(Event::FetchFailed { job, home, map, class });
    }

    /// Enters the room that a worker has for spill files. If this makes its disks full, or no longer full, the core and
    /// the users are notified.
    pub(super) fn notice_disk_room(&mut self, now: Time, worker: WorkerId, room: DiskRoom) {
        let (free, reserve) = (Bytes(room.free_bytes), Bytes(room.reserve_bytes));
        if !self.fleet.accept_room(now, worker, || self.core.room_matters(worker, free, reserve)) {
            return;
        }
        self.events.push(Event::WorkerDiskRoom { worker, free, reserve });
        let text = match self.core.disk_full(worker) {
            true => format!("{worker} has room on its spill disks again: {free} are free"),
            false => format!(
                "the spill disks of {worker} are full: {free} are free, and {reserve} are to stay free (--disk-reserve); it \
                 gets no new tasks until there is room, if others have some"
            ),
        };
        tracing::warn!("{text}");
        self.jobs.incident_in_all(now, &text);
    }

    /// Notes that an attempt no longer runs on this worker. Returns true if it did.
    pub(super) fn stopped_there(&mut self, worker: WorkerId, attempt: AttemptId) -> bool {
        let bytes = self.fleet.get_mut(worker).and_then(|worker| worker.running.remove(&attempt));
        let Some(bytes) = bytes else { return false };
        self.jobs.read_in_flight(attempt, bytes, 0);
        true
    }
}

/// Attempts that ended, came back or were suspended.
impl MasterState {
    /// Enters that a map attempt has produced its output.
    fn map_reported(&mut self, now: Time, mut ended: ReportedEnd, fingerprint: Fingerprint) {
        let attempt = ended.attempt;
        if attempt.task.kind != TaskKind::Map || self.publishes(attempt) {
            return self.refuse_result(now, ended, "a map output");
        }
        let live = self.jobs.get(attempt.task.job).is_some_and(|job| !job.state.ended());
        if live && self.core.is_dying(attempt) {
            // It may have ended before the kill order arrived, or have lost that order with its connection.
            self.fleet.queue(ended.worker, &MasterFrame::Kill { attempt });
            return self.attempt_failed(now, ended, FailureClass::Cancelled, OTHER_COUNTS);
        }
        if let Some(reason) = self.too_many_bad_records(&mut ended) {
            return self.attempt_failed(now, ended, FailureClass::Input, &reason);
        }
        let (output_bytes, took) = (Bytes(ended.report.bytes_out), ended.slot_time());
        let (offset, same_host) = self.clock_and_place(&ended);
        if let Some(job) = self.jobs.get_mut(attempt.task.job) {
            job.map_finished(now, ended, offset, same_host);
        }
        self.events.push(Event::MapFinished { attempt, output_bytes, took, fingerprint: Some(fingerprint) });
        self.events.extend(hold_to_quota(&mut self.jobs, attempt.task.job));
    }

    /// Enters that an attempt has built its part.
    fn part_reported(&mut self, now: Time, mut ended: ReportedEnd, part: Part, stamp: FileStamp) {
        let attempt = ended.attempt;
        if !self.publishes(attempt) {
            return self.refuse_result(now, ended, "a part");
        }
        if let Some(reason) = self.too_many_bad_records(&mut ended) {
            return self.attempt_failed(now, ended, FailureClass::Input, &reason);
        }
        let (output_bytes, took) = (Bytes(part.all_bytes()), ended.slot_time());
        let event = match attempt.task.kind {
            TaskKind::Map => Event::MapFinished { attempt, output_bytes, took, fingerprint: None },
            TaskKind::Reduce => Event::ReduceFinished { attempt, output_bytes, took },
        };
        let (offset, same_host) = self.clock_and_place(&ended);
        if let Some(job) = self.jobs.get_mut(attempt.task.job) {
            job.part_finished(now, ended, (part, stamp), offset, same_host);
        }
        self.events.push(event);
        self.events.extend(hold_to_quota(&mut self.jobs, attempt.task.job));
    }

    fn suspended(&mut self, now: Time, attempt: AttemptId) {
        self.events.push(Event::AttemptSuspended { attempt });
        if let Some(job) = self.jobs.get_mut(attempt.task.job) {
            job.records.suspended(attempt, now);
            job.touch();
        }
    }

    fn too_many_bad_records(&mut self, ended: &mut ReportedEnd) -> Option<String> {
        self.jobs.get_mut(ended.attempt.task.job)?.too_many_bad_records(ended)
    }

    /// True if an attempt builds a part: a reduce, or a map of a job without reduces.
    fn publishes(&self, attempt: AttemptId) -> bool {
        let job = self.jobs.get(attempt.task.job);
        attempt.task.kind == TaskKind::Reduce || job.is_some_and(|job| job.submission.reduces == 0)
    }

    /// Fails an attempt that ended with a result that its kind does not produce.
    fn refuse_result(&mut self, now: Time, ended: ReportedEnd, what: &str) {
        let message = format!("its worker reported {what}, which such an attempt does not make");
        self.attempt_failed(now, ended, FailureClass::Worker, &message);
    }

    /// Clock offset of the worker of an attempt, and true if that worker runs on the host of the job's submitter.
    fn clock_and_place(&self, ended: &ReportedEnd) -> (i64, bool) {
        let job = self.jobs.get(ended.attempt.task.job);
        let submitter = job.and_then(|job| job.submission.submitter.as_ref());
        let worker = self.fleet.get(ended.worker);
        let same_host = matches!((submitter, worker), (Some(a), Some(b)) if a.host == b.endpoint.host);
        (self.fleet.clock_offset(ended.worker), same_host)
    }

    fn attempt_failed(&mut self, now: Time, mut ended: ReportedEnd, class: FailureClass, message: &str) {
        if class == FailureClass::Input {
            // This names the record that exceeds the maximum.
            self.too_many_bad_records(&mut ended);
        }
        let attempt = ended.attempt;
        let offset = self.fleet.clock_offset(ended.worker);
        self.events.push(Event::AttemptFailed { attempt, class: translate::failure(class) });
        let Some(job) = self.jobs.get_mut(attempt.task.job) else { return };
        if job.attempt_failed(now, ended, (class, &sanitize::message(message)), offset) {
            let job = attempt.task.job;
            self.events.push(Event::JobFailed { job, cause: External::OutputUnavailable });
        }
    }

    /// Enters that a queued attempt came back before it started.
    fn returned(&mut self, now: Time, attempt: AttemptId) {
        self.events.push(Event::AttemptReturned { attempt });
        let Some(job) = self.jobs.get_mut(attempt.task.job) else { return };
        job.records.counts.returned += 1;
        job.records.returned(attempt, now);
    }
}

/// Cuts the texts of a frame to the lengths at which they are shown, before the frame is written down.
fn shorten(frame: &mut WorkerFrame) {
    if let WorkerFrame::MapFinished { report, .. }
    | WorkerFrame::PartFinished { report, .. }
    | WorkerFrame::AttemptFailed { report, .. } = frame
    {
        bad_records::shorten(&mut report.bad_records);
    }
    match frame {
        WorkerFrame::AttemptFailed { message, .. } | WorkerFrame::FetchFailed { message, .. } => {
            *message = sanitize::message(message);
        }
        // Files are named by the master.
        WorkerFrame::PartFinished { part, .. } => {
            part.name = String::new();
            // One more than the maximum is kept, so that the part is still refused when it is published.
            part.named.truncate(NAMED_OUTPUTS_MAX + 1);
        }
        _ => {}
    }
}
