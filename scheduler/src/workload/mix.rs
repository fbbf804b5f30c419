//! Mixes of jobs typical of a small cluster: programs of different kinds, many short jobs and a few long ones, split
//! into tasks of varying lengths, in a Poisson stream.
//!
//! No paper gives such a mix, so it is based on assumptions. Inputs are log-normal numbers of splits. A program has its
//! own seconds and output per split. Jobs of a program differ by a log-normal factor, and the maps of a job by another.
//! Programs with a history have a name; new programs get a different name each time. Arrivals are spread such that the
//! busiest of slots and network has exactly the requested load.

use super::{Generator, Job};
use crate::catalogue::{ArgumentError, Arguments, Entry, Parameter};
use crate::station::{PerStation, Station};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Exp1, LogNormal};

/// Bytes of a split.
pub const SPLIT_BYTES: f64 = 64e6;
/// Maximum splits of a job.
const SPLITS_MAX: f64 = 2_000.0;
/// Maximum reduces of a job.
const REDUCES_MAX: f64 = 8.0;
/// Number of splits per reduce of a job.
const SPLITS_PER_REDUCE: f64 = 4.0;
/// Bytes per second of a reduce, apart from its start.
const REDUCE_RATE: f64 = 40e6;
/// Minimum seconds of a task.
const TASK_START: f64 = 0.1;
/// Coefficient of variation of the lengths of a job's tasks.
const TASK_VARIATION: f64 = 0.3;
/// Coefficient of variation between jobs of one program.
const JOB_VARIATION: f64 = 0.5;
const JOBS_MAX: u64 = 10_000_000;

/// Kind of program.
#[derive(Clone, Copy, Debug)]
struct Program {
    /// Name of its jobs; `None` is a new name each time.
    name: Option<&'static str>,
    /// Frequency relative to the others.
    often: f64,
    /// Mean seconds per split.
    map: f64,
    /// Coefficient of variation of its jobs.
    variation: f64,
    /// Output bytes per input byte.
    output: f64,
}

const GREP: Program =
    Program { name: Some("grep"), often: 1.0, map: 0.4, variation: JOB_VARIATION, output: 0.002 };
const WORD_COUNT: Program = Program { name: Some("wordcount"), map: 1.5, output: 0.05, ..GREP };
const SORT: Program = Program { name: Some("sort"), map: 0.6, output: 1.0, ..GREP };
const JOIN: Program = Program { name: Some("join"), map: 1.2, output: 0.5, ..GREP };
const OWN: Program = Program { name: None, often: 1.0, map: 2.0, variation: 2.0, output: 0.2 };

/// Mix of programs.
#[derive(Clone, Copy, Debug)]
struct Mix {
    name: &'static str,
    programs: &'static [Program],
    /// Mean number of splits, and its coefficient of variation.
    splits: (f64, f64),
}

const MIXES: [Mix; 4] = [
    Mix { name: "laptop", programs: &[GREP, WORD_COUNT, SORT, JOIN, OWN], splits: (12.0, 2.0) },
    Mix {
        name: "map-heavy",
        programs: &[GREP, Program { often: 2.0, ..WORD_COUNT }, Program { often: 2.0, output: 0.02, ..OWN }],
        splits: (16.0, 2.0),
    },
    Mix {
        name: "shuffle-heavy",
        programs: &[
            Program { often: 2.0, ..SORT },
            Program { often: 2.0, ..JOIN },
            Program { output: 1.5, ..OWN },
            GREP,
        ],
        splits: (12.0, 2.0),
    },
    Mix { name: "heavy-tailed", programs: &[GREP, WORD_COUNT, SORT, JOIN, OWN], splits: (24.0, 5.0) },
];

/// Catalogue entry of the generator.
pub(super) const ENTRIES: &[Entry<dyn Generator>] = &[Entry {
    paper: "no paper: an assumption",
    parameters: &[
        Parameter {
            name: "kind",
            default: "laptop",
            meaning: "laptop, map-heavy, shuffle-heavy or heavy-tailed",
        },
        Parameter { name: "load", default: "0.7", meaning: "of the busiest of slots and network, below 1" },
        Parameter {
            name: "slots",
            default: "8",
            meaning: "slots of the cluster, as many as they are fast together",
        },
        Parameter {
            name: "network",
            default: "4e8",
            meaning: "bytes that the whole network moves in a second",
        },
        Parameter { name: "jobs", default: "200", meaning: "number of jobs" },
    ],
    ..Entry::new(
        "mix",
        "many short jobs of several programs and a few long ones, with tasks, in a Poisson stream",
        make,
    )
}];

fn make(arguments: &mut Arguments<'_>) -> Result<Box<dyn Generator>, ArgumentError> {
    let kind = arguments.choice("kind", &MIXES.map(|mix| mix.name))?;
    let load = arguments.value("load", 0.7, "above 0 and below 1", |load| 0.0 < load && load < 1.0)?;
    let positive = |value: f64| value.is_finite() && 0.0 < value;
    let slots = arguments.value("slots", 8.0, "a finite number above 0", positive)?;
    let network = arguments.value("network", 4e8, "a finite number above 0", positive)?;
    let jobs =
        arguments.value("jobs", 200, "a number from 1 to 1e7", |jobs| (1..=JOBS_MAX).contains(&jobs))?;
    Ok(Box::new(MixJobs { mix: MIXES[kind], load, slots, network, jobs }))
}

struct MixJobs {
    mix: Mix,
    load: f64,
    slots: f64,
    network: f64,
    jobs: u64,
}

/// Draws a factor of mean 1 with this coefficient of variation.
fn factor(variation: f64, random: &mut ChaCha8Rng) -> f64 {
    LogNormal::from_mean_cv(1.0, variation).expect("a constant of at least 0").sample(random)
}

impl Mix {
    fn program(&self, random: &mut ChaCha8Rng) -> &Program {
        let sum: f64 = self.programs.iter().map(|program| program.often).sum();
        let mut place = random.random::<f64>() * sum;
        for program in self.programs {
            place -= program.often;
            if place < 0.0 {
                return program;
            }
        }
        &self.programs[self.programs.len() - 1]
    }

    fn job(&self, index: u64, network: f64, random: &mut ChaCha8Rng) -> Job {
        let program = self.program(random);
        let (mean, variation) = self.splits;
        let splits = (mean * factor(variation, random)).ceil().clamp(1.0, SPLITS_MAX);
        let map = program.map * factor(program.variation, random);
        let bytes = splits * SPLIT_BYTES;
        let output = bytes * program.output * factor(JOB_VARIATION, random);
        let reduces = (splits / SPLITS_PER_REDUCE).ceil().min(REDUCES_MAX);
        let reduce = output / reduces / REDUCE_RATE;
        let mut tasks = |count: f64, length: f64| -> Vec<f64> {
            (0..count as usize).map(|_| TASK_START + length * factor(TASK_VARIATION, random)).collect()
        };
        let (maps, reduces) = (tasks(splits, map), tasks(reduces, reduce));
        Job {
            work: PerStation::new(maps.iter().sum(), output / network, reduces.iter().sum()),
            maps,
            reduces,
            input_bytes: bytes,
            shuffle_bytes: output,
            weight: 1.0,
            name: Some(program.name.map_or_else(|| format!("own-{index}"), str::to_owned)),
            ..Job::default()
        }
    }
}

impl Generator for MixJobs {
    fn jobs(&self, seed: u64) -> Box<dyn Iterator<Item = Job> + Send + '_> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut jobs: Vec<Job> =
            (0..self.jobs).map(|index| self.mix.job(index, self.network, &mut random)).collect();
        let mut arrivals = ChaCha8Rng::seed_from_u64(seed);
        // A separate random stream, so that every mix has the same gaps up to scaling.
        arrivals.set_stream(1);
        let gaps: Vec<f64> = jobs.iter().map(|_| Exp1.sample(&mut arrivals)).collect();
        let sum = |station: Station| jobs.iter().map(|job| job.work[station]).sum::<f64>();
        let busy = ((sum(Station::Map) + sum(Station::Reduce)) / self.slots).max(sum(Station::Shuffle));
        let scale = busy / self.load / gaps.iter().sum::<f64>();
        let mut now = 0.0;
        for (job, gap) in jobs.iter_mut().zip(gaps) {
            now += gap * scale;
            job.arrival = now;
        }
        Box::new(jobs.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::by_name;

    fn jobs(text: &str, seed: u64) -> Vec<Job> {
        by_name(text).unwrap().jobs(seed).collect()
    }

    #[test]
    fn a_mix_loads_the_busiest_station_as_asked() {
        for kind in MIXES.map(|mix| mix.name) {
            let jobs = jobs(&format!("mix:kind={kind},load=0.6,slots=8,network=2e8,jobs=500"), 3);
            let last = jobs[499].arrival;
            let sum = |station: Station| jobs.iter().map(|job| job.work[station]).sum::<f64>();
            let busiest = ((sum(Station::Map) + sum(Station::Reduce)) / 8.0).max(sum(Station::Shuffle));
            assert!((busiest / last - 0.6).abs() < 1e-9, "{kind}: {}", busiest / last);
            assert!(jobs.is_sorted_by(|a, b| a.arrival <= b.arrival));
        }
    }

    #[test]
    fn jobs_are_whole_sets_of_tasks_and_a_seed_gives_the_same_ones() {
        let mix = jobs("mix", 7);
        assert_eq!(mix, jobs("mix", 7));
        assert_ne!(mix, jobs("mix", 8));
        for job in &mix {
            assert!((job.maps.iter().sum::<f64>() - job.work[Station::Map]).abs() < 1e-9);
            assert!((job.reduces.iter().sum::<f64>() - job.work[Station::Reduce]).abs() < 1e-9);
            assert_eq!(job.input_bytes, SPLIT_BYTES * job.maps.len() as f64);
            assert!(!job.reduces.is_empty() && job.maps.iter().all(|&length| TASK_START <= length));
        }
        let known = mix.iter().filter(|job| job.name.as_deref() == Some("grep")).count();
        assert!((20..60).contains(&known), "{known} of 200 jobs are of one program in five");
    }

    #[test]
    fn a_load_of_one_and_an_unknown_kind_are_refused() {
        for text in ["mix:load=1", "mix:kind=desktop", "mix:slots=0", "mix:network=inf", "mix:jobs=0"] {
            assert!(by_name(text).is_err(), "{text}");
        }
    }
}
