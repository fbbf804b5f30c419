//! The address at which others reach a listener on every network: what a join line can name, as `0.0.0.0` is not an address
//! that can be called.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Documentation addresses (RFC 5737, RFC 3849), to which nothing is ever sent: the system reports from which address it
/// would send to them.
const ELSEWHERE: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 254)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];

/// Returns the address of this machine on its route to other networks, else one in a network without such a route; `None`
/// if it is in no network. A listener on `[::]` accepts IPv4 too.
pub(super) fn of_this_machine(wildcard: IpAddr) -> Option<IpAddr> {
    let [ipv4, ipv6] = ELSEWHERE;
    let of_ipv6 = wildcard.to_canonical().is_ipv6().then(|| own_address(ipv6)).flatten();
    let of_route = of_ipv6.or_else(|| own_address(ipv4));
    let of_route = of_route.filter(|address| !address.is_loopback() && !address.is_unspecified());
    let of_table = || ipv4_of(&fs::read_to_string("/proc/net/fib_trie").unwrap_or_default());
    of_route.or_else(|| of_table().map(IpAddr::V4))
}

/// Returns the first address of this machine in the kernel's table of routes: it is above a line that calls it local.
fn ipv4_of(fib_trie: &str) -> Option<Ipv4Addr> {
    let mut address: Option<Ipv4Addr> = None;
    fib_trie.lines().map(str::trim).find_map(|line| match line.strip_prefix("|-- ") {
        Some(leaf) => {
            address = leaf.parse().ok();
            None
        }
        None if line == "/32 host LOCAL" => {
            address.filter(|address| !address.is_loopback() && !address.is_link_local())
        }
        None => None,
    })
}

/// Returns the address from which the system would send there.
fn own_address(there: IpAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if there.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    // Any port: this chooses a route and sends nothing.
    socket.connect(SocketAddr::new(there, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_read_from_the_kernels_table_unless_only_this_machine_or_link_knows_it() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 127.0.0.1\n        \
                    /32 host LOCAL\n     |-- 169.254.3.4\n        /32 host LOCAL\n     |-- 198.51.100.0\n        /24 link \
                    UNICAST\n     |-- 198.51.100.7\n        /32 host LOCAL\n     |-- 198.51.100.255\n        /32 link BROADCAST\n";
        assert_eq!(ipv4_of(trie), Some(Ipv4Addr::new(198, 51, 100, 7)));
        assert_eq!(ipv4_of("nonsense"), None);
    }
}
