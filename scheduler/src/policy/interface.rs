//! The trait that a policy implements: it observes changes of jobs and writes grants into a plan.

use crate::plan::Plan;
use crate::view::{Change, Handle, View};

/// Scheduling policy.
///
/// State changes in [`observe`](Policy::observe) only, so that [`plan`](Policy::plan) may be called any number of times
/// for one instant. Neither may do work for all jobs: `view.touched` names the rows that changed, and `grant` reports
/// when to stop.
pub trait Policy: Send {
    /// Returns its name, as in `--policy`.
    fn name(&self) -> &'static str;

    /// True if running reduces beyond the grants are to be suspended. Such a policy distributes the slots of reduces
    /// again in every plan: it sees suspendable reduces as startable ([`Row::can`](crate::view::Row::can)), and makes
    /// two plans in one instant.
    fn preempts(&self) -> bool {
        false
    }

    /// True if it uses the pools of jobs.
    fn knows_pools(&self) -> bool {
        false
    }

    /// True if it also suspends running maps, which only the slotted model supports.
    fn suspends_maps(&self) -> bool {
        false
    }

    /// True if it counts whole slots and units, so that it does not support the rates of the fluid model.
    fn counts_slots(&self) -> bool {
        false
    }

    /// Returns why it has stopped to decide, if it has: a policy that asks another program may lose it. Jobs go by age then.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// Handles a change.
    fn observe(&mut self, view: View<'_>, change: Change);

    /// Explains the state of a job in sentences, beyond its grants and their reasons; mostly empty.
    fn explain(&self, _view: View<'_>, _job: Handle) -> Vec<String> {
        Vec::new()
    }

    /// Writes grants, most urgent first.
    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>);
}
