//! The page's data from few seeds: complete, finite, and equal in two runs.

pub(crate) mod made_up;

use super::*;
use crate::PaperScale;
use crate::tests::whole::check_page;

#[test]
fn page_shows_every_figure_and_every_claim_can_fail_and_can_hold() {
    // From one seed, which is enough for everything but intervals.
    let small = || page(&Context { scale: PaperScale::Quick, first_seed: 1, progress: &|_| {} }, 1).unwrap();
    let sections = [
        "section-4",
        "figure-4",
        "figure-5",
        "figure-6",
        "figure-7",
        "figure-8",
        "figure-9",
        "figure-10",
        "figure-11",
        "figure-12",
        "figure-13",
        "theorem-4",
        "counterexample",
        "section-7-c",
    ];
    check_page(&sections, small, &made_up::rules());
}

#[test]
fn small_jobs_beside_a_large_one_take_21_slots_under_asrpt_and_2_under_fair() {
    let flows = |policy| {
        counterexample::small_flows(policy).unwrap().into_iter().map(|(_, flow)| flow).collect::<Vec<f64>>()
    };
    let [asrpt, dsrpt, fair, repaired] = ["asrpt", "dsrpt", "fair", "asrpt:order=work"].map(flows);
    assert_eq!((asrpt.len(), &asrpt[..19]), (20, &[21.0; 19][..]));
    assert!(dsrpt[..19].iter().all(|&flow| flow >= 21.0), "{dsrpt:?}");
    assert_eq!(fair, [2.0; 20]);
    assert_eq!(repaired, [2.0; 20]);
}

#[test]
fn asrpt_and_dsrpt_are_far_from_twice_the_optimum_in_bursts_of_small_jobs() {
    // Seed 1 has two large jobs in its first 10,000 slots.
    let [asrpt, dsrpt, fair, repaired] = counterexample::burst_ratios(1, 10_000).unwrap();
    assert!(asrpt.min(dsrpt) > 10.0 * fair, "ASRPT {asrpt}, DSRPT {dsrpt}, Fair {fair}");
    assert!(repaired < 2.0, "{repaired}");
}
