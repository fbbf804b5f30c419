//! Theorems 1 to 4 and Corollary 1 on random small instances, against the optimum over all orders.

use super::WORDS;
use super::examples::in_words;
use crate::prelude::*;
use gristmill_scheduler::job::Size;
use gristmill_scheduler::policy::pairs::optimum::one_order;
use gristmill_scheduler::policy::pairs::{PairsRule, total};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Sizes are whole numbers below this.
const BELOW: u32 = 10;
/// Counterexample of whole sizes. Their totals are exact, so any difference counts.
const COUNTEREXAMPLE: [(f64, f64); 4] = [(1.0, 4.0), (3.0, 0.0), (0.0, 2.0), (4.0, 2.0)];
/// Counterexample with positive work everywhere, and a wide gap.
const LARGE: [(f64, f64); 4] = [(1.0, 50.0), (99.0, 50.0), (52.0, 103.0), (52.0, 1.0)];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Instances {
    StrongPairs,
    MapHeavy,
    ShuffleHeavy,
    Balanced,
    StrictWeakPairs,
}

fn draw(random: &mut ChaCha8Rng) -> f64 {
    f64::from(random.random_range(0..BELOW))
}

fn instance(kind: Instances, random: &mut ChaCha8Rng) -> Vec<Size> {
    let mut jobs = Vec::new();
    let one = |random: &mut ChaCha8Rng| (draw(random), draw(random));
    match kind {
        Instances::StrongPairs => {
            for _ in 0..random.random_range(1..=3) {
                let (a, b) = one(random);
                jobs.extend([Size::from((a, b)), Size::from((b, a))]);
            }
        }
        Instances::MapHeavy | Instances::ShuffleHeavy | Instances::Balanced => {
            for _ in 0..random.random_range(1..=6) {
                let (a, b) = one(random);
                jobs.push(match kind {
                    Instances::MapHeavy => (a.max(b), a.min(b)).into(),
                    Instances::ShuffleHeavy => (a.min(b), a.max(b)).into(),
                    _ => (a, a).into(),
                });
            }
        }
        Instances::StrictWeakPairs => {
            while jobs.len() < 4 {
                // The last number makes it a weak pair.
                let (a, b, c) = (draw(random), draw(random), draw(random));
                let (first, second) = (Size::from((a, b)), Size::from((c, a + c - b)));
                if 0.0 <= second.shuffle && is_strict(first, second) {
                    jobs.extend([first, second]);
                }
            }
        }
    }
    jobs
}

/// True if two jobs meet Definitions 4 and 5. Both sums are equal, and the shuffle-heavy job has at most
/// half of the map work and at least half of the shuffle work.
fn is_strict(first: Size, second: Size) -> bool {
    first.map + second.map == first.shuffle + second.shuffle
        && 0.0 < first.surplus()
        && first.map <= second.map
        && second.shuffle <= first.shuffle
}

/// Returns the smallest total of an order in which strict weak pairs run in a row, over all ways to form
/// the pairs.
fn best_in_pairs(jobs: &[Size]) -> f64 {
    let in_pairs = |order: &Vec<usize>| {
        order.chunks(2).all(|pair| pair.len() == 2 && is_strict(jobs[pair[0]], jobs[pair[1]]))
    };
    let orders = gristmill_scheduler::sim::fluid::orders::orders(jobs.len());
    orders
        .iter()
        .filter(|order| in_pairs(order))
        .map(|order| total(jobs, order))
        .fold(f64::INFINITY, f64::min)
}

/// Returns the total under a rule (or of the best pairs in a row), and the optimum.
fn totals(kind: Instances, jobs: &[Size]) -> (f64, f64) {
    let best = one_order(jobs).total;
    let ours = match kind {
        Instances::StrictWeakPairs => best_in_pairs(jobs),
        Instances::StrongPairs => total(jobs, &PairsRule::Couple { delta: 0.0 }.order(jobs)),
        _ => total(jobs, &PairsRule::Pair { delta: 0.0 }.order(jobs)),
    };
    (ours, best)
}

/// Number of instances tried, number of those worse than the optimum, and the largest ratio.
pub(super) struct TriedInstances {
    pub(super) count: usize,
    pub(super) worse: usize,
    pub(super) ratio: f64,
}

fn try_all(context: &Context<'_>, kind: Instances, stream: u64) -> TriedInstances {
    let count: usize = context.scaled(200, 10_000, 100_000);
    let mut random = ChaCha8Rng::seed_from_u64(context.first_seed);
    random.set_stream(stream);
    let instances: Vec<Vec<Size>> = (0..count).map(|_| instance(kind, &mut random)).collect();
    let found = each(&instances, |jobs| totals(kind, jobs));
    let worse = found.iter().filter(|(ours, best)| best < ours).count();
    let ratio =
        found.iter().filter(|(_, best)| 0.0 < *best).map(|(ours, best)| ours / best).fold(1.0, f64::max);
    TriedInstances { count, worse, ratio }
}

fn proved(key: &str, &TriedInstances { count, worse, .. }: &TriedInstances) -> Claim {
    WORDS.claim(key, worse == 0, holes![count, below = BELOW, worse])
}

impl TriedInstances {
    /// Combines both.
    fn and(&self, other: &Self) -> Self {
        TriedInstances {
            count: self.count + other.count,
            worse: self.worse + other.worse,
            ratio: self.ratio.max(other.ratio),
        }
    }
}

/// Section on the theorems, and the counterexample to Theorem 4.
pub(super) fn section(context: &Context<'_>) -> Section {
    let [strong, map, shuffle, balanced, weak] = [
        (Instances::StrongPairs, 0),
        (Instances::MapHeavy, 1),
        (Instances::ShuffleHeavy, 2),
        (Instances::Balanced, 3),
        (Instances::StrictWeakPairs, 4),
    ]
    .map(|(kind, stream)| try_all(context, kind, stream));
    let claims = of_tried([&strong, &map.and(&shuffle), &balanced, &weak], &counterexample());
    WORDS.section("theorems", holes![seed = context.first_seed], vec![Block::Claims(claims)])
}

/// Returns the claims from the trials of Theorems 1 and 3, Theorem 2, Corollary 1 and Theorem 4.
pub(super) fn of_tried(
    [strong, heavy, balanced, weak]: [&TriedInstances; 4],
    found: &RefutedTotals,
) -> Vec<Claim> {
    vec![
        proved("theorems-1-and-3", strong),
        proved("theorem-2", heavy),
        proved("corollary-1", balanced),
        theorem_4(weak, found),
    ]
}

/// Best total of pairs in a row, and the optimum, on two instances.
pub(super) struct RefutedTotals {
    pub(super) pairs: [f64; 2],
    pub(super) optimum: [f64; 2],
    pub(super) order: String,
}

fn counterexample() -> RefutedTotals {
    let jobs = [COUNTEREXAMPLE, LARGE].map(|jobs| jobs.map(Size::from));
    let best = jobs.each_ref().map(|jobs| one_order(jobs));
    RefutedTotals {
        pairs: jobs.each_ref().map(|jobs| best_in_pairs(jobs)),
        optimum: best.each_ref().map(|best| best.total),
        order: in_words(&best[0].order),
    }
}

/// Claim that is refuted by a counterexample, one of the two below or a random one.
fn theorem_4(weak: &TriedInstances, found: &RefutedTotals) -> Claim {
    let [pairs, large_pairs] = found.pairs;
    let [best, large_best] = found.optimum;
    let &TriedInstances { count, worse, ratio } = weak;
    let refuted = best < pairs || large_best < large_pairs || 0 < worse;
    let order = found.order.as_str();
    let holes = holes![pairs, order, best, large_pairs, large_best, count, worse, ratio];
    WORDS.claim("theorem-4", !refuted, holes)
}
