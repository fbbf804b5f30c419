//! Estimators: what is known of sizes, rates and completion times before the fact.
//!
//! An estimator is given facts and asked for numbers.

pub mod completion;
pub mod dtd;
pub mod history;
pub mod linear;
pub mod oracle;
pub mod rates;
pub mod tasks;

pub use history::History;
pub use linear::Linear;
pub use oracle::Oracle;
pub use rates::ServiceRates;
pub use tasks::Tasks;

use crate::catalogue::{self, CatalogueError, Entry};
use crate::ids::JobId;
use crate::station::PerStation;
use crate::units::Time;

const ENTRIES: &[Entry<dyn Estimator>] = &[tasks::ENTRY, linear::ENTRY, history::ENTRY, oracle::ENTRY];

/// All estimators that come with Gristmill.
#[must_use]
pub fn catalogue() -> Vec<&'static Entry<dyn Estimator>> {
    ENTRIES.iter().collect()
}

/// Makes the estimator of this text, `name` or `name:parameter=value,...`.
///
/// # Errors
/// An unknown name, with the known ones and the nearest, or parameters that the estimator refuses.
pub fn by_name(text: &str) -> Result<Box<dyn Estimator>, CatalogueError> {
    catalogue::call(&catalogue(), "estimator", text)
}

/// What is known of a live job when its sizes are asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct Facts<'a> {
    pub now: Time,
    pub job: JobId,
    /// Jobs of one name are alike.
    pub name: Option<&'a str>,
    /// Number of maps.
    pub maps: u32,
    /// Maps that finished.
    pub maps_done: u32,
    /// What all maps read, in bytes.
    pub input_bytes: f64,
    /// What the finished maps read, in bytes.
    pub input_bytes_done: f64,
    /// Sum of the running times of finished maps, in slot-seconds.
    pub map_time: f64,
    /// When the running maps began.
    pub running_since: &'a [Time],
    /// What the finished maps put out, in bytes.
    pub output_bytes: f64,
    /// What the homes have of it, in bytes.
    pub fetched_bytes: f64,
    pub reduces: ReduceFacts,
    /// Bytes that the whole network moves in a second; infinite if nothing limits it.
    pub network: f64,
    /// The job's work exactly, where the driver knows it: in simulations and experiments.
    pub exact: Option<Sizes>,
}

/// What is known of a job's reduces.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ReduceFacts {
    /// How many there are.
    pub count: u32,
    /// How many have finished.
    pub done: u32,
    /// Sum of the running times of those, in slot-seconds.
    pub time: f64,
}

/// Sizes of a job: slot-seconds of maps and reduces, seconds of the whole network at the shuffle.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sizes {
    /// All its work.
    pub whole: PerStation<f64>,
    /// What is left of it.
    pub left: PerStation<f64>,
}

/// Says how large jobs are.
pub trait Estimator: Send {
    /// Its name, as in `--estimator`.
    fn name(&self) -> &'static str;

    /// The sizes of a job as they look now. Asked when something of the job changed; the same facts give the same
    /// sizes.
    fn sizes(&mut self, facts: &Facts<'_>) -> Sizes;

    /// A job is over, and these are the last facts of it: what there is to learn for others of its name.
    fn learn(&mut self, _facts: &Facts<'_>) {}

    /// Whether the job's sizes are more than a guess: before its first map, only one that remembers alike jobs or is
    /// told knows anything.
    fn knows(&self, facts: &Facts<'_>) -> bool {
        0 < facts.maps_done
    }

    /// All that it has learned, to be kept over restarts; null if it learns nothing.
    fn memory(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Knows from now on what [`Estimator::memory`] said then, and nothing else.
    ///
    /// # Errors
    /// What is no such memory, in words; then nothing has changed.
    fn restore(&mut self, memory: &serde_json::Value) -> Result<(), String> {
        match memory.is_null() {
            true => Ok(()),
            false => Err(format!("the estimator `{}` keeps no memory", self.name())),
        }
    }
}

/// Work of one kind, in its own unit.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Unit {
    whole: f64,
    done: f64,
}

/// Sizes from the work of the maps (slot-seconds), the shuffle (seconds of the network) and one reduce (seconds).
fn assemble(facts: &Facts<'_>, map: Unit, shuffle: Unit, reduce: f64) -> Sizes {
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

/// What the whole network needs to move so many bytes, and has moved of them. Without reduces nothing is moved.
fn shuffle_seconds(facts: &Facts<'_>, output_bytes: f64) -> Unit {
    if facts.reduces.count == 0 || facts.network <= 0.0 {
        return Unit { whole: 0.0, done: 0.0 };
    }
    // What is unfinished cannot be less than what has come out and was not fetched.
    let bytes = output_bytes.max(facts.output_bytes);
    Unit { whole: bytes / facts.network, done: facts.fetched_bytes / facts.network }
}

#[cfg(test)]
mod tests;
