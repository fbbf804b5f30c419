//! Samples of a fixed number of values out of any number, each set of that size with the same probability.
//!
//! Instead of the random draws of the classic reservoir, each value has a name, whose random number follows
//! from the seed, and the values with the smallest numbers stay (bottom-k). So a task that runs twice keeps
//! the same values, and the sample does not depend on the split of the input. The union of samples is
//! associative and commutative, as a combiner requires. Samples with weights or with replacement are not
//! supported.

use crate::collect::Combiner;
use crate::input::Record;
use crate::value::Value;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;
use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Sample of at most this many of all offered values. It holds up to twice as many in memory.
///
/// A mapper offers its records and emits its reservoir at the end, [`UniteSamples`] unites those of all tasks:
///
/// ```
/// # use gristmill_worker::prelude::*;
/// struct Some5(Reservoir<String>);
///
/// impl Mapper for Some5 {
///     type Key = u64;
///     type Value = Reservoir<String>;
///
///     fn map(&mut self, line: Record<'_>, _: &mut Emitter<u64, Reservoir<String>>) -> TaskResult {
///         self.0.offer_record(&line, || line.text().into_owned());
///         Ok(())
///     }
///
///     fn finish(&mut self, out: &mut Emitter<u64, Reservoir<String>>) -> TaskResult {
///         out.emit(0, self.0.clone());
///         Ok(())
///     }
/// }
///
/// let plan = JobPlan::map(Input::lines(["lines"]), || Some5(Reservoir::new(5, 17)))
///     .combine(UniteSamples::new)
///     .reduce_each(|_, samples, out| {
///         let sample = samples.iter().reduce(|mut all, more| {
///             all.unite(more);
///             all
///         });
///         sample.into_iter().flat_map(Reservoir::into_values).for_each(|line| out.line(line.as_bytes()));
///         Ok(())
///     });
/// # let lines: String = (0..100).map(|n| format!("{n}\n")).collect();
/// # let written = gristmill_worker::testing::Trial::of_plan(plan).file("lines", lines).split_bytes(30).run().unwrap();
/// # assert_eq!(written.lines().len(), 5);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservoir<T> {
    size: u32,
    seed: u64,
    offered: u64,
    /// Values with the random number of their name.
    kept: Vec<(u128, T)>,
    /// Numbers from here on are dropped.
    bound: u128,
}

impl<T> Reservoir<T> {
    /// Creates an empty sample of `size` values. The same seed and names give the same sample.
    #[must_use]
    pub fn new(size: u32, seed: u64) -> Self {
        Self { size, seed, offered: 0, kept: Vec::new(), bound: u128::MAX }
    }

    /// Offers a value of this name, which must be unique; it is only created if it stays for now.
    pub fn offer(&mut self, name: &[u8], value: impl FnOnce() -> T) {
        self.offered = self.offered.saturating_add(1);
        let number = xxh3_128_with_seed(name, self.seed);
        if number < self.bound && 0 < self.size {
            self.kept.push((number, value()));
            self.settle_if_full();
        }
    }

    /// Offers the value of a record, whose name is its file and its position in it.
    pub fn offer_record(&mut self, record: &Record<'_>, value: impl FnOnce() -> T) {
        let mut name = record.source().path.clone().into_bytes();
        name.extend_from_slice(&record.offset().to_le_bytes());
        self.offer(&name, value);
    }

    /// Adds the values of another sample of the same size and seed.
    ///
    /// # Panics
    /// If size or seed differ.
    pub fn unite(&mut self, other: Self) {
        assert_eq!((self.size, self.seed), (other.size, other.seed), "samples of other sizes or seeds");
        self.offered = self.offered.saturating_add(other.offered);
        self.bound = self.bound.min(other.bound);
        let bound = self.bound;
        self.kept.extend(other.kept.into_iter().filter(|(number, _)| *number < bound));
        self.settle_if_full();
    }

    /// Number of offered values.
    #[must_use]
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// Returns the sample, in random order.
    #[must_use]
    pub fn into_values(mut self) -> Vec<T> {
        self.settle();
        self.kept.into_iter().map(|(_, value)| value).collect()
    }

    fn settle_if_full(&mut self) {
        if 2 * self.size as usize <= self.kept.len() {
            self.settle();
        }
    }

    /// Reduces the values to the sample, in order.
    fn settle(&mut self) {
        self.kept.sort_unstable_by_key(|(number, _)| *number);
        if let Some((number, _)) = self.kept.get(self.size as usize) {
            self.bound = *number;
            self.kept.truncate(self.size as usize);
        }
    }
}

/// Combiner that unites samples; see [`Reservoir`].
#[derive(Clone, Copy, Debug)]
pub struct UniteSamples<T>(PhantomData<fn() -> T>);

impl<T> UniteSamples<T> {
    /// Creates the combiner, which has no parameters.
    #[must_use]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for UniteSamples<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Combiner for UniteSamples<T>
where
    Reservoir<T>: Value,
{
    type Value = Reservoir<T>;

    fn combine(&mut self, all: &mut Reservoir<T>, more: Reservoir<T>) {
        all.unite(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: impl IntoIterator<Item = u32>, size: u32, seed: u64) -> Reservoir<u32> {
        let mut reservoir = Reservoir::new(size, seed);
        numbers.into_iter().for_each(|number| reservoir.offer(&number.to_le_bytes(), || number));
        reservoir
    }

    #[test]
    fn reservoir_keeps_the_same_however_values_come_and_are_grouped() {
        for size in [0, 1, 7, 100, 1000] {
            let whole = of(0..500, size, 3);
            assert_eq!(whole.offered(), 500);
            let whole = whole.into_values();
            assert_eq!(whole.len(), 500.min(size as usize));
            assert_eq!(of((0..500).rev(), size, 3).into_values(), whole);
            for cut in [0, 1, 250, 499] {
                let mut parts = of(cut..500, size, 3);
                parts.unite(of(0..cut, size, 3));
                assert_eq!((parts.offered(), parts.into_values()), (500, whole.clone()), "{size} {cut}");
            }
        }
    }

    #[test]
    fn reservoir_prefers_nobody() {
        // Each of 20 numbers is in 5 of 20 places of 4,000 samples: 1,000 times on average, deviation 27.
        let mut times = [0; 20];
        for seed in 0..4000 {
            of(0..20, 5, seed).into_values().into_iter().for_each(|number| times[number as usize] += 1);
        }
        assert!(times.iter().all(|times| (850..1150).contains(times)), "{times:?}");
    }
}
