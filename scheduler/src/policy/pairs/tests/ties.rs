//! Tests of the choices left by ties, against all matchings of few jobs.

use super::{sizes, whole_jobs};
use crate::job::Size;
use crate::policy::pairs::ties::ties_of_match;
use crate::policy::pairs::{Schedule, Tie, matched, smallest_weight, ties_of_arrival};
use proptest::prelude::*;

/// Returns all pairings of these jobs.
fn matchings(jobs: &[usize]) -> Vec<Vec<[usize; 2]>> {
    let Some((&first, rest)) = jobs.split_first() else { return vec![Vec::new()] };
    let with = |&partner: &usize| {
        let others: Vec<usize> = rest.iter().copied().filter(|&other| other != partner).collect();
        matchings(&others).into_iter().map(move |mut pairs| {
            pairs.push([first, partner]);
            pairs
        })
    };
    rest.iter().flat_map(with).collect()
}

fn weight_of(pairs: &[[usize; 2]], jobs: &[Size], alpha: f64) -> f64 {
    pairs.iter().map(|&[a, b]| jobs[a].weight(jobs[b], alpha)).sum()
}

/// Returns the jobs that could have another partner at the same weight: by trying all matchings, and by the
/// implementation.
fn open_partners(jobs: &[Size], alpha: f64) -> [Vec<usize>; 2] {
    let blocks = matched(jobs, alpha);
    let pair = |two: &Vec<usize>| [two[0].min(two[1]), two[0].max(two[1])];
    let pairs: Vec<[usize; 2]> = blocks.iter().filter(|block| block.len() == 2).map(pair).collect();
    let mut paired = pairs.concat();
    paired.sort_unstable();
    let least = smallest_weight(jobs, alpha);
    let is_lightest = |matching: &Vec<[usize; 2]>| weight_of(matching, jobs, alpha) < least + 1e-9;
    let lightest: Vec<_> = matchings(&paired).into_iter().filter(is_lightest).collect();
    let open = |pair: &[usize; 2]| lightest.iter().any(|matching| !matching.contains(pair));
    let tried: Vec<usize> = pairs.into_iter().filter(open).flatten().collect();
    let found = ties_of_match(jobs, alpha).into_iter().find_map(|tie| match tie {
        Tie::Partners { jobs } => Some(jobs),
        _ => None,
    });
    [tried, found.unwrap_or_default()].map(|mut jobs| {
        jobs.sort_unstable();
        jobs
    })
}

proptest! {
    #[test]
    fn partners_are_open_exactly_where_a_lightest_matching_has_other_pairs(jobs in whole_jobs(9)) {
        let [tried, found] = open_partners(&jobs, 0.5);
        prop_assert_eq!(found, tried);
    }

    #[test]
    fn partners_are_open_likewise_among_sizes_of_which_no_two_are_equal(
        jobs in prop::collection::vec((0.0..1e3_f64, 0.0..1e3_f64), 0..9),
        alpha in 0.0..1.0_f64,
    ) {
        let [tried, found] = open_partners(&sizes(&jobs), alpha);
        prop_assert_eq!(found, tried);
    }

    #[test]
    fn jobs_that_could_go_last_are_all_the_most_map_heavy_ones(jobs in whole_jobs(9), alpha in 0.0..=1.0_f64) {
        let least = jobs.iter().map(|job| job.surplus()).fold(f64::INFINITY, f64::min);
        let equal = jobs.iter().filter(|job| job.surplus() == least).count();
        let found = ties_of_match(&jobs, alpha).into_iter().find_map(|tie| match tie {
            Tie::Last { jobs } => Some(jobs.len()),
            _ => None,
        });
        prop_assert_eq!(found, (jobs.len() % 2 == 1 && 1 < equal).then_some(equal));
    }
}

/// Sums of absolute differences: `s - m` of the four is 1, -6, -9 and 4, their totals 11, 6, 9 and 12. Pairing either
/// of the first and the last with either of the others gives the same sum.
#[test]
fn matchings_tie_though_no_two_sizes_are_equal() {
    let jobs = sizes(&[(5.0, 6.0), (6.0, 0.0), (9.0, 0.0), (4.0, 8.0)]);
    for alpha in [0.5, 0.7, 1.0] {
        let found = ties_of_match(&jobs, alpha);
        assert!(matches!(&found[0], Tie::Partners { jobs } if jobs.len() == 4), "{alpha}: {found:?}");
    }
}

#[test]
fn ties_of_decimals_are_seen_through_rounding() {
    // In binary 0.3 - 0.1 differs from 0.4 - 0.2, but the weights of both partners of the first are equal.
    let jobs = sizes(&[(0.1, 0.3), (0.4, 0.2), (0.2, 0.4), (0.3, 0.1)]);
    let found = ties_of_match(&jobs, 1.0);
    assert!(matches!(&found[0], Tie::Partners { jobs } if jobs.len() == 4), "{found:?}");
}

#[test]
fn arrival_beside_two_equal_jobs_names_both_and_the_one_it_took_first() {
    let mut schedule = Schedule::new(0.5);
    for (id, size) in [(7, (4.0, 4.0)), (8, (4.0, 4.0)), (9, (30.0, 30.0))] {
        schedule.arrive(id, size.into(), 0.9);
    }
    let came = Size::from((6.0, 5.0));
    assert_eq!(ties_of_arrival(&schedule, 10, came, 0.9), [Tie::Beside { job: 10, others: vec![7, 8] }]);
    // All four are matched again: the two equal ones can change places, and are in a pair of which either could be
    // first.
    let anew = ties_of_arrival(&schedule, 10, came, 0.0);
    assert!(anew.contains(&Tie::First { pair: [7, 8] }), "{anew:?}");
}
