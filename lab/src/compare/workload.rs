//! Workload: jobs and their arrivals, drawn from a seed so that every policy receives the same.
//!
//! Not here: the properties that repetitions draw again (`redraw`), the file that users write
//! ([`super::file`]), and running anything.

use gristmill_runtime::api::ExactWork;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// Maximum number of jobs of one run.
pub const JOBS_MAX: usize = 10_000;

/// Placeholder in an argument for a number that differs from job to job and is the same under every policy.
pub const SEED_MARK: &str = "{seed}";

/// Placeholder in an argument for the number of the job among those of its kind, from 1.
pub(crate) const NUMBER_MARK: &str = "{number}";

/// Placeholder in an argument for the directory of the workload's data.
pub(crate) const DATA_MARK: &str = "{data}";

/// Jobs and their arrivals.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Workload {
    /// Name for titles.
    pub name: String,
    /// Seed of all draws.
    pub seed: u64,
    /// Arrival times of jobs.
    pub arrivals: Arrivals,
    /// Order of the jobs.
    pub order: Order,
    /// True to draw arrivals, order and seeds again for every repetition. The policies of one repetition
    /// still receive the same.
    pub redraw: bool,
    /// Kinds of jobs, at least one.
    pub kinds: Vec<JobKind>,
    /// Inputs that are generated before the first run.
    pub data: Vec<DataSet>,
}

/// Arrival times of jobs.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// All at once.
    Batch,
    /// At these seconds, one for each job, in ascending order.
    Times(Vec<f64>),
    /// With exponential pauses of this mean in seconds, the first job at 0.
    Poisson(f64),
    /// Drawn by the creator of the workload: for each repetition the kinds of its jobs and their arrivals
    /// in seconds, in ascending order. Orders and counts of kinds are ignored then.
    Draws(Vec<Vec<(usize, f64)>>),
}

/// Order in which the jobs of several kinds arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The order of the list.
    Listed,
    /// An order drawn from the seed.
    Shuffled,
}

/// Jobs of one kind.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct JobKind {
    /// Label for legends and tables.
    pub label: String,
    /// Name of the job in the registry.
    pub job: String,
    /// Arguments as on the command line, with placeholders in braces.
    pub arguments: Vec<String>,
    /// Number of such jobs.
    pub count: u32,
    /// Number of parts; `None` for one per slot.
    pub reduces: Option<u32>,
    /// Bytes of input of one map; `None` for the default.
    pub split_bytes: Option<u64>,
    /// Deadline in seconds from arrival.
    pub deadline: Option<f64>,
    /// Weight under a fair policy.
    pub weight: f64,
    /// Pool under a fair policy.
    pub pool: Option<String>,
    /// Priority of the jobs.
    pub priority: i32,
    /// Work of the jobs, if it is known beforehand: for the oracle estimator.
    pub exact: Option<ExactWork>,
    /// True to also pass `exact` to the job, in a file named by `--times`.
    pub plays_exact: bool,
}

impl JobKind {
    /// Returns one job of this name, of weight 1.
    #[must_use]
    pub fn new(job: &str, arguments: &[&str]) -> Self {
        Self {
            label: job.to_owned(),
            job: job.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            count: 1,
            reduces: None,
            split_bytes: None,
            deadline: None,
            weight: 1.0,
            pool: None,
            priority: 0,
            exact: None,
            plays_exact: false,
        }
    }
}

/// Input that is generated before the first run, the same bytes on every machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DataSet {
    /// Name below the directory for data: `{data}/NAME`.
    pub name: String,
    /// Kind of data.
    pub kind: gristmill_runtime::generate::Kind,
    /// Size in bytes.
    pub bytes: u64,
    /// Seed of the content.
    pub seed: u64,
}

/// Drawn job.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DrawnJob {
    /// Index in the order of arrival, from 0.
    pub index: usize,
    /// Index into the kinds.
    pub kind: usize,
    /// Arrival in seconds.
    pub arrival: f64,
    /// Arguments with all placeholders but that of the data replaced.
    pub arguments: Vec<String>,
}

/// Reason why jobs cannot be drawn.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// The workload has no kinds, or none with jobs.
    #[error("the workload has no jobs")]
    Empty,
    /// The workload has too many jobs.
    #[error("the workload has {jobs} jobs, more than {JOBS_MAX}")]
    TooMany {
        /// Number of jobs.
        jobs: usize,
    },
    /// The number of times differs from the number of jobs.
    #[error("the numbers of jobs ({jobs}) and of arrival times ({times}) of the workload differ")]
    Times {
        /// Number of jobs.
        jobs: usize,
        /// Number of times.
        times: usize,
    },
}

/// Kinds of draws from a seed, each from a stream of its own.
#[derive(Clone, Copy)]
enum DrawStream {
    Arrivals,
    Order,
    Seeds = 3,
    Repetitions = 4,
}

impl Workload {
    /// Returns a batch of one job of each kind.
    #[must_use]
    pub fn batch(name: &str, kinds: Vec<JobKind>) -> Self {
        Self {
            name: name.to_owned(),
            seed: 1,
            arrivals: Arrivals::Batch,
            order: Order::Listed,
            redraw: false,
            kinds,
            data: Vec::new(),
        }
    }

    /// Draws the jobs of a repetition, counted from 0, in the order of their arrival.
    ///
    /// # Errors
    /// The workload has no jobs or too many, or its number of times differs from that of its jobs.
    pub fn draw(&self, repetition: u32) -> Result<Vec<DrawnJob>, DrawError> {
        let seed = self.seed_of(repetition);
        let placed = match &self.arrivals {
            Arrivals::Draws(all) => all.get(repetition as usize).cloned().ok_or(DrawError::Empty)?,
            _ => self.placed(seed)?,
        };
        let mut seeds = draws(seed, DrawStream::Seeds);
        let mut numbers = vec![0_u32; self.kinds.len()];
        let mut jobs = Vec::with_capacity(placed.len());
        for (index, (kind, arrival)) in placed.into_iter().enumerate() {
            numbers[kind] += 1;
            // Short enough to be readable, and unlikely to collide.
            let own_seed = (seeds.next_u64() >> 33).to_string();
            let number = numbers[kind].to_string();
            let arguments = self.kinds[kind].arguments.iter();
            let arguments = arguments.map(|text| text.replace(SEED_MARK, &own_seed));
            let arguments = arguments.map(|text| text.replace(NUMBER_MARK, &number)).collect();
            jobs.push(DrawnJob { index, kind, arrival, arguments });
        }
        Ok(jobs)
    }

    /// Returns the seed of a repetition. The first has the workload's own seed, and the others' are far from those of any
    /// other seed: workloads of neighbouring seeds share no repetition.
    fn seed_of(&self, repetition: u32) -> u64 {
        if !self.redraw || repetition == 0 {
            return self.seed;
        }
        let mut draws = draws(self.seed, DrawStream::Repetitions);
        (0..repetition).map(|_| draws.next_u64()).last().unwrap_or(self.seed)
    }

    /// True if repetitions differ in their jobs or arrivals.
    pub(crate) fn is_redrawn(&self) -> bool {
        self.redraw && self.draw(0) != self.draw(1)
    }

    /// Draws the kinds of all jobs with their times of arrival.
    fn placed(&self, seed: u64) -> Result<Vec<(usize, f64)>, DrawError> {
        let mut kinds = self.kinds_in_order()?;
        if self.order == Order::Shuffled {
            shuffle(&mut kinds, &mut draws(seed, DrawStream::Order));
        }
        let times = self.times(kinds.len(), seed)?;
        Ok(kinds.into_iter().zip(times).collect())
    }

    /// Draws the kind of each job, in the order of the list.
    fn kinds_in_order(&self) -> Result<Vec<usize>, DrawError> {
        let jobs: usize = self.kinds.iter().map(|kind| kind.count as usize).sum();
        match jobs {
            0 => Err(DrawError::Empty),
            _ if JOBS_MAX < jobs => Err(DrawError::TooMany { jobs }),
            _ => {
                let kinds = self.kinds.iter().enumerate();
                Ok(kinds.flat_map(|(kind, one)| std::iter::repeat_n(kind, one.count as usize)).collect())
            }
        }
    }

    fn times(&self, jobs: usize, seed: u64) -> Result<Vec<f64>, DrawError> {
        match &self.arrivals {
            Arrivals::Batch | Arrivals::Draws(_) => Ok(vec![0.0; jobs]),
            Arrivals::Times(times) if times.len() == jobs => Ok(times.clone()),
            Arrivals::Times(times) => Err(DrawError::Times { jobs, times: times.len() }),
            Arrivals::Poisson(mean) => {
                let (mut draws, mut at) = (draws(seed, DrawStream::Arrivals), 0.0);
                Ok((0..jobs)
                    .map(|_| {
                        let now = at;
                        at -= mean * (1.0 - unit(&mut draws)).ln();
                        now
                    })
                    .collect())
            }
        }
    }
}

fn draws(seed: u64, stream: DrawStream) -> ChaCha8Rng {
    let mut draws = ChaCha8Rng::seed_from_u64(seed);
    draws.set_stream(stream as u64);
    draws
}

/// Draws uniformly from 0 to below 1.
fn unit(draws: &mut ChaCha8Rng) -> f64 {
    (draws.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Shuffles the items, all orders equally likely.
fn shuffle(items: &mut [usize], draws: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        let other = (unit(draws) * (last + 1) as f64) as usize;
        items.swap(last, other.min(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind(label: &str, count: u32) -> JobKind {
        JobKind { label: label.to_owned(), count, ..JobKind::new("synthetic", &["--seed", SEED_MARK]) }
    }

    fn poisson(seed: u64) -> Workload {
        Workload {
            seed,
            arrivals: Arrivals::Poisson(2.0),
            order: Order::Shuffled,
            ..Workload::batch("mix", vec![kind("a", 500), kind("b", 1500)])
        }
    }

    #[test]
    fn poisson_arrivals_have_the_mean_that_was_asked_for() {
        let jobs = poisson(7).draw(0).unwrap();
        let mean = jobs[jobs.len() - 1].arrival / (jobs.len() - 1) as f64;
        assert!((mean - 2.0).abs() < 0.15, "seed 7 has a mean of {mean}");
        assert_eq!(jobs[0].arrival, 0.0);
        assert_eq!(jobs.iter().filter(|job| job.kind == 0).count(), 500);
        assert!(jobs[..500].iter().any(|job| job.kind == 1), "the kinds are not shuffled");
    }

    #[test]
    fn repetitions_meet_the_same_jobs_unless_they_are_drawn_anew() {
        let mut workload = poisson(3);
        assert_eq!(workload.draw(0), workload.draw(1));
        workload.redraw = true;
        assert_ne!(workload.draw(0), workload.draw(1));
        assert_eq!(workload.draw(1), workload.draw(1));
    }

    #[test]
    fn workload_is_redrawn_if_repetitions_differ() {
        let redrawn = |workload: Workload| Workload { redraw: true, ..workload }.is_redrawn();
        assert!(redrawn(poisson(3)) && !poisson(3).is_redrawn());
        assert!(
            !redrawn(Workload::batch("listed", vec![JobKind::new("synthetic", &[])])),
            "nothing is drawn"
        );
        assert!(redrawn(Workload::batch("batch", vec![kind("a", 3)])), "each job has a seed");
    }

    #[test]
    fn workloads_of_neighbouring_seeds_share_no_repetition() {
        let redrawn = |seed: u64| Workload { redraw: true, ..poisson(seed) };
        let draws = |seed: u64| (0..5).map(|place| redrawn(seed).draw(place).unwrap()).collect::<Vec<_>>();
        let (one, other) = (draws(1), draws(2));
        assert!(one.iter().all(|jobs| !other.contains(jobs)), "a second seed repeats runs of the first");
        assert!((1..5).all(|place| !one[..place].contains(&one[place])), "repetitions are alike");
        assert_eq!(one[0], poisson(1).draw(0).unwrap(), "the first is that of the workload's own seed");
    }

    #[test]
    fn jobs_of_a_kind_have_seeds_and_numbers_of_their_own() {
        let mut two = kind("a", 2);
        two.arguments.push(format!("n{NUMBER_MARK}"));
        let jobs = Workload::batch("two", vec![two]).draw(0).unwrap();
        assert_ne!(jobs[0].arguments[1], jobs[1].arguments[1]);
        assert_eq!([&jobs[0].arguments[2], &jobs[1].arguments[2]], ["n1", "n2"]);
    }

    #[test]
    fn repetitions_that_were_drawn_before_have_jobs_and_times_of_their_own() {
        let workload = Workload {
            redraw: true,
            arrivals: Arrivals::Draws(vec![vec![(0, 0.0), (1, 2.0)], vec![(1, 0.5)]]),
            ..Workload::batch("draws", vec![kind("a", 1), kind("b", 1)])
        };
        let placed = |repetition| -> Vec<(usize, f64)> {
            workload.draw(repetition).unwrap().iter().map(|job| (job.kind, job.arrival)).collect()
        };
        assert_eq!(placed(0), [(0, 0.0), (1, 2.0)]);
        assert_eq!(placed(1), [(1, 0.5)]);
        assert_eq!(workload.draw(2), Err(DrawError::Empty));
    }

    #[test]
    fn times_must_be_as_many_as_jobs() {
        let mut workload = Workload::batch("times", vec![kind("a", 3)]);
        workload.arrivals = Arrivals::Times(vec![0.0, 1.0]);
        assert_eq!(workload.draw(0), Err(DrawError::Times { jobs: 3, times: 2 }));
        workload.arrivals = Arrivals::Times(vec![0.0, 1.0, 4.0]);
        assert_eq!(workload.draw(0).unwrap()[2].arrival, 4.0);
        workload.kinds[0].count = 20_000;
        assert_eq!(workload.draw(0), Err(DrawError::TooMany { jobs: 20_000 }));
    }

    proptest! {
        #[test]
        fn arrivals_never_fall_and_every_kind_keeps_its_count(seed: u64, counts in prop::collection::vec(1..20_u32, 1..5)) {
            let kinds = counts.iter().map(|&count| kind("k", count)).collect();
            let workload = Workload {
                seed, arrivals: Arrivals::Poisson(0.5), order: Order::Shuffled, ..Workload::batch("p", kinds)
            };
            let jobs = workload.draw(0).unwrap();
            prop_assert!(jobs.windows(2).all(|pair| pair[0].arrival <= pair[1].arrival));
            for (place, &count) in counts.iter().enumerate() {
                prop_assert_eq!(jobs.iter().filter(|job| job.kind == place).count(), count as usize);
            }
        }
    }
}
