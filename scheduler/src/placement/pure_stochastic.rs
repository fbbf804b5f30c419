//! Pure-stochastic split: the same spare rate at every worker, so that all M/M/1 queues have equal times.
//!
//! Thesis, section 6-3, Lemma 5, equations 22 and 23: `lambda_i = mu_i + (lambda - sum of mu_j) / N`. Optimal for
//! exponential times without offset.
//! Required: `mu_i`.
//! Harms jobs whose tasks take a fixed time that grows with the load.
//! Parameters: `rates` (nonneg, or raw as printed), `d`, which only affects the predicted times.
//! Deviations: equation 23 gives slow workers negative rates at low load (equation 24 says when not), which would mean
//! that they pass on work that they never got. `rates=nonneg` is the optimum without that: `lambda_i = max(0, mu_i -
//! c)` with the `c` for which the sum is lambda (water filling). Workers without tasks still count in the largest time.

use crate::catalogue::Entry;
use crate::placement::split::{DELAY, Division, SIGN, Sign, TaskSplit, read_delay, read_sign};
use crate::queueing::level::positive_root;
use crate::queueing::{QueueError, QueueSetting, sum};

pub(super) const ENTRY: Entry<TaskSplit> = Entry {
    paper: "stragglers thesis, section 6-3, Lemma 5, equation 23",
    parameters: &[SIGN, DELAY],
    ..Entry::new("pure-stochastic", "the same spare rate at every worker", |arguments| {
        let sign = read_sign(arguments)?;
        Ok(Box::new(TaskSplit::new(read_delay(arguments)?, move |setting| divide(setting, sign))))
    })
};

/// Divides. The level is the spare rate, in tasks per second.
fn divide(setting: &QueueSetting<'_>, sign: Sign) -> Result<Division, QueueError> {
    let (rates, spare) = match sign {
        Sign::Raw => {
            let spare = setting.spare / setting.servers.len() as f64;
            (setting.servers.iter().map(|server| server.mu - spare).collect(), spare)
        }
        Sign::NonNegative => water_filling(setting),
    };
    Ok(Division { times: setting.completions(&rates), rates, level: Some(spare) })
}

/// Returns the rates without negative ones, and the spare rate of those above 0.
pub(super) fn water_filling(setting: &QueueSetting<'_>) -> (Vec<f64>, f64) {
    let servers = setting.servers;
    let spare = positive_root(|c| sum(servers.iter().map(|server| server.mu.min(c))) < setting.spare);
    (servers.iter().map(|server| (server.mu - spare).max(0.0)).collect(), spare)
}
