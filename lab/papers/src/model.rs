//! The settings of an experiment of a paper, and its results.

use crate::each;
use gristmill_lab::report::Section;
use serde::Serialize;

/// How much is simulated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Seconds for each paper: the shapes, with wide intervals.
    Quick,
    /// Minutes: intervals narrow enough to judge the printed numbers.
    Normal,
    /// As large as the papers' own runs.
    Full,
}

impl Scale {
    /// One of three values.
    pub fn pick<T>(self, quick: T, normal: T, full: T) -> T {
        match self {
            Scale::Quick => quick,
            Scale::Normal => normal,
            Scale::Full => full,
        }
    }
}

/// Settings of an experiment.
pub struct Context<'a> {
    /// How much is simulated.
    pub scale: Scale,
    /// The first seed of what is drawn ([`first_seed`]); experiments count on from it.
    pub first_seed: u64,
    /// Receives a few words on what is being computed now.
    pub progress: &'a (dyn Fn(&str) + Sync),
}

/// The first of the seeds that experiments take when this one is asked for: 1 begins at 1.
///
/// They take those that follow it, 20,000 at most. Neighbours asked for begin apart by the golden ratio of all seeds, and
/// of ten thousand in a row no two begin within 10^14 of each other: two pages are two draws and share no run.
#[must_use]
pub fn first_seed(asked: u64) -> u64 {
    /// 2^64 over the golden ratio, odd: no two seeds asked for begin alike.
    const APART: u64 = 0x9E37_79B9_7F4A_7C15;
    asked.wrapping_sub(1).wrapping_mul(APART).wrapping_add(1)
}

impl Context<'_> {
    /// This many seeds, from the first on.
    #[must_use]
    pub fn seeds(&self, count: u64) -> Vec<u64> {
        (0..count).map(|run| self.first_seed.wrapping_add(run)).collect()
    }

    /// One of three values by scale.
    #[must_use]
    pub fn scaled<T>(&self, quick: T, normal: T, full: T) -> T {
        self.scale.pick(quick, normal, full)
    }
}

/// Runs every cell with every seed, as [`each`] does, and gives the results of each cell by seed.
///
/// # Errors
/// The first one, in the order of the cells.
pub fn each_cell<C: Sync, S: Sync, R: Send>(
    cells: &[C],
    seeds: &[S],
    run: impl Fn(&C, &S) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<Vec<R>>> {
    let items: Vec<(&C, &S)> =
        cells.iter().flat_map(|cell| seeds.iter().map(move |seed| (cell, seed))).collect();
    let mut results = each(&items, |&(cell, seed)| run(cell, seed)).into_iter();
    cells.iter().map(|_| results.by_ref().take(seeds.len()).collect()).collect()
}

/// All experiments of one paper.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Paper {
    /// As in `gristmill paper NAME`.
    pub name: &'static str,
    /// Title, authors and year.
    pub title: &'static str,
    /// In plain words what the paper is about and how its experiments were run here: one paragraph each.
    pub about: Vec<String>,
    /// In the order of the paper.
    pub sections: Vec<Section>,
}

#[cfg(test)]
mod tests {
    use super::first_seed;

    #[test]
    fn default_seed_counts_on_from_one() {
        assert_eq!(first_seed(1), 1);
    }

    #[test]
    fn seeds_asked_for_share_none_of_those_that_experiments_count_on_to() {
        const APART_MIN: u64 = 100_000_000_000_000;
        let mut first: Vec<u64> = (0..10_000).map(first_seed).collect();
        first.sort_unstable();
        let round = first[0].wrapping_sub(first[first.len() - 1]);
        let nearest = first.windows(2).map(|pair| pair[1] - pair[0]).chain([round]).min().unwrap();
        assert!(APART_MIN < nearest, "two seeds asked for begin {nearest} apart");
    }
}
