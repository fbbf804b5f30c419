//! Comparison of one of our numbers with a known one, judged by the interval of their difference.
//!
//! A comparison that could not have seen a large difference shows nothing, so fewer samples never agree
//! more easily. Three differences are allowed. The first is the sampling error, of both numbers if both
//! are samples. The second is the rounding of a printed number. The third is the error of a model, where
//! a known cause makes the two differ by an amount that is stated beforehand. There is no other
//! tolerance. Not here: statements (`case_verdict`).

use crate::{Compared, Verdict};
use gristmill_lab::report::number::number;
use gristmill_scheduler::metrics::Interval;

/// Relative difference below which only the order of additions differs.
const ARITHMETIC: f64 = 1e-9;

/// Sampling error of both numbers together, relative to the larger one, above which the comparison is
/// open: a difference of this size would not have been seen.
pub(crate) const RESOLUTION: f64 = 0.1;

/// Known number that ours is compared with, and its error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    value: f64,
    /// Half of a step of its last digit.
    rounding: f64,
    /// Number of samples that it is the mean of, if it has a sampling error: they vary as ours do.
    samples: Option<u64>,
    printed: bool,
}

impl Known {
    /// Returns a number without any error.
    pub(crate) fn exact(value: f64) -> Self {
        Self { value, rounding: 0.0, samples: None, printed: false }
    }

    /// Parses a number that is correct to its last digit.
    pub(crate) fn text(text: &str) -> Self {
        let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let value = text.parse().unwrap_or(f64::NAN);
        Self { rounding: 0.5 * 0.1_f64.powi(decimals as i32), ..Self::exact(value) }
    }

    /// Returns the paper's mean of this many samples that vary as ours do, printed without its spread. A reference is
    /// never such a sample: it is computed for the same jobs and compared exactly, or agreement would show little.
    pub(crate) fn drawn_alike(value: f64, samples: u64) -> Self {
        Self { samples: Some(samples), printed: true, ..Self::exact(value) }
    }

    /// Rounds the number to this many decimals.
    pub(crate) fn rounded_to(self, decimals: i32) -> Self {
        Self { rounding: 0.5 * 0.1_f64.powi(decimals), ..self }
    }

    /// Adds the error caused by the rounding of the inputs of the number.
    pub(crate) fn with_rounding_before(self, error: f64) -> Self {
        Self { rounding: self.rounding + error, ..self }
    }

    /// Marks the number as the paper's own, not one computed by hand.
    pub(crate) fn printed(self) -> Self {
        Self { printed: true, ..self }
    }

    /// Returns the difference of ours to it, with the sampling error of both.
    fn gap(&self, ours: &Interval) -> Interval {
        match self.samples {
            None => ours.minus(&Interval::exactly(self.value)),
            Some(samples) => ours.minus_drawn_alike(self.value, samples),
        }
    }
}

/// Known cause for a difference between ours and the other number.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// Smallest and largest difference of ours to the other, in the unit of the number.
    pub(crate) gap: [f64; 2],
    /// Cause of the difference.
    pub(crate) why: String,
}

/// One of our numbers and the known number it is compared with.
pub(crate) struct KnownNumber<'a> {
    what: String,
    ours: Interval,
    known: Known,
    model: Option<&'a Model>,
    note: String,
}

impl<'a> KnownNumber<'a> {
    /// Compares one of our means with a known number.
    pub(crate) fn mean(what: impl Into<String>, ours: Interval, known: Known) -> Self {
        Self { what: what.into(), ours, known, model: None, note: String::new() }
    }

    /// Compares one of our numbers that has no sampling error.
    pub(crate) fn exact(what: impl Into<String>, ours: f64, known: Known) -> Self {
        Self::mean(what, Interval::exactly(ours), known)
    }

    /// States the expected difference of the models.
    pub(crate) fn model(self, model: Option<&'a Model>) -> Self {
        Self { model, ..self }
    }

    /// Adds a note.
    pub(crate) fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// Judges the comparison. It holds if the interval of the difference, widened by the rounding,
    /// contains 0. It holds partly if only the stated error of the model explains the difference. It is
    /// open without an interval, and if an interval that contains 0 is wider than [`RESOLUTION`].
    pub(crate) fn judged(self) -> Compared {
        let gap = self.known.gap(&self.ours);
        let known = self.known.value;
        let too_wide = |half_width: f64| RESOLUTION * known.abs().max(self.ours.mean.abs()) < half_width;
        let (verdict, explained) = match gap.half_width {
            _ if !gap.mean.is_finite() => (Verdict::Fails, false),
            None => (Verdict::Open, false),
            Some(half_width) => {
                let room = half_width + self.known.rounding + ARITHMETIC * known.abs();
                let [low, high] = self.model.map_or([0.0; 2], |model| model.gap);
                match gap.mean {
                    off if off.abs() <= room && too_wide(half_width) => (Verdict::Open, false),
                    off if off.abs() <= room => (Verdict::Holds, false),
                    off if low.min(0.0) - room <= off && off <= high.max(0.0) + room => {
                        (Verdict::Partly, true)
                    }
                    _ => (Verdict::Fails, false),
                }
            }
        };
        let mut notes = Vec::new();
        match gap.half_width {
            None => notes.push("a single sample has no interval".to_owned()),
            Some(half_width) if 0.0 < half_width || verdict != Verdict::Holds => {
                notes.push(difference(gap.mean, half_width));
                if verdict == Verdict::Open {
                    notes.push(format!(
                        "more than {:.0} % of it, so that nothing is shown",
                        100.0 * RESOLUTION
                    ));
                }
            }
            Some(_) => {}
        }
        if let Some(model) = self.model.filter(|_| explained) {
            notes.push(format!(
                "explained by the model ({} to {}): {}",
                number(model.gap[0]),
                number(model.gap[1]),
                model.why
            ));
        }
        notes.extend((!self.note.is_empty()).then_some(self.note));
        Compared {
            printed: self.known.printed.then_some(known),
            reference: (!self.known.printed).then_some((known, 0.0)),
            half_width: self.ours.half_width.filter(|half_width| *half_width != 0.0),
            note: notes.join("; "),
            ..Compared::new(self.what, self.ours.mean, verdict)
        }
    }
}

fn difference(mean: f64, half_width: f64) -> String {
    let sign = if mean < 0.0 { "−" } else { "+" };
    let size = format!("difference {sign}{}", number(mean.abs()));
    if half_width == 0.0 { size } else { format!("{size} ± {}", number(half_width)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns 30 samples about this mean, with a half width of about 0.1.
    fn sampled(mean: f64) -> Interval {
        Interval { mean, half_width: Some(0.1), samples: 30 }
    }

    fn verdict(beside: KnownNumber<'_>) -> Verdict {
        beside.judged().verdict
    }

    #[test]
    fn printed_number_is_right_to_its_last_digit_and_no_further() {
        let at = |ours| verdict(KnownNumber::exact("", ours, Known::text("3.20").printed()));
        assert_eq!(at(3.2049), Verdict::Holds);
        assert_eq!(at(3.2051), Verdict::Fails);
        assert_eq!(verdict(KnownNumber::exact("", 3.24, Known::text("3.2"))), Verdict::Holds);
        assert_eq!(verdict(KnownNumber::exact("", 3.26, Known::text("3.2"))), Verdict::Fails);
        assert_eq!(verdict(KnownNumber::mean("", sampled(3.30), Known::text("3.20"))), Verdict::Holds);
        assert_eq!(verdict(KnownNumber::mean("", sampled(3.31), Known::text("3.20"))), Verdict::Fails);
    }

    #[test]
    fn exact_number_agrees_only_if_it_is_the_same() {
        assert_eq!(verdict(KnownNumber::exact("", 0.1 + 0.2, Known::exact(0.3))), Verdict::Holds);
        assert_eq!(verdict(KnownNumber::exact("", 0.300_001, Known::exact(0.3))), Verdict::Fails);
        assert_eq!(verdict(KnownNumber::exact("", f64::NAN, Known::exact(0.3))), Verdict::Fails);
    }

    #[test]
    fn stated_error_of_a_model_makes_partly_on_its_side_only_and_fails_beyond() {
        let model = Model { gap: [0.0, 0.5], why: "tasks are cut otherwise".to_owned() };
        let at = |mean| KnownNumber::mean("", sampled(mean), Known::exact(1.0)).model(Some(&model)).judged();
        assert_eq!(at(1.05).verdict, Verdict::Holds);
        assert_eq!(at(1.55).verdict, Verdict::Partly);
        assert!(at(1.55).note.contains("tasks are cut otherwise"), "{}", at(1.55).note);
        assert_eq!(at(1.65).verdict, Verdict::Fails);
        assert_eq!(at(0.85).verdict, Verdict::Fails, "on the other side the model explains nothing");
    }

    #[test]
    fn number_of_a_single_set_may_be_as_far_off_as_single_sets_are() {
        // With 30 samples of half width 0.1, a further sample is within 0.1 · sqrt(31) = 0.557.
        let at =
            |mean, samples| verdict(KnownNumber::mean("", sampled(mean), Known::drawn_alike(10.0, samples)));
        assert_eq!(at(10.55, 1), Verdict::Holds);
        assert_eq!(at(10.57, 1), Verdict::Fails);
        assert_eq!(at(10.2, 10), Verdict::Holds);
        assert_eq!(at(10.21, 10), Verdict::Fails);
        let judged = KnownNumber::mean("", sampled(1.0), Known::drawn_alike(1.0, 1)).judged();
        assert_eq!((judged.printed, judged.reference), (Some(1.0), None), "no reference is a sample");
    }

    #[test]
    fn interval_too_wide_to_see_a_large_difference_leaves_a_number_open() {
        let of = |samples: &[f64], known| {
            KnownNumber::mean("", Interval::from_samples(samples).unwrap(), known).judged()
        };
        // Two samples reach 12.7 standard errors: any number near their mean would agree.
        let two = of(&[1.0, 3.0], Known::exact(1.0));
        assert_eq!(two.verdict, Verdict::Open);
        assert!(two.note.contains("more than 10 % of it"), "{}", two.note);
        assert_eq!(of(&[1.0, 1.002], Known::exact(1.0)).verdict, Verdict::Holds);
        assert_eq!(of(&[1.0, 3.0], Known::exact(90.0)).verdict, Verdict::Fails, "what it shows, it shows");
        assert_eq!(of(&[0.9, 1.1, 1.0, 1.0], Known::drawn_alike(1.0, 1)).verdict, Verdict::Open);
    }

    #[test]
    fn single_sample_leaves_it_open() {
        let one = Interval { mean: 1.0, half_width: None, samples: 1 };
        assert_eq!(verdict(KnownNumber::mean("", one, Known::exact(1.0))), Verdict::Open);
    }
}
