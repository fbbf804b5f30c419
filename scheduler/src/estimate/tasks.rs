//! Counts tasks: uses only their number and the lengths of finished ones.
//!
//! Until a map has finished, a map is assumed to take as long as those of other jobs, and to output as many bytes as it
//! reads. Then
//! maps are estimated by the mean of those finished. A reduce takes as long as a map until one has finished.
//! Required: nothing. Limits: it does not predict from bytes (`linear` does).

use crate::catalogue::Entry;
use crate::estimate::estimator::{Estimator, Facts, Sizes, Unit, assemble, shuffle_seconds};

/// Catalogue entry of the estimator.
pub(super) const ENTRY: Entry<dyn Estimator> = Entry {
    paper: "deadlines III-B (equation 1)",
    ..Entry::new("tasks", "counts tasks; they are as long as the mean of those finished", |_| {
        Ok(Box::new(Tasks))
    })
};

/// Assumed seconds of a map before any map of any job has finished.
pub(crate) const FIRST_GUESS: f64 = 1.0;

/// Estimator by number of tasks; see the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tasks;

impl Estimator for Tasks {
    fn name(&self) -> &'static str {
        "tasks"
    }

    fn sizes(&mut self, facts: &Facts<'_>) -> Sizes {
        let map = mean_map(facts).or(facts.usual_map).unwrap_or(FIRST_GUESS);
        let output = match facts.maps_done {
            0 => facts.input_bytes,
            done => facts.output_bytes * f64::from(facts.maps) / f64::from(done),
        };
        assemble(
            facts,
            Unit { whole: map * f64::from(facts.maps), done: map * f64::from(facts.maps_done) },
            shuffle_seconds(facts, output),
            mean_reduce(facts).unwrap_or(map),
        )
    }
}

/// Returns the mean length of finished maps, in seconds.
pub(super) fn mean_map(facts: &Facts<'_>) -> Option<f64> {
    (0 < facts.maps_done).then(|| facts.map_time / f64::from(facts.maps_done))
}

/// Returns the mean length of finished reduces, in seconds.
pub(super) fn mean_reduce(facts: &Facts<'_>) -> Option<f64> {
    (0 < facts.reduces.done).then(|| facts.reduces.time / f64::from(facts.reduces.done))
}
