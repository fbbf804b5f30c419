//! Fair split: every worker gets the same rate.
//!
//! Thesis, section 6-1, equation 12: `lambda_i = lambda / N`.
//! Required: nothing.
//! Favours no worker, and so harms every job that waits for the slowest worker: stable only while `lambda < N mu_min`
//! (equation 13).
//! Parameters: `d`, which only affects the predicted times.
//! Deviations: none.

use crate::catalogue::Entry;
use crate::placement::split::{DELAY, Division, Split, read_delay};
use crate::queueing::{QueueError, QueueSetting, Server};

pub(super) const ENTRY: Entry<dyn Split> = Entry {
    name: "fair-split",
    aliases: &[],
    paper: "stragglers thesis, section 6-1, equation 12",
    summary: "the same for every worker",
    parameters: &[DELAY],
    only_simulated: None,
    make: |arguments| Ok(Box::new(FairSplit { delay: read_delay(arguments)? })),
};

/// The same rate for every worker.
#[derive(Clone, Copy, Debug)]
pub struct FairSplit {
    delay: f64,
}

impl Split for FairSplit {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn delay(&self) -> f64 {
        self.delay
    }

    fn split(&self, setting: &QueueSetting<'_>) -> Result<Division, QueueError> {
        let count = setting.servers().len();
        let rates = vec![setting.lambda() / count as f64; count];
        Ok(Division { times: setting.completions(&rates), rates, level: None })
    }

    fn under_full_load(&self, servers: &[Server]) -> Vec<f64> {
        vec![1.0; servers.len()]
    }
}
