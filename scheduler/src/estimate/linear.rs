//! Predicts from bytes: what finished maps took and put out for each byte that they read holds for the rest.
//!
//! Paper: overlap, 4.3 (linear prediction from a few tasks). `map work = map time so far * input / input read so far`,
//! and so for the shuffle with the bytes put out. Before the first map has finished, and for jobs whose input has no
//! size, it counts tasks instead. A reduce takes as long as those finished did, else its part of the map work.
//! Must know: bytes of the input. It is not: a memory of earlier jobs (`history`).

use crate::catalogue::Entry;
use crate::estimate::tasks::{Tasks, mean_reduce};
use crate::estimate::{Estimator, Facts, Sizes, Unit, assemble, shuffle_seconds};

/// How it is called.
pub(super) const ENTRY: Entry<dyn Estimator> = Entry {
    name: "linear",
    aliases: &[],
    paper: "overlap 4.3",
    summary: "linear in the bytes that finished maps read",
    parameters: &[],
    only_simulated: None,
    make: |_| Ok(Box::new(Linear)),
};

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Linear;

impl Estimator for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn sizes(&mut self, facts: &Facts<'_>) -> Sizes {
        let read = facts.input_bytes_done;
        if facts.maps_done == 0 || read <= 0.0 {
            return Tasks.sizes(facts);
        }
        let rates = Rates { map: facts.map_time / read, output: facts.output_bytes / read };
        rates.sizes(facts, mean_reduce(facts))
    }
}

/// What a byte of input brings.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Rates {
    /// Slot-seconds of map for a byte of input.
    pub(super) map: f64,
    /// Bytes of output for a byte of input.
    pub(super) output: f64,
}

impl Rates {
    /// The sizes of a job whose maps keep these rates; a reduce takes `reduce` seconds, or as long as a map.
    pub(super) fn sizes(&self, facts: &Facts<'_>, reduce: Option<f64>) -> Sizes {
        let whole = self.map * facts.input_bytes;
        let a_map = whole / f64::from(facts.maps.max(1));
        assemble(
            facts,
            Unit { whole, done: self.map * facts.input_bytes_done },
            shuffle_seconds(facts, self.output * facts.input_bytes),
            reduce.unwrap_or(a_map),
        )
    }
}
