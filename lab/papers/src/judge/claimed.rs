//! Claims that a number of one contender is smaller or larger than those of others, judged by the
//! interval of their ratios.
//!
//! Not here: the origin of the numbers.

use super::CaseVerdict;
use gristmill_scheduler::metrics::Interval;
use serde::Deserialize;

/// Relative difference below which two numbers count as equal. A statement that one is smaller fails once
/// it is shown not to be smaller by this much.
const NONE: f64 = 0.03;

/// Smallest relative difference that counts as "much smaller".
const MUCH: f64 = 0.1;

/// Claim about one contender compared with others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rivals {
    pub(crate) is: Claimed,
    pub(crate) one: String,
    pub(crate) others: Vec<String>,
}

/// Comparison that is claimed of one contender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Claimed {
    /// The number is smaller.
    Smaller,
    /// The number is smaller by at least a tenth.
    MuchSmaller,
    /// The number is not larger.
    NotLarger,
    /// The number is larger.
    Larger,
}

impl Claimed {
    /// Returns the logarithm of the ratio above which the claim is refuted, and the one below which it is
    /// supported. Between the two both hold, and the claim counts as supported.
    fn limits(self) -> [f64; 2] {
        let less = |part: f64| (1.0 - part).ln();
        match self {
            Self::Smaller | Self::Larger => [less(NONE), 0.0],
            Self::MuchSmaller => [less(MUCH); 2],
            Self::NotLarger => [0.0, NONE.ln_1p()],
        }
    }

    /// Returns the logarithm in the orientation of the limits: the sign is reversed for "larger".
    fn oriented(self, ratio: &Interval) -> Interval {
        let mean = if self == Self::Larger { -ratio.mean } else { ratio.mean };
        Interval { mean, ..*ratio }
    }

    pub(crate) fn judge(self, ratio: &Interval) -> CaseVerdict {
        let [refuted, borne_out] = self.limits();
        let ratio = self.oriented(ratio);
        match CaseVerdict::below(&ratio, borne_out) {
            CaseVerdict::Yes => CaseVerdict::Yes,
            _ if CaseVerdict::above(&ratio, refuted) == CaseVerdict::Yes => CaseVerdict::No,
            _ => CaseVerdict::Unclear,
        }
    }

    /// Describes the conditions that support and that refute the claim, from [`Claimed::limits`].
    pub(crate) fn definition(self) -> String {
        let none = format!("{:.0} %", 100.0 * NONE);
        match self {
            Self::Smaller | Self::Larger => {
                let word = if self == Self::Smaller { "smaller" } else { "larger" };
                format!("Clearly {word}, by however little, holds; else clearly not {word} by {none} fails.")
            }
            Self::NotLarger => format!("Clearly not larger by {none} holds; else clearly larger fails."),
            Self::MuchSmaller => format!("{:.0} % and more is much.", 100.0 * MUCH),
        }
    }
}
