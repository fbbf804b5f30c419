//! Which worker has read from which others in a job, and which it could not read from: distinguishes a home that has
//! no way to others from outputs that nobody can read.

use crate::ids::WorkerId;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the ways between workers, by who reads. No worker stands under itself.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// Where each home has read from.
    good: BTreeMap<WorkerId, BTreeSet<WorkerId>>,
    /// Where it could not, and has not since.
    bad: BTreeMap<WorkerId, BTreeSet<WorkerId>>,
    /// How many homes have read from each.
    readers: BTreeMap<WorkerId, u32>,
}

/// Sources that a home cannot read, though others do, before the fault is taken to be the home's.
const UNREAD_SOURCES_MAX: usize = 2;

impl Routes {
    /// A home has read from a source.
    pub(crate) fn read(&mut self, home: WorkerId, from: WorkerId) {
        if home == from || self.good.get(&home).is_some_and(|good| good.contains(&from)) {
            return;
        }
        self.good.entry(home).or_default().insert(from);
        *self.readers.entry(from).or_default() += 1;
        if let Some(bad) = self.bad.get_mut(&home) {
            bad.remove(&from);
        }
    }

    /// A home could not read from a source after several tries. Says whether the home is to blame: others have read
    /// there, no other that can read at all has failed there, and this one has either read nothing from anybody or
    /// fails at one source after the other.
    pub(crate) fn fails(&mut self, home: WorkerId, from: WorkerId) -> bool {
        if home == from {
            return false;
        }
        let had_read = self.good.get_mut(&home).is_some_and(|good| good.remove(&from));
        if had_read && let Some(readers) = self.readers.get_mut(&from) {
            *readers -= 1;
        }
        let bad = self.bad.entry(home).or_default();
        bad.insert(from);
        let unread = bad.len();
        let can_read = |home: &WorkerId| self.good.get(home).is_some_and(|good| !good.is_empty());
        let read_by_others = self.readers.get(&from).is_some_and(|&readers| 0 < readers);
        let fails_others =
            self.bad.iter().any(|(other, bad)| *other != home && bad.contains(&from) && can_read(other));
        read_by_others && !fails_others && (!can_read(&home) || UNREAD_SOURCES_MAX <= unread)
    }

    /// A worker is gone.
    pub(crate) fn lose(&mut self, worker: WorkerId) {
        for from in self.good.remove(&worker).unwrap_or_default() {
            if let Some(readers) = self.readers.get_mut(&from) {
                *readers -= 1;
            }
        }
        self.bad.remove(&worker);
        if self.readers.remove(&worker).is_some_and(|readers| 0 < readers) {
            self.good.values_mut().for_each(|good| {
                good.remove(&worker);
            });
        }
        self.bad.values_mut().for_each(|bad| {
            bad.remove(&worker);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const W: [WorkerId; 5] = [WorkerId(0), WorkerId(1), WorkerId(2), WorkerId(3), WorkerId(4)];

    #[test]
    fn an_output_that_nobody_has_read_is_to_blame() {
        let mut routes = Routes::default();
        assert!(!routes.fails(W[1], W[2]));
        assert!(!routes.fails(W[3], W[2]));
    }

    #[test]
    fn a_home_that_reads_nothing_is_to_blame_where_others_have_read() {
        let mut routes = Routes::default();
        routes.read(W[3], W[2]);
        assert!(routes.fails(W[1], W[2]));
        assert!(routes.fails(W[1], W[2]), "again");
        assert!(routes.fails(W[4], W[2]), "another without a way out changes nothing");
    }

    #[test]
    fn a_source_is_to_blame_when_one_fails_there_that_reads_elsewhere() {
        let mut routes = Routes::default();
        routes.read(W[3], W[2]);
        routes.read(W[3], W[4]);
        routes.read(W[0], W[2]);
        assert!(!routes.fails(W[3], W[2]), "it reads well from another");
        assert!(!routes.fails(W[1], W[2]), "a good reader has failed there too");
    }

    #[test]
    fn a_home_that_loses_its_way_out_is_to_blame_from_the_second_source_on() {
        let mut routes = Routes::default();
        for from in [W[2], W[3]] {
            routes.read(W[0], from);
            routes.read(W[1], from);
        }
        assert!(!routes.fails(W[1], W[2]));
        assert!(routes.fails(W[1], W[3]));
        routes.read(W[1], W[2]);
        routes.lose(W[3]);
        routes.read(W[1], W[4]);
        assert!(!routes.fails(W[1], W[2]), "what is lost does not count");
    }
}
