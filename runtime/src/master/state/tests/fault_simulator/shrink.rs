//! Runs a scenario of faults, and leaves out faults and jobs of one that fails, as long as it still fails.

use super::scenario::Scenario;
use super::world::{Shown, World};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a scenario. A panic counts as a violation.
///
/// # Errors
/// The invariant that was violated.
pub(super) fn run(scenario: &Scenario, looks_inside: bool) -> Result<Shown, String> {
    let scenario = scenario.clone();
    catch_unwind(AssertUnwindSafe(|| World::new(scenario, looks_inside).run())).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!("panicked: {}", words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("wordlessly")))
    })
}

/// Leaves out faults, then jobs, as long as the run still fails. Returns the remaining scenario and its violation.
pub(super) fn shrink(mut scenario: Scenario, mut wrong: String) -> (Scenario, String) {
    loop {
        let before = scenario.faults.len() + scenario.jobs.len();
        for number in (0..scenario.faults.len()).rev() {
            let mut smaller = scenario.clone();
            smaller.faults.remove(number);
            if let Err(still) = run(&smaller, true) {
                (scenario, wrong) = (smaller, still);
            }
        }
        for number in (0..scenario.jobs.len()).rev() {
            let mut smaller = scenario.clone();
            if smaller.jobs.len() < 2 {
                break;
            }
            smaller.jobs.remove(number);
            if let Err(still) = run(&smaller, true) {
                (scenario, wrong) = (smaller, still);
            }
        }
        if scenario.faults.len() + scenario.jobs.len() == before {
            return (scenario, wrong);
        }
    }
}
