//! Rules of the paper with their parameters and titles, and distributions in words.

use crate::workload::pairs::SizeLaw;
use gristmill_scheduler::policy::pairs::PairsRule;

/// Rules of Table 2 with the paper's parameters, best first in the paper's order.
pub(super) const OFFLINE: [PairsRule; 10] = [
    PairsRule::Match { alpha: ALPHA },
    PairsRule::Group { alpha: ALPHA, k: K },
    PairsRule::Generalized { delta: DELTA, alpha: ALPHA },
    PairsRule::Couple { delta: DELTA },
    PairsRule::Pair { delta: DELTA },
    PairsRule::MaxSrpt,
    PairsRule::NewCouple { delta: DELTA },
    PairsRule::MaxShuffle,
    PairsRule::Pairwise,
    PairsRule::MaxDiff,
];

/// Step of sizes, in seconds.
pub(super) const DELTA: f64 = 0.1;

/// Weight of the dominant workload, or of the pairing degree.
pub(super) const ALPHA: f64 = 0.5;

/// Number of groups.
pub(super) const K: usize = 20;

/// Mean map time of a job present at the start, in seconds.
pub(super) const MEAN: f64 = 10.0;

/// Returns the title of a policy in the paper.
pub(super) fn title(rule: &PairsRule) -> &'static str {
    match rule {
        PairsRule::MaxDiff => "MaxDiff",
        PairsRule::Pairwise => "Pairwise",
        PairsRule::MaxShuffle => "MaxShuffle",
        PairsRule::MaxSrpt => "MaxSRPT",
        PairsRule::Pair { .. } => "Pair-based",
        PairsRule::Couple { .. } => "Couple-based",
        PairsRule::Generalized { .. } => "Generalized",
        PairsRule::Group { .. } => "Group-based",
        PairsRule::OnlineGroup { .. } => "OGroup-based",
        PairsRule::NewCouple { .. } => "NCouple-based",
        PairsRule::Match { .. } => "Match-based",
        PairsRule::OnlineMatch { .. } => "OMatch-based",
    }
}

/// Describes a distribution for tables.
pub(super) fn describe(sizes: SizeLaw) -> &'static str {
    match sizes {
        SizeLaw::Uniform => "uniform, independent",
        SizeLaw::Exponential => "exponential, independent",
        SizeLaw::LogNormal => "log-normal (sd 0.6), independent",
        SizeLaw::StrongPairs => "uniform, exact strong pairs",
        SizeLaw::Ratio => "log-normal (sd 0.6), shuffle = map × ratio",
        SizeLaw::Balanced => "Google fit, cube root of the ratio",
        SizeLaw::Google => "Google fit of the overlap paper",
    }
}
