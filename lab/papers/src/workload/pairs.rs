//! Sets and streams of jobs for the pairs paper, whose own set is not public.
//!
//! Paper: Zheng and Wu, "Joint Scheduling of Overlapping MapReduce Phases", section 6, run on a Google trace. The paper
//! does not give its distribution, and the ranking of the policies depends on it. So there are several distributions,
//! from mild to heavy tails. A stream has Poisson arrivals whose rate varies with the time of day.

use gristmill_scheduler::job::Size;
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::Job;
use gristmill_scheduler::workload::overlap::{MAP_DEVIATION, RATIO_DEVIATION};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Exp1, LogNormal};
use std::f64::consts::TAU;

/// Distribution of the sizes of jobs, with mean 1 unless noted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SizeLaw {
    /// Map and shuffle uniform from 0 to 2, independent.
    Uniform,
    /// Map and shuffle exponential, independent.
    Exponential,
    /// Map and shuffle log-normal with standard deviation 0.6, independent.
    LogNormal,
    /// Uniform, each job together with its mirror image: exact strong pairs.
    StrongPairs,
    /// Map log-normal with standard deviation 0.6, shuffle the map times a ratio of the same distribution.
    Ratio,
    /// As [`SizeLaw::Google`] with the cube root of the ratio, whose mean is below 1.
    Balanced,
    /// The overlap paper's fit of a Google trace: map log-normal with standard deviation 3.65, shuffle the map times a
    /// log-normal ratio with standard deviation 3.28.
    Google,
}

/// Standard deviation of the mild log-normal sizes.
const MILD: f64 = 0.6;

impl SizeLaw {
    /// All distributions, from mild to heavy tails.
    pub const ALL: [SizeLaw; 7] = [
        SizeLaw::Uniform,
        SizeLaw::Exponential,
        SizeLaw::LogNormal,
        SizeLaw::StrongPairs,
        SizeLaw::Ratio,
        SizeLaw::Balanced,
        SizeLaw::Google,
    ];

    /// Returns its name in ids.
    #[must_use]
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 7] =
            ["uniform", "exponential", "log-normal", "strong-pairs", "ratio", "balanced", "google"];
        NAMES[self as usize]
    }

    /// Draws this many jobs with this mean map size, in seconds. The same seed gives the same jobs.
    #[must_use]
    pub fn draw(self, count: usize, mean: f64, seed: u64) -> Vec<Size> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut jobs = Vec::with_capacity(count + 1);
        while jobs.len() < count {
            let [map, shuffle] = self.one(&mut random);
            let job = Size { map: mean * map, shuffle: mean * shuffle };
            jobs.push(job);
            if self == SizeLaw::StrongPairs {
                jobs.push(Size { map: job.shuffle, shuffle: job.map });
            }
        }
        jobs.truncate(count);
        jobs
    }

    fn one(self, random: &mut ChaCha8Rng) -> [f64; 2] {
        let normal = |random: &mut ChaCha8Rng, deviation: f64| {
            LogNormal::from_mean_cv(1.0, deviation).expect("a constant above 0").sample(random)
        };
        match self {
            SizeLaw::Uniform | SizeLaw::StrongPairs => {
                [2.0 * random.random::<f64>(), 2.0 * random.random::<f64>()]
            }
            SizeLaw::Exponential => [Exp1.sample(random), Exp1.sample(random)],
            SizeLaw::LogNormal => [normal(random, MILD), normal(random, MILD)],
            SizeLaw::Ratio => {
                let map = normal(random, MILD);
                [map, map * normal(random, MILD)]
            }
            SizeLaw::Balanced | SizeLaw::Google => {
                let (map, ratio) = (normal(random, MAP_DEVIATION), normal(random, RATIO_DEVIATION));
                [map, map * if self == SizeLaw::Google { ratio } else { ratio.cbrt() }]
            }
        }
    }
}

/// A day, in seconds.
const DAY: f64 = 86_400.0;

/// Jobs that arrive over time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JobStream {
    /// Distribution of sizes.
    pub sizes: SizeLaw,
    /// Number of jobs.
    pub jobs: usize,
    /// Mean map size, in seconds.
    pub mean: f64,
    /// Mean arrivals times mean map size: above 0, and below 1 for a steady state.
    pub load: f64,
    /// Variation of the rate of arrivals about its mean in a day: 0 is a Poisson stream, 1 the maximum.
    pub swing: f64,
}

impl JobStream {
    /// Draws the jobs in the order of arrival. The same seed gives the same jobs.
    #[must_use]
    pub fn draw(&self, seed: u64) -> Vec<Job> {
        let sizes = self.sizes.draw(self.jobs, self.mean, seed);
        // Another stream of the same seed, so that sizes do not depend on loads.
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(1);
        let mut now = 0.0;
        let arrive = |size: Size| {
            // Thinning: candidates arrive at the highest rate, and are kept with the ratio of the current rate to the
            // highest.
            loop {
                let gap: f64 = Exp1.sample(&mut random);
                now += gap * self.mean / (self.load * (1.0 + self.swing));
                let rate = (1.0 + self.swing * (TAU * now / DAY).sin()) / (1.0 + self.swing);
                if random.random::<f64>() < rate {
                    return Job {
                        arrival: now,
                        work: PerStation::new(size.map, size.shuffle, 0.0),
                        ..Job::default()
                    };
                }
            }
        };
        sizes.into_iter().map(arrive).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = 40_000;

    #[test]
    fn sizes_have_the_mean_they_are_said_to_have() {
        for sizes in SizeLaw::ALL {
            let jobs = sizes.draw(COUNT, 10.0, 7);
            assert_eq!(jobs.len(), COUNT);
            assert!(jobs.iter().all(|job| 0.0 <= job.map && 0.0 <= job.shuffle && job.total().is_finite()));
            let mean = |size: fn(&Size) -> f64| jobs.iter().map(size).sum::<f64>() / COUNT as f64;
            let (map, shuffle) = (mean(|job| job.map), mean(|job| job.shuffle));
            // Half widths of about three standard errors; those of shuffles with heavy tails are too wide for a useful
            // check.
            let width = if matches!(sizes, SizeLaw::Balanced | SizeLaw::Google) { 0.6 } else { 0.2 };
            assert!((map - 10.0).abs() < width, "{sizes:?}: {map}");
            match sizes {
                SizeLaw::Google => {}
                SizeLaw::Balanced => assert!(shuffle < map, "{sizes:?}: {shuffle}"),
                _ => assert!((shuffle - 10.0).abs() < width, "{sizes:?}: {shuffle}"),
            }
        }
    }

    #[test]
    fn strong_pairs_are_a_job_and_its_mirror_image() {
        let jobs = SizeLaw::StrongPairs.draw(10, 1.0, 3);
        for pair in jobs.chunks(2) {
            assert_eq!((pair[0].map, pair[0].shuffle), (pair[1].shuffle, pair[1].map));
        }
    }

    #[test]
    fn a_stream_has_its_load_and_more_arrivals_where_the_day_swings_up() {
        let stream = JobStream { sizes: SizeLaw::Uniform, jobs: COUNT, mean: 60.0, load: 0.5, swing: 0.8 };
        let jobs = stream.draw(5);
        assert!(jobs.is_sorted_by_key(|job| job.arrival));
        let load = 60.0 * COUNT as f64 / jobs.last().unwrap().arrival;
        assert!((load - 0.5).abs() < 0.02, "load {load}");
        let up =
            jobs.iter().filter(|job| job.arrival.rem_euclid(DAY) < DAY / 2.0).count() as f64 / COUNT as f64;
        // Half of the day with mean rate 1 + 0.8 * 2 / pi.
        assert!((up - (0.5 + 0.8 / std::f64::consts::PI)).abs() < 0.02, "{up}");
        assert_eq!(jobs, stream.draw(5));
        assert_ne!(jobs, stream.draw(6));
    }
}
