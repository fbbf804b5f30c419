//! Counts of printed and reference numbers that agree, and of claims that hold.
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

/// Name of the counts of statements.
pub(super) const CLAIMS: &str = "claims";

/// Counts of all results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tally {
    /// Verdicts on numbers that the paper prints.
    pub printed: Verdicts,
    /// Verdicts on numbers that only an independent implementation has.
    pub reference: Verdicts,
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
                    for one in compared {
                        let of =
                            if one.printed.is_some() { &mut tally.printed } else { &mut tally.reference };
                        of.add(one.verdict);
                    }
                }
                Block::Claims(claims) => claims.iter().for_each(|claim| tally.claims.add(claim.verdict)),
                Block::Chart(_) | Block::Table(_) => {}
            }
        }
        tally
    }

    /// Adds other counts.
    pub fn join(&mut self, other: &Self) {
        self.printed.join(&other.printed);
        self.reference.join(&other.reference);
        self.claims.join(&other.claims);
    }

    /// Returns the three counts with their names.
    #[must_use]
    pub fn by_source(&self) -> [(&'static str, Verdicts); 3] {
        [("printed numbers", self.printed), ("reference numbers", self.reference), (CLAIMS, self.claims)]
    }

    /// Returns the worst verdict, where [`Verdict::Open`] is the least bad; `None` if nothing was judged.
    #[must_use]
    pub fn worst(&self) -> Option<Verdict> {
        let mut all = Verdicts::default();
        self.by_source().iter().for_each(|(_, verdicts)| all.join(verdicts));
        let Verdicts { holds, partly, fails, open } = all;
        match (fails, partly, open, holds) {
            (0, 0, 0, 0) => None,
            (0, 0, 0, _) => Some(Verdict::Holds),
            (0, 0, _, _) => Some(Verdict::Open),
            (0, _, _, _) => Some(Verdict::Partly),
            _ => Some(Verdict::Fails),
        }
    }
}
