//! G/M/1 split: the same completion times at every worker for arrivals that are not Poisson.
//!
//! Thesis, Lemma 6 and Algorithm 1, equations 26 and 27. The time in a G/M/1 queue is exponential with the
//! rate `mu (1 - r)`. Here `r` in (0, 1) solves `r = A*(mu (1 - r))`, and `A*` is the Laplace-Stieltjes
//! transform of the time between arrivals. All of these rates shall equal `alpha`: then `A_i*(alpha) = 1 -
//! alpha / mu_i`, and for every arrival law here that can be solved for the arrival rate `lambda_i`.
//! Required: `mu_i` and the arrival law. For `arrivals=m` it equals pure-stochastic. Parameters: `arrivals`;
//! `d` must be 0 here. Deviations: bisection instead of the secant method, whose start can leave (0, max mu).
//! Workers with `mu_i <= alpha` get nothing, and count in the largest time with an exponential time at their
//! own rate.

use crate::catalogue::{Entry, Parameter};
use crate::placement::split::{Division, TaskSplit};
use crate::queueing::level::positive_root;
use crate::queueing::{Dtd, QueueError, QueueSetting, sum};
use std::str::FromStr;

/// Maximum stages of Erlang laws; more are as good as constant.
const STAGES_MAX: u32 = 10_000;
/// Maximum variability of hyperexponential laws.
const VARIABILITY_MAX: f64 = 1e6;

pub(super) const ENTRY: Entry<TaskSplit> = Entry {
    paper: "stragglers thesis, Lemma 6, Algorithm 1, equations 26 and 27",
    parameters: &[Parameter {
        name: "arrivals",
        default: "m",
        meaning: "times between arrivals: m exponential, d constant, e2 Erlang of 2 stages (or more), h2:4 \
                  hyperexponential with squared coefficient of variation 4 (or other)",
    }],
    ..Entry::new(
        "g-m-1",
        "the same exponential completion time at every worker, for arrivals of a given law",
        |arguments| {
            let wanted =
                "m, d, e2 (any number of stages) or h2:4 (any squared coefficient of variation from 1)";
            let arrivals = arguments.value("arrivals", ArrivalProcess::Exponential, wanted, |_| true)?;
            Ok(Box::new(TaskSplit::new(0.0, move |setting| divide(setting, arrivals))))
        },
    )
};

/// Law of the times between arrivals, with any mean.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ArrivalProcess {
    /// Poisson arrivals.
    Exponential,
    /// Arrivals at equal distances.
    Constant,
    /// Sums of this many equal exponential stages.
    Erlang {
        /// Number of stages; at least 1.
        stages: u32,
    },
    /// Mixture of two exponential laws with balanced means.
    Hyperexponential {
        /// Squared coefficient of variation; at least 1.
        variability: f64,
    },
}

/// Text that is not the name of a law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnknownArrivals;

impl FromStr for ArrivalProcess {
    type Err = UnknownArrivals;

    /// Parses `M`, `D`, `E2` or `H2:4`, in either case.
    fn from_str(text: &str) -> Result<Self, UnknownArrivals> {
        let text = text.to_ascii_lowercase();
        if text == "m" {
            return Ok(ArrivalProcess::Exponential);
        }
        if text == "d" {
            return Ok(ArrivalProcess::Constant);
        }
        if let Some(variability) = text.strip_prefix("h2:") {
            let variability: f64 = variability.parse().map_err(|_| UnknownArrivals)?;
            let fits = (1.0..=VARIABILITY_MAX).contains(&variability);
            return if fits {
                Ok(ArrivalProcess::Hyperexponential { variability })
            } else {
                Err(UnknownArrivals)
            };
        }
        let stages: u32 =
            text.strip_prefix('e').and_then(|stages| stages.parse().ok()).ok_or(UnknownArrivals)?;
        if (1..=STAGES_MAX).contains(&stages) {
            Ok(ArrivalProcess::Erlang { stages })
        } else {
            Err(UnknownArrivals)
        }
    }
}

impl ArrivalProcess {
    /// Returns the arrival rate at which the transform of this law is `1 - alpha / mu` at `alpha`; `alpha` must be
    /// below `mu`.
    pub(super) fn rate(self, alpha: f64, mu: f64) -> f64 {
        let ratio = alpha / mu;
        match self {
            ArrivalProcess::Exponential => mu - alpha,
            ArrivalProcess::Constant => -alpha / (-ratio).ln_1p(),
            ArrivalProcess::Erlang { stages } => {
                // `q = r^(1/k)`; `1 - q` without cancellation.
                let stages = f64::from(stages);
                let log = (-ratio).ln_1p() / stages;
                alpha * log.exp() / (-log.exp_m1() * stages)
            }
            ArrivalProcess::Hyperexponential { variability } => {
                // With `x = 2 lambda / alpha` and the probabilities `p` and `q`: `pq (1 - r) x^2 + (p^2 + q^2 - r) x -
                // r = 0`.
                let r = 1.0 - ratio;
                let p = 0.5 * (1.0 + ((variability - 1.0) / (variability + 1.0)).sqrt());
                let q = 0.5 / (variability + 1.0) / p;
                let (a, b) = (p * q * ratio, p * p + q * q - r);
                let root = (b * b + 4.0 * a * r).sqrt();
                let x = if 0.0 < b { 2.0 * r / (b + root) } else { (root - b) / (2.0 * a) };
                0.5 * x * alpha
            }
        }
    }
}

/// Divides. The level is `alpha`, in tasks per second.
fn divide(setting: &QueueSetting<'_>, arrivals: ArrivalProcess) -> Result<Division, QueueError> {
    let rate = |mu: f64, alpha: f64| if mu <= alpha { 0.0 } else { arrivals.rate(alpha, mu) };
    let rates = |alpha: f64| setting.servers.iter().map(move |server| rate(server.mu, alpha));
    let alpha = positive_root(|alpha| setting.lambda < sum(rates(alpha)));
    // For few regular arrivals `r` is so small that the next smaller level already gives a worker too much: the
    // solution is between two neighbouring doubles.
    let (fewer, more) = (sum(rates(alpha)), sum(rates(alpha.next_down())));
    let part = if fewer < more { (setting.lambda - fewer) / (more - fewer) } else { 0.0 };
    let rates = rates(alpha).zip(rates(alpha.next_down())).map(|(fewer, more)| fewer + part * (more - fewer));
    let rates = rates.collect();
    let times =
        setting.servers.iter().map(|server| Dtd { a: server.mu.min(alpha), b: 0.0, offset: server.offset });
    Ok(Division { rates, level: Some(alpha), times: Some(times.collect()) })
}
