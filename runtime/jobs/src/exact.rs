//! Work of a job as measured, for replaying it as a synthetic job.

use serde::{Deserialize, Serialize};

/// The work of a job task by task, from an earlier run of it alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExactWork {
    /// Seconds for which each map holds a slot of a worker of speed 1.
    pub map_seconds: Vec<f64>,
    /// Bytes of output of all maps.
    pub shuffle_bytes: f64,
    /// Seconds for which each reduce holds such a slot.
    pub reduce_seconds: Vec<f64>,
}

impl ExactWork {
    /// Checks the numbers.
    ///
    /// # Errors
    /// A description of a number that is negative or not finite.
    pub fn validate(&self) -> Result<(), String> {
        let lists = [
            ("map_seconds", &self.map_seconds[..]),
            ("shuffle_bytes", std::slice::from_ref(&self.shuffle_bytes)),
            ("reduce_seconds", &self.reduce_seconds[..]),
        ];
        for (name, numbers) in lists {
            if let Some(number) = numbers.iter().find(|number| !(number.is_finite() && 0.0 <= **number)) {
                return Err(format!("{name} holds {number}, which is not a number of at least 0"));
            }
        }
        Ok(())
    }
}
