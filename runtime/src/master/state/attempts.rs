//! Records the end of an attempt in the job that clients see: bad records, map output, built part or failure. The
//! scheduler's core decides which attempts run next.

use super::job::JobEntry;
use super::sums::slot_ns;
use crate::api::{BuiltPart, FailureCode, JobFailure, NamedBadRecord};
use gristmill_scheduler::ids::{AttemptId, TaskKind, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::commit::{nonce_of, part_name};
use gristmill_worker::input::{BadRecords, FileStamp};
use gristmill_worker::objects::{attempt_object_name, is_url};
use gristmill_worker::protocol::{AttemptReport, FailureClass, Part};

/// Number of attempts of one task whose part could not be written, after which the output counts as unwritable.
const OUTPUT_TRIES_MAX: u32 = 3;

/// An ended attempt, with its worker's report.
pub(super) struct ReportedEnd {
    pub(super) attempt: AttemptId,
    pub(super) worker: WorkerId,
    pub(super) report: AttemptReport,
}

impl ReportedEnd {
    pub(super) fn slot_time(&self) -> Span {
        Span(slot_ns(&self.report))
    }
}

impl JobEntry {
    /// Enters the records skipped by an attempt of a map. Returns a description of the record that exceeds the job's
    /// maximum, if there is one.
    pub(super) fn too_many_bad_records(&mut self, ended: &mut ReportedEnd) -> Option<String> {
        if self.state.ended() {
            return None;
        }
        let task = ended.attempt.task;
        let files = std::mem::take(&mut ended.report.bad_records);
        if task.kind != TaskKind::Map || files.is_empty() {
            return None;
        }
        let max = self.submission.bad_records_max;
        let NamedBadRecord { path, offset, reason } = self.bad_records.enter(task.index, files, max)?;
        Some(BadRecords::too_many(max, &path, offset, &reason).to_string())
    }

    /// Enters that a map attempt has produced its output. `offset` is the clock offset of its worker, and `same_host`
    /// is true if that worker runs on the submitter's host.
    pub(super) fn map_finished(&mut self, now: Time, ended: ReportedEnd, offset: i64, same_host: bool) {
        let ReportedEnd { attempt, report, .. } = ended;
        let (live, empty) = (!self.state.ended(), report.bytes_out == 0);
        self.records.mapped(attempt, now, report, offset, (live, same_host));
        if live && empty {
            // Empty segments are not fetched: they count as fetched everywhere at once.
            self.records.sums.totals.shuffle_segments += u64::from(self.submission.reduces);
        }
        if live && self.records.maps_succeeded == self.maps {
            self.times.maps_done = Some(now);
            // If a map ran again, data was missing, so the shuffle is not done.
            self.times.shuffle_done = None;
        }
        self.report_left_out_counters(now);
        self.touch();
    }

    /// Enters that an attempt has built its part. See [`JobEntry::map_finished`].
    pub(super) fn part_finished(
        &mut self,
        now: Time,
        ended: ReportedEnd,
        (mut part, stamp): (Part, FileStamp),
        offset: i64,
        same_host: bool,
    ) {
        let ReportedEnd { attempt, report, .. } = ended;
        let live = !self.state.ended();
        match attempt.task.kind {
            TaskKind::Map => self.records.mapped(attempt, now, report, offset, (live, same_host)),
            TaskKind::Reduce => self.records.reduced(attempt, now, report, offset),
        }
        // A part without a permit does not count; the core decides the same.
        if !live || self.output.permits.get(&attempt.task) != Some(&attempt) {
            return;
        }
        self.output.permits.remove(&attempt.task);
        // Files are named here; the worker's own name is ignored.
        let parts = if self.submission.reduces == 0 { self.maps } else { self.submission.reduces };
        let number = self.input.reduce(attempt.task.index).partition;
        part.name = part_name(number, parts, self.submission.part_format);
        if is_url(&self.submission.output.to_text()) {
            let nonce = nonce_of(&self.submission.output_probe);
            part.name = attempt_object_name(&part.name, nonce, attempt.epoch);
        }
        let sums = &mut self.records.sums.totals;
        sums.records_out = sums.records_out.saturating_add(part.all_records());
        sums.bytes_out = sums.bytes_out.saturating_add(part.all_bytes());
        self.output.parts.insert(attempt.task.index, (part, BuiltPart::new(attempt, stamp)));
        match attempt.task.kind {
            TaskKind::Map if self.records.maps_succeeded == self.maps => self.times.maps_done = Some(now),
            TaskKind::Map => {}
            TaskKind::Reduce => self.output.reduces_done += 1,
        }
        self.report_left_out_counters(now);
        self.touch();
    }

    /// Enters that an attempt failed. Returns true if the job fails with it, because its output cannot be written.
    pub(super) fn attempt_failed(
        &mut self,
        now: Time,
        ended: ReportedEnd,
        (class, message): (FailureClass, &str),
        offset: i64,
    ) -> bool {
        let ReportedEnd { attempt, worker: from, report } = ended;
        self.records.failed(attempt, now, (class, message), report, offset);
        match class {
            FailureClass::User | FailureClass::Hang => self.records.counts.failed_user += 1,
            FailureClass::Cancelled => self.records.counts.cancelled += 1,
            _ => self.records.counts.failed_other += 1,
        }
        if class != FailureClass::Cancelled {
            self.failures.note(attempt.task, Some(class), format!("{attempt} on {from}: {message}"));
            self.incident(now, &format!("{attempt} on {from} failed ({}): {message}", class.word()));
        }
        self.touch();
        let message_of_job = match class {
            FailureClass::OutputGone => (
                FailureCode::OutputGone,
                "the output directory is gone: it was removed while the job ran, or a worker does not see it",
            ),
            FailureClass::Output => (FailureCode::Output, "the output directory cannot be written"),
            _ => return false,
        };
        if self.state.ended() || self.output.closing.is_some() {
            return false;
        }
        let tries = self.output.failures.entry(attempt.task).or_default();
        *tries += 1;
        if *tries < OUTPUT_TRIES_MAX {
            // A transient disk error, or one of a single machine: the task is retried elsewhere.
            return false;
        }
        let detail = Some(format!("{attempt} on {from}: {message}"));
        let (code, message) = message_of_job;
        self.failures.of_job = Some(JobFailure { code, message: message.to_owned(), detail });
        true
    }
}
