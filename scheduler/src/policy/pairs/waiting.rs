//! Order of the jobs that have not started, kept by a rule as jobs arrive and leave.

use super::grouped::OnlineGroups;
use super::matched::Schedule;
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

/// Waiting jobs in order, by seq.
#[derive(Debug)]
pub(super) enum WaitingOrder {
    /// All jobs are ordered again on arrivals.
    Anew(VecDeque<u64>),
    /// Algorithm 5.
    OnlineGroups(OnlineGroups, ChaCha8Rng),
    /// Algorithm 8.
    Schedule(Schedule, ChaCha8Rng),
}

impl WaitingOrder {
    pub(super) fn leave(&mut self, seq: u64) {
        match self {
            WaitingOrder::Anew(order) => {
                // The job that starts is mostly the first.
                if let Some(place) = order.iter().position(|&other| other == seq) {
                    order.remove(place);
                }
            }
            WaitingOrder::OnlineGroups(groups, _) => groups.leave(seq),
            WaitingOrder::Schedule(schedule, _) => schedule.leave(seq),
        }
    }

    pub(super) fn order(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            WaitingOrder::Anew(order) => Box::new(order.iter().copied()),
            WaitingOrder::OnlineGroups(groups, _) => Box::new(groups.order()),
            WaitingOrder::Schedule(schedule, _) => Box::new(schedule.order()),
        }
    }
}
