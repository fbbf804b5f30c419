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

#[test]
fn proof_of_theorem_2_comes_out_on_its_instance_and_that_of_theorem_1_does_not() {
    let context = Context { scale: PaperScale::Quick, first_seed: 1, progress: &|_| {} };
    let section = hardness::section(&context).unwrap();
    let [Block::Claims(claims)] = &section.blocks[..] else { panic!("{:?}", section.blocks) };
    let verdicts: Vec<Verdict> = claims.iter().map(|claim| claim.verdict).collect();
    assert_eq!(verdicts, [Verdict::Fails, Verdict::Holds]);
    assert_eq!([3.0, 11.0].map(hardness::reduced), [(false, Some(true)), (true, Some(true))]);
}

#[test]
fn schedule_of_the_counterexample_can_be_carried_out() {
    let (map, long) = (1232.0_f64, 22_176.0_f64);
    let threshold = 36.0 * map + 2.0 * 3.0 + 22.0 + 3.0 * long;
    // The part of E1's shuffle that runs while H22 maps, and the map work that allows it.
    let ahead = 12.0 / (1.0 - map / (map + long));
    let slice = ahead * map / (map + long);
    assert!((slice - 2.0 / 3.0).abs() < 1e-9 && (ahead - 12.0 - slice).abs() < 1e-9);
    // Shuffle of H22: after 10 of G10 and the part of E1, until its map ends.
    assert!((10.0 + ahead + (map - 22.0) - (map + slice)).abs() < 1e-9);
    let ends = [
        map + 1.0,
        2.0 * map + 3.0,
        3.0 * map,
        4.0 * map + 10.0,
        5.0 * map + slice,
        6.0 * map + slice + 12.0,
        6.0 * map + slice + 12.0 + (map + long - ahead),
        6.0 * map + slice + 12.0 + (map + long - ahead) + (map + long),
    ];
    assert!((ends.iter().sum::<f64>() - (threshold - 2.0 / 3.0)).abs() < 1e-6);
}
