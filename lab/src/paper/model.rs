//! What an experiment of a paper is given, and what it gives back.

use crate::report::Section;
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

/// What an experiment is given.
pub struct Context<'a> {
    /// How much is simulated.
    pub scale: Scale,
    /// The first seed; experiments count on from it.
    pub seed: u64,
    /// Told in a few words what is being computed now.
    pub progress: &'a (dyn Fn(&str) + Sync),
}

impl Context<'_> {
    /// One of three values by scale.
    #[must_use]
    pub fn scaled<T>(&self, quick: T, normal: T, full: T) -> T {
        match self.scale {
            Scale::Quick => quick,
            Scale::Normal => normal,
            Scale::Full => full,
        }
    }
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
