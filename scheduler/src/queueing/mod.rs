//! Queues of workers: the time of the slowest of many, and its use for splitting load and sizing clusters.
//!
//! Stochastic modelling of stragglers (Farhat, thesis, Pennsylvania State University, 2015): delayed tailed
//! distributions (`dtd`), the mean of their maximum (`sojourn`), the levels of equilibria (`level`), the minimum over
//! all splits (`convex`), and the best number and mix of workers (`sizing`). The module is pure mathematics: the splits
//! themselves are placements (`placement`), and fitting to measured times is in `estimate`.

mod convex;
mod dtd;
pub(crate) mod level;
pub(crate) mod quadrature;
pub mod sizing;
mod sojourn;

pub use convex::least_sojourn;
pub use dtd::Dtd;
pub use sojourn::{Bounds, mean_sojourn, sojourn_bounds};

/// Maximum number of workers, so that a typing error in a file does not cause a long wait.
pub const WORKERS_MAX: usize = 1_000_000;

/// Worker as a queue of tasks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Server {
    /// Service rate: tasks per second when it is never idle. Above 0.
    pub mu: f64,
    /// Minimum seconds of a task at any load. At least 0.
    pub offset: f64,
    /// Variance of the service time over its squared mean: 1 is exponential, 0 is constant. At least 0.
    pub variability: f64,
}

impl Server {
    /// Creates a worker with exponential service at this rate, in tasks per second, and no offset.
    #[must_use]
    pub fn exponential(mu: f64) -> Self {
        Self { mu, offset: 0.0, variability: 1.0 }
    }
}

/// Input of a split: workers and the rate of tasks for all of them. Valid by construction: at least one worker, and
/// fewer tasks than they can serve.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct QueueSetting<'a> {
    /// Workers; at least one.
    pub servers: &'a [Server],
    /// Arrival rate of tasks over all workers, in tasks per second.
    pub lambda: f64,
    /// D, in seconds.
    pub delay: f64,
    /// Spare service rate over all workers: their total minus lambda. Above 0.
    pub spare: f64,
}

impl<'a> QueueSetting<'a> {
    /// Creates a setting in which `lambda` tasks arrive per second. `delay` is the thesis' D in seconds: the minimum
    /// time of tasks on a fully loaded worker, so that worker `i` has the offset `offset_i + delay lambda_i / mu_i`.
    ///
    /// # Errors
    /// No worker or too many, a field out of range, and a load that the workers cannot carry.
    pub fn new(servers: &'a [Server], lambda: f64, delay: f64) -> Result<Self, QueueError> {
        if servers.is_empty() || WORKERS_MAX < servers.len() {
            return Err(QueueError::Workers { count: servers.len() });
        }
        for (worker, server) in servers.iter().enumerate() {
            for (field, value, min, wanted) in [
                ("mu", server.mu, f64::MIN_POSITIVE, "a finite rate above 0"),
                ("offset", server.offset, 0.0, "a finite time of at least 0 s"),
                ("variability", server.variability, 0.0, "a finite number of at least 0"),
            ] {
                if !(min..f64::INFINITY).contains(&value) {
                    return Err(QueueError::Worker { worker, field, value, wanted });
                }
            }
        }
        finite_above_zero("lambda", lambda)?;
        check_delay(delay)?;
        let capacity = sum(servers.iter().map(|server| server.mu));
        if capacity <= lambda {
            return Err(QueueError::Overload { lambda, capacity });
        }
        let spare = sum(servers.iter().map(|server| server.mu).chain([-lambda]));
        Ok(Self { servers, lambda, delay, spare })
    }

    /// Returns the completion times when worker `i` gets `rates[i]` tasks per second: `offset_i + D rates_i / mu_i`,
    /// followed by an exponential time with the rate `mu_i - rates_i`. `None` if the rate of a worker reaches or
    /// exceeds its capacity.
    #[must_use]
    pub fn completions(&self, rates: &[f64]) -> Option<Vec<Dtd>> {
        let pairs = self.servers.iter().zip(rates);
        pairs.map(|(server, rate)| self.completion(server, *rate)).collect()
    }

    pub(crate) fn completion(&self, server: &Server, rate: f64) -> Option<Dtd> {
        let offset = server.offset + self.delay * rate / server.mu;
        (rate < server.mu).then_some(Dtd { a: server.mu - rate, b: 0.0, offset })
    }
}

/// Error of queue computations.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum QueueError {
    /// No worker, or too many.
    #[error("there are {count} workers, not 1 to {}", WORKERS_MAX)]
    Workers {
        /// Number of workers.
        count: usize,
    },
    /// A field of a worker is out of range.
    #[error("worker {worker}: `{field}` is {value}, which is not {wanted}")]
    Worker {
        /// Index of the worker, from 0.
        worker: usize,
        field: &'static str,
        /// Given value.
        value: f64,
        /// Description of valid values.
        wanted: &'static str,
    },
    /// Another field is out of range.
    #[error("`{field}` is {value}, which is not {wanted}")]
    Setting {
        field: &'static str,
        /// Given value.
        value: f64,
        /// Description of valid values.
        wanted: &'static str,
    },
    /// The arrival rate reaches or exceeds the total service rate.
    #[error(
        "`lambda` is {lambda} tasks/s, but all workers together serve only {capacity} tasks/s: it must be less"
    )]
    Overload {
        /// Arrival rate, in tasks per second.
        lambda: f64,
        /// Total service rate, in tasks per second.
        capacity: f64,
    },
    /// The budget has too many combinations to try all.
    #[error("the budget can be spent in more than {limit} ways; take fewer types or a smaller one")]
    Combinations { limit: u64 },
}

pub(crate) fn check_delay(delay: f64) -> Result<(), QueueError> {
    let wanted = "a finite time of at least 0 s";
    match delay.is_finite() && 0.0 <= delay {
        true => Ok(()),
        false => Err(QueueError::Setting { field: "D", value: delay, wanted }),
    }
}

pub(crate) fn finite_above_zero(field: &'static str, value: f64) -> Result<(), QueueError> {
    if value.is_finite() && 0.0 < value {
        Ok(())
    } else {
        Err(QueueError::Setting { field, value, wanted: "a finite number above 0" })
    }
}

/// Neumaier's compensated sum: the spare rate near saturation is a small difference of large sums.
pub(crate) fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut total, mut lost) = (0.0_f64, 0.0);
    for value in values {
        let next = total + value;
        lost += if value.abs() <= total.abs() { (total - next) + value } else { (value - next) + total };
        total = next;
    }
    if total.is_finite() { total + lost } else { total }
}

#[cfg(test)]
mod tests;
