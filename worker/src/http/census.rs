//! Connections of a server: those that have shown a secret, and unauthenticated ones.
//!
//! The number of unauthenticated connections is limited, so that they never take the descriptors needed for
//! work. When one more arrives at the limit, one is closed, of the network with most of them. It is the
//! oldest of those without a complete hello or, if there are none, the oldest of those that were greeted. A
//! peer that knows the secret sends its hello within a few milliseconds and then shows the secret. Many idle
//! connections therefore keep no such peer out.
//!
//! Invariant: a connection is counted until its socket closes, including upgrades. It is either known or
//! unauthenticated, or was sent away.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Number of closing connections that may be open beyond the limit.
const CLOSING_MAX: usize = 16;

/// Returns the network that addresses are grouped by: the addresses that a single machine can freely choose from.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

/// Counts the open connections of one server.
pub(super) struct Census {
    known_max: usize,
    strangers_max: usize,
    counts: Mutex<ConnectionCounts>,
}

#[derive(Default)]
struct ConnectionCounts {
    open: usize,
    known: usize,
    /// Number of connections so far, from which their numbers are assigned.
    admitted: u64,
    strangers: BTreeMap<u64, Stranger>,
    /// Unauthenticated connections by network; no entry is empty.
    networks: HashMap<IpAddr, BTreeSet<ClosingOrder>>,
}

/// Order of closing in a network: connections that were not greeted first, then by age.
type ClosingOrder = (bool, u64);

struct Stranger {
    network: IpAddr,
    greeted: bool,
    leaves: Arc<Notify>,
}

impl ConnectionCounts {
    /// Records that the peer has shown a secret. Returns its notifier if it had not before.
    fn leave(&mut self, number: u64) -> Option<Arc<Notify>> {
        let Stranger { network, greeted, leaves } = self.strangers.remove(&number)?;
        if let Some(turns) = self.networks.get_mut(&network) {
            turns.remove(&(greeted, number));
            if turns.is_empty() {
                self.networks.remove(&network);
            }
        }
        Some(leaves)
    }

    /// Records that the peer has sent a complete hello.
    fn greet(&mut self, number: u64) {
        if let Some(stranger) = self.strangers.get_mut(&number)
            && !stranger.greeted
            && let Some(turns) = self.networks.get_mut(&stranger.network)
        {
            stranger.greeted = true;
            turns.remove(&(false, number));
            turns.insert((true, number));
        }
    }

    /// Closes an unauthenticated connection of the network with most of them.
    fn send_away(&mut self) {
        let first =
            |turns: &BTreeSet<ClosingOrder>| turns.first().map(|&first| (turns.len(), Reverse(first)));
        let Some((_, Reverse((_, number)))) = self.networks.values().filter_map(first).max() else { return };
        if let Some(leaves) = self.leave(number) {
            leaves.notify_one();
        }
    }
}

impl Census {
    pub(super) fn new(known_max: usize, strangers_max: usize) -> Arc<Self> {
        Arc::new(Self { known_max, strangers_max: strangers_max.max(1), counts: Mutex::default() })
    }

    fn counts(&self) -> MutexGuard<'_, ConnectionCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection; `None` if too many closing ones are still open.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Admission> {
        let mut counts = self.counts();
        if self.known_max.saturating_add(self.strangers_max).saturating_add(CLOSING_MAX) <= counts.open {
            return None;
        }
        if self.strangers_max <= counts.strangers.len() {
            counts.send_away();
        }
        let (number, network, leaves) = (counts.admitted, network(address), Arc::new(Notify::new()));
        counts.admitted += 1;
        counts.open += 1;
        let stranger = Stranger { network, greeted: false, leaves: Arc::clone(&leaves) };
        counts.strangers.insert(number, stranger);
        counts.networks.entry(network).or_default().insert((false, number));
        Some(Admission { census: Arc::clone(self), number, leaves, known: AtomicBool::new(false) })
    }

    /// Closes an unauthenticated connection, if there is one, because a resource is short.
    pub(super) fn make_room(&self) {
        self.counts().send_away();
    }
}

/// One counted connection; it is removed when dropped.
pub(super) struct Admission {
    census: Arc<Census>,
    number: u64,
    leaves: Arc<Notify>,
    known: AtomicBool,
}

impl Admission {
    /// Records that the connection has sent a complete hello, which proves nothing but costs more than waiting.
    pub(super) fn greet(&self) {
        self.census.counts().greet(self.number);
    }

    /// Records that the connection has shown a secret. Returns true if there is room for it among the known ones.
    pub(super) fn show_secret(&self) -> bool {
        if self.is_known() {
            return true;
        }
        let mut counts = self.census.counts();
        if self.census.known_max <= counts.known || counts.leave(self.number).is_none() {
            return false;
        }
        counts.known += 1;
        self.known.store(true, Ordering::Relaxed);
        true
    }

    pub(super) fn is_known(&self) -> bool {
        self.known.load(Ordering::Relaxed)
    }

    /// Completes when the connection has to be closed for others.
    pub(super) async fn sent_away(&self) {
        self.leaves.notified().await;
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut counts = self.census.counts();
        counts.open -= 1;
        if *self.known.get_mut() {
            counts.known -= 1;
        } else {
            counts.leave(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn is_sent_away(admission: &Admission) -> bool {
        !admission.is_known() && !admission.census.counts().strangers.contains_key(&admission.number)
    }

    #[test]
    fn addresses_that_one_machine_has_many_of_count_as_one() {
        let same = |a, b| network(address(a)) == network(address(b));
        assert!(same("127.0.0.1", "127.255.3.4") && same("127.0.0.1", "::1"));
        assert!(same("::ffff:127.0.0.9", "127.0.0.1") && same("::ffff:10.0.0.1", "10.0.0.1"));
        assert!(same("2001:db8::1", "2001:db8::ffff:0:0:1") && !same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(!same("10.0.0.1", "10.0.0.2") && !same("127.0.0.1", "10.0.0.1"));
    }

    #[test]
    fn oldest_stranger_of_the_largest_network_makes_room_for_the_next() {
        let census = Census::new(10, 3);
        let few = census.admit(address("10.0.0.1")).unwrap();
        let many: Vec<Admission> =
            ["127.0.0.1", "127.0.0.2"].map(|it| census.admit(address(it)).unwrap()).into();
        let next = census.admit(address("10.0.0.2")).unwrap();
        assert_eq!([&few, &many[0], &many[1], &next].map(is_sent_away), [false, true, false, false]);
        assert!(next.show_secret() && next.show_secret(), "it has a place of its own now");
        let last = census.admit(address("127.0.0.3")).unwrap();
        assert_eq!([&few, &many[1], &next, &last].map(is_sent_away), [false; 4]);
        census.make_room();
        assert!(is_sent_away(&many[1]) && !many[1].show_secret(), "it is too late");
        drop((few, many, next, last));
        let counts = census.counts();
        assert_eq!((counts.open, counts.known, counts.strangers.len(), counts.networks.len()), (0, 0, 0, 0));
    }

    #[test]
    fn strangers_that_were_greeted_go_after_all_that_were_not() {
        let census = Census::new(10, 3);
        let admit = |count| -> Vec<Admission> {
            (0..count).map(|_| census.admit(address("127.0.0.1")).unwrap()).collect()
        };
        let greeted = admit(1).remove(0);
        greeted.greet();
        greeted.greet();
        let silent = admit(5);
        assert!(!is_sent_away(&greeted));
        assert_eq!(silent.iter().filter(|it| !is_sent_away(it)).count(), 2);
        silent.iter().for_each(Admission::greet);
        let last = admit(1);
        assert!(is_sent_away(&greeted) && !is_sent_away(&last[0]), "it is the oldest of those greeted");
        drop((greeted, silent, last));
        let counts = census.counts();
        assert_eq!((counts.open, counts.strangers.len(), counts.networks.len()), (0, 0, 0));
    }

    #[test]
    fn strangers_never_take_the_places_of_those_who_know_the_secret() {
        let census = Census::new(4, 2);
        let strangers: Vec<_> = (0..20).map(|_| census.admit(address("10.0.0.1")).unwrap()).collect();
        assert_eq!(strangers.iter().filter(|it| !is_sent_away(it)).count(), 2);
        drop(strangers);
        let known: Vec<_> = (0..4).map(|_| census.admit(address("10.0.0.1")).unwrap()).collect();
        assert!(known[2..].iter().all(Admission::show_secret), "the first two had to go");
        let more: Vec<_> = (0..2).map(|_| census.admit(address("10.0.0.1")).unwrap()).collect();
        assert!(more.iter().all(Admission::show_secret));
        let crowded = census.admit(address("10.0.0.1")).unwrap();
        assert!(!crowded.show_secret() && !crowded.is_known());
    }
}
