//! Standard combiners and a reducer for numbers: sum, minimum, maximum.
//!
//! Averages and sums of floats are not included: they are not exactly associative and have to be computed in a reducer.

use super::context::TaskContext;
use super::task::Reducer;
use crate::attempt::TaskResult;
use crate::collect::Combiner;
use crate::key::Key;
use crate::merge::Values;
use crate::output::{Field, Output};
use crate::value::Value;
use std::marker::PhantomData;

/// Sum of all values of a key. Unsigned sums saturate at the maximum; signed ones wrap around, because saturation would
/// make the result depend on the order.
#[derive(Clone, Copy, Debug)]
pub struct Sum<T>(PhantomData<T>);

/// Maximum value of a key.
#[derive(Clone, Copy, Debug)]
pub struct Max<T>(PhantomData<T>);

/// Minimum value of a key.
#[derive(Clone, Copy, Debug)]
pub struct Min<T>(PhantomData<T>);

macro_rules! constructors {
    ($($name:ident),*) => {$(
        impl<T> $name<T> {
            /// Creates the combiner, which has no parameters.
            #[must_use]
            pub fn new() -> Self {
                Self(PhantomData)
            }
        }

        impl<T> Default for $name<T> {
            fn default() -> Self {
                Self::new()
            }
        }
    )*};
}
constructors!(Sum, Max, Min);

/// Number whose sums do not depend on the order of additions.
#[diagnostic::on_unimplemented(
    message = "a combiner cannot add up values of type `{Self}`",
    note = "sums of floats depend on the order of adding, and a combiner's order is not defined: leave `.combine` out and add \
            the values in the reducer, where they come in a fixed order",
    note = "a mean is a combiner of (sum, count) of whole numbers and a division in the reducer"
)]
pub trait WholeNumber: Value {
    /// Adds as documented at [`Sum`].
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

macro_rules! whole_numbers {
    ($($type:ident by $add:ident),*) => {$(
        impl WholeNumber for $type {
            #[inline]
            fn plus(self, other: $type) -> $type {
                self.$add(other)
            }
        }
    )*};
}
whole_numbers!(
    u32 by saturating_add, u64 by saturating_add, u128 by saturating_add,
    i32 by wrapping_add, i64 by wrapping_add, i128 by wrapping_add
);

impl<T: WholeNumber + Copy> Combiner for Sum<T> {
    type Value = T;

    #[inline]
    fn combine(&mut self, total: &mut T, value: T) {
        *total = total.plus(value);
    }
}

impl<T: Value + Ord> Combiner for Max<T> {
    type Value = T;

    #[inline]
    fn combine(&mut self, total: &mut T, value: T) {
        if *total < value {
            *total = value;
        }
    }
}

impl<T: Value + Ord> Combiner for Min<T> {
    type Value = T;

    #[inline]
    fn combine(&mut self, total: &mut T, value: T) {
        if value < *total {
            *total = value;
        }
    }
}

/// Writes `key TAB total` for each key; the total is the combiner's result for all values, with or without earlier
/// combining.
#[derive(Clone, Debug)]
pub struct WriteTotal<K, C> {
    combiner: C,
    key: PhantomData<fn() -> K>,
}

impl<K, C> WriteTotal<K, C> {
    /// Creates a reducer with totals by `combiner`.
    pub fn new(combiner: C) -> Self {
        Self { combiner, key: PhantomData }
    }
}

impl<K, C: Default> Default for WriteTotal<K, C> {
    fn default() -> Self {
        Self::new(C::default())
    }
}

impl<K, C> Reducer for WriteTotal<K, C>
where
    K: Key,
    for<'a> K::View<'a>: Field,
    C: Combiner,
    C::Value: Field,
{
    type Key = K;
    type Value = C::Value;

    fn setup(&mut self, _: &TaskContext, _: &mut Output) -> TaskResult {
        Ok(())
    }

    fn reduce(
        &mut self,
        key: K::View<'_>,
        values: &mut Values<'_, K, C::Value>,
        out: &mut Output,
    ) -> TaskResult {
        let mut values = values.iter();
        let Some(mut total) = values.next() else { return Ok(()) };
        for value in values {
            self.combiner.combine(&mut total, value);
        }
        out.pair(key, total);
        Ok(())
    }

    fn groups_are_independent(&self) -> bool {
        true
    }
}
