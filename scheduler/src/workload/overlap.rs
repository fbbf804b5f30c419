//! Workloads of the overlap paper: log-normal jobs in a Poisson stream, and an approximation of its Google trace.
//!
//! Paper: Lin, Zhang, Wierman and Tan, *Joint Optimization of Overlapping Phases in MapReduce*, sections 5.1
//! and 5.3. Map sizes are log-normal with mean 1 and standard deviation 3.65. A job's shuffle size is its map
//! size times a log-normal ratio of mean 1 and standard deviation 3.28. (The 3.65 of section 5.1 does not
//! reproduce the printed numbers.) Both stations have capacity 1, so the load is the rate of arrivals. The
//! trace itself is not public in this form. Its approximation has the same number of jobs, the printed
//! moments, and arrivals with the described daily and weekly pattern and the printed peak.

use super::{Generator, Job, LoadError};
use crate::catalogue::{Entry, Parameter};
use crate::station::PerStation;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

/// Catalogue entries of the generators.
pub(super) const ENTRIES: &[Entry<dyn Generator>] = &[
    Entry {
        name: "overlap",
        aliases: &[],
        paper: "overlap 5.3",
        summary: "log-normal jobs, map and shuffle sizes correlated, in a Poisson stream",
        parameters: &[
            Parameter { name: "load", default: "0.75", meaning: "mean arrivals in a unit of time, below 1" },
            Parameter { name: "jobs", default: "100000", meaning: "number of jobs" },
        ],
        only_simulated: None,
        make: |arguments| {
            let load = arguments.value("load", 0.75, "above 0 and below 1", is_load)?;
            let jobs = arguments.value("jobs", 100_000, "a number from 1 to 1e9", is_count)?;
            Ok(Box::new(PoissonJobs { load, jobs }))
        },
    },
    Entry {
        name: "overlap-trace",
        aliases: &[],
        paper: "overlap 5.1, a stand-in",
        summary: "80,000 log-normal jobs in 29 days with daily and weekly peaks",
        parameters: &[
            Parameter { name: "load", default: "0.5", meaning: "average load, below 1" },
            Parameter {
                name: "sizes",
                default: "original",
                meaning: "`original`, or ratios by their `cube-root`",
            },
        ],
        only_simulated: None,
        make: |arguments| {
            let load = arguments.value("load", 0.5, "above 0 and below 1", is_load)?;
            let choice = arguments.choice("sizes", &["original", "cube-root"])?;
            Ok(Box::new(TraceJobs { load, balance: [Balance::Original, Balance::CubeRoot][choice] }))
        },
    },
];

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

struct TraceJobs {
    load: f64,
    balance: Balance,
}

impl Generator for TraceJobs {
    fn jobs(&self, seed: u64) -> Box<dyn Iterator<Item = Job> + Send + '_> {
        let jobs = DiurnalTrace::new(seed).jobs(self.load, self.balance);
        Box::new(jobs.expect("the load was checked when this was made").into_iter())
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

    fn draw(&self, random: &mut ChaCha8Rng) -> f64 {
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

/// Hours of the trace: 29 days.
pub const TRACE_HOURS: usize = 29 * 24;
/// Number of jobs of the trace.
pub const TRACE_JOBS: usize = 80_000;
/// Arrivals in the busiest hour relative to a mean hour: the paper gives 300 and 110.
pub const TRACE_PEAK: f64 = 300.0 / 110.0;

/// Scaling of the shuffle sizes of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Balance {
    /// As drawn.
    Original,
    /// The cube root of each job's ratio, scaled to mean 1.
    CubeRoot,
}

/// Approximation of the trace: arrivals in hours, and sizes with sample means of exactly 1.
#[derive(Clone, PartialEq, Debug)]
pub struct DiurnalTrace {
    /// Mean arrivals of each hour, relative to the busiest one.
    pub profile: Vec<f64>,
    /// Jobs in order: hour of arrival, map size, ratio of shuffle to map size.
    jobs: Vec<[f64; 3]>,
}

impl DiurnalTrace {
    /// Creates the approximation of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let profile = profile(&mut random);
        let mut until = Vec::with_capacity(profile.len());
        let mut sum = 0.0;
        for weight in &profile {
            sum += weight;
            until.push(sum);
        }
        let (map, ratio) = (LogNormal::of_mean_one(MAP_DEVIATION), LogNormal::of_mean_one(RATIO_DEVIATION));
        let mut jobs: Vec<[f64; 3]> = (0..TRACE_JOBS)
            .map(|_| {
                let place = random.random::<f64>() * sum;
                let hour = until.partition_point(|&until| until <= place).min(profile.len() - 1);
                let arrival = hour as f64 + random.random::<f64>();
                [arrival, map.draw(&mut random), ratio.draw(&mut random)]
            })
            .collect();
        jobs.sort_unstable_by(|a, b| a[0].total_cmp(&b[0]));
        let mean = jobs.iter().map(|job| job[1]).sum::<f64>() / jobs.len() as f64;
        for job in &mut jobs {
            job[1] /= mean;
        }
        Self { profile, jobs }
    }

    /// Returns its jobs at this average load. The length of an hour is chosen such that its mean number of arrivals
    /// gives that load.
    ///
    /// # Errors
    /// A load that is not above 0 and finite.
    pub fn jobs(&self, load: f64, balance: Balance) -> Result<Vec<Job>, LoadError> {
        if !(load.is_finite() && 0.0 < load) {
            return Err(LoadError { load });
        }
        let hour = self.jobs.len() as f64 / self.profile.len() as f64 / load;
        let exponent = match balance {
            Balance::Original => 1.0,
            Balance::CubeRoot => 1.0 / 3.0,
        };
        let shuffle = |&[_, map, ratio]: &[f64; 3]| map * ratio.powf(exponent);
        let mean = self.jobs.iter().map(shuffle).sum::<f64>() / self.jobs.len() as f64;
        let job = |job: &[f64; 3]| Job {
            arrival: job[0] * hour,
            work: PerStation::new(job[1], shuffle(job) / mean, 0.0),
            ..Job::default()
        };
        Ok(self.jobs.iter().map(job).collect())
    }
}

/// Draws a profile: a working day with an afternoon peak, a quieter weekend, and random variation of hours, raised to
/// the power that gives the printed peak.
fn profile(random: &mut ChaCha8Rng) -> Vec<f64> {
    let logarithms: Vec<f64> = (0..TRACE_HOURS)
        .map(|hour| {
            let (day, time) = (hour / 24, (hour % 24) as f64);
            let daily = (std::f64::consts::TAU * (time - 15.0) / 24.0).cos();
            let weekly = if day % 7 < 5 { 0.0 } else { -0.6 };
            let chance: f64 = StandardNormal.sample(random);
            0.6 * daily + weekly + 0.15 * chance
        })
        .collect();
    let highest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let with_power = |power: f64| logarithms.iter().map(move |value| (power * (value - highest)).exp());
    // The ratio of peak to mean grows with the power.
    let (mut low, mut high) = (0.0, 16.0);
    for _ in 0..60 {
        let power = f64::midpoint(low, high);
        let peak = TRACE_HOURS as f64 / with_power(power).sum::<f64>();
        if peak < TRACE_PEAK { low = power } else { high = power }
    }
    with_power(low).collect()
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
        assert_eq!(DiurnalTrace::new(7), DiurnalTrace::new(7));
    }

    #[test]
    fn the_trace_has_its_peak_its_load_and_mean_sizes_of_one() {
        let trace = DiurnalTrace::new(3);
        let sum: f64 = trace.profile.iter().sum();
        assert!((TRACE_HOURS as f64 / sum - TRACE_PEAK).abs() < 1e-9);
        for balance in [Balance::Original, Balance::CubeRoot] {
            let jobs = trace.jobs(0.5, balance).unwrap();
            assert_eq!(jobs.len(), TRACE_JOBS);
            assert!(jobs.is_sorted_by(|a, b| a.arrival <= b.arrival));
            for station in [Station::Map, Station::Shuffle] {
                let work: f64 = jobs.iter().map(|job| job.work[station]).sum();
                assert!((work / TRACE_JOBS as f64 - 1.0).abs() < 1e-9, "mean size at {station:?}");
            }
            // 80,000 jobs of mean size 1 at load 1/2 need 160,000 units of time.
            assert!((159_000.0..=160_000.0).contains(&jobs[TRACE_JOBS - 1].arrival));
        }
    }

    #[test]
    fn a_load_of_nothing_is_refused() {
        for load in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Poisson::new(load, 1).is_err());
            assert!(DiurnalTrace::new(1).jobs(load, Balance::Original).is_err());
        }
    }
}
