//! A custom policy: shortest job first.
//!
//! Rule: jobs in the order of all their map work, counted in map tasks. Among equal jobs the older one
//! comes first. Each takes all slots it can use before the next gets any. It favours short jobs, and with
//! them the mean waiting time. A long job starves while short ones keep arriving.
//! Deviations from the textbook: reduces do not count, and a running task is never stopped.
//! Parameters: none. Difference to shortest remaining time first: that policy would sort by `row.left`.
//!
//! Everything else is as in `gristmill` itself: this program has the standard jobs and policies too.

use gristmill::prelude::*;
use gristmill::scheduler::catalogue::Entry;
use gristmill::scheduler::plan::{Plan, Reason};
use gristmill::scheduler::policy::{Ordered, Policy, ShuffleRule};
use gristmill::scheduler::view::{Change, Station, View};

/// Position of a job: its number of maps, then its order of arrival, which is unique.
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

/// Registry entry that `--policy sjf` selects and `lab sim --list` describes.
const SJF: Entry<dyn Policy> =
    Entry::new("sjf", "shortest job first, by map tasks", |_| Ok(Box::new(ShortestFirst::default())));

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::standard().policy(&SJF))
}
