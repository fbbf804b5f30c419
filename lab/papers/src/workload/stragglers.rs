//! Workload of the stragglers thesis: jobs in a Poisson stream, split into map tasks with delayed tailed times.
//!
//! Thesis, sections 2-3 and 3-1. Jobs arrive at random and each has a number of map tasks, so tasks arrive at
//! the rate `lambda` = jobs per second times tasks per job. A task takes a delayed tailed time on a worker of
//! speed 1. The defaults are in the ranges of its Table 3-2. There is neither shuffle nor reduce: the thesis
//! ends at the barrier. The thesis only names its traces, so they are not available here.

use gristmill_scheduler::catalogue::{Entry, Parameter};
use gristmill_scheduler::queueing::Dtd;
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::{Generator, Job};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Maximum number of jobs.
const JOBS_MAX: u64 = 1_000_000_000;
/// Maximum number of tasks of a job.
const TASKS_MAX: u32 = 10_000_000;

/// Catalogue entry of the generator.
pub(super) const ENTRIES: &[Entry<dyn Generator>] = &[Entry {
    name: "stragglers",
    aliases: &[],
    paper: "stragglers thesis 2-3 and 3-1",
    summary: "jobs of map tasks with delayed tailed times, in a Poisson stream",
    parameters: &[
        Parameter { name: "rate", default: "10", meaning: "map tasks of all jobs that arrive in a second" },
        Parameter { name: "tasks", default: "40", meaning: "map tasks of a job" },
        Parameter { name: "jobs", default: "1000", meaning: "number of jobs" },
        Parameter { name: "a", default: "1", meaning: "exponential rate of the tail of task times, 1/s" },
        Parameter { name: "b", default: "0", meaning: "Pareto exponent of the tail of task times" },
        Parameter { name: "offset", default: "0", meaning: "T: least time of a task, s" },
    ],
    only_simulated: None,
    make: |arguments| {
        let finite = |value: f64| value.is_finite() && 0.0 <= value;
        let rate = arguments
            .value("rate", 10.0, "a finite number above 0", |rate: f64| rate.is_finite() && 0.0 < rate)?;
        let tasks = arguments
            .value("tasks", 40, "a number from 1 to 1e7", |tasks| (1..=TASKS_MAX).contains(&tasks))?;
        let jobs =
            arguments.value("jobs", 1000, "a number from 1 to 1e9", |jobs| (1..=JOBS_MAX).contains(&jobs))?;
        let a = arguments.value("a", 1.0, "a finite number of at least 0", finite)?;
        let wanted = "a finite number of at least 0, and above 0 where `a` is 0";
        let b = arguments.value("b", 0.0, wanted, |b| finite(b) && 0.0 < a + b)?;
        let offset = arguments.value("offset", 0.0, "a time of at least 0 s", finite)?;
        Ok(Box::new(Stragglers { rate, tasks, jobs, time: Dtd { a, b, offset } }))
    },
}];

/// Poisson stream of jobs of map tasks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stragglers {
    /// Tasks per second of all jobs; above 0.
    pub rate: f64,
    /// Tasks of a job; at least 1.
    pub tasks: u32,
    /// Number of jobs.
    pub jobs: u64,
    /// Distribution of the time of a task on a worker of speed 1.
    pub time: Dtd,
}

impl Generator for Stragglers {
    fn jobs(&self, seed: u64) -> Box<dyn Iterator<Item = Job> + Send + '_> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let between = Dtd { a: self.rate / f64::from(self.tasks), b: 0.0, offset: 0.0 };
        let mut arrival = 0.0;
        Box::new((0..self.jobs).map(move |_| {
            arrival += between.sample(&mut random);
            let maps: Vec<f64> = (0..self.tasks).map(|_| self.time.sample(&mut random)).collect();
            Job { arrival, work: PerStation::new(maps.iter().sum(), 0.0, 0.0), maps, ..Job::default() }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::station::Station;

    #[test]
    fn tasks_arrive_at_their_rate_and_take_their_mean_time() {
        let seed = 11;
        let time = Dtd { a: 0.5, b: 2.0, offset: 1.0 };
        let jobs: Vec<Job> = Stragglers { rate: 20.0, tasks: 10, jobs: 20_000, time }.jobs(seed).collect();
        let tasks = 10.0 * jobs.len() as f64;
        let rate = tasks / jobs.last().unwrap().arrival;
        assert!((rate - 20.0).abs() < 0.5, "seed {seed}: {rate}");
        let mean = jobs.iter().map(|job| job.work[Station::Map]).sum::<f64>() / tasks;
        assert!((mean - time.mean()).abs() < 0.02, "seed {seed}: {mean}");
        assert!(jobs.iter().all(|job| job.maps.len() == 10 && job.maps.iter().all(|map| 1.0 <= *map)));
        assert!(jobs.is_sorted_by(|one, next| one.arrival <= next.arrival));
    }

    #[test]
    fn the_same_seed_gives_the_same_jobs() {
        let make = (ENTRIES[0].make)(
            &mut gristmill_scheduler::catalogue::Arguments::read("jobs=5,b=1.5,a=0").unwrap(),
        )
        .unwrap();
        assert!(make.jobs(3).eq(make.jobs(3)));
        assert!(!make.jobs(3).eq(make.jobs(4)));
    }
}
