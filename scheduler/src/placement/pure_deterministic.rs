//! Pure-deterministic split: in proportion to service rates, so that all workers are equally loaded.
//!
//! Thesis, section 6-2, Lemma 4, equations 17 and 18: `lambda_i = lambda mu_i / sum of mu_j`. Optimal without
//! randomness.
//! Required: `mu_i`.
//! Harms jobs under much randomness: at equal load a slow worker has the longer queue, in time.
//! Parameters: `d`, which only affects the predicted times.
//! Deviations: none.

use crate::catalogue::Entry;
use crate::placement::split::{DELAY, Division, TaskSplit, read_delay};
use crate::queueing::{QueueError, QueueSetting};

pub(super) const ENTRY: Entry<TaskSplit> = Entry {
    paper: "stragglers thesis, section 6-2, Lemma 4, equation 18",
    parameters: &[DELAY],
    ..Entry::new("pure-deterministic", "in proportion to service rates", |arguments| {
        Ok(Box::new(TaskSplit::new(read_delay(arguments)?, divide)))
    })
};

/// Divides in proportion to service rates. The level is the value equal for all workers: `lambda_i / mu_i`, a fraction of 1.
fn divide(setting: &QueueSetting<'_>) -> Result<Division, QueueError> {
    let load = setting.lambda / (setting.lambda + setting.spare);
    let rates: Vec<f64> = setting.servers.iter().map(|server| load * server.mu).collect();
    Ok(Division { times: setting.completions(&rates), rates, level: Some(load) })
}
