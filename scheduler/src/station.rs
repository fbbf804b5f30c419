//! Stations that a job passes, and tables with one entry for each of them.

use serde::{Deserialize, Serialize};
use std::ops::{Index, IndexMut};

/// Resource where jobs wait and hold capacity.
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

/// Value per station, in the order of [`Station::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PerStation<T>(pub [T; 3]);

impl<T> PerStation<T> {
    /// Creates a table of these values for map, shuffle and reduce.
    #[must_use]
    pub const fn new(map: T, shuffle: T, reduce: T) -> Self {
        Self([map, shuffle, reduce])
    }

    /// Creates a table with the value of this function for each station.
    #[must_use]
    pub fn by(value: impl FnMut(Station) -> T) -> Self {
        Self(Station::ALL.map(value))
    }

    /// Applies a function to each value.
    #[must_use]
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> PerStation<U> {
        PerStation(self.0.map(change))
    }

    /// Returns the values in the order of [`Station::ALL`].
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// Returns the values as [`PerStation::iter`], mutably.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }
}

impl<T: Copy> PerStation<T> {
    /// Creates a table with the same value for each station.
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
