//! Workload of the overlap paper: log-normal jobs in a Poisson stream.
//!
//! Paper: Lin, Zhang, Wierman and Tan, *Joint Optimization of Overlapping Phases in MapReduce*, section 5.3.
//! Map sizes are log-normal with mean 1 and standard deviation 3.65. A job's shuffle size is its map size times
//! a log-normal ratio of mean 1 and standard deviation 3.28. (The 3.65 of section 5.1 does not reproduce the
//! printed numbers.) Both stations have capacity 1, so the load is the rate of arrivals.

use super::{Generator, Job, LoadError};
use crate::catalogue::{Entry, Parameter};
use crate::station::PerStation;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

/// Catalogue entry of the generator.
pub(super) const ENTRIES: &[Entry<dyn Generator>] = &[Entry {
    paper: "overlap 5.3",
    parameters: &[
        Parameter { name: "load", default: "0.75", meaning: "mean arrivals in a unit of time, below 1" },
        Parameter { name: "jobs", default: "100000", meaning: "number of jobs" },
    ],
    ..Entry::new(
        "overlap",
        "log-normal jobs, map and shuffle sizes correlated, in a Poisson stream",
        |arguments| {
            let load = arguments.value("load", 0.75, "above 0 and below 1", is_load)?;
            let jobs = arguments.value("jobs", 100_000, "a number from 1 to 1e9", is_count)?;
            Ok(Box::new(PoissonJobs { load, jobs }))
        },
    )
}];

const JOBS_MAX: u64 = 1_000_000_000;

/// True for a load with a steady state.
fn is_load(load: f64) -> bool {
    0.0 < load && load < 1.0
}

fn is_count(jobs: u64) -> bool {
    (1..=JOBS_MAX).contains(&jobs)
}

struct PoissonJobs {
    load: f64,
    jobs: u64,
}

impl Generator for PoissonJobs {
    fn jobs(&self, seed: u64) -> Box<dyn Iterator<Item = Job> + Send + '_> {
        let jobs = Poisson::new(self.load, seed).expect("the load was checked when this was made");
        // Below the limit, so the conversion is lossless.
        Box::new(jobs.take(self.jobs as usize))
    }
}

/// Standard deviation of map sizes whose mean is 1.
pub const MAP_DEVIATION: f64 = 3.65;
/// Standard deviation of the ratio of shuffle to map size, whose mean is 1.
pub const RATIO_DEVIATION: f64 = 3.28;

/// A log-normal variable by its mean and standard deviation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LogNormal {
    /// Mean of the logarithm.
    pub log_mean: f64,
    /// Standard deviation of the logarithm.
    pub log_deviation: f64,
}

impl LogNormal {
    /// Creates a variable of mean 1 with this standard deviation: the logarithm has variance `ln(1 + deviation^2)` and
    /// minus half of it as its mean.
    #[must_use]
    pub fn of_mean_one(deviation: f64) -> Self {
        let variance = (deviation * deviation).ln_1p();
        Self { log_mean: -variance / 2.0, log_deviation: variance.sqrt() }
    }

    /// Draws a value.
    pub fn draw(&self, random: &mut ChaCha8Rng) -> f64 {
        let normal: f64 = StandardNormal.sample(random);
        (self.log_mean + self.log_deviation * normal).exp()
    }
}

/// Infinite Poisson stream of log-normal jobs.
#[derive(Clone, Debug)]
pub struct Poisson {
    random: ChaCha8Rng,
    load: f64,
    map: LogNormal,
    ratio: LogNormal,
    now: f64,
}

impl Poisson {
    /// Creates the stream of this seed at this load, which is the mean number of arrivals in a unit of time.
    ///
    /// # Errors
    /// A load that is not above 0 and finite.
    pub fn new(load: f64, seed: u64) -> Result<Self, LoadError> {
        if !(load.is_finite() && 0.0 < load) {
            return Err(LoadError { load });
        }
        let random = ChaCha8Rng::seed_from_u64(seed);
        let (map, ratio) = (LogNormal::of_mean_one(MAP_DEVIATION), LogNormal::of_mean_one(RATIO_DEVIATION));
        Ok(Self { random, load, map, ratio, now: 0.0 })
    }
}

impl Iterator for Poisson {
    type Item = Job;

    fn next(&mut self) -> Option<Job> {
        let gap: f64 = Exp1.sample(&mut self.random);
        self.now += gap / self.load;
        let map = self.map.draw(&mut self.random);
        let shuffle = map * self.ratio.draw(&mut self.random);
        Some(Job { arrival: self.now, work: PerStation::new(map, shuffle, 0.0), ..Job::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::station::Station;

    #[test]
    fn poisson_jobs_have_the_printed_rate_and_moments_of_the_logarithms() {
        const JOBS: usize = 200_000;
        let jobs: Vec<Job> = Poisson::new(0.75, 1).unwrap().take(JOBS).collect();
        let mean = |values: &dyn Fn(&Job) -> f64| jobs.iter().map(values).sum::<f64>() / JOBS as f64;
        let near = |name: &str, value: f64, wanted: f64, tolerance: f64| {
            assert!((value - wanted).abs() < tolerance, "{name} is {value}, not {wanted}");
        };
        near("rate", JOBS as f64 / jobs[JOBS - 1].arrival, 0.75, 0.01);
        for (name, deviation, logarithm) in [
            (
                "map",
                MAP_DEVIATION,
                Box::new(|job: &Job| job.work[Station::Map].ln()) as Box<dyn Fn(&Job) -> f64>,
            ),
            (
                "ratio",
                RATIO_DEVIATION,
                Box::new(|job: &Job| (job.work[Station::Shuffle] / job.work[Station::Map]).ln()),
            ),
        ] {
            // Of a log-normal variable with mean 1: E ln = -s²/2, Var ln = s², s² = ln(1 + sd²).
            let variance = (1.0 + deviation * deviation).ln();
            let log_mean = mean(&*logarithm);
            near(name, log_mean, -variance / 2.0, 0.02);
            near(name, mean(&|job| (logarithm(job) - log_mean).powi(2)), variance, 0.05);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_jobs_and_another_one_others() {
        let jobs = |seed| Poisson::new(0.9, seed).unwrap().take(100).collect::<Vec<_>>();
        assert_eq!(jobs(7), jobs(7));
        assert_ne!(jobs(7), jobs(8));
    }

    #[test]
    fn a_load_of_nothing_is_refused() {
        for load in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Poisson::new(load, 1).is_err());
        }
    }
}
