//! M-EP split: the same mean completion time at every worker.
//!
//! Thesis, Lemma 9 and Algorithms 2 to 4, equations 37 and 39 to 44. The largest mean is minimal when all are equal,
//! which minimises the lower bound of the mean sojourn time. There are three models of a worker:
//! - `model=dtd`: `offset_i + D lambda_i / mu_i + 1 / (mu_i - lambda_i)` (39);
//! - `model=m-g-1`: Pollaczek and Khintchine, with the variance `s2_i / mu_i^2` of the service time (41, 42);
//! - `model=g-g-1`: Kingman's approximation, with the squared coefficients of variation `ca2` and `s2_i` (43, 44).
//!
//! Required: `mu_i`, and in the last two models the variability of service.
//! Favours fast workers while the load is low.
//! Parameters: `model`, `rates` (of the first model: nonneg, or raw as printed), `d`, `ca2`, `cs2`.
//! Deviations: bisection instead of the secant method. The printed equation 40 is 0/0 at `D = 0`; here it is solved for
//! the spare rate, which has no such singularity. Equation 43 lacks the factor `1 / mu_i` of equation 44; 44 is
//! Kingman's formula and is used here. In the last two models workers with `1 / mu_i >= alpha` get nothing, and the
//! largest time is that of exponential times with the models' means.

use crate::catalogue::{Entry, Parameter};
use crate::placement::split::{DELAY, Division, SIGN, Sign, TaskSplit, read_delay, read_sign};
use crate::queueing::level::positive_root;
use crate::queueing::{Dtd, QueueError, QueueSetting, Server, sum};

pub(super) const ENTRY: Entry<TaskSplit> = Entry {
    paper: "stragglers thesis, Lemma 9, Algorithms 2 to 4, equations 37 and 39 to 44",
    parameters: &[
        Parameter { name: "model", default: "dtd", meaning: "the queue at a worker: dtd, m-g-1 or g-g-1" },
        SIGN,
        DELAY,
        Parameter {
            name: "ca2",
            default: "1",
            meaning: "squared coefficient of variation of the times between arrivals, for g-g-1",
        },
        Parameter {
            name: "cs2",
            default: "each worker's own, 1 where unknown",
            meaning: "squared coefficient of variation of service times of all workers, for m-g-1 and g-g-1",
        },
    ],
    ..Entry::new("m-ep", "the same mean completion time at every worker", |arguments| {
        let model = arguments.choice("model", &["dtd", "m-g-1", "g-g-1"])?;
        let (sign, delay) = (read_sign(arguments)?, read_delay(arguments)?);
        let fits = |value: f64| value.is_finite() && 0.0 <= value;
        let ca2 = arguments.value("ca2", 1.0, "a finite number of at least 0", fits)?;
        let cs2 = arguments.value("cs2", f64::NAN, "a finite number of at least 0", fits)?;
        let variability = fits(cs2).then_some(cs2);
        // The arrivals of M/G/1 are Poisson.
        let of_arrivals = if model == 2 { ca2 } else { 1.0 };
        Ok(Box::new(match model {
            0 => TaskSplit::new(delay, move |setting| {
                let (rates, level) = delayed(setting, sign);
                Ok(Division { times: setting.completions(&rates), rates, level: Some(level) })
            }),
            _ => TaskSplit::new(0.0, move |setting| general(setting, of_arrivals, variability)),
        }))
    })
};

/// Algorithm 2: returns the rates and the mean completion time in seconds. It is solved for the spare rate `s_i =
/// mu_i - lambda_i`, for which `D s^2 / mu + (alpha - D) s = 1`.
pub(super) fn delayed(setting: &QueueSetting<'_>, sign: Sign) -> (Vec<f64>, f64) {
    let delay = setting.delay;
    let spare = |server: &Server, alpha: f64| {
        let (linear, square) = (alpha - server.offset - delay, delay / server.mu);
        let root = linear.hypot(2.0 * square.sqrt());
        let spare = if 0.0 <= linear { 2.0 / (linear + root) } else { (root - linear) / (2.0 * square) };
        if sign == Sign::NonNegative { spare.min(server.mu) } else { spare }
    };
    let total = |alpha: f64| sum(setting.servers.iter().map(|server| spare(server, alpha)));
    let alpha = positive_root(|alpha| setting.spare < total(alpha));
    (setting.servers.iter().map(|server| server.mu - spare(server, alpha)).collect(), alpha)
}

/// Algorithms 3 and 4. In both a worker takes `1 / mu + c lambda / (2 mu (mu - lambda))`, with `c = ca2 + s2`, where
/// `ca2` is 1 in the former. So its spare rate at the level `alpha` is `c mu / (mu x + c)` with `x = 2 (alpha - 1 /
/// mu)`.
fn general(
    setting: &QueueSetting<'_>,
    of_arrivals: f64,
    variability: Option<f64>,
) -> Result<Division, QueueError> {
    let factor = |server: &Server| variability.unwrap_or(server.variability) + of_arrivals;
    let servers = setting.servers;
    if let Some(worker) = servers.iter().position(|server| factor(server) <= 0.0) {
        let wanted = "above 0 where `ca2` is 0: else any split takes equally long";
        return Err(QueueError::Worker { worker, field: "variability", value: 0.0, wanted });
    }
    let spare = |server: &Server, alpha: f64| {
        let x = 2.0 * (alpha - server.offset - 1.0 / server.mu);
        let c = factor(server);
        if x <= 0.0 { server.mu } else { server.mu * (c / (server.mu * x + c)) }
    };
    let total = |alpha: f64| sum(servers.iter().map(|server| spare(server, alpha)));
    let alpha = positive_root(|alpha| setting.spare < total(alpha));
    let rates = servers.iter().map(|server| server.mu - spare(server, alpha)).collect();
    let times = servers.iter().map(|server| {
        let mean = (alpha - server.offset).max(1.0 / server.mu);
        Dtd { a: 1.0 / mean, b: 0.0, offset: server.offset }
    });
    Ok(Division { rates, level: Some(alpha), times: Some(times.collect()) })
}
