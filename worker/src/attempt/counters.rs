//! Counters of user code in an attempt, by name.

use super::TaskStats;
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

/// Counters of one attempt by name.
#[derive(Clone, Debug, Default)]
pub struct Counters(Rc<RefCell<BTreeMap<String, Rc<Cell<u64>>>>>);

impl Counters {
    /// Maximum number of different names in one task; further ones are all counted under [`Counters::OVERFLOW`].
    pub const NAMES_MAX: usize = 1000;
    /// Name of the counter for tasks that have used too many names.
    pub const OVERFLOW: &'static str = "(more than 1,000 counter names)";

    /// Returns the counter of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Counter {
        let mut all = self.0.borrow_mut();
        let name = if all.len() < Self::NAMES_MAX || all.contains_key(name) { name } else { Self::OVERFLOW };
        Counter(all.entry(name.to_owned()).or_default().clone())
    }

    /// Returns all values, in the order of names.
    #[must_use]
    pub fn values(&self) -> Vec<(String, u64)> {
        self.0.borrow().iter().map(|(name, count)| (name.clone(), count.get())).collect()
    }

    /// Returns all counters of an ended attempt.
    pub(crate) fn stats(&self) -> TaskStats {
        TaskStats { counters: self.values(), local_bytes: 0 }
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
    };
}
pub(crate) use counting_methods;

/// Counts by name for code without counters; they are added to the attempt's when it ends.
#[derive(Debug, Default)]
pub(crate) struct NamedCounts(BTreeMap<String, u64>);

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

    /// Moves all counts to `counters`.
    pub(crate) fn move_to(&mut self, counters: &Counters) {
        for (name, count) in std::mem::take(&mut self.0) {
            counters.get(&name).add(count);
        }
    }
}
