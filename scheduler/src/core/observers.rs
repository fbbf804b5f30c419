//! Observing policies: they see what the deciding policy sees, and report which jobs they would have served.
//!
//! They issue no commands, so they see the state that the deciding policy created. Each result is valid for its instant
//! only; the long-term effect of another policy has to be simulated. They have no ticks of their own. They see slots of
//! reduces as held or as preemptible in the same way as the deciding policy.

use crate::core::Core;
use crate::core::guarded::Guarded;
use crate::core::queue_order::{SlotRange, Turn, UnlimitedSlots};
use crate::core::show::view_of;
use crate::ids::{JobId, TaskKind};
use crate::plan::Plan;
use crate::policy::Policy;
use crate::station::{PerStation, Station};

/// Observing policies and their last results.
pub(super) struct Watch {
    pub(super) observers: Vec<Guarded>,
    seen: Observation,
}

/// State that policies saw in one instant before its plan, and the preference of each policy.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Observation {
    /// True if maps and reduces share the same slots.
    pub unified: bool,
    /// Free slots for maps and for reduces; the same number twice if they share the same slots.
    pub free: PerStation<u32>,
    /// Live jobs in the order of arrival.
    pub jobs: Vec<ObservedJob>,
    /// Preference of the deciding policy, then those of the observers.
    pub preferences: Vec<Preference>,
}

/// Job as policies saw it.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct ObservedJob {
    pub job: JobId,
    /// Slots held by the job.
    pub held: PerStation<u32>,
    /// Tasks that could start ([`Row::can`](crate::view::Row::can)).
    pub can: PerStation<u32>,
}

/// Order in which a policy would have served the jobs, given enough slots.
#[derive(Clone, PartialEq, Debug)]
pub struct Preference {
    /// Name of the policy.
    pub policy: String,
    /// Turns, most urgent first.
    pub turns: Vec<Turn>,
}

impl Core {
    /// Adds observing policies, whose results are returned by [`Core::observation`]. Meant for a core without jobs: observers
    /// do not know jobs that arrived earlier.
    pub fn add_observers(&mut self, policies: Vec<Box<dyn Policy>>) {
        let observers = policies.into_iter().map(Guarded::new).collect();
        self.watch = Some(Watch { observers, seen: Observation::default() });
    }

    /// Returns what was observed in the last call of [`Core::handle`]; `None` without an earlier call of
    /// [`Core::add_observers`].
    #[must_use]
    pub fn observation(&self) -> Option<&Observation> {
        self.watch.as_ref().map(|watch| &watch.seen)
    }

    /// Asks all policies for their preferences. Cost: linear in live jobs; zero without observers.
    pub(super) fn record_preferences(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        let free = |kind| self.ledger.workers.free_of(kind);
        watch.seen.unified = !self.ledger.workers.pooled;
        watch.seen.free = PerStation::new(free(TaskKind::Map), 0, free(TaskKind::Reduce));
        watch.seen.jobs.clear();
        for job in self.ledger.jobs.values() {
            let Some(row) = job.handle.and_then(|handle| self.rows.get(handle.index())) else { continue };
            let count =
                |of: PerStation<f64>| PerStation::new(of[Station::Map] as u32, 0, of[Station::Reduce] as u32);
            watch.seen.jobs.push(ObservedJob { job: job.id, held: count(row.held), can: count(row.can) });
        }
        let view = view_of(&self.ledger, (&self.rows, &self.runs), &[]);
        let handles = &self.handles;
        let policies = std::iter::once(&mut self.policy).chain(&mut watch.observers);
        watch.seen.preferences = policies
            .map(|policy| {
                let mut listing = UnlimitedSlots::new(view.rows, view.unified);
                let mut plan = Plan::new(&mut listing);
                policy.plan(view, &mut plan);
                plan.finish();
                let turn = |turn: SlotRange| {
                    let job = handles.get(turn.job.index()).copied().flatten()?;
                    Some(Turn { job, station: turn.station, slots: turn.slots, reason: turn.reason })
                };
                let turns = listing.turns.into_iter().filter_map(turn).collect();
                Preference { policy: policy.policy().name().to_owned(), turns }
            })
            .collect();
    }
}
