//! An application of the thesis on stragglers, as a job on real processes: a program with its data sets, or one that
//! sleeps. Its runs' arrivals, and a simulator's picture of its jobs.

use super::super::common::{self, workload};
use crate::prelude::*;
use gristmill_lab::compare::workload::{Arrivals, DataSet, JobKind};
use gristmill_lab::compare::{Contender, Workload};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

/// One of the thesis' applications.
pub(super) struct Application {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) work: ApplicationWork,
    pub(super) speeds: [f64; 2],
    pub(super) contenders: Vec<Contender>,
    /// Repetitions of a run of normal size.
    pub(super) repetitions: u32,
}

/// Work of a job.
pub(super) enum ApplicationWork {
    /// A program on data.
    Program { kind: Box<JobKind>, data: Vec<DataSet>, maps: u32 },
    /// Sleeping maps that take at least `least` seconds, and exponential ones of the same mean on top.
    Sleep { maps: u32, least: f64 },
}

impl ApplicationWork {
    /// Draws the jobs of a run: Poisson arrivals with this mean interval, and tasks with these mean seconds in all.
    /// Nothing is known of the lengths of a program's single tasks: they are taken as equal.
    pub(super) fn draw(&self, jobs: u32, interval: f64, [maps, reduces]: [f64; 2], seed: u64) -> Vec<Job> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut arrival = 0.0;
        let mut job = |_| {
            let lengths: Vec<f64> = match *self {
                Self::Program { maps: count, .. } => vec![maps / f64::from(count); count as usize],
                Self::Sleep { maps: count, least } => (0..count)
                    .map(|_| least * (1.0 + Distribution::<f64>::sample(&Exp1, &mut random)))
                    .collect(),
            };
            let job = Job {
                arrival,
                work: PerStation::new(lengths.iter().sum(), 0.0, reduces),
                maps: lengths,
                reduces: vec![reduces],
                ..Job::default()
            };
            arrival += interval * Distribution::<f64>::sample(&Exp1, &mut random);
            job
        };
        (0..jobs).map(&mut job).collect()
    }

    /// Returns the workload of these runs.
    pub(super) fn workload(&self, title: &str, seed: u64, draws: &[Vec<Job>]) -> Workload {
        let Self::Program { kind, data, .. } = self else { return common::sleeping(title, seed, draws, 1.0) };
        let times = |jobs: &Vec<Job>| jobs.iter().map(|job| (0, job.arrival)).collect();
        let arrivals = Arrivals::Draws(draws.iter().map(times).collect());
        workload(title, seed, arrivals, vec![JobKind::clone(kind)], data.clone())
    }
}
