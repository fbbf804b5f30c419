//! What workers say, entered: each frame becomes a fact for the core and numbers of its job.
//!
//! A worker is believed about what it holds: attempts that it was told to run and whose end it has not said, partitions
//! whose home it is. What it says of others changes nothing. Not here: what follows from the facts (the core), orders to
//! workers (`orders`).

use super::super::translate;
use super::{Books, shift};
use crate::api::{BuiltPart, FailureCode, FetchRecord, JobFailure};
use gristmill_scheduler::event::{Event, External};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::{Bytes, Span, Time};
use gristmill_worker::clean;
use gristmill_worker::commit::part_name;
use gristmill_worker::protocol::{AttemptReport, FailureClass, FetchedOutput, Heartbeat, Part, WorkerFrame};
use std::collections::BTreeSet;

/// Attempts of one task whose part could not be written, after which the output counts as one that cannot be.
const OUTPUT_TRIES_MAX: u32 = 3;

/// How long an attempt ran in its slot: while it was suspended it had none.
fn took(report: &AttemptReport) -> Span {
    Span(report.ended_ns.saturating_sub(report.started_ns).saturating_sub(report.suspended_ns))
}

impl Books {
    /// A frame from a worker.
    pub fn frame(&mut self, now: Time, from: WorkerId, frame: WorkerFrame) {
        let Some(worker) = self.workers.get_mut(&from) else { return };
        worker.heard = now;
        match frame {
            WorkerFrame::Hello(_) | WorkerFrame::Goodbye => {}
            WorkerFrame::Heartbeat(heartbeat) => self.heartbeat(from, heartbeat),
            WorkerFrame::Pong { master_ns, worker_ns } => {
                let round_trip = now.0.saturating_sub(master_ns);
                if round_trip <= worker.round_trip_ns {
                    worker.round_trip_ns = round_trip;
                    let halfway_ns = master_ns.wrapping_add(round_trip / 2);
                    worker.offset_ns = (worker_ns as i64).wrapping_sub(halfway_ns as i64);
                }
            }
            WorkerFrame::MapFinished { attempt, print, report } => {
                if !self.stopped_there(from, attempt) {
                    return;
                }
                if attempt.task.kind != TaskKind::Map || self.publishes(attempt) {
                    return self.nonsense(now, from, attempt, "a map output", report);
                }
                let (output_bytes, took) = (Bytes(report.bytes_out), took(&report));
                self.map_finished(now, from, attempt, report);
                let print = Some(translate::print(print));
                self.events.push(Event::MapFinished { attempt, output_bytes, took, print });
            }
            WorkerFrame::PartFinished { attempt, part, stamp, report } => {
                if !self.stopped_there(from, attempt) {
                    return;
                }
                if !self.publishes(attempt) {
                    return self.nonsense(now, from, attempt, "a part", report);
                }
                let (output_bytes, took) = (Bytes(part.bytes), took(&report));
                let event = match attempt.task.kind {
                    TaskKind::Map => Event::MapFinished { attempt, output_bytes, took, print: None },
                    TaskKind::Reduce => Event::ReduceFinished { attempt, output_bytes, took },
                };
                self.part_finished(now, from, part, BuiltPart { attempt, stamp }, report);
                self.events.push(event);
            }
            WorkerFrame::AttemptFailed { attempt, class, message, report } => {
                if self.stopped_there(from, attempt) {
                    self.attempt_failed(now, from, attempt, class, &message, report);
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
                    worker.handing_over.remove(&attempt);
                    self.suspended(now, attempt);
                }
            }
            WorkerFrame::NotSuspended { attempt } => {
                if worker.running.contains_key(&attempt) {
                    self.events.push(Event::SuspensionRefused { attempt });
                }
            }
            WorkerFrame::HandedOver { attempt, state, report } => {
                if worker.handing_over.contains(&attempt) && self.stopped_there(from, attempt) {
                    self.handed_over(now, from, attempt, state, report);
                }
            }
            WorkerFrame::Fetched { outputs, from: holder, started_ns, ended_ns } => {
                let times = (shift(started_ns, worker.offset_ns), shift(ended_ns, worker.offset_ns));
                for output in outputs {
                    self.fetched(now, from, holder, output, times);
                }
            }
            WorkerFrame::FetchFailed { map, from: holder, class, message } => {
                self.fetch_failed(now, from, holder, map, class, &message);
            }
            WorkerFrame::CommitRequest { attempt } => {
                if worker.running.contains_key(&attempt) {
                    self.events.push(Event::CommitRequested { attempt });
                }
            }
            WorkerFrame::Log { attempt, bytes } => {
                if attempt.is_some_and(|attempt| !worker.running.contains_key(&attempt)) {
                    return;
                }
                // Output that no single attempt wrote is kept with every job that runs there.
                let mut jobs: Vec<JobId> = match attempt {
                    Some(attempt) => vec![attempt.task.job],
                    None => worker.running.keys().map(|attempt| attempt.task.job).collect(),
                };
                // They are in order.
                jobs.dedup();
                for job in jobs {
                    if let Some(job) = self.jobs.get_mut(&job) {
                        job.logs.add(attempt, from, &bytes);
                    }
                }
            }
        }
    }

    fn suspended(&mut self, now: Time, attempt: AttemptId) {
        self.events.push(Event::AttemptSuspended { attempt });
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.records.suspended(attempt, now);
            job.touch();
        }
    }

    /// Whether an attempt makes a part: a reduce, or a map of a job without reduces.
    fn publishes(&self, attempt: AttemptId) -> bool {
        let job = self.jobs.get(&attempt.task.job);
        attempt.task.kind == TaskKind::Reduce || job.is_some_and(|job| job.submission.reduces == 0)
    }

    /// An attempt ended with what its kind does not make.
    fn nonsense(&mut self, now: Time, from: WorkerId, attempt: AttemptId, what: &str, report: AttemptReport) {
        let message = format!("its worker reported {what}, which such an attempt does not make");
        self.attempt_failed(now, from, attempt, FailureClass::Worker, &message, report);
    }

    fn heartbeat(&mut self, from: WorkerId, mut heartbeat: Heartbeat) {
        let Some(worker) = self.workers.get_mut(&from) else { return };
        heartbeat.running.retain(|progress| worker.running.contains_key(&progress.attempt));
        heartbeat.running.shrink_to_fit();
        let mut moved = Vec::new();
        for progress in &heartbeat.running {
            if let Some(bytes) = worker.running.get_mut(&progress.attempt) {
                let before = std::mem::replace(bytes, progress.bytes_in);
                moved.push((progress.attempt, before, progress.bytes_in));
            }
        }
        let jobs: BTreeSet<JobId> = heartbeat.running.iter().map(|p| p.attempt.task.job).collect();
        worker.heartbeat = heartbeat;
        for (attempt, before, bytes) in moved {
            self.read_in_flight(attempt, before, bytes);
        }
        for job in jobs {
            if let Some(job) = self.jobs.get_mut(&job) {
                job.touch();
            }
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
        let FetchedOutput { map, mut partitions, bytes } = output;
        let job = map.task.job;
        partitions.retain(|partition| self.core.awaits(home, map, *partition));
        if partitions.is_empty() {
            return;
        }
        if let Some(entry) = self.jobs.get_mut(&job) {
            let sum = &mut entry.records.sums.shuffle_bytes;
            *sum = sum.saturating_add(bytes);
            entry.records.sums.shuffle_segments += partitions.len() as u64;
            entry.shuffle_done = Some(now);
            entry.records.fetched(FetchRecord {
                map,
                from: holder,
                to: home,
                partitions: partitions.len() as u32,
                bytes,
                started_ns,
                ended_ns: ended_ns.min(now.0),
            });
            entry.touch();
        }
        self.events.push(Event::Fetched { job, home, map, partitions });
    }

    fn fetch_failed(
        &mut self,
        now: Time,
        home: WorkerId,
        holder: WorkerId,
        map: AttemptId,
        class: FailureClass,
        message: &str,
    ) {
        if !self.core.could_fetch(home, map, holder) {
            return;
        }
        let (job, message) = (map.task.job, clean::message(message));
        if let Some(entry) = self.jobs.get_mut(&job) {
            entry.incident(now, &format!("{home} could not fetch {map} from {holder}: {message}"));
            entry.note_failure(map.task, Some(class), message);
            entry.touch();
        }
        let class = translate::failure(class);
        self.events.push(Event::FetchFailed { job, home, map, class });
    }

    fn map_finished(&mut self, now: Time, from: WorkerId, attempt: AttemptId, report: AttemptReport) {
        let offset = self.workers.get(&from).map_or(0, |worker| worker.offset_ns);
        let same_host = self.same_host_as_submitter(attempt.task.job, from);
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        let (live, empty) = (!job.state.ended(), report.bytes_out == 0);
        job.records.mapped(attempt, now, report, offset, (live, same_host));
        if live && empty {
            // Nobody fetches what is empty: it is everywhere at once.
            job.records.sums.shuffle_segments += u64::from(job.submission.reduces);
        }
        if live && job.records.maps_succeeded == job.maps {
            job.maps_done = Some(now);
            if empty {
                job.shuffle_done = Some(now);
            }
        }
        job.tell_of_counters(now);
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
        mut part: Part,
        built: BuiltPart,
        report: AttemptReport,
    ) {
        let attempt = built.attempt;
        let offset = self.workers.get(&from).map_or(0, |worker| worker.offset_ns);
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
        // What was not asked for does not count; the core sees it likewise.
        if !live || job.permits.get(&attempt.task) != Some(&attempt) {
            return;
        }
        job.permits.remove(&attempt.task);
        // Files are named here, whatever the worker calls its own.
        let parts = if job.submission.reduces == 0 { job.maps } else { job.submission.reduces };
        part.name = part_name(attempt.task.index, parts);
        let sums = &mut job.records.sums;
        sums.records_out = sums.records_out.saturating_add(part.records);
        sums.bytes_out = sums.bytes_out.saturating_add(part.bytes);
        job.parts.insert(attempt.task.index, (part, built));
        match attempt.task.kind {
            TaskKind::Map if job.records.maps_succeeded == job.maps => job.maps_done = Some(now),
            TaskKind::Map => {}
            TaskKind::Reduce => job.reduces_done += 1,
        }
        job.tell_of_counters(now);
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
        let message = &clean::message(message);
        let offset = self.workers.get(&from).map_or(0, |worker| worker.offset_ns);
        self.events.push(Event::AttemptFailed { attempt, class: translate::failure(class) });
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.records.failed(attempt, now, (class, message), report, offset);
        match class {
            FailureClass::User | FailureClass::Hang => job.attempts.failed_user += 1,
            FailureClass::Cancelled => job.attempts.cancelled += 1,
            _ => job.attempts.failed_other += 1,
        }
        if class != FailureClass::Cancelled {
            job.note_failure(attempt.task, Some(class), format!("{attempt} on {from}: {message}"));
            job.incident(now, &format!("{attempt} on {from} failed ({}): {message}", class.word()));
        }
        if class == FailureClass::Output && !job.state.ended() && job.closing.is_none() {
            let tries = job.output_failures.entry(attempt.task).or_default();
            *tries += 1;
            if *tries < OUTPUT_TRIES_MAX {
                // A disk that has an error once, or on one machine: tried again elsewhere.
                return job.touch();
            }
            let detail = Some(format!("{attempt} on {from}: {message}"));
            let message = "the output directory cannot be written".to_owned();
            job.failure = Some(JobFailure { code: FailureCode::Output, message, detail });
            let job = attempt.task.job;
            self.events.push(Event::JobFailed { job, cause: External::OutputUnavailable });
        }
        if let Some(job) = self.jobs.get_mut(&attempt.task.job) {
            job.touch();
        }
    }

    /// A queued attempt came back before it began.
    fn returned(&mut self, now: Time, attempt: AttemptId) {
        self.events.push(Event::AttemptReturned { attempt });
        let Some(job) = self.jobs.get_mut(&attempt.task.job) else { return };
        job.attempts.returned += 1;
        job.records.returned(attempt, now);
    }
}
