//! Settings of an experiment of a paper, and its results.

use crate::each;
use gristmill_lab::report::Section;
use serde::Serialize;

/// Amount of simulation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaperScale {
    /// Seconds for each paper: shows the shapes, with wide intervals.
    Quick,
    /// Minutes: intervals narrow enough to judge the printed numbers.
    Normal,
    /// As large as the papers' own runs.
    Full,
}

impl PaperScale {
    /// Returns the value for this scale.
    pub fn pick<T>(self, quick: T, normal: T, full: T) -> T {
        match self {
            PaperScale::Quick => quick,
            PaperScale::Normal => normal,
            PaperScale::Full => full,
        }
    }
}

/// Settings of an experiment.
pub struct Context<'a> {
    /// Amount of simulation.
    pub scale: PaperScale,
    /// First seed of random draws ([`first_seed`]). Experiments count up from it.
    pub first_seed: u64,
    /// Receives a short description of the current computation.
    pub progress: &'a (dyn Fn(&str) + Sync),
}

/// Returns the first seed that experiments use when this one is requested: 1 maps to 1.
///
/// Experiments use the following seeds, 20,000 at most. Neighbouring requests start apart by the golden
/// ratio of all seeds. Of ten thousand requests in a row no two start within 10^14 of each other, so two
/// pages are two draws and share no run.
#[must_use]
pub fn first_seed(asked: u64) -> u64 {
    /// 2^64 divided by the golden ratio, odd, so that different requests have different first seeds.
    const APART: u64 = 0x9E37_79B9_7F4A_7C15;
    asked.wrapping_sub(1).wrapping_mul(APART).wrapping_add(1)
}

impl Context<'_> {
    /// Returns this many seeds, from the first on.
    #[must_use]
    pub fn seeds(&self, count: u64) -> Vec<u64> {
        (0..count).map(|run| self.first_seed.wrapping_add(run)).collect()
    }

    /// Returns the value for this scale.
    #[must_use]
    pub fn scaled<T>(&self, quick: T, normal: T, full: T) -> T {
        self.scale.pick(quick, normal, full)
    }
}

/// Runs every cell with every seed, like [`each`], and returns the results of each cell by seed.
///
/// # Errors
/// The first one, in the order of the cells.
pub(crate) fn each_cell<C: Sync, S: Sync, R: Send>(
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
    /// Name of the paper in `gristmill lab paper NAME`.
    pub name: &'static str,
    /// Title, authors and year.
    pub title: &'static str,
    /// Subject of the paper and setup of its experiments in plain words, one paragraph each.
    pub about: Vec<String>,
    /// Sections, in the order of the paper.
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
