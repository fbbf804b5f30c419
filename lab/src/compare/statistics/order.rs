//! Order of the contenders in each repetition.
//!
//! Williams, *Experimental designs balanced for the estimation of residual effects of treatments*,
//! Australian Journal of Scientific Research A 2 (1949). Over one set of rows every contender runs
//! equally often at each position, and equally often directly after each other one. So a drift over time,
//! and an effect of one run on the next (a warm cache, a hot processor), affect all alike. In a rotation
//! every contender would nearly always run after the same one.
//! Not here: running anything.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Returns the number of rows of one balanced set: the number of contenders if it is even, else twice that.
#[must_use]
pub fn rows(contenders: usize) -> usize {
    match contenders {
        0 | 1 => 1,
        even if even % 2 == 0 => even,
        odd => 2 * odd,
    }
}

/// Returns the order of a repetition. It depends on the seed, not on the number of repetitions.
///
/// Each set of [`rows`] repetitions is a design with names and rows shuffled by the seed. An incomplete
/// set is not balanced, but its rows are drawn like all others.
#[must_use]
pub fn order(contenders: usize, repetition: u32, seed: u64) -> Vec<usize> {
    let (set, row) = (repetition as usize / rows(contenders), repetition as usize % rows(contenders));
    let mut draws = ChaCha8Rng::seed_from_u64(seed);
    draws.set_stream(set as u64);
    let names = shuffled(contenders, &mut draws);
    let drawn = shuffled(rows(contenders), &mut draws)[row];
    design(contenders, drawn).into_iter().map(|place| names[place]).collect()
}

/// Returns a row of the design: 0, 1, n - 1, 2, n - 2, ... shifted by the number of the row. For an odd
/// number of contenders the second half of the rows is the first half reversed.
fn design(contenders: usize, row: usize) -> Vec<usize> {
    let zigzag = (0..contenders).map(|place| match place % 2 {
        1 => place.div_ceil(2),
        _ => (contenders - place / 2) % contenders,
    });
    let mut order: Vec<usize> = zigzag.map(|one| (one + row) % contenders).collect();
    if contenders <= row {
        order.reverse();
    }
    order
}

/// Returns the numbers from 0 in a random order, all orders equally likely.
fn shuffled(count: usize, draws: &mut ChaCha8Rng) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        // The bias of the remainder for such a small divisor is less than 1e-15.
        let other = (draws.next_u64() % (last as u64 + 1)) as usize;
        numbers.swap(last, other);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Counts how often each contender runs at each position, and directly after each other one.
    fn counts(contenders: usize, orders: &[Vec<usize>]) -> [Vec<usize>; 2] {
        let mut places: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut after: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for one in 0..contenders {
            for other in 0..contenders {
                places.insert((one, other), 0);
                if one != other {
                    after.insert((one, other), 0);
                }
            }
        }
        for order in orders {
            order.iter().enumerate().for_each(|(place, &one)| *places.get_mut(&(one, place)).unwrap() += 1);
            order.windows(2).for_each(|pair| *after.get_mut(&(pair[0], pair[1])).unwrap() += 1);
        }
        [places, after].map(|counts| counts.into_values().collect())
    }

    proptest! {
        #[test]
        fn every_contender_stands_in_each_place_and_after_each_other_equally_often(
            contenders in 1..9_usize, sets in 1..3_usize, seed: u64,
        ) {
            let repetitions = (sets * rows(contenders)) as u32;
            let orders: Vec<Vec<usize>> =
                (0..repetitions).map(|repetition| order(contenders, repetition, seed)).collect();
            for counts in counts(contenders, &orders) {
                prop_assert!(counts.windows(2).all(|pair| pair[0] == pair[1]), "{counts:?} in {orders:?}");
            }
        }

        #[test]
        fn no_contender_stands_twice_in_a_place_of_an_unfinished_even_set(half in 1..5_usize, seed: u64) {
            let contenders = 2 * half;
            let orders: Vec<Vec<usize>> = (0..half as u32).map(|one| order(contenders, one, seed)).collect();
            let [places, _] = counts(contenders, &orders);
            prop_assert!(places.iter().all(|&count| count <= 1), "{orders:?}");
        }
    }

    #[test]
    fn seeds_differ_in_which_of_two_equals_they_start() {
        let firsts = (0..300).map(|seed| order(3, 0, seed)[0]);
        let mut counts = [0; 3];
        firsts.for_each(|first| counts[first] += 1);
        // 100 each; the standard deviation is 8.2.
        assert!(counts.iter().all(|count| (67..=133).contains(count)), "{counts:?} of seeds 0 to 299");
    }
}
