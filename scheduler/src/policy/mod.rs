//! Policies: which job may use which capacity next.
//!
//! Not here: which worker (`placement`), retries and losses (`ledger`). A policy sees rows, writes grants and
//! knows neither tasks nor workers.

pub mod asrpt;
pub mod deadlines;
pub mod dsrpt;
pub mod fair;
pub mod fifo;
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
pub use lrpt::Lrpt;
pub use makespan::Makespan;
pub use max_srpt::MaxSrpt;
pub use ps::Ps;
pub use ranked::{Item, Ranked, Walk};
pub use split_srpt::SplitSrpt;
pub use srpt::Srpt;

use crate::catalogue::{self, CatalogueError, Entry};
use crate::plan::Plan;
use crate::view::{Change, View};

/// All policies that come with Gristmill.
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
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Makes the policy of this text, `name` or `name:parameter=value,...`.
///
/// # Errors
/// An unknown name, with the known ones and the nearest, or parameters that the policy refuses.
pub fn by_name(text: &str) -> Result<Box<dyn Policy>, CatalogueError> {
    catalogue::call(&catalogue(), "policy", text)
}

/// A policy.
///
/// State advances in [`observe`](Policy::observe) only, so that [`plan`](Policy::plan) may be called any
/// number of times for one instant. Neither may do work for all jobs: `view.touched` names the rows that
/// changed, and `grant` says when to stop walking.
pub trait Policy: Send {
    /// Its name, as in `--policy`.
    fn name(&self) -> &'static str;

    /// Whether attempts beyond the grants are to be suspended. Not supported yet:
    /// [`Core::new`](crate::core::Core::new) refuses a policy that says so.
    fn preempts(&self) -> bool {
        false
    }

    /// Whether it counts whole slots and units, so that the rates of the fluid model mean nothing to it.
    fn counts_slots(&self) -> bool {
        false
    }

    /// Something changed.
    fn observe(&mut self, view: View<'_>, change: Change);

    /// Writes grants, most urgent first.
    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>);
}
