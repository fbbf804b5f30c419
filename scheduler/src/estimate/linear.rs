//! Predicts from bytes: time and output per input byte of finished maps are extrapolated to the rest.
//!
//! Paper: overlap, 4.3 (linear prediction from a few tasks). `map work = map time so far * input / input read so far`,
//! and similarly for the shuffle with the output bytes. Before the first map has finished, and for jobs whose input has
//! no size, it counts tasks instead. A reduce takes as long as those finished, else its part of the map work.
//! Required: bytes of the input.
//! Limits: it does not remember earlier jobs (`history` does).

use crate::catalogue::Entry;
use crate::estimate::estimator::{Estimator, Facts, Sizes, Unit, assemble, shuffle_seconds};
use crate::estimate::tasks::{Tasks, mean_reduce};

/// Catalogue entry of the estimator.
pub(super) const ENTRY: Entry<dyn Estimator> = Entry {
    paper: "overlap 4.3",
    ..Entry::new("linear", "linear in the bytes that finished maps read", |_| Ok(Box::new(Linear)))
};

/// Estimator by bytes; see the module.
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

/// Rates per byte of input.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Rates {
    /// Slot-seconds of map per byte of input.
    pub(super) map: f64,
    /// Bytes of output per byte of input.
    pub(super) output: f64,
}

impl Rates {
    /// Returns the sizes of a job whose maps have these rates; a reduce takes `reduce` seconds, or as long as a map.
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
