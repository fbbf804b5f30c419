//! Pure-deterministic split: in proportion to service rates, so that all workers are equally loaded.
//!
//! Thesis, section 6-2, Lemma 4, equations 17 and 18: `lambda_i = lambda mu_i / sum of mu_j`. Optimal without
//! randomness.
//! Required: `mu_i`.
//! Harms jobs under much randomness: at equal load a slow worker has the longer queue, in time.
//! Parameters: `d`, which only affects the predicted times.
//! Deviations: none.

use crate::catalogue::Entry;
use crate::placement::split::{DELAY, Division, Split, read_delay};
use crate::queueing::{QueueError, QueueSetting};

pub(super) const ENTRY: Entry<dyn Split> = Entry {
    name: "pure-deterministic",
    aliases: &[],
    paper: "stragglers thesis, section 6-2, Lemma 4, equation 18",
    summary: "in proportion to service rates",
    parameters: &[DELAY],
    only_simulated: None,
    make: |arguments| Ok(Box::new(PureDeterministic { delay: read_delay(arguments)? })),
};

/// Rates in proportion to service rates.
#[derive(Clone, Copy, Debug)]
pub struct PureDeterministic {
    delay: f64,
}

impl Split for PureDeterministic {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn delay(&self) -> f64 {
        self.delay
    }

    /// Splits. The level is the value equal for all workers: `lambda_i / mu_i`, a fraction of 1.
    fn split(&self, setting: &QueueSetting<'_>) -> Result<Division, QueueError> {
        let load = setting.lambda() / (setting.lambda() + setting.spare());
        let rates: Vec<f64> = setting.servers().iter().map(|server| load * server.mu).collect();
        Ok(Division { times: setting.completions(&rates), rates, level: Some(load) })
    }
}
