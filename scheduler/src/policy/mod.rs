//! Policies: which job may use which capacity next.
//!
//! Not here: which worker (`placement`), retries and losses (`ledger`). A policy sees rows, writes grants and
//! knows neither tasks nor workers.

pub mod fair;
pub mod fifo;
mod ranked;

pub use fair::Fair;
pub use fifo::Fifo;
pub use ranked::{Ranked, Walk};

use crate::plan::Plan;
use crate::view::{Change, View};

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

    /// Something changed.
    fn observe(&mut self, view: View<'_>, change: Change);

    /// Writes grants, most urgent first.
    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{Placement, Pull};

    #[test]
    fn every_policy_and_placement_has_its_row_in_the_table() {
        let table = include_str!("../../POLICIES.md");
        let policies: [Box<dyn Policy>; 2] = [Box::new(Fifo::new()), Box::new(Fair::new())];
        for policy in policies {
            assert!(table.contains(&format!("| `{}` |", policy.name())), "no row for {}", policy.name());
        }
        let pull = Pull::new();
        assert!(table.contains(&format!("| `{}` |", pull.name())), "no row for {}", pull.name());
    }
}
