//! Measures of user code in addition to its counters: sums of floats, and maxima, by name.
//!
//! A sum is exact until it is read: it is kept as non-overlapping numbers (Shewchuk, *Adaptive Precision Floating-Point
//! Arithmetic*, 1997, GROW-EXPANSION), and rounded once. So it does not depend on the order of additions, and the sum
//! of a task that ran twice can be subtracted exactly. `attempt` defines which values are measured.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum absolute value of a measure: the sum of the maximum number of measures does not overflow.
pub(crate) const MEASURE_MAX: f64 = 1e280;

/// Maximum number of terms of a settled sum: each has the 53 highest bits of the rest, of 2,098 places.
const TERMS_MAX: usize = 41;

/// Exact sum of floats.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ExactSum(Vec<f64>);

impl ExactSum {
    /// Adds a number, which is finite and at most `MEASURE_MAX`.
    pub fn add(&mut self, number: f64) {
        let mut carried = number;
        let mut kept = 0;
        for at in 0..self.0.len() {
            let term = self.0[at];
            let (large, small) = if carried.abs() < term.abs() { (term, carried) } else { (carried, term) };
            let sum = large + small;
            let rest = small - (sum - large);
            if rest != 0.0 {
                self.0[kept] = rest;
                kept += 1;
            }
            carried = sum;
        }
        self.0.truncate(kept);
        self.0.push(carried);
    }

    /// Adds another sum, or subtracts it.
    pub fn merge(&mut self, other: &Self, add: bool) {
        other.0.iter().for_each(|term| self.add(if add { *term } else { -*term }));
    }

    /// Normalises the sum to its shortest form, which is unique: the nearest float, the float nearest to the rest, and
    /// so on, smallest first.
    pub fn settle(&mut self) {
        let mut terms = Vec::new();
        loop {
            let nearest = self.value();
            if nearest == 0.0 {
                break;
            }
            terms.push(nearest);
            self.add(-nearest);
        }
        terms.reverse();
        self.0 = terms;
    }

    /// Returns the float nearest to the sum, ties to even.
    #[must_use]
    pub fn value(&self) -> f64 {
        let mut terms = self.0.iter().rev().copied();
        let Some(mut high) = terms.next() else { return 0.0 };
        let mut low = 0.0;
        for term in terms.by_ref() {
            let before = high;
            high = before + term;
            low = term - (high - before);
            if low != 0.0 {
                break;
            }
        }
        // Half way between two floats, the smaller terms decide.
        let below = terms.next().unwrap_or(0.0);
        if (low < 0.0 && below < 0.0) || (0.0 < low && 0.0 < below) {
            let twice = low * 2.0;
            let other = high + twice;
            if other - high == twice {
                return other;
            }
        }
        // Never minus zero, which depends on the order.
        high + 0.0
    }

    /// True if it is a possible result of settling.
    fn is_sound(&self) -> bool {
        self.0.len() <= TERMS_MAX
            && self.0.iter().all(|term| term.is_finite() && term.abs() <= MEASURE_MAX * 1e20)
    }
}

/// Measures of an attempt.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Measures {
    /// Sums by name.
    pub sums: BTreeMap<String, ExactSum>,
    /// Maxima by name.
    pub maxima: BTreeMap<String, f64>,
}

impl Measures {
    /// Maximum number of names of one kind; later ones are ignored.
    pub const NAMES_MAX: usize = 1000;

    /// Adds to the sum of this name.
    pub fn sum(&mut self, name: &str, number: f64) {
        let full = Self::NAMES_MAX <= self.sums.len();
        match self.sums.get_mut(name) {
            Some(sum) => sum.add(number),
            None if full => {}
            None => self.sums.entry(name.to_owned()).or_default().add(number),
        }
    }

    /// Updates the maximum of this name.
    pub fn maximum(&mut self, name: &str, number: f64) {
        let full = Self::NAMES_MAX <= self.maxima.len();
        match self.maxima.get_mut(name) {
            Some(greatest) => *greatest = greatest.max(number),
            None if full => {}
            None => drop(self.maxima.insert(name.to_owned(), number)),
        }
    }

    /// Adds other measures, or subtracts their sums; maxima stay, since the same task measures the same values again.
    pub fn merge(&mut self, other: &Self, add: bool) {
        for (name, sum) in &other.sums {
            let room = add && self.sums.len() < Self::NAMES_MAX;
            match self.sums.get_mut(name) {
                Some(own) => own.merge(sum, add),
                None if room => drop(self.sums.insert(name.clone(), sum.clone())),
                None => {}
            }
        }
        if add {
            other.maxima.iter().for_each(|(name, number)| self.maximum(name, *number));
        }
    }

    /// Normalises the sums to their shortest form.
    #[must_use]
    pub fn settled(mut self) -> Self {
        self.sums.values_mut().for_each(ExactSum::settle);
        self
    }

    /// Returns the rounded sums.
    #[must_use]
    pub fn values_of_sums(&self) -> BTreeMap<String, f64> {
        self.sums.iter().map(|(name, sum)| (name.clone(), sum.value())).collect()
    }

    /// True if nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty() && self.maxima.is_empty()
    }

    /// Approximate number of bytes in a message.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let sums = self.sums.iter().map(|(name, sum)| name.len() + sum.0.len() * size_of::<f64>());
        let maxima = self.maxima.keys().map(|name| name.len() + size_of::<f64>());
        sums.chain(maxima).sum()
    }

    /// Returns the valid part of measures from an untrusted sender: names after `clean`, up to the maximum number, and
    /// valid numbers.
    #[must_use]
    pub fn tidied(self, clean: impl Fn(String) -> String) -> Self {
        let sound = |number: &f64| number.is_finite() && number.abs() <= MEASURE_MAX;
        let sums = self.sums.into_iter().filter(|(_, sum)| sum.is_sound()).take(Self::NAMES_MAX);
        let maxima = self.maxima.into_iter().filter(|(_, number)| sound(number)).take(Self::NAMES_MAX);
        Self {
            sums: sums.map(|(name, sum)| (clean(name), sum)).collect(),
            maxima: maxima.map(|(name, number)| (clean(name), number)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(numbers: impl IntoIterator<Item = f64>) -> f64 {
        let mut sum = ExactSum::default();
        numbers.into_iter().for_each(|number| sum.add(number));
        sum.value()
    }

    /// Computes the sum of multiples of 2^-60 below 2^60 with integers.
    fn by_whole_numbers(numbers: &[i64]) -> f64 {
        numbers.iter().map(|number| i128::from(*number)).sum::<i128>() as f64 / 2f64.powi(60)
    }

    proptest! {
        #[test]
        fn sum_is_the_nearest_float_in_any_order_and_in_any_groups(
            numbers in proptest::collection::vec(any::<i64>().prop_map(|n| n >> (n & 63).unsigned_abs()), 0..60),
            cut in 0..60_usize,
        ) {
            let exact = |number: &i64| *number as f64 / 2f64.powi(60);
            // Bits that a float cannot hold are cut off first.
            let numbers: Vec<i64> = numbers.iter().map(|number| *number as f64 as i64).filter(|n| *n != i64::MAX).collect();
            let expected = by_whole_numbers(&numbers);
            let floats: Vec<f64> = numbers.iter().map(exact).collect();
            prop_assert_eq!(sum(floats.iter().copied()), expected);
            prop_assert_eq!(sum(floats.iter().rev().copied()), expected);
            let (one, two) = floats.split_at(cut.min(floats.len()));
            let of = |part: &[f64]| {
                let mut measures = Measures::default();
                part.iter().for_each(|number| measures.sum("s", *number));
                measures
            };
            let mut both = of(two);
            both.merge(&of(one), true);
            prop_assert_eq!(both.values_of_sums().get("s").copied().unwrap_or(0.0), expected);
            both.merge(&of(one), false);
            let left = sum(two.iter().copied());
            prop_assert_eq!(both.values_of_sums().get("s").copied().unwrap_or(0.0), left);
        }

        #[test]
        fn sums_of_any_floats_do_not_depend_on_the_order_and_stay_short(
            numbers in proptest::collection::vec((any::<f64>(), -900..900_i32), 0..80)
        ) {
            let numbers: Vec<f64> = numbers
                .into_iter()
                .map(|(number, power)| number * 2f64.powi(power))
                .filter(|number| number.is_finite() && number.abs() <= MEASURE_MAX)
                .collect();
            let mut forth = ExactSum::default();
            numbers.iter().for_each(|number| forth.add(*number));
            let mut back = ExactSum::default();
            numbers.iter().rev().for_each(|number| back.add(*number));
            prop_assert_eq!(forth.value(), back.value());
            let value = forth.value();
            forth.settle();
            back.settle();
            prop_assert!(forth.is_sound(), "{} terms", forth.0.len());
            prop_assert_eq!(&forth, &back);
            prop_assert_eq!(forth.value(), value);
        }
    }

    #[test]
    fn sum_knows_what_naive_addition_loses() {
        assert_eq!(sum([1e100, 1.0, -1e100]), 1.0);
        assert_eq!(sum([0.1; 10]), 1.0);
        assert_eq!(sum([1.0, 2f64.powi(-53), 2f64.powi(-106)]), 1.0 + 2f64.powi(-52), "below half decides");
        assert!(sum([-0.0]).is_sign_positive() && sum([1.0, -1.0]).is_sign_positive());
    }

    #[test]
    fn measures_of_liars_are_cut_to_what_can_have_been_measured() {
        let mut told = Measures::default();
        told.sums.insert("long".to_owned(), ExactSum(vec![1.0; 1000]));
        told.sums.insert("none".to_owned(), ExactSum(vec![f64::NAN]));
        told.sum("good", 1.0);
        told.maxima.insert("endless".to_owned(), f64::INFINITY);
        told.maximum("most", 3.0);
        let tidied = told.tidied(|name| name.to_uppercase());
        assert_eq!(tidied.values_of_sums(), BTreeMap::from([("GOOD".to_owned(), 1.0)]));
        assert_eq!(tidied.maxima, BTreeMap::from([("MOST".to_owned(), 3.0)]));
    }
}
