//! Optimal split: the smallest mean sojourn time of all splits with non-negative rates, numerically.
//!
//! Thesis, definitions 3 and 4, equations 14 to 16, for the completion times of equation 39.
//! Required: `mu_i` and D.
//! Limits: it is the reference for the others.
//! Parameters: `d`.
//! Deviations: none of substance; the mean is convex in the rates, so a minimum is found with a bound on its error
//! (`queueing::least_sojourn`). Without offsets, it equals the water filling of `pure-stochastic`.
//! Cost: some hundred passes over workers and points; seconds for a thousand different workers with offsets.

use crate::catalogue::Entry;
use crate::placement::m_ep;
use crate::placement::pure_stochastic::water_filling;
use crate::placement::split::{DELAY, Division, Sign, TaskSplit, read_delay};
use crate::queueing::{QueueError, QueueSetting, least_sojourn};

pub(super) const ENTRY: Entry<TaskSplit> = Entry {
    paper: "stragglers thesis, definitions 3 and 4, equations 14 to 16",
    parameters: &[DELAY],
    ..Entry::new("optimal", "the least mean sojourn time, numerically", |arguments| {
        Ok(Box::new(TaskSplit::new(read_delay(arguments)?, divide)))
    })
};

/// Divides for the smallest mean sojourn time.
fn divide(setting: &QueueSetting<'_>) -> Result<Division, QueueError> {
    let plain = setting.delay == 0.0 && setting.servers.iter().all(|server| server.offset == 0.0);
    let rates = if plain {
        water_filling(setting).0
    } else {
        let (start, _) = m_ep::delayed(setting, Sign::NonNegative);
        least_sojourn(setting, &start)?.rates
    };
    Ok(Division { times: setting.completions(&rates), rates, level: None })
}
