//! Map outputs in flight between workers: the time of a transfer that waits for no other, and the
//! throughput of the network.
//!
//! Not here: the notifications (`measure`).

use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Outputs of one job in flight on a route from one worker to another.
#[derive(Default)]
struct MeasuredRoute {
    maps: BTreeSet<AttemptId>,
    /// Output that was announced while no other was in flight, and its time. It did not wait for another.
    alone: Option<(AttemptId, Time)>,
}

/// Direction of traffic of a worker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Takes,
    Gives,
}

/// One direction of one worker.
#[derive(Default)]
struct End {
    in_flight: usize,
    /// Time during which any transfer was in flight here.
    busy: Span,
    bytes: f64,
}

/// All traffic at its current time.
#[derive(Default)]
pub(super) struct Traffic {
    /// Routes by job, receiver and sender.
    routes: BTreeMap<(JobId, WorkerId, WorkerId), MeasuredRoute>,
    ends: BTreeMap<(Direction, WorkerId), End>,
}

impl Traffic {
    /// Advances the time by this span, in which nothing changed.
    pub(super) fn pass(&mut self, span: Span) {
        self.ends.values_mut().filter(|end| 0 < end.in_flight).for_each(|end| end.busy += span);
    }

    /// Handles an announced output, which may be fetched from now on.
    pub(super) fn announced(&mut self, now: Time, map: AttemptId, from: WorkerId, to: WorkerId) {
        let route = self.routes.entry((map.task.job, to, from)).or_default();
        if route.maps.is_empty() {
            route.alone = Some((map, now));
        }
        if route.maps.insert(map) {
            for end in ends(to, from) {
                self.ends.entry(end).or_default().in_flight += 1;
            }
        }
    }

    /// Handles an output that arrived with this many bytes, or that is not needed any more, with none.
    /// Returns the time of its announcement if it waited for no other.
    pub(super) fn arrived(
        &mut self,
        map: AttemptId,
        from: WorkerId,
        to: WorkerId,
        bytes: f64,
    ) -> Option<Time> {
        let route = self.routes.get_mut(&(map.task.job, to, from))?;
        if route.maps.remove(&map) {
            land(&mut self.ends, ends(to, from), 1, bytes);
        }
        route.alone.take_if(|(alone, _)| *alone == map).map(|(_, announced)| announced)
    }

    /// Discards the transfers for which this is true of their job, receiver and sender.
    pub(super) fn dropped(&mut self, over: impl Fn(JobId, WorkerId, WorkerId) -> bool) {
        let all = &mut self.ends;
        self.routes.retain(|&(job, to, from), route| {
            let stays = !over(job, to, from);
            if !stays {
                land(all, ends(to, from), route.maps.len(), 0.0);
            }
            stays
        });
    }

    /// Returns the bytes per second of the busiest direction of a worker while any transfer was in flight
    /// there; `None` without transfers.
    pub(super) fn carried(&self) -> Option<f64> {
        let used = self.ends.values().filter(|end| Span(0) < end.busy && 0.0 < end.bytes);
        used.map(|end| end.bytes / end.busy.seconds()).max_by(f64::total_cmp)
    }
}

fn ends(to: WorkerId, from: WorkerId) -> [(Direction, WorkerId); 2] {
    [(Direction::Takes, to), (Direction::Gives, from)]
}

/// Removes this many outputs with this many bytes from the transfers in flight.
fn land(
    all: &mut BTreeMap<(Direction, WorkerId), End>,
    ends: [(Direction, WorkerId); 2],
    outputs: usize,
    bytes: f64,
) {
    for end in ends {
        if let Some(end) = all.get_mut(&end) {
            end.in_flight -= outputs;
            end.bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::ids::TaskId;

    #[test]
    fn the_busiest_end_tells_what_the_network_carries_while_anything_is_on_its_way() {
        let mut traffic = Traffic::default();
        let map = |index| TaskId::map(JobId(1), index).attempt(0);
        let (one, two, three) = (WorkerId(1), WorkerId(2), WorkerId(3));
        assert_eq!(traffic.carried(), None);
        traffic.announced(Time(0), map(0), one, two);
        traffic.announced(Time(0), map(1), one, two);
        traffic.announced(Time(0), map(2), one, three);
        traffic.pass(Span::whole_seconds(2));
        assert_eq!(traffic.arrived(map(0), one, two, 100.0), Some(Time(0)));
        assert_eq!(traffic.arrived(map(1), one, two, 100.0), None, "it waited for the one before");
        traffic.pass(Span::whole_seconds(2));
        assert_eq!(traffic.arrived(map(2), one, three, 100.0), Some(Time(0)));
        // No transfer is in flight now.
        traffic.pass(Span::whole_seconds(9));
        // The second worker received 200 bytes in 2 s, the first sent 300 in 4 s.
        assert_eq!(traffic.carried(), Some(100.0));
        traffic.announced(Time(5), map(3), three, two);
        traffic.dropped(|_, to, _| to == two);
        traffic.pass(Span::whole_seconds(9));
        assert_eq!(traffic.carried(), Some(100.0), "dropped transfers keep no link busy");
    }
}
