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
use crate::placement::split::{DELAY, Division, SIGN, Sign, Split, read_delay, read_sign};
use crate::queueing::level::positive_root;
use crate::queueing::{QueueError, QueueSetting, sum};

pub(super) const ENTRY: Entry<dyn Split> = Entry {
    name: "pure-stochastic",
    aliases: &[],
    paper: "stragglers thesis, section 6-3, Lemma 5, equation 23",
    summary: "the same spare rate at every worker",
    parameters: &[SIGN, DELAY],
    only_simulated: None,
    make: |arguments| {
        Ok(Box::new(PureStochastic { sign: read_sign(arguments)?, delay: read_delay(arguments)? }))
    },
};

/// The same spare rate at every worker.
#[derive(Clone, Copy, Debug)]
pub struct PureStochastic {
    sign: Sign,
    delay: f64,
}

impl Split for PureStochastic {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn delay(&self) -> f64 {
        self.delay
    }

    /// Splits. The level is the spare rate, in tasks per second.
    fn split(&self, setting: &QueueSetting<'_>) -> Result<Division, QueueError> {
        let (rates, spare) = match self.sign {
            Sign::Raw => {
                let spare = setting.spare() / setting.servers().len() as f64;
                (setting.servers().iter().map(|server| server.mu - spare).collect(), spare)
            }
            Sign::NonNegative => water_filling(setting),
        };
        Ok(Division { times: setting.completions(&rates), rates, level: Some(spare) })
    }
}

/// Returns the rates without negative ones, and the spare rate of those above 0.
pub(super) fn water_filling(setting: &QueueSetting<'_>) -> (Vec<f64>, f64) {
    let servers = setting.servers();
    let spare = positive_root(|c| sum(servers.iter().map(|server| server.mu.min(c))) < setting.spare());
    (servers.iter().map(|server| (server.mu - spare).max(0.0)).collect(), spare)
}
