//! Policies that look on: they observe what the deciding policy observes, and say whom they would have served.
//!
//! They order nothing, so what they see is the world as the deciding policy has made it: each answer holds for its
//! instant, and what would have become of the jobs under another policy all along is a simulation's to say. They have no
//! ticks of their own, and see slots of reduces as taken or to be given anew just as the deciding policy does.

use crate::core::Core;
use crate::core::guarded::Guarded;
use crate::core::show::view_of;
use crate::core::turns::{Stretch, Turn, UnlimitedSlots};
use crate::ids::{JobId, TaskKind};
use crate::plan::Plan;
use crate::policy::Policy;
use crate::station::{PerStation, Station};

/// Onlookers, and what was seen last.
pub(super) struct Watch {
    pub(super) onlookers: Vec<Guarded>,
    seen: Sight,
}

/// What policies saw in one instant before its plan, and what each of them wanted.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sight {
    /// Whether maps and reduces draw on the same slots.
    pub unified: bool,
    /// Free slots for maps and for reduces; the same number twice where both draw on the same slots.
    pub free: PerStation<u32>,
    /// The live jobs, in the order of arrival.
    pub jobs: Vec<SeenJob>,
    /// The deciding policy's wish, then those of the onlookers.
    pub wishes: Vec<Wish>,
}

/// A job as policies saw it.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct SeenJob {
    pub job: JobId,
    /// Slots that it held.
    pub held: PerStation<u32>,
    /// Tasks that could start ([`Row::can`](crate::view::Row::can)).
    pub can: PerStation<u32>,
}

/// Whom a policy would have served, one after the other, were there slots enough.
#[derive(Clone, PartialEq, Debug)]
pub struct Wish {
    /// Its name.
    pub policy: String,
    /// Most urgent first.
    pub turns: Vec<Turn>,
}

impl Core {
    /// From now on these policies look on, and [`Core::sight`] says what was seen. Meant for a core that has not seen a
    /// job yet: of others that live already the onlookers know nothing.
    pub fn look_on(&mut self, policies: Vec<Box<dyn Policy>>) {
        let onlookers = policies.into_iter().map(Guarded::new).collect();
        self.watch = Some(Watch { onlookers, seen: Sight::default() });
    }

    /// What was seen in the last call of [`Core::handle`]; `None` unless [`Core::look_on`] was called before.
    #[must_use]
    pub fn sight(&self) -> Option<&Sight> {
        self.watch.as_ref().map(|watch| &watch.seen)
    }

    /// Asks all policies. Cost: all live jobs; nothing if nobody looks on.
    pub(super) fn look(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        let free = |kind| self.ledger.workers.free_of(kind);
        watch.seen.unified = !self.ledger.workers.pooled;
        watch.seen.free = PerStation::new(free(TaskKind::Map), 0, free(TaskKind::Reduce));
        watch.seen.jobs.clear();
        for job in self.ledger.jobs.values() {
            let Some(row) = job.handle.and_then(|handle| self.rows.get(handle.index())) else { continue };
            let count =
                |of: PerStation<f64>| PerStation::new(of[Station::Map] as u32, 0, of[Station::Reduce] as u32);
            watch.seen.jobs.push(SeenJob { job: job.id, held: count(row.held), can: count(row.can) });
        }
        let view = view_of(&self.ledger, (&self.rows, &self.runs), &[]);
        let handles = &self.handles;
        let policies = std::iter::once(&mut self.policy).chain(&mut watch.onlookers);
        watch.seen.wishes = policies
            .map(|policy| {
                let mut listing = UnlimitedSlots::new(view.rows, view.unified);
                let mut plan = Plan::new(&mut listing);
                policy.plan(view, &mut plan);
                plan.finish();
                let turn = |turn: Stretch| {
                    let job = handles.get(turn.job.index()).copied().flatten()?;
                    Some(Turn { job, station: turn.station, slots: turn.slots, reason: turn.reason })
                };
                let turns = listing.turns.into_iter().filter_map(turn).collect();
                Wish { policy: policy.policy().name().to_owned(), turns }
            })
            .collect();
    }
}
