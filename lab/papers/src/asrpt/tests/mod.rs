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
        "section-7-c",
    ];
    check_page(&sections, small, &made_up::rules());
}
