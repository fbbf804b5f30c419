//! Counts of printed numbers that agree, and of claims that hold.
//!
//! Not here: the judging, which the experiments do.

use crate::report::{Block, Section, Verdict};
use serde::Serialize;

/// Number of verdicts by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Verdicts {
    /// Number of agreeing results.
    pub holds: usize,
    /// Number of results that agree under some conditions.
    pub partly: usize,
    /// Number of results that do not agree.
    pub fails: usize,
    /// Number of results that could not be judged.
    pub open: usize,
}

impl Verdicts {
    /// Counts a verdict, unless it is an input.
    pub fn add(&mut self, verdict: Verdict) {
        let count = match verdict {
            Verdict::Holds => &mut self.holds,
            Verdict::Partly => &mut self.partly,
            Verdict::Fails => &mut self.fails,
            Verdict::Open => &mut self.open,
            Verdict::Input => return,
        };
        *count += 1;
    }

    /// Returns the number of all verdicts.
    #[must_use]
    pub fn total(&self) -> usize {
        self.holds + self.partly + self.fails + self.open
    }

    /// Returns the verdicts with their counts, best first.
    #[must_use]
    pub fn by_kind(&self) -> [(Verdict, usize); 4] {
        [
            (Verdict::Holds, self.holds),
            (Verdict::Partly, self.partly),
            (Verdict::Fails, self.fails),
            (Verdict::Open, self.open),
        ]
    }

    fn join(&mut self, other: &Self) {
        self.holds += other.holds;
        self.partly += other.partly;
        self.fails += other.fails;
        self.open += other.open;
    }
}

/// Counts of all results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tally {
    /// Verdicts on numbers with printed or reference values.
    pub numbers: Verdicts,
    /// Verdicts on statements.
    pub claims: Verdicts,
}

impl Tally {
    /// Counts the verdicts in these sections.
    #[must_use]
    pub fn count(sections: &[Section]) -> Self {
        let mut tally = Self::default();
        for block in sections.iter().flat_map(|section| &section.blocks) {
            match block {
                Block::Comparison(compared) => {
                    compared.iter().for_each(|compared| tally.numbers.add(compared.verdict));
                }
                Block::Claims(claims) => claims.iter().for_each(|claim| tally.claims.add(claim.verdict)),
                Block::Chart(_) | Block::Table(_) => {}
            }
        }
        tally
    }

    /// Adds other counts.
    pub fn join(&mut self, other: &Self) {
        self.numbers.join(&other.numbers);
        self.claims.join(&other.claims);
    }

    /// Returns the worst verdict, where [`Verdict::Open`] is the least bad; `None` if nothing was judged.
    #[must_use]
    pub fn worst(&self) -> Option<Verdict> {
        let [holds, partly, fails, open] =
            [0, 1, 2, 3].map(|kind| self.numbers.by_kind()[kind].1 + self.claims.by_kind()[kind].1);
        match (fails, partly, open, holds) {
            (0, 0, 0, 0) => None,
            (0, 0, 0, _) => Some(Verdict::Holds),
            (0, 0, _, _) => Some(Verdict::Open),
            (0, _, _, _) => Some(Verdict::Partly),
            _ => Some(Verdict::Fails),
        }
    }
}
