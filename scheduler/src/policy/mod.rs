//! Policies: which job may use which capacity next.
//!
//! A policy sees rows and writes grants; it does not see tasks or workers. `placement` chooses workers; `ledger`
//! handles retries and losses.

pub mod asrpt;
mod attained;
pub mod deadlines;
pub mod dsrpt;
pub mod fair;
mod fair_run;
pub mod fifo;
mod fsp;
pub mod gristmill;
mod interface;
pub mod lrpt;
pub mod makespan;
pub mod max_srpt;
mod ordered;
pub mod pairs;
pub mod ps;
mod ranked;
mod serpt;
pub mod split_srpt;
pub mod srpt;

pub use asrpt::Asrpt;
pub use deadlines::Deadlines;
pub use dsrpt::Dsrpt;
pub use fair::Fair;
pub use fifo::Fifo;
pub use gristmill::Gristmill;
pub use interface::Policy;
pub use lrpt::Lrpt;
pub use makespan::Makespan;
pub use max_srpt::MaxSrpt;
pub use ordered::{Ordered, ShuffleRule};
pub use ps::Ps;
pub use ranked::{Ranked, Walk};
pub use split_srpt::SplitSrpt;
pub use srpt::Srpt;

use crate::catalogue::{self, CatalogueError, Entry};

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
        attained::ENTRIES,
        serpt::ENTRIES,
        fsp::ENTRIES,
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
