//! The three stations that a job passes, and tables with one entry for each of them.

use serde::{Deserialize, Serialize};
use std::ops::{Index, IndexMut};

/// One of the three places where jobs wait and hold capacity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Station {
    /// Slots for map attempts.
    Map,
    /// Lanes between workers.
    Shuffle,
    /// Slots for reduce attempts.
    Reduce,
}

impl Station {
    /// All stations, in the order in which a job passes them.
    pub const ALL: [Station; 3] = [Station::Map, Station::Shuffle, Station::Reduce];
}

/// A value for each station, in the order of [`Station::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PerStation<T>(pub [T; 3]);

impl<T> PerStation<T> {
    /// These values for map, shuffle and reduce.
    #[must_use]
    pub const fn new(map: T, shuffle: T, reduce: T) -> Self {
        Self([map, shuffle, reduce])
    }

    /// What this function says of each station.
    #[must_use]
    pub fn by(value: impl FnMut(Station) -> T) -> Self {
        Self(Station::ALL.map(value))
    }

    /// Each value turned into another.
    #[must_use]
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> PerStation<U> {
        PerStation(self.0.map(change))
    }

    /// The values in the order of [`Station::ALL`].
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// As [`PerStation::iter`], to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }
}

impl<T: Copy> PerStation<T> {
    /// The same value everywhere.
    #[must_use]
    pub const fn all(value: T) -> Self {
        Self([value; 3])
    }
}

impl<T> Index<Station> for PerStation<T> {
    type Output = T;
    fn index(&self, station: Station) -> &T {
        &self.0[station as usize]
    }
}

impl<T> IndexMut<Station> for PerStation<T> {
    fn index_mut(&mut self, station: Station) -> &mut T {
        &mut self.0[station as usize]
    }
}

impl<T> IntoIterator for PerStation<T> {
    type Item = T;
    type IntoIter = std::array::IntoIter<T, 3>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T> From<[T; 3]> for PerStation<T> {
    fn from(values: [T; 3]) -> Self {
        Self(values)
    }
}

impl<T: PartialEq> PartialEq<[T; 3]> for PerStation<T> {
    fn eq(&self, other: &[T; 3]) -> bool {
        self.0 == *other
    }
}
