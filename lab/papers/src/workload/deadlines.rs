//! Approximation of the scenario of the deadlines paper: Simulator, WordCount and two Joins on 60 map slots.
//!
//! Paper: Polo et al., *Performance-Driven Task Co-Scheduling for MapReduce Environments*, section V. It
//! gives the numbers of tasks, the deadlines, the weights and the time of each job alone (3549, 1264 and 101
//! s). It shows the lengths of tasks in figures without numbers. It does not give the times of submission. So
//! lengths are drawn such that each job alone takes about the given time. Simulator has four phases, each
//! longer than the previous. WordCount is around 91 s except for a slower first wave and a few stragglers.
//! Join is documented at [`Joins`]. Jobs arrive 1000 s apart. The lengths in the first half of a Join decide
//! if its deadline is met, so there are three ways to draw them.

use gristmill_scheduler::catalogue::{Entry, Parameter};
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::{Generator, Job};
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Number of map slots of the paper's cluster, and of reduce slots: one of each on 60 workers.
pub const SLOTS: u32 = 60;

/// Names of the four jobs.
pub const NAMES: [&str; 4] = ["Simulator", "WordCount", "Join", "Join"];

/// Times of arrival, in seconds.
pub const ARRIVALS: [f64; 4] = [0.0, 1000.0, 2000.0, 3000.0];

/// Deadlines relative to the arrival, in seconds.
pub const DEADLINES: [f64; 4] = [6000.0, 3000.0, 150.0, 150.0];

/// Weights of their pools under the weighted fair scheduler, from the paper.
pub const WEIGHTS: [f64; 4] = [1.0, 1.4, 122.0, 122.0];

/// Mean map lengths of the four phases of Simulator, in seconds.
const SIMULATOR_PHASES: [f64; 4] = [18.0, 22.0, 32.0, 58.0];
/// Number of maps of a phase.
const SIMULATOR_MAPS: usize = 1600;
const WORD_COUNT_MAPS: usize = 738;
/// Number of maps of each half of a Join.
const JOIN_HALF: usize = 500;
/// Number of slow maps at the start of a Join with [`Joins::SlowFirst120`].
const JOIN_HEAD: usize = 120;

/// Distribution of the lengths of a Join's maps. The mean is about 5.4 s in each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Joins {
    /// The first half takes 5 to 15 s, the second 1 to 4 s: the estimate is pessimistic early, as in figure 2(b).
    SlowFirstHalf,
    /// The first 120 maps take 5 to 15 s, the others 1 to 8.6 s.
    SlowFirst120,
    /// The lengths of the first kind, shuffled: the first maps are like the last.
    Stationary,
}

impl Joins {
    /// All ways, in the order of their names.
    pub const ALL: [Joins; 3] = [Joins::SlowFirstHalf, Joins::SlowFirst120, Joins::Stationary];

    /// Returns its name, as in `deadlines:joins=NAME`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ["slow-first-half", "slow-first-120", "stationary"][self as usize]
    }
}

/// Returns the four jobs of this seed with these weights. Simulator and WordCount do not depend on `joins`.
#[must_use]
pub fn scenario(joins: Joins, weights: [f64; 4], seed: u64) -> Vec<Job> {
    (0..4).map(|index| job(index, joins, weights[index], seed)).collect()
}

/// Returns one of the four jobs alone: it arrives at 0 and has no deadline.
///
/// # Panics
/// If `index` is above 3.
#[must_use]
pub fn alone(index: usize, joins: Joins, seed: u64) -> Job {
    Job { arrival: 0.0, deadline: None, ..job(index, joins, 1.0, seed) }
}

fn job(index: usize, joins: Joins, weight: f64, seed: u64) -> Job {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // A random stream per job, so that one does not shift the draws of another.
    random.set_stream(index as u64);
    let (maps, reduces) = match index {
        0 => (simulator(&mut random), vec![20.0]),
        1 => (word_count(&mut random), vec![5.0]),
        _ => (join(joins, &mut random), vec![5.0; 4]),
    };
    Job {
        arrival: ARRIVALS[index],
        work: PerStation::new(maps.iter().sum(), 0.0, reduces.iter().sum()),
        maps,
        reduces,
        deadline: Some(ARRIVALS[index] + DEADLINES[index]),
        weight,
        name: Some(NAMES[index].to_owned()),
        ..Job::default()
    }
}

fn simulator(random: &mut ChaCha8Rng) -> Vec<f64> {
    let phase = |mean: f64| (0..SIMULATOR_MAPS).map(move |_| mean);
    SIMULATOR_PHASES.into_iter().flat_map(phase).map(|mean| mean * random.random_range(0.5..1.5)).collect()
}

fn word_count(random: &mut ChaCha8Rng) -> Vec<f64> {
    let length = |map: usize| match map {
        0..60 => random.random_range(105.0..125.0),
        _ if random.random_bool(0.02) => random.random_range(106.0..170.0),
        _ => random.random_range(76.0..106.0),
    };
    (0..WORD_COUNT_MAPS).map(length).collect()
}

fn join(joins: Joins, random: &mut ChaCha8Rng) -> Vec<f64> {
    let mut head = |maps: usize, least: f64, most: f64| -> Vec<f64> {
        (0..maps).map(|_| random.random_range(least..most)).collect()
    };
    if joins == Joins::SlowFirst120 {
        let slow = head(JOIN_HEAD, 5.0, 15.0);
        return [slow, head(2 * JOIN_HALF - JOIN_HEAD, 1.0, 8.6)].concat();
    }
    // Short ones are more likely: their density decreases linearly from 5 to 15 s.
    let slow: Vec<f64> =
        head(JOIN_HALF, 0.0, 1.0).iter().map(|u| 5.0 + 10.0 * (1.0 - (1.0 - u).sqrt())).collect();
    let mut maps = [slow, head(JOIN_HALF, 1.0, 4.0)].concat();
    if joins == Joins::Stationary {
        maps.shuffle(random);
    }
    maps
}

/// Catalogue entry of the generator.
pub(super) const ENTRY: Entry<dyn Generator> = Entry {
    name: "deadlines",
    aliases: &[],
    paper: "deadlines V, a stand-in",
    summary: "Simulator, WordCount and two Joins with deadlines, 1000 s apart",
    parameters: &[
        Parameter {
            name: "joins",
            default: "slow-first-half",
            meaning: "lengths of a Join's maps: `slow-first-half`, `slow-first-120` or `stationary`",
        },
        Parameter { name: "weights", default: "equal", meaning: "`equal`, or `paper`: 1, 1.4, 122 and 122" },
    ],
    only_simulated: None,
    starts_program: false,
    make: |arguments| {
        let joins = Joins::ALL[arguments.choice("joins", &Joins::ALL.map(Joins::name))?];
        let weights = [[1.0; 4], WEIGHTS][arguments.choice("weights", &["equal", "paper"])?];
        Ok(Box::new(DeadlineScenario { joins, weights }))
    },
};

struct DeadlineScenario {
    joins: Joins,
    weights: [f64; 4],
}

impl Generator for DeadlineScenario {
    fn jobs(&self, seed: u64) -> Box<dyn Iterator<Item = Job> + Send + '_> {
        Box::new(scenario(self.joins, self.weights, seed).into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the end of the last of these maps if each takes the first free slot.
    fn last_end(maps: &[f64]) -> f64 {
        let mut slots = [0.0_f64; SLOTS as usize];
        for map in maps {
            *slots.iter_mut().min_by(|a, b| a.total_cmp(b)).unwrap() += map;
        }
        slots.into_iter().fold(0.0, f64::max)
    }

    #[test]
    fn each_job_by_itself_takes_about_as_long_as_printed() {
        for (index, joins, printed) in [
            (0, Joins::Stationary, 3549.0),
            (1, Joins::Stationary, 1264.0),
            (2, Joins::SlowFirstHalf, 101.0),
            (2, Joins::SlowFirst120, 101.0),
            (2, Joins::Stationary, 101.0),
        ] {
            for seed in 0..10 {
                let job = alone(index, joins, seed);
                let takes = last_end(&job.maps) + job.reduces[0];
                let gap = (takes / printed - 1.0).abs();
                assert!(gap < 0.06, "{} {joins:?}, seed {seed}: {takes} s", NAMES[index]);
            }
        }
    }

    #[test]
    fn jobs_have_the_printed_numbers_of_tasks_and_deadlines() {
        let jobs = scenario(Joins::SlowFirstHalf, WEIGHTS, 1);
        assert_eq!(jobs.iter().map(|job| job.maps.len()).collect::<Vec<_>>(), [6400, 738, 1000, 1000]);
        assert_eq!(jobs.iter().map(|job| job.reduces.len()).collect::<Vec<_>>(), [1, 1, 4, 4]);
        assert_eq!(
            jobs.iter().map(|job| job.deadline.unwrap()).collect::<Vec<_>>(),
            [6000.0, 4000.0, 2150.0, 3150.0]
        );
    }

    #[test]
    fn a_seed_gives_the_same_jobs_and_joins_do_not_change_the_others() {
        let [half, head, stationary] = Joins::ALL.map(|joins| scenario(joins, [1.0; 4], 7));
        assert_eq!(half, scenario(Joins::SlowFirstHalf, [1.0; 4], 7));
        assert_eq!(half[..2], head[..2]);
        assert_eq!(half[..2], stationary[..2]);
        assert_ne!(half, scenario(Joins::SlowFirstHalf, [1.0; 4], 8));
        let sorted = |job: &Job| {
            let mut maps = job.maps.clone();
            maps.sort_by(f64::total_cmp);
            maps
        };
        assert_eq!(sorted(&half[2]), sorted(&stationary[2]), "stationary lengths are the same ones shuffled");
    }
}
