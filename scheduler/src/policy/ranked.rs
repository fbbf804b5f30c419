//! Ordered sets of jobs for policies: a priority policy is a key function and a walk.
//!
//! Not here: any policy.

use std::collections::{BTreeMap, BTreeSet, btree_set};
use std::fmt::Debug;
use std::iter::{Copied, Peekable};

/// Items in the order of their keys; an item stands once. Ties are the key's affair: let it end in
/// [`Row::seq`](crate::view::Row::seq). O(log n) per change.
#[derive(Clone, Debug)]
pub struct Ranked<K, T> {
    order: BTreeSet<(K, T)>,
    keys: BTreeMap<T, K>,
}

impl<K: Ord + Copy + Debug, T: Ord + Copy + Debug> Ranked<K, T> {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Self { order: BTreeSet::new(), keys: BTreeMap::new() }
    }

    /// Puts an item at its place, moves it there, or (`None`) takes it out.
    pub fn place(&mut self, item: T, key: Option<K>) {
        let before = match key {
            Some(key) => self.keys.insert(item, key),
            None => self.keys.remove(&item),
        };
        if let Some(before) = before {
            self.order.remove(&(before, item));
        }
        if let Some(key) = key {
            self.order.insert((key, item));
        }
    }

    /// All items, lowest key first.
    pub fn iter(&self) -> impl Iterator<Item = T> {
        self.order.iter().map(|&(_, item)| item)
    }

    /// The item with the lowest key.
    #[must_use]
    pub fn first(&self) -> Option<(K, T)> {
        self.order.first().copied()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// A walk from the lowest key on which items may be put back under other keys, while the set itself
    /// stays as it is: what an idempotent plan needs.
    #[must_use]
    pub fn walk(&self) -> Walk<'_, K, T> {
        Walk { fresh: self.order.iter().copied().peekable(), again: BTreeSet::new() }
    }
}

impl<K: Ord + Copy + Debug, T: Ord + Copy + Debug> Default for Ranked<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

/// See [`Ranked::walk`].
#[derive(Debug)]
pub struct Walk<'a, K: Copy, T: Copy> {
    fresh: Peekable<Copied<btree_set::Iter<'a, (K, T)>>>,
    again: BTreeSet<(K, T)>,
}

impl<K: Ord + Copy, T: Ord + Copy> Walk<'_, K, T> {
    /// Takes the item with the lowest key, untouched ones and those put back taken together.
    pub fn take(&mut self) -> Option<(K, T)> {
        match (self.fresh.peek(), self.again.first()) {
            (Some(fresh), Some(again)) if again < fresh => self.again.pop_first(),
            (Some(_), _) => self.fresh.next(),
            (None, _) => self.again.pop_first(),
        }
    }

    /// Puts an item that was taken back under this key.
    pub fn put_back(&mut self, key: K, item: T) {
        self.again.insert((key, item));
    }

    /// Whether nothing is left to take.
    pub fn is_empty(&mut self) -> bool {
        self.fresh.peek().is_none() && self.again.is_empty()
    }
}
