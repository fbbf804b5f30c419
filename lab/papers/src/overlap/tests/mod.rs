//! The page's data from few jobs is complete, and every claim can fail and can hold.

pub(crate) mod made_up;

use super::*;
use crate::PaperScale;
use crate::tests::refuted::{check, check_listed};
use crate::tests::whole::check_whole;

#[test]
fn every_claim_of_the_page_can_fail_and_can_hold() {
    let amounts = Amounts {
        trace_loads: &[0.75],
        traces: 2,
        trace_jobs_max: 1_000,
        table_jobs: 1_000,
        reading_jobs: 800,
        reading_seeds: 2,
    };
    let context = Context { scale: PaperScale::Quick, first_seed: 1, progress: &|_| {} };
    let paper = page(&context, &amounts).unwrap();
    check_whole(&paper);
    check_listed(&paper, &made_up::rules());
    check(&made_up::rules());
}
