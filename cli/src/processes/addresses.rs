//! The addresses at which others reach a listener on a wildcard address. A join line must name one of these,
//! since `0.0.0.0` cannot be connected to.
//!
//! Firewalls and names of this machine are not considered: no local source is reliable for them.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Maximum number of reported addresses of one machine.
const ADDRESSES_MAX: usize = 16;

/// Destinations for which the system is asked for its source address: documentation addresses (RFC 5737, RFC
/// 3849), to which nothing is ever sent.
const ELSEWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 254)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// Returns the addresses of this machine for a listener on this wildcard, the source address of the default
/// route first. Empty if the machine is in no network. A listener on `[::]` accepts IPv4 too.
pub(super) fn of_this_machine(wildcard: IpAddr) -> Vec<IpAddr> {
    let is_ipv6 = wildcard.to_canonical().is_ipv6();
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let mut found = Vec::new();
    if is_ipv6 {
        found.extend(way_out(ELSEWHERE[1]));
        found.extend(ipv6_of(&read("/proc/net/if_inet6")).into_iter().map(IpAddr::V6));
    }
    found.extend(way_out(ELSEWHERE[0]));
    found.extend(ipv4_of(&read("/proc/net/fib_trie")).into_iter().map(IpAddr::V4));
    let mut seen = BTreeSet::new();
    found.retain(|address| !address.is_loopback() && !address.is_unspecified() && seen.insert(*address));
    found.truncate(ADDRESSES_MAX);
    found
}

/// Returns the source address of the system for this destination, or `None` if there is no route.
fn way_out(there: IpAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if there.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    // Any port: this chooses a route and sends nothing.
    socket.connect(SocketAddr::new(there, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Addresses of this machine in the kernel's routing table: the line after each address marks it as local.
fn ipv4_of(fib_trie: &str) -> Vec<Ipv4Addr> {
    let mut address: Option<Ipv4Addr> = None;
    let mut found = Vec::new();
    for line in fib_trie.lines().map(str::trim) {
        if let Some(leaf) = line.strip_prefix("|-- ") {
            address = leaf.parse().ok();
        } else if line == "/32 host LOCAL" {
            found.extend(address.filter(|address| !address.is_link_local()));
        }
    }
    found
}

/// Addresses in the kernel's list of IPv6 addresses that mean the same machine in every network (scope 00).
fn ipv6_of(if_inet6: &str) -> Vec<Ipv6Addr> {
    let global = if_inet6.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (digits, scope) = (words.next()?, words.nth(2)?);
        (scope == "00").then(|| u128::from_str_radix(digits, 16).ok().map(Ipv6Addr::from)).flatten()
    });
    global.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_the_kernels_tables_without_those_that_only_this_link_knows() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 127.0.0.1\n        \
                    /32 host LOCAL\n     |-- 198.51.100.0\n        /24 link UNICAST\n     |-- 198.51.100.7\n        /32 host \
                    LOCAL\n     |-- 198.51.100.255\n        /32 link BROADCAST\n     |-- 169.254.3.4\n        /32 host \
                    LOCAL\n";
        assert_eq!(
            ipv4_of(trie),
            ["127.0.0.1", "198.51.100.7"].map(|text| text.parse::<Ipv4Addr>().unwrap())
        );
        let list = "00000000000000000000000000000001 01 80 10 80       lo\nfe8000000000000000fc00fffe000001 04 40 20 80     \
                    eth0\n20010db8000000000000000000000007 04 40 00 82     eth0\nnonsense\n";
        assert_eq!(ipv6_of(list), ["2001:db8::7".parse::<Ipv6Addr>().unwrap()]);
        assert!(ipv4_of("nonsense").is_empty() && ipv6_of("").is_empty());
    }

    #[test]
    fn addresses_of_this_machine_are_its_own_each_once_and_none_of_loopback() {
        for wildcard in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
            let found = of_this_machine(wildcard);
            assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len(), "{found:?}");
            for address in found {
                assert!(!address.is_loopback() && !address.is_unspecified(), "{address}");
                assert!(wildcard.is_ipv6() || address.is_ipv4(), "{address}");
            }
        }
    }
}
