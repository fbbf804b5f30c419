//! DM-EP split: the same derivative of the mean completion time by the arrival rate at every worker.
//!
//! Thesis, Lemma 9, equation 38, for the model of equation 39: `D / mu_i + 1 / (mu_i - lambda_i)^2 = alpha`. This
//! minimises the sum of the means, which is an upper bound of the mean sojourn time, and far from it where D is large.
//! Required: `mu_i`.
//! Favours fast workers more than all other splits do.
//! Parameters: `rates` (nonneg, or raw as printed), `d`.
//! Deviations: bisection; otherwise none.

use crate::catalogue::Entry;
use crate::placement::split::{DELAY, Division, SIGN, Sign, TaskSplit, read_delay, read_sign};
use crate::queueing::level::positive_root;
use crate::queueing::{QueueError, QueueSetting, Server, sum};

pub(super) const ENTRY: Entry<TaskSplit> = Entry {
    paper: "stragglers thesis, Lemma 9, equation 38",
    parameters: &[SIGN, DELAY],
    ..Entry::new("dm-ep", "the same derivative of the mean completion time at every worker", |arguments| {
        let sign = read_sign(arguments)?;
        Ok(Box::new(TaskSplit::new(read_delay(arguments)?, move |setting| divide(setting, sign))))
    })
};

/// Divides. The level is the derivative: seconds for one more task per second.
fn divide(setting: &QueueSetting<'_>, sign: Sign) -> Result<Division, QueueError> {
    let spare = |server: &Server, level: f64| {
        let excess = level - setting.delay / server.mu;
        let spare = if excess <= 0.0 { f64::INFINITY } else { 1.0 / excess.sqrt() };
        if sign == Sign::NonNegative { spare.min(server.mu) } else { spare }
    };
    let total = |level: f64| sum(setting.servers.iter().map(|server| spare(server, level)));
    let level = positive_root(|level| setting.spare < total(level));
    let rates: Vec<f64> = setting.servers.iter().map(|server| server.mu - spare(server, level)).collect();
    Ok(Division { times: setting.completions(&rates), rates, level: Some(level) })
}
