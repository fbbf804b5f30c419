//! Fair split: every worker gets the same rate.
//!
//! Thesis, section 6-1, equation 12: `lambda_i = lambda / N`.
//! Required: nothing.
//! Favours no worker, and so harms every job that waits for the slowest worker: stable only while `lambda < N mu_min`
//! (equation 13).
//! Parameters: `d`, which only affects the predicted times.
//! Deviations: none.

use crate::catalogue::Entry;
use crate::placement::split::{DELAY, Division, TaskSplit, read_delay};
use crate::queueing::{QueueError, QueueSetting};

pub(super) const ENTRY: Entry<TaskSplit> = Entry {
    paper: "stragglers thesis, section 6-1, equation 12",
    parameters: &[DELAY],
    ..Entry::new("fair-split", "the same for every worker", |arguments| {
        Ok(Box::new(TaskSplit { even: true, ..TaskSplit::new(read_delay(arguments)?, divide) }))
    })
};

/// Divides the tasks equally.
fn divide(setting: &QueueSetting<'_>) -> Result<Division, QueueError> {
    let count = setting.servers.len();
    let rates = vec![setting.lambda / count as f64; count];
    Ok(Division { times: setting.completions(&rates), rates, level: None })
}
