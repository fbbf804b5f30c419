//! Distribution of the current shuffle order to the workers: only to those that gather something, at a limited rate,
//! and only if the order has content.

use super::super::translate;
use super::fleet::{Fleet, WorkerEntry};
use gristmill_scheduler::core::{Core, ShuffleOrder};
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::protocol::{LaneOrder, MasterFrame};

/// Minimum pause between two orders. Changes in between are sent together.
const PAUSE: Span = Span::milliseconds(5);

/// State of what workers know about their lanes.
#[derive(Default)]
pub(super) struct LaneBroadcast {
    /// The core's count of changes at the last check.
    seen: u64,
    /// Order that workers should know. Revision 0 is the default, which need not be sent.
    order: LaneOrder,
    revision: u64,
    /// Earliest time of the next order.
    not_before: Time,
    /// Time at which workers must be notified, if any.
    due: Option<Time>,
}

impl LaneBroadcast {
    /// Takes a changed order over. Returns true if it must be sent.
    fn change(&mut self, order: &ShuffleOrder) -> bool {
        // A single job is served as well without an order. The last order still holds, unless it excludes the others.
        let says_something = 1 < order.grants.len() || order.only && !order.grants.is_empty();
        let order = match (says_something, self.order.only) {
            (true, _) => translate::lane_order(order),
            (false, true) => LaneOrder::default(),
            (false, false) => return false,
        };
        let changed = self.order != order;
        if changed {
            self.order = order;
            self.revision += 1;
        }
        changed
    }

    /// Schedules a broadcast as soon as the next order may be sent.
    fn broadcast_soon(&mut self, now: Time) {
        if self.due.is_none() {
            self.due = Some(self.not_before.max(now));
        }
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Checks the current order after the core has planned.
    pub(super) fn notice(&mut self, now: Time, core: &Core) {
        let seen = core.shuffle_revision();
        if self.seen == seen {
            return;
        }
        self.seen = seen;
        if self.change(core.shuffle_order()) {
            self.broadcast_soon(now);
        }
    }

    /// Notes that a worker gathers a job's data from now on, and must know the current order.
    pub(super) fn gathers(&mut self, now: Time, job: JobId, entry: Option<&mut WorkerEntry>) {
        let Some(entry) = entry else { return };
        if entry.gathers.insert(job) && entry.lanes_revision_sent != self.revision {
            self.broadcast_soon(now);
        }
    }

    /// Sends the order to the workers that need it, if its time has come.
    pub(super) fn broadcast(&mut self, now: Time, fleet: &mut Fleet) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        self.due = None;
        let revision = self.revision;
        let behind: Vec<_> = fleet
            .workers
            .iter_mut()
            .filter(|(_, worker)| !worker.gathers.is_empty() && worker.lanes_revision_sent != revision)
            .map(|(id, worker)| {
                worker.lanes_revision_sent = revision;
                *id
            })
            .collect();
        if behind.is_empty() {
            return;
        }
        self.not_before = now + PAUSE;
        let frame = MasterFrame::Lanes(self.order.clone());
        for worker in behind {
            fleet.queue(worker, &frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::ids::JobId;
    use gristmill_scheduler::plan::Share;
    use gristmill_worker::protocol::LaneShare;

    fn order(jobs: &[u32], only: bool) -> ShuffleOrder {
        let grants = jobs.iter().map(|&job| (JobId(job), Share::All)).collect();
        ShuffleOrder { grants, lines: Vec::new(), only }
    }

    #[test]
    fn one_job_alone_needs_no_order() {
        let mut lanes = LaneBroadcast::default();
        assert!(!lanes.change(&order(&[1], false)));
        assert!(!lanes.change(&order(&[], false)));
        assert_eq!(lanes.revision, 0);
    }

    #[test]
    fn order_of_two_jobs_is_told_once_and_stands_while_one_has_nothing_to_fetch() {
        let mut lanes = LaneBroadcast::default();
        assert!(lanes.change(&order(&[2, 1], false)));
        assert!(!lanes.change(&order(&[1], false)));
        assert!(!lanes.change(&order(&[2, 1], false)));
        assert!(lanes.change(&order(&[1, 2], false)));
        assert_eq!(lanes.order.grants, [(JobId(1), LaneShare::All), (JobId(2), LaneShare::All)]);
    }

    #[test]
    fn order_that_forbids_the_others_is_taken_back_when_nobody_is_named() {
        let mut lanes = LaneBroadcast::default();
        assert!(lanes.change(&order(&[2], true)));
        assert!(lanes.order.only);
        assert!(lanes.change(&order(&[], true)));
        assert_eq!(lanes.order, LaneOrder::default());
        assert!(!lanes.change(&order(&[], true)));
    }

    #[test]
    fn orders_keep_a_pause_between_them() {
        let mut lanes = LaneBroadcast { not_before: Time(100), ..LaneBroadcast::default() };
        lanes.broadcast_soon(Time(40));
        lanes.broadcast_soon(Time(60));
        assert_eq!(lanes.due(), Some(Time(100)));
    }
}
