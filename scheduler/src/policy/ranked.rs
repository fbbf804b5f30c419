//! Ordered sets of jobs for policies: a priority policy is a key function and a walk.
//!
//! The lowest items are in a short array, where an item in service, which changes all the time, is found and moved
//! within a few cache lines. The others are in trees. Every change costs O(log n).

use std::collections::{BTreeMap, BTreeSet, btree_set};
use std::fmt::Debug;
use std::iter::{Chain, Copied, Peekable, Rev};
use std::slice;

/// Maximum number of items in the front; half as many move at a time.
const FRONT_MAX: usize = 32;

/// Set of items in the order of their keys. The key must break ties: let it end in [`Row::seq`](crate::view::Row::seq).
/// O(log n) per change.
///
/// Invariants: an item is either in `front` or in `back` and `back_keys`; every item in front is lower than all in the
/// back; the front is empty only if the back is.
#[derive(Clone, Debug)]
pub struct Ranked<K, T> {
    /// Highest first, so that changes of the lowest items, which are the most frequent, move no other items.
    front: Vec<(K, T)>,
    back: BTreeSet<(K, T)>,
    back_keys: BTreeMap<T, K>,
}

impl<K: Ord + Copy + Debug, T: Ord + Copy + Debug> Ranked<K, T> {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self { front: Vec::new(), back: BTreeSet::new(), back_keys: BTreeMap::new() }
    }

    /// Inserts an item, moves it, or (`None`) removes it.
    pub fn place(&mut self, item: T, key: Option<K>) {
        // From the lowest up, where most changes occur.
        if let Some(at) = self.front.iter().rposition(|&(_, other)| other == item) {
            match key {
                Some(key) if self.fits(at, (key, item)) => self.front[at].0 = key,
                Some(key) => {
                    self.front.remove(at);
                    self.insert((key, item));
                }
                None => {
                    self.front.remove(at);
                }
            }
        } else {
            if !self.back.is_empty()
                && let Some(before) = self.back_keys.remove(&item)
            {
                self.back.remove(&(before, item));
            }
            if let Some(key) = key {
                self.insert((key, item));
            }
        }
        if self.front.is_empty() {
            self.refill();
        }
    }

    /// True if this entry may replace the one at this place of the front.
    fn fits(&self, at: usize, entry: (K, T)) -> bool {
        let above_lower = self.front.get(at + 1).is_none_or(|&lower| lower < entry);
        let below_higher = match at.checked_sub(1) {
            Some(higher) => entry < self.front[higher],
            None => self.back.first().is_none_or(|&higher| entry < higher),
        };
        above_lower && below_higher
    }

    fn insert(&mut self, entry: (K, T)) {
        if self.front.is_empty() {
            self.refill();
        }
        if !self.back.is_empty() && self.front.first().is_some_and(|&highest| highest < entry) {
            self.back.insert(entry);
            self.back_keys.insert(entry.1, entry.0);
            return;
        }
        // From the lowest up as well: jobs in service return near to their old place.
        let lower = self.front.iter().rev().take_while(|&&other| other < entry).count();
        self.front.insert(self.front.len() - lower, entry);
        if FRONT_MAX < self.front.len() {
            for entry in self.front.drain(..FRONT_MAX / 2) {
                self.back.insert(entry);
                self.back_keys.insert(entry.1, entry.0);
            }
        }
    }

    /// Fills an empty front.
    fn refill(&mut self) {
        while self.front.len() < FRONT_MAX / 2
            && let Some(entry) = self.back.pop_first()
        {
            self.back_keys.remove(&entry.1);
            self.front.push(entry);
        }
        self.front.reverse();
    }

    /// Returns all items, lowest key first.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.entries().map(|(_, item)| item)
    }

    /// Returns all items with their keys, lowest key first.
    pub fn entries(&self) -> impl Iterator<Item = (K, T)> {
        self.fresh()
    }

    fn fresh(&self) -> Fresh<'_, K, T> {
        self.front.iter().rev().copied().chain(self.back.iter().copied())
    }

    /// Returns the item with the lowest key.
    #[must_use]
    pub fn first(&self) -> Option<(K, T)> {
        self.front.last().copied()
    }

    /// True if the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.front.is_empty()
    }

    /// Returns a walk from the lowest key on. Items may be put back under other keys without a change of the set
    /// itself, as an idempotent plan requires.
    #[must_use]
    pub fn walk(&self) -> Walk<'_, K, T> {
        Walk { fresh: self.fresh().peekable(), again: BTreeSet::new() }
    }
}

impl<K: Ord + Copy + Debug, T: Ord + Copy + Debug> Default for Ranked<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Items of an unchanged set.
type Fresh<'a, K, T> = Chain<Copied<Rev<slice::Iter<'a, (K, T)>>>, Copied<btree_set::Iter<'a, (K, T)>>>;

/// Walk returned by [`Ranked::walk`].
#[derive(Debug)]
pub struct Walk<'a, K: Copy, T: Copy> {
    fresh: Peekable<Fresh<'a, K, T>>,
    again: BTreeSet<(K, T)>,
}

impl<K: Ord + Copy, T: Ord + Copy> Walk<'_, K, T> {
    /// Takes the item with the lowest key, of the untouched items and those put back.
    pub fn take(&mut self) -> Option<(K, T)> {
        match (self.fresh.peek(), self.again.first()) {
            (Some(fresh), Some(again)) if again < fresh => self.again.pop_first(),
            (Some(_), _) => self.fresh.next(),
            (None, _) => self.again.pop_first(),
        }
    }

    /// Puts back a taken item under this key.
    pub fn put_back(&mut self, key: K, item: T) {
        self.again.insert((key, item));
    }

    /// True if no item is left to take.
    pub fn is_empty(&mut self) -> bool {
        self.fresh.peek().is_none() && self.again.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Applies every change also to a sorted map, and compares.
    fn check(changes: &[(u32, Option<u32>)]) -> Result<(), TestCaseError> {
        let mut ranked = Ranked::new();
        let mut keys = BTreeMap::new();
        for &(item, key) in changes {
            ranked.place(item, key);
            match key {
                Some(key) => keys.insert(item, key),
                None => keys.remove(&item),
            };
            let mut sorted: Vec<(u32, u32)> = keys.iter().map(|(&item, &key)| (key, item)).collect();
            sorted.sort_unstable();
            prop_assert_eq!(ranked.first(), sorted.first().copied());
            prop_assert_eq!(ranked.iter().count(), sorted.len());
            prop_assert_eq!(ranked.is_empty(), sorted.is_empty());
            prop_assert_eq!(ranked.entries().collect::<Vec<_>>(), sorted);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn ranked_gives_what_a_sorted_map_gives_after_any_changes(
            changes in prop::collection::vec((0..150_u32, prop::option::weighted(0.7, 0..1000_u32)), 1..600),
        ) {
            check(&changes)?;
        }
    }

    #[test]
    fn a_walk_takes_items_that_were_put_back_at_their_new_place() {
        let mut ranked = Ranked::new();
        for (item, key) in [('a', 1), ('b', 2), ('c', 4)] {
            ranked.place(item, Some(key));
        }
        let mut walk = ranked.walk();
        assert_eq!(walk.take(), Some((1, 'a')));
        walk.put_back(3, 'a');
        let rest: Vec<char> = std::iter::from_fn(|| walk.take()).map(|(_, item)| item).collect();
        assert_eq!(rest, ['b', 'a', 'c']);
        assert!(walk.is_empty());
    }
}
