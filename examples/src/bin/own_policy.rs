//! A policy of one's own: shortest job first.
//!
//! Rule: jobs in the order of all their map work, counted in map tasks; the older one first among equals. Each
//! takes all it can use before the next gets any.
//! It favours short jobs, and mean waiting with them; a long job starves while short ones keep coming.
//! Deviations from the textbook: none of the reduces count; a running task is never stopped.
//! Parameters: none. It is not: shortest remaining time first, which would sort by `row.left`.
//!
//! Everything else is as in `gristmill` itself: this program has the standard jobs and policies too.

use gristmill::prelude::*;
use gristmill::scheduler::catalogue::Entry;
use gristmill::scheduler::plan::{Plan, Reason};
use gristmill::scheduler::policy::{Ordered, Policy, ShuffleRule};
use gristmill::scheduler::view::{Change, Station, View};

/// A job's place: its maps, then its order of arrival, which is unique.
type Place = (u64, u64);

#[derive(Default)]
struct ShortestFirst {
    jobs: Ordered<Place>,
}

const SHORTEST: Reason = Reason::Own("shortest job that could use the slot");

impl Policy for ShortestFirst {
    fn name(&self) -> &'static str {
        "sjf"
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        self.jobs.observe(view, change, |view, job| {
            let row = view.row(job);
            (row.whole[Station::Map] as u64, row.seq)
        });
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        self.jobs.plan(view, plan, ShuffleRule::All, |_, _| SHORTEST);
    }
}

/// What `--policy sjf` makes, and `sim --list` says of it.
const SJF: Entry<dyn Policy> =
    Entry::new("sjf", "shortest job first, by map tasks", |_| Ok(Box::new(ShortestFirst::default())));

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::standard().policy(&SJF))
}
