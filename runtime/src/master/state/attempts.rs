//! Attempts that ended, came back or were suspended, as reported by their workers.

use super::super::translate;
use super::MasterState;
use super::sums::slot_ns;
use crate::api::{BuiltPart, FailureCode, JobFailure, NamedBadRecord};
use gristmill_scheduler::event::{Event, External};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::{Bytes, Span, Time};
use gristmill_worker::commit::{nonce_of, part_name};
use gristmill_worker::input::{FileStamp, InputError};
use gristmill_worker::objects::{attempt_object_name, is_url};
use gristmill_worker::protocol::{AttemptReport, FailureClass, MasterFrame, Part};
use gristmill_worker::sanitize;
use gristmill_worker::segment::OutputFingerprint;

/// Number of attempts of one task whose part could not be written, after which the output counts as unwritable.
const OUTPUT_TRIES_MAX: u32 = 3;

/// Message for an attempt that succeeded just before it was stopped.
const OTHER_COUNTS: &str = "another attempt of its task ended before it";

/// An ended attempt, with its worker's report.
pub(super) struct EndedAttempt {
    pub(super) attempt: AttemptId,
    pub(super) worker: WorkerId,
    pub(super) report: AttemptReport,
}

impl EndedAttempt {
    fn slot_time(&self) -> Span {
        Span(slot_ns(&self.report))
    }
}

impl MasterState {
    /// Enters that a map attempt has produced its output.
    pub(super) fn map_reported(&mut self, now: Time, mut ended: EndedAttempt, print: OutputFingerprint) {
        let attempt = ended.attempt;
        if attempt.task.kind != TaskKind::Map || self.publishes(attempt) {
            return self.refuse_result(now, ended, "a map output");
        }
        let live = self.jobs.get(&attempt.task.job).is_some_and(|job| !job.state.ended());
        if live && self.core.is_dying(attempt) {
            // It may have ended before the kill order arrived, or have lost that order with its connection.
            self.queue(ended.worker, &MasterFrame::Kill { attempt });
            return self.attempt_failed(now, ended, FailureClass::Cancelled, OTHER_COUNTS);
        }
        if let Some(reason) = self.too_many_bad_records(&mut ended) {
            return self.attempt_failed(now, ended, FailureClass::Input, &reason);
        }
        let (output_bytes, took) = (Bytes(ended.report.bytes_out), ended.slot_time());
        self.map_finished(now, ended);
        let print = Some(translate::print(print));
        self.events.push(Event::MapFinished { attempt, output_bytes, took, print });
        self.hold_to_quota(attempt.task.job);
    }

    /// Enters that an attempt has built its part.
    pub(super) fn part_reported(&mut self, now: Time, mut ended: EndedAttempt, part: Part, stamp: FileStamp) {
        let attempt = ended.attempt;
        if !self.publishes(attempt) {
            return self.refuse_result(now, ended, "a part");
        }
        if let Some(reason) = self.too_many_bad_records(&mut ended) {
            return self.attempt_failed(now, ended, FailureClass::Input, &reason);
        }
        let (output_bytes, took) = (Bytes(part.all_bytes()), ended.slot_time());
        let event = match attempt.task.kind {
            TaskKind::Map => Event::MapFinished { attempt, output_bytes, took, print: None },
            TaskKind::Reduce => Event::ReduceFinished { attempt, output_bytes, took },
        };
        self.part_finished(now, ended, part, stamp);
        self.events.push(event);
        self.hold_to_quota(attempt.task.job);
    }

    pub(super) fn suspended(&mut self, now: Time, attempt: AttemptId) {
        self.events.push(Event::AttemptSuspended { attempt });
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.records.suspended(attempt, now);
            job.touch();
        }
    }

    /// Enters the records skipped by an attempt of a map. Returns a description of the record that exceeds the job's
    /// maximum, if there is one.
    fn too_many_bad_records(&mut self, ended: &mut EndedAttempt) -> Option<String> {
        let task = ended.attempt.task;
        let job = self.jobs.get_mut(&task.job).filter(|job| !job.state.ended())?;
        let files = std::mem::take(&mut ended.report.bad_records);
        if task.kind != TaskKind::Map || files.is_empty() {
            return None;
        }
        let max = job.submission.bad_records_max;
        let NamedBadRecord { path, offset, reason } = job.bad_records.enter(task.index, files, max)?;
        let error = InputError::TooManyBadRecords { path: path.as_str().into(), offset, reason, max };
        Some(error.to_string())
    }

    /// True if an attempt builds a part: a reduce, or a map of a job without reduces.
    fn publishes(&self, attempt: AttemptId) -> bool {
        let job = self.jobs.get(&attempt.task.job);
        attempt.task.kind == TaskKind::Reduce || job.is_some_and(|job| job.submission.reduces == 0)
    }

    /// Fails an attempt that ended with a result that its kind does not produce.
    fn refuse_result(&mut self, now: Time, ended: EndedAttempt, what: &str) {
        let message = format!("its worker reported {what}, which such an attempt does not make");
        self.attempt_failed(now, ended, FailureClass::Worker, &message);
    }

    fn map_finished(&mut self, now: Time, ended: EndedAttempt) {
        let EndedAttempt { attempt, worker: from, report } = ended;
        let offset = self.clock_offset(from);
        let same_host = self.same_host_as_submitter(attempt.task.job, from);
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        let (live, empty) = (!job.state.ended(), report.bytes_out == 0);
        job.records.mapped(attempt, now, report, offset, (live, same_host));
        if live && empty {
            // Empty segments are not fetched: they count as fetched everywhere at once.
            job.records.sums.totals.shuffle_segments += u64::from(job.submission.reduces);
        }
        if live && job.records.maps_succeeded == job.maps {
            job.times.maps_done = Some(now);
            // If a map ran again, data was missing, so the shuffle is not done.
            job.times.shuffle_done = None;
        }
        job.report_left_out_counters(now);
        job.touch();
    }

    fn same_host_as_submitter(&self, job: JobId, worker: WorkerId) -> bool {
        let submitter = self.jobs.get(&job).and_then(|job| job.submission.submitter.as_ref());
        let worker = self.workers.get(&worker);
        matches!((submitter, worker), (Some(a), Some(b)) if a.host == b.endpoint.host)
    }

    fn part_finished(&mut self, now: Time, ended: EndedAttempt, mut part: Part, stamp: FileStamp) {
        let EndedAttempt { attempt, worker: from, report } = ended;
        let offset = self.clock_offset(from);
        let same_host = self.same_host_as_submitter(attempt.task.job, from);
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        let live = !job.state.ended();
        match attempt.task.kind {
            TaskKind::Map => job.records.mapped(attempt, now, report, offset, (live, same_host)),
            TaskKind::Reduce => {
                job.records.reduced(attempt, now, report, offset);
                job.handed_over.done(attempt.task);
            }
        }
        // A part without a permit does not count; the core decides the same.
        if !live || job.output.permits.get(&attempt.task) != Some(&attempt) {
            return;
        }
        job.output.permits.remove(&attempt.task);
        // Files are named here; the worker's own name is ignored.
        let parts = if job.submission.reduces == 0 { job.maps } else { job.submission.reduces };
        part.name = part_name(attempt.task.index, parts, job.submission.part_format);
        if is_url(&job.submission.output.to_text()) {
            let nonce = nonce_of(&job.submission.output_probe);
            part.name = attempt_object_name(&part.name, nonce, attempt.epoch);
        }
        let sums = &mut job.records.sums.totals;
        sums.records_out = sums.records_out.saturating_add(part.all_records());
        sums.bytes_out = sums.bytes_out.saturating_add(part.all_bytes());
        job.output.parts.insert(attempt.task.index, (part, BuiltPart { attempt, stamp }));
        match attempt.task.kind {
            TaskKind::Map if job.records.maps_succeeded == job.maps => job.times.maps_done = Some(now),
            TaskKind::Map => {}
            TaskKind::Reduce => job.output.reduces_done += 1,
        }
        job.report_left_out_counters(now);
        job.touch();
    }

    pub(super) fn attempt_failed(
        &mut self,
        now: Time,
        mut ended: EndedAttempt,
        class: FailureClass,
        message: &str,
    ) {
        if class == FailureClass::Input {
            // This names the record that exceeds the maximum.
            self.too_many_bad_records(&mut ended);
        }
        let EndedAttempt { attempt, worker: from, report } = ended;
        let message = &sanitize::message(message);
        let offset = self.clock_offset(from);
        self.events.push(Event::AttemptFailed { attempt, class: translate::failure(class) });
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.records.failed(attempt, now, (class, message), report, offset);
        match class {
            FailureClass::User | FailureClass::Hang => job.records.counts.failed_user += 1,
            FailureClass::Cancelled => job.records.counts.cancelled += 1,
            _ => job.records.counts.failed_other += 1,
        }
        if class != FailureClass::Cancelled {
            job.failures.note(attempt.task, Some(class), format!("{attempt} on {from}: {message}"));
            job.incident(now, &format!("{attempt} on {from} failed ({}): {message}", class.word()));
        }
        if matches!(class, FailureClass::Output | FailureClass::OutputGone)
            && !job.state.ended()
            && job.output.closing.is_none()
        {
            let tries = job.output.failures.entry(attempt.task).or_default();
            *tries += 1;
            if *tries < OUTPUT_TRIES_MAX {
                // A transient disk error, or one of a single machine: the task is retried elsewhere.
                return job.touch();
            }
            let detail = Some(format!("{attempt} on {from}: {message}"));
            let (code, message) = match class {
                FailureClass::OutputGone => (
                    FailureCode::OutputGone,
                    "the output directory is gone: it was removed while the job ran, or a worker does not see it",
                ),
                _ => (FailureCode::Output, "the output directory cannot be written"),
            };
            job.failures.of_job = Some(JobFailure { code, message: message.to_owned(), detail });
            let job = attempt.task.job;
            self.events.push(Event::JobFailed { job, cause: External::OutputUnavailable });
        }
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.touch();
        }
    }

    /// Enters that a queued attempt came back before it started.
    pub(super) fn returned(&mut self, now: Time, attempt: AttemptId) {
        self.events.push(Event::AttemptReturned { attempt });
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.records.counts.returned += 1;
        job.records.returned(attempt, now);
    }
}
