//! Address to listen on as text, optionally with the ports that a firewall allows.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Address with an optional range of ports, of which a listener takes the first free one: `192.0.2.1`,
/// `192.0.2.1:7100`, `192.0.2.1:7100-7119`, `[::1]:7100-7119`. Without ports the system chooses one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ListenAddress {
    /// The address.
    pub ip: IpAddr,
    /// First and last port; equal for a single port.
    pub ports: Option<(u16, u16)>,
}

/// Error of parsing a listen address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{text}` is no address to listen on: {reason}; write 192.0.2.1, 192.0.2.1:7100 or 192.0.2.1:7100-7119"
)]
pub struct ListenAddressError {
    text: String,
    reason: &'static str,
}

impl ListenAddress {
    /// Creates an address with a port that the system chooses.
    #[must_use]
    pub fn any_port(ip: IpAddr) -> Self {
        Self { ip, ports: None }
    }

    /// Returns the ports to try, in order; 0 lets the system choose.
    #[must_use]
    pub fn ports(&self) -> RangeInclusive<u16> {
        self.ports.map_or(0..=0, |(first, last)| first..=last)
    }

    /// Returns the number of listeners that can have a port at the same time; `None` if the system chooses.
    #[must_use]
    pub fn room(&self) -> Option<u32> {
        self.ports.map(|(first, last)| u32::from(last - first) + 1)
    }
}

/// Returns the address of a host by its name or number, brackets allowed. Of several it is the first of IPv4, else the
/// first.
#[must_use]
pub fn resolve(host: &str) -> Option<IpAddr> {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let found = (host, 0).to_socket_addrs().ok().filter(|_| !host.is_empty())?;
    let found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    found.iter().find(|ip| ip.is_ipv4()).or(found.first()).copied()
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, last)) = self.ports else { return self.ip.fmt(f) };
        match self.ip {
            IpAddr::V4(ip) => write!(f, "{ip}:{first}")?,
            IpAddr::V6(ip) => write!(f, "[{ip}]:{first}")?,
        }
        if first == last { Ok(()) } else { write!(f, "-{last}") }
    }
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        let wrong = |reason| ListenAddressError { text: text.to_owned(), reason };
        if let Ok(ip) = text.parse() {
            return Ok(Self::any_port(ip));
        }
        let resolved = |host| resolve(host).ok_or_else(|| wrong("no address of this name is known"));
        let Some((host, ports)) = text.rsplit_once(':') else { return resolved(text).map(Self::any_port) };
        let ip = resolved(host)?;
        let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
        match (first.parse::<u16>(), last.parse::<u16>()) {
            (Ok(0), _) => Err(wrong("ports are from 1 to 65535")),
            (Ok(first), Ok(last)) if first <= last => Ok(Self { ip, ports: Some((first, last)) }),
            (Ok(_), Ok(_)) => Err(wrong("its ports are in the wrong order")),
            _ => Err(wrong("ports are from 1 to 65535")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_a_port_with_several_or_without() {
        for (text, ports) in [
            ("192.0.2.1", None),
            ("192.0.2.1:7100", Some((7100, 7100))),
            ("192.0.2.1:7100-7119", Some((7100, 7119))),
            ("::1", None),
            ("[::1]:7100-7101", Some((7100, 7101))),
        ] {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!((address.ports, address.to_string().as_str()), (ports, text));
        }
        for text in ["localhost:7100", "localhost"] {
            assert!(text.parse::<ListenAddress>().unwrap().ip.is_loopback(), "{text}");
        }
        assert_eq!("192.0.2.1:7100-7119".parse::<ListenAddress>().unwrap().room(), Some(20));
        for text in [
            "",
            "no host:1",
            "192.0.2.1:",
            "192.0.2.1:0",
            "192.0.2.1:9-8",
            "192.0.2.1:1-70000",
            "192.0.2.1:1-2-3",
        ] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }
}
