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
use gristmill::scheduler::plan::{Plan, Reason, Share};
use gristmill::scheduler::policy::{Policy, Ranked};
use gristmill::scheduler::view::{Change, Handle, Station, View};

/// A job's place: its maps, then its order of arrival, which is unique.
type Place = (u64, u64);

/// Jobs by size. A job stands in a set only while it can use what the set is about, so that planning does not
/// walk over jobs that want nothing.
#[derive(Default)]
struct ShortestFirst {
    wants_slot: Ranked<Place, Handle>,
    wants_lane: Ranked<Place, Handle>,
}

const SHORTEST: Reason = Reason::Own("shortest job that could use the slot");

impl Policy for ShortestFirst {
    fn name(&self) -> &'static str {
        "sjf"
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        if let Change::Left(job) = change {
            self.wants_slot.place(job, None);
            self.wants_lane.place(job, None);
        }
        for &job in view.touched {
            let row = view.row(job);
            let place = (row.whole[Station::Map.index()] as u64, row.seq);
            let can = |station: Station| 0.0 < row.can[station.index()];
            self.wants_slot.place(job, (can(Station::Map) || can(Station::Reduce)).then_some(place));
            self.wants_lane.place(job, can(Station::Shuffle).then_some(place));
        }
    }

    fn plan(&mut self, _: View<'_>, plan: &mut Plan<'_>) {
        for job in self.wants_lane.iter() {
            if !plan.grant(job, Station::Shuffle, Share::All, SHORTEST) {
                break;
            }
        }
        for job in self.wants_slot.iter() {
            // A reduce whose input is there ends a job sooner than another map would.
            plan.grant(job, Station::Reduce, Share::All, SHORTEST);
            plan.grant(job, Station::Map, Share::All, SHORTEST);
            if plan.left(Station::Map) <= 0.0 && plan.left(Station::Reduce) <= 0.0 {
                break;
            }
        }
    }
}

/// Makes the policy from what stands behind its name and a colon.
fn shortest_first(parameters: &str) -> Result<Box<dyn Policy + Send>, String> {
    match parameters {
        "" => Ok(Box::new(ShortestFirst::default())),
        text => Err(format!("it takes no parameters, but was given `{text}`")),
    }
}

fn main() -> std::process::ExitCode {
    gristmill::cli::main(Registry::standard().policy("sjf", shortest_first))
}
