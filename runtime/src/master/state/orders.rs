//! Execution of the core's commands: they become frames to workers.
//!
//! All frames to one worker in one instant are sent together.

use super::MasterState;
use super::fleet::Fleet;
use super::job::JobEntry;
use super::job_parts::CutReduce;
use super::phases::phases;
use crate::api::JobState;
use gristmill_scheduler::command::{Command, LaunchReason, Outcome};
use gristmill_scheduler::core::Core;
use gristmill_scheduler::ids::{AttemptId, JobId, TaskKind, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::input::{Place, Split};
use gristmill_worker::protocol::{JobOrder, MasterFrame, RecordLimits};
use std::collections::BTreeSet;

impl MasterState {
    /// Enters all facts since the last call and carries out the orders of the core.
    pub(crate) fn settle(&mut self, now: Time) {
        if self.events.is_empty() {
            // Clients are not notified of anything that a crash could undo.
            return self.flush();
        }
        let lanes = self.core.shuffle_revision();
        self.core.handle(now, &self.events, &mut self.commands);
        self.deciders.report_panics(&self.core);
        self.report_set_aside(now);
        let changed = lanes != self.core.shuffle_revision();
        let shuffle = changed.then(|| self.core.shuffle_order());
        self.journal.instant(now, &self.events, &self.commands, shuffle);
        self.jobs.sample_estimates(now, &self.events, &self.core);
        self.jobs.notice_shuffles_done(now, &self.events, &self.core);
        for (job, phase) in phases(&self.events, &self.commands, &self.core) {
            if let Some(entry) = self.jobs.get_mut(job).filter(|entry| entry.times.ended.is_none()) {
                entry.phases.enter(now, phase);
            }
        }
        self.events.clear();
        let mut commands = std::mem::take(&mut self.commands);
        for command in commands.drain(..) {
            self.carry_out(now, &command);
        }
        self.announce();
        self.commands = commands;
        self.lanes.notice(now, &self.core);
        self.flush();
    }

    /// Reports to live jobs the workers that get no new work because they and others cannot reach each other, and the
    /// workers that can again.
    fn report_set_aside(&mut self, now: Time) {
        let aside: BTreeSet<WorkerId> = self.core.set_aside().collect();
        if aside == self.set_aside_reported {
            return;
        }
        let before = std::mem::replace(&mut self.set_aside_reported, aside);
        let new = self.set_aside_reported.difference(&before);
        let new = new.map(|worker| {
            format!(
                "{worker} is set aside: others and it do not reach each other, or too slowly, though the master reaches both"
            )
        });
        let back = before
            .difference(&self.set_aside_reported)
            .filter(|worker| self.fleet.workers.contains_key(worker));
        let back = back.map(|worker| format!("{worker} is not set aside any more"));
        for text in new.chain(back).collect::<Vec<_>>() {
            tracing::warn!("{text}");
            self.jobs.incident_in_all(now, &text);
        }
    }

    /// Does the work that was postponed until now.
    pub(crate) fn catch_up(&mut self, now: Time) {
        for text in self.journal.flush_due(now) {
            self.jobs.incident_in_all(now, &text);
        }
        self.lanes.broadcast(now, &mut self.fleet);
        self.flush();
    }

    /// Time at which [`MasterState::catch_up`] has work to do.
    pub(crate) fn due(&self) -> Option<Time> {
        self.journal.due().into_iter().chain(self.lanes.due()).min()
    }

    /// Sends the frames queued since the last call, to each worker together.
    pub(super) fn flush(&mut self) {
        if !self.journal.write_out() {
            // The disk has no room: the frames wait until it has.
            return;
        }
        let (permits, ended) = self.journal.take_guarantees();
        for (attempt, worker) in permits {
            self.send_permit(attempt, worker);
        }
        self.jobs.report_ends(ended);
        self.fleet.send_queued();
    }

    fn send_permit(&mut self, attempt: AttemptId, worker: WorkerId) {
        let Some(job) = self.jobs.get(attempt.task.job) else { return };
        if job.output.permits.get(&attempt.task) == Some(&attempt) {
            let permit = crate::submitter::permit(&job.keys.permits, &attempt.file_name());
            self.send(worker, attempt.task.job, &MasterFrame::CommitGranted { attempt, permit });
        }
    }

    /// Announces to homes the outputs collected for them, in one frame for all from the same source.
    pub(super) fn announce(&mut self) {
        for ((to, from, job), maps) in std::mem::take(&mut self.announced) {
            if let Some(holder) = self.fleet.get(from) {
                let endpoint = holder.endpoint.clone();
                self.send(to, job, &MasterFrame::Announce { maps, from, endpoint });
            }
        }
    }

    pub(super) fn carry_out(&mut self, now: Time, command: &Command) {
        match *command {
            // These do not depend on each other, so announcements wait until there are more.
            Command::Launch { attempt, worker, reason } => return self.launch(now, attempt, worker, reason),
            Command::Announce { job, map, from, to } => {
                return self.announced.entry((to, from, job)).or_default().push(map);
            }
            _ => self.announce(),
        }
        match *command {
            Command::Launch { .. } | Command::Announce { .. } => {}
            Command::Recall { attempt, worker } => self.fleet.queue(worker, &MasterFrame::Recall { attempt }),
            Command::Kill { attempt, worker } => {
                self.send(worker, attempt.task.job, &MasterFrame::Kill { attempt });
            }
            Command::Suspend { attempt, worker } => {
                self.send(worker, attempt.task.job, &MasterFrame::Suspend { attempt });
            }
            Command::Divide { attempt, worker, at_once } => {
                self.send(worker, attempt.task.job, &MasterFrame::Divide { attempt, at_once });
            }
            Command::MapAdded { attempt, kept, .. } => self.add_map(attempt, kept.0),
            Command::ReduceAdded { attempt, worker, ref key, rest } => {
                self.add_reduce(attempt, worker, key, rest);
            }
            Command::Resume { attempt, worker, .. } => {
                if let Some(entry) = self.fleet.get_mut(worker) {
                    entry.suspended.remove(&attempt);
                }
                if let Some(job) = self.jobs.get_mut(attempt.task.job) {
                    job.records.resumed(attempt, now);
                }
                self.send(worker, attempt.task.job, &MasterFrame::Resume { attempt });
            }
            Command::Home { job, partition, worker } => {
                self.lanes.gathers(now, job, self.fleet.get_mut(worker));
                self.send_home(worker, job, partition);
            }
            Command::Unhome { job, partition, worker } => {
                self.send(worker, job, &MasterFrame::Unhome { job, reduce: partition });
            }
            Command::Retract { job, map, to } => self.send(to, job, &MasterFrame::Retract { map }),
            Command::GrantCommit { attempt, worker, .. } => {
                let Some(job) = self.jobs.get_mut(attempt.task.job) else { return };
                job.output.permits.insert(attempt.task, attempt);
                if !self.journal.keeps_back_permit(attempt, worker, job.submission.sync) {
                    self.send_permit(attempt, worker);
                }
            }
            Command::RefuseCommit { attempt, worker } => {
                self.send(worker, attempt.task.job, &MasterFrame::CommitRefused { attempt });
            }
            Command::Forget { job, worker } => {
                let Some(entry) = self.fleet.get_mut(worker) else { return };
                entry.gathers.remove(&job);
                entry.suspended.retain(|attempt| attempt.task.job != job);
                if entry.jobs_known.remove(&job) {
                    self.fleet.queue(worker, &MasterFrame::Forget { job });
                }
            }
            Command::JobEnded { job, outcome } => self.job_ended(now, job, outcome),
            Command::WakeAt { time } => self.wake = Some(time),
        }
    }

    /// Enters the map that a division added, and notifies the workers that know its job.
    fn add_map(&mut self, divided: AttemptId, kept: u64) {
        let id = divided.task.job;
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.divide(divided.task.index, kept);
        let maps = job.maps;
        let knowing = self.fleet.workers.iter().filter(|(_, entry)| entry.jobs_known.contains(&id));
        for worker in knowing.map(|(&worker, _)| worker).collect::<Vec<_>>() {
            self.send(worker, id, &MasterFrame::MapsAdded { job: id, maps });
        }
    }

    /// Enters the reduce that a division added, for which the worker of the divided one gathers.
    fn add_reduce(&mut self, divided: AttemptId, worker: WorkerId, key: &[u8], rest: u32) {
        let Some(job) = self.jobs.get_mut(divided.task.job) else { return };
        job.divide_reduce(divided.task.index, key, rest);
        self.send_home_of_rest(worker, divided.task.job, rest);
    }

    /// Orders a worker to gather for a reduce, starting empty.
    pub(super) fn send_home(&mut self, worker: WorkerId, job: JobId, reduce: u32) {
        let Some(entry) = self.jobs.get(job) else { return };
        let partition = entry.input.reduce(reduce).partition;
        self.send(worker, job, &MasterFrame::Home { job, reduce, partition });
    }

    /// Orders a worker to gather for a reduce that a division added, starting with what is there.
    pub(super) fn send_home_of_rest(&mut self, worker: WorkerId, job: JobId, reduce: u32) {
        let Some(cut) = self.jobs.get(job).map(|entry| entry.input.reduce(reduce)) else { return };
        let Some(divided) = cut.divided else { return };
        self.send(worker, job, &MasterFrame::HomeOfRest { job, divided, reduce, partition: cut.partition });
    }

    /// Sends a frame about a job, preceded by the job's description if it is the first.
    pub(super) fn send(&mut self, worker: WorkerId, job: JobId, frame: &MasterFrame) {
        let (Some(entry), Some(to)) = (self.jobs.get(job), self.fleet.get(worker)) else { return };
        let order = (!to.jobs_known.contains(&job)).then(|| job_order(job, entry, &self.core, &self.fleet));
        // Only these frames start work. Any other frame about a job that the worker was ordered to forget is late, and
        // must not bring the job back.
        let begins = matches!(
            frame,
            MasterFrame::LaunchMap { .. }
                | MasterFrame::LaunchReduce { .. }
                | MasterFrame::Home { .. }
                | MasterFrame::HomeOfRest { .. }
                | MasterFrame::Announce { .. }
        );
        if order.is_some() && !begins {
            return;
        }
        if let Some(order) = order {
            if let Some(entry) = self.fleet.get_mut(worker) {
                entry.jobs_known.insert(job);
            }
            self.fleet.queue(worker, &MasterFrame::Job(Box::new(order)));
        }
        self.fleet.queue(worker, frame);
    }

    fn launch(&mut self, now: Time, attempt: AttemptId, worker: WorkerId, reason: LaunchReason) {
        let Some(job) = self.jobs.get_mut(attempt.task.job) else { return };
        job.records.counts.launched += 1;
        job.records.counts.maps_launched += u32::from(attempt.task.kind == TaskKind::Map);
        job.times.start(now);
        if job.state == JobState::Waiting {
            job.state = JobState::Running;
        }
        if attempt.task.kind == TaskKind::Map && job.records.undone(attempt.task.index) {
            job.records.counts.maps_rerun += 1;
            job.incident(now, &format!("{} runs again: its output was lost", attempt.task));
        }
        job.records.launched(attempt, worker, now, reason);
        job.touch();
        if let Some(entry) = self.fleet.get_mut(worker) {
            entry.running.insert(attempt, 0);
        }
        self.order_launch(attempt, worker);
    }

    /// Orders a worker to run an attempt.
    pub(super) fn order_launch(&mut self, attempt: AttemptId, worker: WorkerId) {
        let Some(job) = self.jobs.get(attempt.task.job) else { return };
        let alone = self.core.has_process_to_itself(attempt.task);
        let frame = match attempt.task.kind {
            TaskKind::Map => {
                let Some(split) = job.submission.splits.get(attempt.task.index as usize) else { return };
                let mut split = Split::clone(split);
                relocate_pieces(&self.core, &self.fleet, &mut split, worker);
                MasterFrame::LaunchMap { attempt, split, alone }
            }
            TaskKind::Reduce => {
                let empty = self.core.empty_maps(attempt.task.job).to_vec();
                let added = job.input.added.clone();
                let CutReduce { partition, bounds, .. } = job.input.reduce(attempt.task.index);
                MasterFrame::LaunchReduce { attempt, empty, added, alone, partition, bounds }
            }
        };
        self.send(worker, attempt.task.job, &frame);
    }
    /// Enters that the core is done with a job. If no client closes its output, the job ends when the master has closed
    /// it.
    fn job_ended(&mut self, now: Time, id: JobId, outcome: Outcome) {
        let backups = self.core.job(id).map(|job| job.attempts.backups).unwrap_or_default();
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.records.counts = job.records.counts.with_backups(backups);
        if job.followers.client {
            return self.jobs.end(now, id, outcome, self.fleet.size(), &mut self.journal);
        }
        job.output.closing = Some(outcome);
        if !self.replaying {
            self.jobs.close_output(now, id, outcome, false);
        }
    }
}

/// Description of a job for a worker.
fn job_order(id: JobId, job: &JobEntry, core: &Core, fleet: &Fleet) -> JobOrder {
    let submission = &job.submission;
    // If a worker is lost, another worker on its machine has the same files.
    let successor = |gone: WorkerId| {
        let host = core.host(gone)?;
        fleet
            .workers
            .iter()
            .find(|(other, _)| core.host(**other) == Some(host))
            .map(|(_, successor)| successor)
    };
    let endpoint = |worker: WorkerId| fleet.workers.get(&worker).or_else(|| successor(worker));
    let peers = job
        .input
        .named
        .iter()
        .filter_map(|&worker| Some((worker, endpoint(worker)?.endpoint.clone())))
        .collect();
    JobOrder {
        job: id,
        name: submission.name.clone(),
        parameters: submission.parameters.clone(),
        maps: job.maps,
        partitions: submission.reduces,
        cuts: job.input.cuts.clone(),
        key: job.keys.segments.clone(),
        output: submission.output.clone(),
        output_probe: submission.output_probe.clone(),
        part_format: submission.part_format,
        side: submission.side.clone(),
        submitter: submission.submitter.clone(),
        peers,
        limits: RecordLimits {
            record_bytes_max: submission.record_bytes_max,
            expansion_max: submission.expansion_max,
            bad_records_max: submission.bad_records_max,
        },
        sync: submission.sync,
        hang_ms: submission.hang_ms,
    }
}

/// Redirects pieces of files on a lost worker to this one, which runs on the same machine.
fn relocate_pieces(core: &Core, fleet: &Fleet, split: &mut Split, worker: WorkerId) {
    for piece in &mut split.pieces {
        if let Place::Worker(named) = piece.place
            && !fleet.workers.contains_key(&named)
            && core.host(named) == core.host(worker)
        {
            piece.place = Place::Worker(worker);
        }
    }
}
