//! Lengths of maps as they were measured, for the simulated runs: those of a run for its own, and any for other draws.
//!
//! A program's maps are alike, but a stall of this machine for 50 ms makes a map of a slot at speed 0.03 take 1.7 s, and
//! the mean of a run's jobs moves with a few of them. A prediction that has the same stalls moves as much.

use super::application::ApplicationWork;
use crate::prelude::*;
use gristmill_lab::compare::{Comparison, RunRecord};
use rand::{RngExt, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// Seconds at full speed of all maps of a comparison.
pub(super) struct MeasuredLengths {
    /// Of each run, by contender and repetition: those of each job in the order of their starts.
    runs: BTreeMap<(String, u64), Vec<Vec<f64>>>,
    all: Vec<f64>,
}

impl MeasuredLengths {
    pub(super) fn new(comparison: &Comparison) -> Self {
        let key = |run: &RunRecord| (run.contender.name.clone(), run.repetition.into());
        let runs: BTreeMap<_, _> = comparison.runs.iter().map(|run| (key(run), lengths(run))).collect();
        let all = runs.values().flatten().flatten().copied().collect();
        Self { runs, all }
    }

    /// Gives the maps of drawn jobs the lengths of the run of this contender and repetition; without one, any that were
    /// measured, by the seed.
    pub(super) fn give(
        &self,
        work: &ApplicationWork,
        jobs: Vec<Job>,
        (contender, repetition): (&str, u64),
        seed: u64,
    ) -> Vec<Job> {
        if let Some(run) = self.runs.get(&(contender.to_owned(), repetition)) {
            let mut left: Vec<_> = run.iter().map(|job| job.iter().copied()).collect();
            return work.with_lengths(jobs, |job| left.get_mut(job)?.next());
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        work.with_lengths(jobs, |_| self.all.get(random.random_range(0..self.all.len().max(1))).copied())
    }
}

fn lengths(run: &RunRecord) -> Vec<Vec<f64>> {
    let mut maps: Vec<_> = run.spans.iter().filter(|span| span.map).collect();
    maps.sort_by(|one, other| one.from.total_cmp(&other.from));
    let speed =
        |worker: u32| run.workers.iter().find(|one| one.worker == worker).map_or(1.0, |one| one.speed);
    let mut found = vec![Vec::new(); run.jobs.len()];
    for map in maps {
        if let Some(job) = found.get_mut(map.job as usize) {
            job.push((map.to - map.from) * speed(map.worker));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_lab::compare::testing::{comparison, job, run};
    use gristmill_lab::compare::workload::JobKind;

    #[test]
    fn run_is_simulated_with_its_own_lengths_and_another_draw_with_any() {
        // A map of 2 s on worker 1, and one of 4 s on worker 2 at a quarter of the speed.
        let mut measured = run("fair", 0, vec![job(0, 0.0, 4.0), job(1, 1.0, 9.0)]);
        measured.workers[1].speed = 0.25;
        let measured = MeasuredLengths::new(&comparison(vec![measured]));
        let kind = Box::new(JobKind::new("wordcount", &[]));
        let work = ApplicationWork::Program { kind, data: Vec::new(), maps: 1 };
        let lengths = |contender: &str, repetition: u64, seed: u64| -> Vec<f64> {
            let drawn = work.draw(2, 1.0, [5.0, 0.0], seed);
            let jobs = measured.give(&work, drawn, (contender, repetition), seed);
            jobs.iter().map(|job| (1e6 * job.maps[0]).round() / 1e6).collect()
        };
        assert_eq!(lengths("fair", 0, 1), [2.0, 1.0]);
        let others: Vec<f64> = (0..50).flat_map(|seed| lengths("fair", 9, seed)).collect();
        assert!([1.0, 2.0].iter().all(|length| others.contains(length)), "{others:?}");
        assert!(others.iter().all(|length| [1.0, 2.0].contains(length)), "{others:?}");
        assert_eq!(lengths("pull", 9, 3), lengths("fair", 9, 3), "the same for all contenders");
    }
}
