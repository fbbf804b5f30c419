//! A number of one contender claimed to be smaller or larger than those of others, judged by the interval of their ratios.
//!
//! Not here: where the numbers come from.

use super::Seen;
use gristmill_scheduler::metrics::Interval;
use serde::Deserialize;

/// A difference of less than this part is called none: a statement that one is smaller fails once it is shown that it is
/// not smaller by as much.
const NONE: f64 = 0.03;

/// What is "much smaller" is smaller by this part at least.
const MUCH: f64 = 0.1;

/// A claim about one contender beside others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rivals {
    pub(crate) is: Claimed,
    pub(crate) one: String,
    pub(crate) others: Vec<String>,
}

/// The claim about one contender beside others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Claimed {
    /// Its number is smaller.
    Smaller,
    /// It is smaller by a tenth at least.
    MuchSmaller,
    /// It is not larger.
    NotLarger,
    /// It is larger.
    Larger,
}

impl Claimed {
    /// Above which logarithm of the ratio it is refuted, and below which it is borne out. Between the two both can be
    /// said, and then it is borne out.
    fn limits(self) -> [f64; 2] {
        let less = |part: f64| (1.0 - part).ln();
        match self {
            Self::Smaller | Self::Larger => [less(NONE), 0.0],
            Self::MuchSmaller => [less(MUCH); 2],
            Self::NotLarger => [0.0, NONE.ln_1p()],
        }
    }

    /// The logarithm as the limits have it: larger is smaller the other way round.
    fn oriented(self, ratio: &Interval) -> Interval {
        let mean = if self == Self::Larger { -ratio.mean } else { ratio.mean };
        Interval { mean, ..*ratio }
    }

    pub(crate) fn seen(self, ratio: &Interval) -> Seen {
        let [refuted, borne_out] = self.limits();
        let ratio = self.oriented(ratio);
        match Seen::below(&ratio, borne_out) {
            Seen::Yes => Seen::Yes,
            _ if Seen::above(&ratio, refuted) == Seen::Yes => Seen::No,
            _ => Seen::Unclear,
        }
    }

    /// Repetitions after which the half width would be so small that one limit is passed, if mean and spread stay as
    /// they are; `None` without an interval.
    pub(crate) fn repetitions(self, ratio: &Interval) -> Option<f64> {
        let [refuted, borne_out] = self.limits();
        let ratio = self.oriented(ratio);
        let room = (borne_out - ratio.mean).max(ratio.mean - refuted).max(1e-4);
        Some(ratio.samples as f64 * (ratio.half_width? / room).powi(2))
    }

    /// What bears it out and what refutes it, as [`Claimed::limits`] have it.
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
