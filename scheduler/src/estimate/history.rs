//! Remembers jobs by name: until its own maps have finished, a job is estimated by the mean of earlier jobs of that
//! name.
//!
//! Paper: overlap, 4.3 (historical data of similar jobs). The rates of all earlier jobs of a name are pooled.
//! They are slot-seconds of map and bytes of output per byte of input (per map, if inputs have no size), and
//! seconds of a reduce. From its first finished map on, a job is estimated by its own maps (`linear`), and
//! its reduces by its own once one has finished. Required: names, where jobs of equal name are similar. Its
//! memory can be kept over restarts of the master.

use crate::catalogue::Entry;
use crate::estimate::estimator::{Estimator, Facts, Sizes, Unit, assemble, shuffle_seconds};
use crate::estimate::linear::{Linear, Rates};
use crate::estimate::tasks::{Tasks, mean_reduce};
use crate::station::Station;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Catalogue entry of the estimator.
pub(super) const ENTRY: Entry<dyn Estimator> = Entry {
    paper: "overlap 4.3",
    ..Entry::new("history", "as earlier jobs of the same label, then linear", |_| {
        Ok(Box::new(History::new()))
    })
};

/// Maximum number of remembered names. A new name replaces the one with the oldest update.
pub const NAMES_MAX: usize = 1_000;

/// Sums over all earlier jobs of a name.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Past {
    /// Time of the last update, counted in jobs.
    learned: u64,
    maps: f64,
    map_seconds: f64,
    input_bytes: f64,
    output_bytes: f64,
    reduces: f64,
    reduce_seconds: f64,
}

impl Past {
    /// True if the sums are valid.
    fn is_sound(&self) -> bool {
        let sums = [self.map_seconds, self.input_bytes, self.output_bytes, self.reduces, self.reduce_seconds];
        1.0 <= self.maps && self.maps.is_finite() && sums.iter().all(|sum| sum.is_finite() && 0.0 <= *sum)
    }
}

/// Schema version of the memory of [`History`].
const MEMORY_SCHEMA: u64 = 1;

/// Estimator by name; see the module.
#[derive(Clone, Debug, Default)]
pub struct History {
    past: BTreeMap<String, Past>,
    learned: u64,
}

impl History {
    /// Creates an empty memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Estimates a job by its predecessors; `None` for a new name.
    fn expected(&self, facts: &Facts<'_>) -> Option<Sizes> {
        let past = self.past.get(facts.name?)?;
        let a_reduce = (0.0 < past.reduces).then(|| past.reduce_seconds / past.reduces);
        let reduce = mean_reduce(facts).or(a_reduce);
        if 0.0 < facts.input_bytes && 0.0 < past.input_bytes {
            let rates = Rates {
                map: past.map_seconds / past.input_bytes,
                output: past.output_bytes / past.input_bytes,
            };
            return Some(rates.sizes(facts, reduce));
        }
        let (map, maps) = (past.map_seconds / past.maps, f64::from(facts.maps));
        let shuffle = shuffle_seconds(facts, past.output_bytes / past.maps * maps);
        Some(assemble(facts, Unit { whole: map * maps, done: 0.0 }, shuffle, reduce.unwrap_or(map)))
    }

    /// Estimates a job by its own maps; history is used for the reduces only.
    fn observed(&self, facts: &Facts<'_>) -> Sizes {
        let mut sizes = Linear.sizes(facts);
        let past = facts.name.and_then(|name| self.past.get(name)).filter(|past| 0.0 < past.reduces);
        if let Some(past) = past.filter(|_| facts.reduces.done == 0) {
            let whole = past.reduce_seconds / past.reduces * f64::from(facts.reduces.count);
            sizes.whole[Station::Reduce] = whole;
            sizes.left[Station::Reduce] = whole;
        }
        sizes
    }

    fn from_memory(memory: &serde_json::Value) -> Result<Self, String> {
        let schema = memory.get("schema").and_then(serde_json::Value::as_u64);
        if schema != Some(MEMORY_SCHEMA) {
            return Err(format!("a memory of schema {schema:?} is not of schema {MEMORY_SCHEMA}"));
        }
        let past = memory.get("past").cloned().unwrap_or_default();
        let past: BTreeMap<String, Past> = serde_json::from_value(past).map_err(|error| error.to_string())?;
        if NAMES_MAX < past.len() {
            return Err(format!("it remembers {} names, more than {NAMES_MAX}", past.len()));
        }
        if let Some((name, _)) = past.iter().find(|(_, past)| !past.is_sound()) {
            return Err(format!("what it remembers of `{name}` is impossible"));
        }
        let learned = past.values().map(|past| past.learned).max().unwrap_or(0);
        Ok(Self { past, learned })
    }

    fn forget_one(&mut self) {
        if self.past.len() < NAMES_MAX {
            return;
        }
        let oldest = self.past.iter().min_by_key(|(_, past)| past.learned);
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            self.past.remove(&name);
        }
    }
}

impl Estimator for History {
    fn name(&self) -> &'static str {
        "history"
    }

    fn sizes(&mut self, facts: &Facts<'_>) -> Sizes {
        match facts.maps_done {
            0 => self.expected(facts).unwrap_or_else(|| Tasks.sizes(facts)),
            _ => self.observed(facts),
        }
    }

    fn knows(&self, facts: &Facts<'_>) -> bool {
        0 < facts.maps_done || facts.name.is_some_and(|name| self.past.contains_key(name))
    }

    fn memory(&self) -> serde_json::Value {
        serde_json::json!({ "schema": MEMORY_SCHEMA, "past": self.past })
    }

    fn restore(&mut self, memory: &serde_json::Value) -> Result<(), String> {
        let fresh = if memory.is_null() { Self::new() } else { Self::from_memory(memory)? };
        *self = fresh;
        Ok(())
    }

    fn learn(&mut self, facts: &Facts<'_>) {
        let Some(name) = facts.name.filter(|_| 0 < facts.maps_done) else { return };
        if !self.past.contains_key(name) {
            self.forget_one();
        }
        self.learned += 1;
        let past = self.past.entry(name.to_owned()).or_default();
        past.learned = self.learned;
        past.maps += f64::from(facts.maps_done);
        past.map_seconds += facts.map_time;
        past.input_bytes += facts.input_bytes_done;
        past.output_bytes += facts.output_bytes;
        past.reduces += f64::from(facts.reduces.done);
        past.reduce_seconds += facts.reduces.time;
    }
}
