//! Positions of numbers along an axis, and ticks with labels.
//!
//! Not here: pixels.

use super::number;
use crate::report::Axis;

/// Largest value drawn, and on a logarithmic axis the inverse of the smallest.
const DRAWN_MAX: f64 = 1e150;

/// Share of its largest value above which a chart may start without showing 0.
const ZERO_BELOW: f64 = 0.4;

/// Maximum number of decades of a logarithmic axis that each have a tick, including those without a label.
const LESSER_DECADES_MAX: f64 = 20.0;

/// Mark on an axis.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Tick {
    /// Value of the mark.
    pub(super) value: f64,
    /// Label; empty for minor ticks.
    pub(super) label: String,
}

/// Extension of an axis beyond its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// No extension.
    Tight,
    /// To the next tick, and to 0 if it is near.
    Ticks,
    /// To the next tick, and to 0.
    Zero,
}

/// Axis with its ends and ticks.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct AxisScale {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Ticks in ascending order.
    pub(super) ticks: Vec<Tick>,
}

/// True if an axis can show this value.
pub(super) fn drawable(axis: &Axis, value: f64) -> bool {
    if axis.logarithmic { (DRAWN_MAX.recip()..=DRAWN_MAX).contains(&value) } else { value.abs() <= DRAWN_MAX }
}

impl AxisScale {
    /// Creates an axis for values from the first to the second of `extent`, all of them drawable, with
    /// about `ticks` ticks.
    pub(super) fn new(axis: &Axis, extent: Option<(f64, f64)>, ticks: usize, reach: Reach) -> Self {
        if !axis.names.is_empty() {
            return Self::of_names(&axis.names, extent);
        }
        let ticks = ticks.max(2);
        if axis.logarithmic {
            return Self::of_decades(extent.unwrap_or((1.0, 10.0)), ticks, reach);
        }
        Self::linear(extent.unwrap_or((0.0, 1.0)), ticks, reach)
    }

    fn of_names(names: &[String], extent: Option<(f64, f64)>) -> Self {
        let last = names.len() as f64 - 0.5;
        let (low, high) = extent.unwrap_or((0.0, 0.0));
        let ticks = names.iter().enumerate();
        let ticks = ticks.map(|(place, name)| Tick { value: place as f64, label: name.clone() }).collect();
        Self { low: (low - 0.5).min(-0.5), high: (high + 0.5).max(last), logarithmic: false, ticks }
    }

    fn linear((mut low, mut high): (f64, f64), ticks: usize, reach: Reach) -> Self {
        let zero = reach == Reach::Zero || (reach == Reach::Ticks && low < ZERO_BELOW * high);
        if zero && 0.0 < low {
            low = 0.0;
        }
        let zero = reach == Reach::Zero || (reach == Reach::Ticks && ZERO_BELOW * low < high);
        if zero && high < 0.0 {
            high = 0.0;
        }
        // Values that are all equal, or nearly, still need an axis.
        let least = low.abs().max(high.abs()) * 1e-9;
        if high - low <= least {
            let half = if least == 0.0 { 0.5 } else { low.abs().max(high.abs()) * 0.05 };
            (low, high) = if low == 0.0 { (0.0, 1.0) } else { (low - half, high + half) };
        }
        let step = nice_step((high - low) / ticks as f64);
        if reach != Reach::Tight {
            low = (low / step + 1e-9).floor() * step;
            high = (high / step - 1e-9).ceil() * step;
        }
        let first = (low / step - 1e-9).ceil();
        let count = ((high - low) / step + 1e-6).floor().min(4.0 * ticks as f64 + 4.0) as usize;
        let largest = low.abs().max(high.abs());
        let values = (0..=count).map(|place| (first + place as f64) * step);
        let values = values.filter(|&value| value <= high + step * 1e-6);
        let ticks = values.map(|value| Tick { value, label: number::tick(value, step, largest) }).collect();
        Self { low, high, logarithmic: false, ticks }
    }

    fn of_decades((low, high): (f64, f64), ticks: usize, reach: Reach) -> Self {
        let (mut low, mut high) = (low.log10(), high.log10());
        if high - low < 1e-6 {
            (low, high) = (low - 0.15, high + 0.15);
        }
        if reach != Reach::Tight {
            (low, high) = (one_two_five(low, false), one_two_five(high, true));
        }
        let decades = (low.floor() as i32, high.ceil() as i32);
        let every = ((high - low) / ticks as f64).ceil().max(1.0) as i32;
        let mut found = Vec::new();
        for decade in decades.0..=decades.1 {
            for multiple in [1_u32, 2, 5] {
                let place = f64::from(decade) + f64::from(multiple).log10();
                if place < low - 1e-9 || high + 1e-9 < place || (multiple != 1 && 6.0 < high - low) {
                    continue;
                }
                let labelled = if multiple == 1 { decade.rem_euclid(every) == 0 } else { high - low < 2.2 };
                if !labelled && LESSER_DECADES_MAX < high - low {
                    continue;
                }
                let label = if labelled { number::decade(multiple, decade) } else { String::new() };
                found.push(Tick { value: 10_f64.powf(place), label });
            }
        }
        Self { low: 10_f64.powf(low), high: 10_f64.powf(high), logarithmic: true, ticks: found }
    }

    /// Returns the position of a value between the ends of the axis, 0 to 1. Values beyond are at the ends.
    pub(super) fn place(&self, value: f64) -> f64 {
        let place = if self.logarithmic {
            (value.max(self.low).log10() - self.low.log10()) / (self.high.log10() - self.low.log10())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Returns the base of bars: 0, or the end of the axis that is nearer to it.
    pub(super) fn base(&self) -> f64 {
        if self.logarithmic { self.low } else { 0.0_f64.clamp(self.low, self.high) }
    }

    /// Extends both ends by this share of its length.
    pub(super) fn padded(mut self, share: f64) -> Self {
        if self.logarithmic {
            let more = (self.high.log10() - self.low.log10()) * share;
            self.low = 10_f64.powf(self.low.log10() - more);
            self.high = 10_f64.powf(self.high.log10() + more);
        } else {
            let more = (self.high - self.low) * share;
            (self.low, self.high) = (self.low - more, self.high + more);
        }
        self
    }
}

/// Returns 1, 2 or 5 times a power of ten, whichever is nearest.
fn nice_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let multiple = match rough / power {
        multiple if multiple < 1.5 => 1.0,
        multiple if multiple < 3.5 => 2.0,
        multiple if multiple < 7.5 => 5.0,
        _ => 10.0,
    };
    multiple * power
}

/// Returns the next logarithm of 1, 2 or 5 times a power of ten.
fn one_two_five(value: f64, up: bool) -> f64 {
    let decade = value.floor();
    let all = [-1.0, 0.0, 1.0]
        .into_iter()
        .flat_map(|more| [0.0, 2.0_f64.log10(), 5.0_f64.log10()].map(|multiple| decade + more + multiple));
    if up {
        all.filter(|&place| value - 1e-9 <= place).fold(decade + 2.0, f64::min)
    } else {
        all.filter(|&place| place <= value + 1e-9).fold(decade - 1.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(scale: &AxisScale) -> Vec<&str> {
        scale.ticks.iter().map(|tick| tick.label.as_str()).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_are_round_numbers() {
        let scale = AxisScale::new(&Axis::linear(""), Some((0.3, 9.2)), 5, Reach::Ticks);
        assert_eq!(labels(&scale), ["0", "2", "4", "6", "8", "10"]);
        let scale = AxisScale::new(&Axis::linear(""), Some((1.1, 1.39)), 5, Reach::Ticks);
        assert_eq!(labels(&scale), ["1.10", "1.15", "1.20", "1.25", "1.30", "1.35", "1.40"]);
        let scale = AxisScale::new(&Axis::linear(""), Some((0.2, 0.9)), 4, Reach::Tight);
        assert_eq!(labels(&scale), ["0.2", "0.4", "0.6", "0.8"]);
        let scale = AxisScale::new(&Axis::linear(""), Some((-3.0, -1.0)), 4, Reach::Zero);
        assert_eq!(labels(&scale), ["−3", "−2", "−1", "0"]);
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten_and_their_halves_where_there_is_room() {
        let axis = Axis::logarithmic("");
        let scale = AxisScale::new(&axis, Some((0.02, 3e3)), 6, Reach::Ticks);
        assert_eq!(labels(&scale), ["0.1", "1", "10", "100", "1000"]);
        let scale = AxisScale::new(&axis, Some((1.2, 18.0)), 6, Reach::Ticks);
        assert_eq!(labels(&scale), ["1", "2", "5", "10", "20"]);
        let scale = AxisScale::new(&axis, Some((1e-12, 1e12)), 6, Reach::Ticks);
        assert!(labels(&scale).len() <= 8, "{:?}", labels(&scale));
        assert!(labels(&scale).contains(&"10⁻⁸"), "{:?}", labels(&scale));
    }

    #[test]
    fn axis_of_names_has_a_place_for_each() {
        let axis = Axis::names("", ["a", "b"].map(str::to_owned));
        let scale = AxisScale::new(&axis, Some((0.0, 1.0)), 5, Reach::Tight);
        assert_eq!(labels(&scale), ["a", "b"]);
        assert_eq!([0.0, 1.0].map(|value| scale.place(value)), [0.25, 0.75]);
    }

    fn value() -> impl Strategy<Value = f64> {
        (-1.0..1.0_f64, -100..100_i32).prop_map(|(mantissa, exponent)| mantissa * 10_f64.powi(exponent))
    }

    proptest! {
        #[test]
        fn every_value_and_tick_lies_on_the_axis(one in value(), other in value(), logarithmic: bool, ticks in 2..9_usize) {
            let axis = Axis { logarithmic, ..Axis::default() };
            let (one, other) = if logarithmic { (one.abs(), other.abs()) } else { (one, other) };
            prop_assume!(drawable(&axis, one) && drawable(&axis, other));
            let (low, high) = (one.min(other), one.max(other));
            for reach in [Reach::Tight, Reach::Ticks, Reach::Zero] {
                let scale = AxisScale::new(&axis, Some((low, high)), ticks, reach);
                prop_assert!(scale.low < scale.high, "{scale:?}");
                let slack = 1e-6 * (scale.high - scale.low);
                prop_assert!(scale.low <= low + slack && high <= scale.high + slack, "{scale:?}");
                prop_assert!(scale.ticks.len() < 120);
                prop_assert!(scale.place(low) <= scale.place(high));
                for tick in &scale.ticks {
                    prop_assert!(!tick.label.contains("NaN") && !tick.label.contains("inf"));
                    prop_assert!(tick.label.chars().count() < 24, "{tick:?}");
                }
            }
        }
    }
}
