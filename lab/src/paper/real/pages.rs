//! Whole pages of made-up runs: the experiments of `--real` with everything but processes.
//!
//! Every claim that such a page shows must be one that made-up results refute and bear out (`made_up`), so that none is
//! added without them. Not here: what the claims are judged by.

use super::made_up::rules;
use super::{REAL_PAPERS, RealContext};
use crate::compare::testing::{comparison, job, run};
use crate::compare::{CompareError, Comparison, JobRun, Options, Progress, RunRecord, Workload};
use crate::paper::Scale;
use crate::paper::judge::refuted::{check, check_listed};
use crate::paper::testing::check_whole;
use std::path::Path;

/// Every contender runs what the workload draws for each repetition; each job takes a second under the first of them, and
/// a little longer under each other one.
fn carry_out(
    workload: &Workload,
    options: &Options,
    _: &mut dyn FnMut(Progress<'_>),
) -> Result<Comparison, CompareError> {
    let one = |place: usize, repetition: u32| {
        let drawn = workload.draw(repetition).unwrap();
        let jobs = drawn.iter().map(|drawn| {
            let ended = drawn.arrival + 1.0 + 0.01 * place as f64;
            let deadline = workload.kinds[drawn.kind].deadline.map(|after| drawn.arrival + after);
            JobRun { deadline, ..job(drawn.index, drawn.arrival, ended) }
        });
        let contender = options.contenders[place].clone();
        RunRecord { contender: contender.clone(), ..run(&contender.name, repetition, jobs.collect()) }
    };
    let places = 0..options.contenders.len();
    let runs =
        places.flat_map(|place| (0..options.repetitions).map(move |repetition| one(place, repetition)));
    Ok(Comparison { workload: workload.clone(), ..comparison(runs.collect()) })
}

#[test]
fn every_claim_on_every_page_of_real_runs_can_fail_and_can_hold() {
    check(&rules());
    for (name, experiment) in REAL_PAPERS {
        let context = RealContext {
            scale: Scale::Normal,
            first_seed: 1,
            progress: &|_| {},
            folder: Path::new("/nowhere"),
            carry_out: &carry_out,
        };
        let paper = experiment(&context).unwrap();
        assert_eq!(paper.name, *name);
        check_whole(&paper);
        check_listed(&paper, &rules());
    }
}
