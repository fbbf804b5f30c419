//! Interface of estimators: facts about a job, and its sizes.

use crate::station::PerStation;

/// Facts about a live job from which its sizes are estimated.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Facts<'a> {
    /// Name of the job. Jobs of equal name are similar.
    pub name: Option<&'a str>,
    /// Number of maps.
    pub maps: u32,
    /// Number of finished maps.
    pub maps_done: u32,
    /// Mean seconds of the maps of all jobs; `None` before any has finished.
    pub usual_map: Option<f64>,
    /// Input bytes of all maps.
    pub input_bytes: f64,
    /// Input bytes of the finished maps.
    pub input_bytes_done: f64,
    /// Sum of the running times of finished maps, in slot-seconds.
    pub map_time: f64,
    /// Output bytes of the finished maps.
    pub output_bytes: f64,
    /// Bytes of that output that have arrived at the homes.
    pub fetched_bytes: f64,
    pub reduces: ReduceFacts,
    /// Bytes per second of the whole network; infinite without limit.
    pub network: f64,
    /// Exact work of the job, if the driver knows it: in simulations and experiments.
    pub exact: Option<Sizes>,
}

/// Facts about a job's reduces.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ReduceFacts {
    /// Number of reduces.
    pub count: u32,
    /// Number of finished reduces.
    pub done: u32,
    /// Sum of the running times of finished reduces, in slot-seconds.
    pub time: f64,
}

/// Sizes of a job: slot-seconds of maps and reduces, seconds of the whole network at the shuffle.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sizes {
    /// Total work.
    pub whole: PerStation<f64>,
    /// Work left.
    pub left: PerStation<f64>,
}

/// Estimates the sizes of jobs.
pub trait Estimator: Send {
    /// Returns its name, as in `--estimator`.
    fn name(&self) -> &'static str;

    /// Returns the current size estimate of a job. Called when the job changed; equal facts give equal sizes.
    fn sizes(&mut self, facts: &Facts<'_>) -> Sizes;

    /// Learns from the last facts of an ended job, for other jobs of its name.
    fn learn(&mut self, _facts: &Facts<'_>) {}

    /// True if the job's sizes are more than a guess. Before the first map this is so only if it remembers similar jobs
    /// or knows exact sizes.
    fn knows(&self, facts: &Facts<'_>) -> bool {
        0 < facts.maps_done
    }

    /// Returns all that it has learned, to be kept over restarts; null if it learns nothing.
    fn memory(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Replaces its memory by an earlier result of [`Estimator::memory`].
    ///
    /// # Errors
    /// If the memory is invalid; then nothing has changed.
    fn restore(&mut self, memory: &serde_json::Value) -> Result<(), String> {
        match memory.is_null() {
            true => Ok(()),
            false => Err(format!("the estimator `{}` keeps no memory", self.name())),
        }
    }
}

/// Work of one kind, in its own unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Unit {
    pub(super) whole: f64,
    pub(super) done: f64,
}

/// Computes sizes from the work of the maps (slot-seconds), the shuffle (seconds of the network) and one reduce
/// (seconds).
pub(super) fn assemble(facts: &Facts<'_>, map: Unit, shuffle: Unit, reduce: f64) -> Sizes {
    let reduces_left = facts.reduces.count.saturating_sub(facts.reduces.done);
    Sizes {
        whole: PerStation::new(map.whole, shuffle.whole, reduce * f64::from(facts.reduces.count)),
        left: PerStation::new(
            (map.whole - map.done).max(0.0),
            (shuffle.whole - shuffle.done).max(0.0),
            reduce * f64::from(reduces_left),
        ),
    }
}

/// Returns the seconds of the whole network for this many bytes, and for those already transferred; 0 without reduces.
pub(super) fn shuffle_seconds(facts: &Facts<'_>, output_bytes: f64) -> Unit {
    if facts.reduces.count == 0 || facts.network <= 0.0 {
        return Unit { whole: 0.0, done: 0.0 };
    }
    // The total is at least the output so far.
    let bytes = output_bytes.max(facts.output_bytes);
    Unit { whole: bytes / facts.network, done: facts.fetched_bytes / facts.network }
}
