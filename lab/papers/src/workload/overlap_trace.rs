//! Approximation of the Google trace of the overlap paper, which is not public in this form.
//!
//! Paper: Lin, Zhang, Wierman and Tan, *Joint Optimization of Overlapping Phases in MapReduce*, section 5.1. The
//! approximation has the same number of jobs, the printed moments, and arrivals with the described daily and weekly
//! pattern and the printed peak.

use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::overlap::{LogNormal, MAP_DEVIATION, RATIO_DEVIATION};
use gristmill_scheduler::workload::{Job, LoadError};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

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
    use gristmill_scheduler::station::Station;

    #[test]
    fn the_same_seed_gives_the_same_trace() {
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
            assert!(DiurnalTrace::new(1).jobs(load, Balance::Original).is_err());
        }
    }
}
