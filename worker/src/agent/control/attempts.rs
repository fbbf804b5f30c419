//! Launches and kills attempts, and forwards the master's responses to them.

use super::{Agent, delete};
use crate::agent::assignment::{Assignment, AttemptInput, Permit, SlotEvent};
use crate::agent::slots::LeaveSlot;
use crate::agent::work::SlotTurn;
use crate::attempt::{DivisionReport, SlowPart};
use crate::objects::is_url;
use crate::protocol::{AddedMap, AttemptReport, FailureClass, WorkerFrame};
use crate::segment::{KeyBounds, SegmentData};
use crate::shuffle::store::HeldSegment;
use crate::task::{Parking, Progress, ReducePart};
use crossbeam_channel::Sender;
use gristmill_scheduler::ids::{AttemptId, TaskKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) struct RunningAttempt {
    pub(super) progress: Arc<Progress>,
    permit: Sender<Permit>,
    pub(super) hang: Duration,
    /// True if the part is built: no user code runs any more, and the attempt is not charged for the time
    /// to publish.
    pub(super) built: bool,
    /// True if the master has responded to the commit request.
    pub(super) answered: bool,
    pub(super) suspension: Suspension,
    pub(super) seen: (u64, u64, u64),
    pub(super) seen_at: Instant,
    pub(super) killed_at: Option<Instant>,
}

/// Suspension state of an attempt, as known to this loop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspension {
    /// It runs, or waits for its slot.
    None,
    /// It was asked to leave its slot.
    Asked,
    /// It has left its slot.
    Suspended,
}

impl Agent {
    pub(super) fn refuse(&mut self, attempt: AttemptId, class: FailureClass, why: &str) {
        self.send(&WorkerFrame::AttemptFailed {
            attempt,
            class,
            message: why.to_owned(),
            report: AttemptReport::default(),
        });
    }

    pub(super) fn launch_reduce(
        &mut self,
        attempt: AttemptId,
        empty: &[u64],
        added: &[AddedMap],
        (partition, bounds): (u32, KeyBounds),
        alone: bool,
    ) {
        let (job, reduce) = (attempt.task.job, attempt.task.index);
        for (word, first) in empty.iter().zip((0..).step_by(64)) {
            for map in (0..64).filter(|bit| word >> bit & 1 == 1).map(|bit| first + bit) {
                let nothing = SegmentData::Memory(bytes::Bytes::new());
                self.store.fill(job, reduce, map, HeldSegment { data: nothing, reservation: None });
            }
        }
        let order = self.jobs.get(&job).map(|job| &job.order);
        let may_divide =
            order.is_some_and(|order| order.part_format.is_joinable() && !is_url(&order.output.to_text()));
        match self.store.complete(job, reduce, added) {
            Some(segments) => {
                let part = ReducePart { partition, bounds, may_divide };
                self.launch(attempt, AttemptInput::Segments(segments, part), alone);
            }
            // The master then has the partition gathered again.
            None => self.refuse(attempt, FailureClass::Fetch, "its input is not complete here"),
        }
    }

    /// Starts an attempt. With `alone` no other attempt may run in this process.
    pub(super) fn launch(&mut self, attempt: AttemptId, input: AttemptInput, alone: bool) {
        let Some(job) = self.jobs.get(&attempt.task.job).cloned() else {
            return self.refuse(attempt, FailureClass::Worker, "its job is not known here");
        };
        let parking = (attempt.task.kind == TaskKind::Reduce).then(|| {
            let (work, setting) = (self.slots.work.clone(), self.slots.setting.clone());
            Box::new(LeaveSlot { attempt, work, setting }) as Box<dyn Parking>
        });
        let settings = &self.config.settings;
        let progress = match 1.0 < settings.slow {
            true => Progress::paced(settings.speed / settings.slow, SlowPart::Computing, parking),
            false => Progress::new(settings.speed, parking),
        };
        let (maps, reduces) = (job.order.maps, job.order.partitions);
        let least = settings.watched.map(|watched| watched.attempt(maps, reduces).div_f64(settings.speed));
        let divides = Some(self.reports_divisions(attempt));
        let progress = progress.of_at_least(least.unwrap_or_default()).reporting_divisions(divides);
        let progress = Arc::new(progress);
        // One response at most: the permit is requested once.
        let (permit, answer) = crossbeam_channel::bounded(1);
        let hang = Duration::from_millis(job.order.hang_ms);
        self.running.insert(
            attempt,
            RunningAttempt {
                progress: progress.clone(),
                permit,
                hang,
                built: false,
                answered: false,
                suspension: Suspension::None,
                seen: (0, 0, 0),
                seen_at: Instant::now(),
                killed_at: None,
            },
        );
        let assignment = Assignment { attempt, job, input, alone, progress, permit: answer };
        self.slots.work.push(SlotTurn::Begin(Box::new(assignment)), alone);
    }

    fn reports_divisions(&self, attempt: AttemptId) -> DivisionReport {
        let events = self.slots.setting.events.clone();
        Box::new(move |division| drop(events.send(SlotEvent::Divided { attempt, division })))
    }

    /// Orders an attempt to give up the end of its input. One that has ended was faster.
    pub(super) fn divide(&mut self, attempt: AttemptId, at_once: bool) {
        if let Some(running) = self.running.get(&attempt) {
            running.progress.order_division(at_once);
        }
    }

    pub(super) fn kill(&mut self, attempt: AttemptId) {
        if self.slots.work.withdraw(attempt) {
            self.running.remove(&attempt);
            return self.refuse(attempt, FailureClass::Cancelled, "it was stopped before it started");
        }
        self.slots.work.withdraw_suspended(attempt);
        match self.running.get_mut(&attempt) {
            Some(running) => {
                running.progress.cancel();
                running.killed_at.get_or_insert_with(Instant::now);
                let _ = running.permit.try_send(Permit::Refused);
            }
            // It was faster, but another attempt of its task counts.
            None => delete(self.store.discard_output(attempt)),
        }
    }

    pub(super) fn permit(&mut self, attempt: AttemptId, permit: Permit) {
        if let Some(running) = self.running.get_mut(&attempt) {
            running.answered = true;
            let _ = running.permit.try_send(permit);
        }
    }
}
