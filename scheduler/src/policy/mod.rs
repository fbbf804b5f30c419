//! Policies: which job may use which capacity next.
//!
//! A policy sees rows and writes grants; it does not see tasks or workers. `placement` chooses workers; `ledger`
//! handles retries and losses.

pub mod asrpt;
pub mod deadlines;
pub mod dsrpt;
pub mod fair;
pub mod fifo;
pub mod gristmill;
pub mod lrpt;
pub mod makespan;
pub mod max_srpt;
mod ordered;
pub mod pairs;
pub mod ps;
mod ranked;
pub mod split_srpt;
pub mod srpt;

pub use asrpt::Asrpt;
pub use deadlines::Deadlines;
pub use dsrpt::Dsrpt;
pub use fair::Fair;
pub use fifo::Fifo;
pub use gristmill::Gristmill;
pub use lrpt::Lrpt;
pub use makespan::Makespan;
pub use max_srpt::MaxSrpt;
pub use ordered::{Ordered, ShuffleRule};
pub use ps::Ps;
pub use ranked::{Ranked, Walk};
pub use split_srpt::SplitSrpt;
pub use srpt::Srpt;

use crate::catalogue::{self, CatalogueError, Entry};
use crate::plan::Plan;
use crate::view::{Change, Handle, View};

/// Returns all policies that are part of Gristmill.
#[must_use]
pub fn catalogue() -> Vec<&'static Entry<dyn Policy>> {
    [
        fifo::ENTRIES,
        fair::ENTRIES,
        deadlines::ENTRIES,
        ps::ENTRIES,
        max_srpt::ENTRIES,
        split_srpt::ENTRIES,
        makespan::ENTRIES,
        lrpt::ENTRIES,
        srpt::ENTRIES,
        dsrpt::ENTRIES,
        asrpt::ENTRIES,
        pairs::ENTRIES,
        gristmill::ENTRIES,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Creates the policy of this text, `name` or `name:parameter=value,...`.
///
/// # Errors
/// An unknown name, with the known ones and the nearest, or parameters that the policy rejects.
pub fn by_name(text: &str) -> Result<Box<dyn Policy>, CatalogueError> {
    catalogue::call(&catalogue(), "policy", text)
}

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

    /// Handles a change.
    fn observe(&mut self, view: View<'_>, change: Change);

    /// Explains the state of a job in sentences, beyond its grants and their reasons; mostly empty.
    fn explain(&self, _view: View<'_>, _job: Handle) -> Vec<String> {
        Vec::new()
    }

    /// Writes grants, most urgent first.
    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>);
}
