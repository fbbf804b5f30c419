//! A workload: which jobs arrive when, drawn from a seed so that every policy meets the same.
//!
//! Not here: what repetitions draw anew (`redraw`), the file that people write ([`super::file`]), and running anything.

use gristmill_runtime::api::ExactWork;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// Jobs of one run at most.
pub const JOBS_MAX: usize = 10_000;

/// Stands in an argument for a number that differs from job to job and is the same under every policy.
pub const SEED_MARK: &str = "{seed}";

/// Stands in an argument for the number of the job among those of its kind, from 1.
pub const NUMBER_MARK: &str = "{number}";

/// Stands in an argument for the folder in which the workload's data were made.
pub const DATA_MARK: &str = "{data}";

/// Jobs and how they arrive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Workload {
    /// For titles.
    pub name: String,
    /// Whatever is drawn comes from it.
    pub seed: u64,
    /// When jobs arrive.
    pub arrivals: Arrivals,
    /// In which order.
    pub order: Order,
    /// Jobs in all, where kinds have shares and not counts.
    pub total: Option<u32>,
    /// Arrivals, order and seeds are drawn anew for every repetition; the policies of one repetition still meet the
    /// same.
    pub redraw: bool,
    /// At least one.
    pub kinds: Vec<Kind>,
    /// Inputs that are made before the first run.
    pub data: Vec<DataSet>,
}

/// When jobs arrive.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// All at once.
    Batch,
    /// At these seconds, one for each job, not falling.
    Times(Vec<f64>),
    /// With exponential pauses of this mean, seconds; the first job at 0.
    Poisson(f64),
    /// Drawn by whoever made the workload: for each repetition the kinds of its jobs and when they arrive, seconds, not
    /// falling. Orders and counts of kinds say nothing then.
    Draws(Vec<Vec<(usize, f64)>>),
}

/// In which order the jobs of several kinds arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As listed.
    Listed,
    /// In an order drawn from the seed.
    Shuffled,
}

/// How many jobs of a kind there are.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// So many.
    Count(u32),
    /// This part of the total, relative to the shares of the other kinds; each job is drawn.
    Share(f64),
}

/// Jobs that are alike.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Kind {
    /// For legends and tables.
    pub label: String,
    /// What the master hears instead; `None`: the label. Estimators take jobs of one label to be alike, so a label that
    /// tells the size must stay here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_label: Option<String>,
    /// Name of the job in the registry.
    pub job: String,
    /// As on the command line, with marks in braces.
    pub arguments: Vec<String>,
    /// How many.
    pub amount: Amount,
    /// Number of parts; `None`: one for each slot.
    pub reduces: Option<u32>,
    /// Bytes of input of one map; `None`: as usual.
    pub split_bytes: Option<u64>,
    /// Seconds from arrival within which it should end.
    pub deadline: Option<f64>,
    /// Share under a fair policy.
    pub weight: f64,
    /// Pool under a fair policy.
    pub pool: Option<String>,
    /// Urgency.
    pub priority: i32,
    /// Its work, if it is known before: for the oracle estimator.
    pub exact: Option<ExactWork>,
    /// `exact` is also handed to the job, in a file named by `--times`.
    pub plays_exact: bool,
}

impl Kind {
    /// One job of this name, of weight 1.
    #[must_use]
    pub fn new(job: &str, arguments: &[&str]) -> Self {
        Self {
            label: job.to_owned(),
            told_label: None,
            job: job.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            amount: Amount::Count(1),
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

/// An input that is made before the first run, the same bytes everywhere.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DataSet {
    /// Its name below the folder for data: `{data}/NAME`.
    pub name: String,
    /// What it is.
    pub kind: gristmill_runtime::generate::Kind,
    /// How much, bytes.
    pub bytes: u64,
    /// Another seed gives other bytes.
    pub seed: u64,
}

/// A job that was drawn.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DrawnJob {
    /// Its place in the order of arrival, from 0.
    pub index: usize,
    /// Index into the kinds.
    pub kind: usize,
    /// When it arrives, seconds.
    pub arrival: f64,
    /// Arguments with all marks but that of the data replaced.
    pub arguments: Vec<String>,
}

/// Why nothing can be drawn.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// No kinds, or none with jobs.
    #[error("the workload has no jobs")]
    Empty,
    /// Too many jobs.
    #[error("the workload has {jobs} jobs, more than {JOBS_MAX}")]
    TooMany {
        /// How many.
        jobs: usize,
    },
    /// Another number of times than jobs.
    #[error("the workload has {jobs} job(s), but {times} time(s) of arrival")]
    Times {
        /// How many jobs.
        jobs: usize,
        /// How many times.
        times: usize,
    },
    /// Shares without a total.
    #[error("kinds with a share need the number of all jobs")]
    NoTotal,
}

/// What is drawn from a seed, each from a stream of its own.
#[derive(Clone, Copy)]
pub(super) enum Stream {
    Arrivals,
    Order,
    Shares,
    Seeds,
    Repetitions,
}

impl Workload {
    /// A batch of one job of each kind.
    #[must_use]
    pub fn batch(name: &str, kinds: Vec<Kind>) -> Self {
        Self {
            name: name.to_owned(),
            seed: 1,
            arrivals: Arrivals::Batch,
            order: Order::Listed,
            total: None,
            redraw: false,
            kinds,
            data: Vec::new(),
        }
    }

    /// The jobs of a repetition, from 0, in the order of their arrival.
    ///
    /// # Errors
    /// No jobs, too many, or another number of times.
    pub fn draw(&self, repetition: u32) -> Result<Vec<DrawnJob>, DrawError> {
        let seed = self.seed_of(repetition);
        let placed = match &self.arrivals {
            Arrivals::Draws(all) => all.get(repetition as usize).cloned().ok_or(DrawError::Empty)?,
            _ => self.placed(seed)?,
        };
        let mut seeds = draws(seed, Stream::Seeds);
        let mut numbers = vec![0_u32; self.kinds.len()];
        let mut jobs = Vec::with_capacity(placed.len());
        for (index, (kind, arrival)) in placed.into_iter().enumerate() {
            numbers[kind] += 1;
            // Short enough to be read, and no two alike by chance.
            let own_seed = (seeds.next_u64() >> 33).to_string();
            let number = numbers[kind].to_string();
            let arguments = self.kinds[kind].arguments.iter();
            let arguments = arguments.map(|text| text.replace(SEED_MARK, &own_seed));
            let arguments = arguments.map(|text| text.replace(NUMBER_MARK, &number)).collect();
            jobs.push(DrawnJob { index, kind, arrival, arguments });
        }
        Ok(jobs)
    }

    /// The kinds of all jobs with their times of arrival.
    fn placed(&self, seed: u64) -> Result<Vec<(usize, f64)>, DrawError> {
        let mut kinds = self.kinds_in_order(seed)?;
        if self.order == Order::Shuffled {
            shuffle(&mut kinds, &mut draws(seed, Stream::Order));
        }
        let times = self.times(kinds.len(), seed)?;
        Ok(kinds.into_iter().zip(times).collect())
    }

    /// The kind of each job, in the order of the list.
    fn kinds_in_order(&self, seed: u64) -> Result<Vec<usize>, DrawError> {
        let mut kinds = Vec::new();
        for (kind, amount) in self.kinds.iter().map(|kind| kind.amount).enumerate() {
            if let Amount::Count(count) = amount {
                if JOBS_MAX < kinds.len() + count as usize {
                    return Err(DrawError::TooMany { jobs: kinds.len() + count as usize });
                }
                kinds.extend(std::iter::repeat_n(kind, count as usize));
            }
        }
        let shares = self.kinds.iter().enumerate().filter_map(|(kind, one)| match one.amount {
            Amount::Share(share) => Some((kind, share)),
            Amount::Count(_) => None,
        });
        let shares: Vec<(usize, f64)> = shares.collect();
        if !shares.is_empty() {
            let total = self.total.ok_or(DrawError::NoTotal)? as usize;
            if JOBS_MAX < total {
                return Err(DrawError::TooMany { jobs: total });
            }
            let sum: f64 = shares.iter().map(|(_, share)| share).sum();
            let mut draws = draws(seed, Stream::Shares);
            while kinds.len() < total {
                let mut left = unit(&mut draws) * sum;
                let found = shares.iter().find(|(_, share)| {
                    left -= share;
                    left < 0.0
                });
                kinds.push(found.unwrap_or(&shares[shares.len() - 1]).0);
            }
        }
        if kinds.is_empty() { Err(DrawError::Empty) } else { Ok(kinds) }
    }

    fn times(&self, jobs: usize, seed: u64) -> Result<Vec<f64>, DrawError> {
        match &self.arrivals {
            Arrivals::Batch | Arrivals::Draws(_) => Ok(vec![0.0; jobs]),
            Arrivals::Times(times) if times.len() == jobs => Ok(times.clone()),
            Arrivals::Times(times) => Err(DrawError::Times { jobs, times: times.len() }),
            Arrivals::Poisson(mean) => {
                let (mut draws, mut at) = (draws(seed, Stream::Arrivals), 0.0);
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

pub(super) fn draws(seed: u64, stream: Stream) -> ChaCha8Rng {
    let mut draws = ChaCha8Rng::seed_from_u64(seed);
    draws.set_stream(stream as u64);
    draws
}

/// Uniform from 0 to below 1.
fn unit(draws: &mut ChaCha8Rng) -> f64 {
    (draws.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Every order alike.
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

    fn kind(label: &str, amount: Amount) -> Kind {
        Kind { label: label.to_owned(), amount, ..Kind::new("synthetic", &["--seed", SEED_MARK]) }
    }

    fn poisson(seed: u64) -> Workload {
        Workload {
            seed,
            arrivals: Arrivals::Poisson(2.0),
            order: Order::Shuffled,
            ..Workload::batch("mix", vec![kind("a", Amount::Count(500)), kind("b", Amount::Count(1500))])
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
    fn shares_are_drawn_until_there_are_enough_jobs() {
        let kinds = vec![kind("a", Amount::Share(3.0)), kind("b", Amount::Share(1.0))];
        let mut workload = Workload::batch("shares", kinds);
        assert_eq!(workload.draw(0), Err(DrawError::NoTotal));
        workload.total = Some(4000);
        let jobs = workload.draw(0).unwrap();
        let of_first = jobs.iter().filter(|job| job.kind == 0).count();
        assert!((2850..3150).contains(&of_first), "seed 1 gave {of_first} of 4000");
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
    fn jobs_of_a_kind_have_seeds_and_numbers_of_their_own() {
        let mut two = kind("a", Amount::Count(2));
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
            ..Workload::batch("draws", vec![kind("a", Amount::Count(1)), kind("b", Amount::Count(1))])
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
        let mut workload = Workload::batch("times", vec![kind("a", Amount::Count(3))]);
        workload.arrivals = Arrivals::Times(vec![0.0, 1.0]);
        assert_eq!(workload.draw(0), Err(DrawError::Times { jobs: 3, times: 2 }));
        workload.arrivals = Arrivals::Times(vec![0.0, 1.0, 4.0]);
        assert_eq!(workload.draw(0).unwrap()[2].arrival, 4.0);
        workload.kinds[0].amount = Amount::Count(20_000);
        assert_eq!(workload.draw(0), Err(DrawError::TooMany { jobs: 20_000 }));
    }

    proptest! {
        #[test]
        fn arrivals_never_fall_and_every_kind_keeps_its_count(seed: u64, counts in prop::collection::vec(1..20_u32, 1..5)) {
            let kinds = counts.iter().map(|&count| kind("k", Amount::Count(count))).collect();
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
