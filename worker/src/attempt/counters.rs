//! Counters and measures of user code in an attempt, by name.

use super::{TaskError, TaskResult, TaskStats};
use crate::protocol::{MEASURE_MAX, Measures};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Counter of user code. Cheap: no lock, no atomic.
///
/// `Counter::default()` is not connected to a task: it is a placeholder in a mapper or reducer until `setup` replaces
/// it, as in `self.rows = task.counter("rows")`.
#[derive(Clone, Debug, Default)]
pub struct Counter(Rc<Cell<u64>>);

impl Counter {
    /// Adds `n`, saturating at the maximum of u64.
    pub fn add(&self, n: u64) {
        self.0.set(self.0.get().saturating_add(n));
    }
}

/// Counters of one attempt by name, and its other measures.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    counts: Rc<RefCell<BTreeMap<String, Rc<Cell<u64>>>>>,
    measures: Rc<RefCell<Measures>>,
}

impl Counters {
    /// Maximum number of different names in one task; further ones are all counted under [`Counters::OVERFLOW`].
    pub const NAMES_MAX: usize = 1000;
    /// Name of the counter for tasks that have used too many names.
    pub const OVERFLOW: &'static str = "(more than 1,000 counter names)";

    /// Returns the counter of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Counter {
        let mut all = self.counts.borrow_mut();
        let name = if all.len() < Self::NAMES_MAX || all.contains_key(name) { name } else { Self::OVERFLOW };
        Counter(all.entry(name.to_owned()).or_default().clone())
    }

    /// Restores all counters and measures from another attempt: counters that are not named start at 0.
    pub(crate) fn restore(&self, values: &[(String, u64)], measures: &Measures) {
        self.measures.replace(measures.clone());
        let mut all = self.counts.borrow_mut();
        for count in all.values() {
            count.set(0);
        }
        for (name, value) in values {
            all.entry(name.clone()).or_default().set(*value);
        }
    }

    /// Returns all values, in the order of names.
    #[must_use]
    pub fn values(&self) -> Vec<(String, u64)> {
        self.counts.borrow().iter().map(|(name, count)| (name.clone(), count.get())).collect()
    }
}

impl Counters {
    /// Returns the other measures.
    #[must_use]
    pub fn measures(&self) -> Measures {
        self.measures.borrow().clone().settled()
    }

    /// Returns all counters and measures of an ended attempt.
    pub(crate) fn stats(&self) -> TaskStats {
        TaskStats { counters: self.values(), measures: self.measures(), local_bytes: 0 }
    }
}

/// Methods of types that have their [`NamedCounts`] in the field `counts`.
macro_rules! counting_methods {
    () => {
        /// Adds to the counter of this name. Where it is done for every record,
        /// [`TaskContext::counter`](crate::api::TaskContext::counter) is quicker, which looks the name up once.
        pub fn count(&mut self, name: &str, n: u64) {
            self.counts.add(name, n);
        }

        /// Adds to the float sum of this name, which is exact until it is read. It depends neither on the
        /// order of additions nor on the tasks that add. The result, `--json` and traces show it next to
        /// the counters.
        ///
        /// # Errors
        /// The number is not finite, or its absolute value exceeds 1e280.
        pub fn sum(&mut self, name: &str, number: f64) -> TaskResult {
            self.counts.sum(name, number)
        }

        /// Keeps the largest number of this name that any task reports, next to the counters.
        ///
        /// # Errors
        /// The errors of `sum`.
        pub fn maximum(&mut self, name: &str, number: f64) -> TaskResult {
            self.counts.maximum(name, number)
        }
    };
}
pub(crate) use counting_methods;

/// Counts and measures by name for code without counters; they are added to the attempt's when it ends.
#[derive(Debug, Default)]
pub(crate) struct NamedCounts(BTreeMap<String, u64>, Measures);

impl NamedCounts {
    /// Adds to the count of this name. The number of names is limited as for [`Counters`].
    pub(crate) fn add(&mut self, name: &str, n: u64) {
        if let Some(count) = self.0.get_mut(name) {
            *count = count.saturating_add(n);
        } else {
            let name = if self.0.len() < Counters::NAMES_MAX { name } else { Counters::OVERFLOW };
            let count = self.0.entry(name.to_owned()).or_default();
            *count = count.saturating_add(n);
        }
    }

    /// Adds to the sum of this name.
    pub(crate) fn sum(&mut self, name: &str, number: f64) -> TaskResult {
        self.1.sum(name, measured(name, number)?);
        Ok(())
    }

    /// Updates the maximum of this name.
    pub(crate) fn maximum(&mut self, name: &str, number: f64) -> TaskResult {
        self.1.maximum(name, measured(name, number)?);
        Ok(())
    }

    /// Moves all counts and measures to `counters`.
    pub(crate) fn move_to(&mut self, counters: &Counters) {
        counters.measures.borrow_mut().merge(&std::mem::take(&mut self.1), true);
        for (name, count) in std::mem::take(&mut self.0) {
            counters.get(&name).add(count);
        }
    }
}

/// Checks that a number can be measured.
fn measured(name: &str, number: f64) -> TaskResult<f64> {
    match number.abs() <= MEASURE_MAX {
        true => Ok(number),
        false => Err(TaskError::new(format!(
            "{number} cannot be measured as {name}: it is no number of at most {MEASURE_MAX:e} either way from 0"
        ))),
    }
}
