//! Ends of tasks, suspensions and transfers in the cluster simulator. Each is reported to the scheduler's core as an
//! event, and a freed slot takes its next task.

use super::{Engine, place_of};
use crate::event::Event;
use crate::ids::{AttemptId, TaskKind, WorkerId};
use crate::sim::cluster::network::Foreseen;
use crate::sim::cluster::pieces::RunningPiece;
use crate::sim::cluster::processors::Arriving;
use crate::sim::cluster::{TaskRun, TransferRun};
use crate::units::Bytes;

impl<'a> Engine<'a> {
    pub(super) fn task_ends(&mut self, running: &RunningPiece) {
        let attempt = running.attempt;
        let kind = attempt.task.kind;
        self.pieces.running.remove(&attempt);
        let run = self.give_back(running);
        self.done.summary.tasks += 1;
        let took = running.rest(self.now, self.now).ran;
        let delay = self.delay(kind, running.worker);
        let job = self.jobs.get_mut(&attempt.task.job).expect("jobs live until their attempts end");
        let (seq, held) = (job.seq, job.held);
        let backed_up = self.config.core.backups.is_some();
        let publishes = kind == TaskKind::Reduce || job.reduces.is_empty();
        if publishes {
            // Publishing takes no time, so the permit is requested immediately.
            self.report_at(self.now + delay, Event::CommitRequested { attempt });
        }
        let job = self.jobs.get_mut(&attempt.task.job).expect("jobs live until their attempts end");
        let ended = match kind {
            TaskKind::Map => {
                // Two attempts of a task may end before the first of them is reported.
                job.maps_left -= usize::from(!backed_up || job.ended.insert(attempt.task.index));
                if job.maps_left == 0 && job.maps_done.is_none() {
                    job.maps_done = Some(self.now + delay);
                }
                Event::MapFinished {
                    attempt,
                    output_bytes: job.output(attempt.task.index),
                    took,
                    fingerprint: None,
                }
            }
            TaskKind::Reduce => Event::ReduceFinished { attempt, output_bytes: Bytes::ZERO, took },
        };
        self.report_at(self.now + delay, ended);
        self.output.observer.task(&run);
        self.output.observer.held(run.end, seq, held);
        self.start_queued(running.worker);
    }

    /// Releases the slot of an attempt and records its time in it.
    pub(super) fn give_back(&mut self, running: &RunningPiece) -> TaskRun {
        let &RunningPiece { attempt, worker, slot, began, .. } = running;
        let kind = attempt.task.kind;
        let place = place_of(worker);
        self.machines[place].free[self.config.workers[place].slots.pool(kind)].push(slot);
        self.done.worked[usize::from(kind == TaskKind::Reduce)] += self.now.since(began).seconds();
        let job = self.jobs.get_mut(&attempt.task.job).expect("jobs live until their attempts end");
        job.held[usize::from(kind == TaskKind::Reduce)] -= 1;
        let (start, end) = (began.seconds(), self.now.seconds());
        TaskRun { seq: job.seq, task: attempt.task, worker: place as u32, slot, start, end }
    }

    pub(super) fn leaves_slot(&mut self, running: &RunningPiece) {
        let run = self.give_back(running);
        self.output.observer.suspended(&run);
        let held = self.jobs[&running.attempt.task.job].held;
        self.output.observer.held(run.end, run.seq, held);
        self.events.push(Event::AttemptSuspended { attempt: running.attempt });
        self.start_queued(running.worker);
    }

    pub(super) fn transfer_ends(&mut self, foreseen: Foreseen) {
        let Some(transfer) = self.network.end(foreseen) else { return };
        let Some(job) = self.jobs.get(&transfer.job) else { return };
        self.output.observer.transfer(&TransferRun {
            seq: job.seq,
            from: transfer.from,
            to: transfer.to,
            maps: transfer.maps.len() as u32,
            bytes: transfer.bytes,
            start: transfer.began.seconds(),
            end: self.now.seconds(),
        });
        let home = WorkerId(transfer.to + 1);
        for map in transfer.maps {
            self.arrives(map, home, true);
        }
    }

    /// Handles data that arrived at the home, which is reported once a processor had time for it.
    pub(super) fn arrives(&mut self, map: AttemptId, home: WorkerId, fetched: bool) {
        let id = map.task.job;
        let partitions = self.jobs.get(&id).and_then(|job| job.homes.get(&home)).cloned().unwrap_or_default();
        let mut at = self.now;
        if let Some(processors) = &mut self.processors {
            at = processors.arrival(place_of(home), at, &Arriving { fetched, segments: partitions.len() });
        }
        self.report_at(at, Event::Fetched { job: id, home, map, partitions });
    }
}
