//! Rules for listeners: they stay on loopback unless a person has explicitly allowed more.
//!
//! Each violated rule is an error that names the flag which lifts it, so that the person who decides sees the risk. The
//! module reads no flags and no configuration.

use crate::exit::ExitsWith;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, UdpSocket};

use super::Endpoint;
use super::ListenAddress;
use super::endpoint::Plaintext;
use super::tls::Identity;

/// Transport of a listener.
#[derive(Clone, Debug)]
pub enum Transport {
    /// Unencrypted HTTP.
    Plain,
    /// TLS 1.3 under this key.
    Tls(Identity),
}

/// Explicit permissions of the person who starts a listener; none by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Permissions {
    /// `--insecure-plaintext`: secrets and data cross the network readable.
    pub insecure_plaintext: bool,
    /// `--listen-everywhere`: every network interface, present and future.
    pub listen_everywhere: bool,
    /// `--allow-root`: anyone with the secret runs code as root.
    pub allow_root: bool,
}

impl Permissions {
    /// Returns the peers to which a client of the same person may connect without TLS.
    #[must_use]
    pub fn plaintext(&self) -> Plaintext {
        if self.insecure_plaintext { Plaintext::Everywhere } else { Plaintext::OnLoopback }
    }
}

/// Request to listen.
#[derive(Clone, Debug)]
pub struct Bind {
    /// Address; port 0 lets the system choose.
    pub address: SocketAddr,
    /// Last port of a range: if a port is in use, the next ones up to this are tried. A value up to the port itself
    /// means no range.
    pub last_port: u16,
    /// Encrypted or not.
    pub transport: Transport,
    /// Explicit permissions.
    pub permissions: Permissions,
}

/// Rules, in the words of their violation.
const EVERYWHERE: &str =
    ", which is every network this machine is in; name one address, or allow it with --listen-everywhere";
const PLAINTEXT: &str = " without TLS: the secret and all data would cross the network readable; use TLS, or allow it with --insecure-plaintext";
const ROOT: &str =
    " as root: jobs from the network would run as root; use another user, or allow it with --allow-root";

/// Error of opening a listener.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum BindError {
    /// A rule forbids the address.
    #[error("refused to listen on {address}{why}")]
    Refused {
        /// Requested address.
        address: SocketAddr,
        /// The risk, and the flag that lifts the rule.
        why: &'static str,
    },
    /// Another process listens on this address.
    #[error("cannot listen on {address}: another process listens there; end it, or name another port")]
    InUse {
        /// Requested address.
        address: SocketAddr,
    },
    /// Other processes listen on all ports of the range.
    #[error(
        "cannot listen on {address} or any port up to {last_port}: other processes listen on all of them; name more ports"
    )]
    AllInUse {
        /// First address of the range.
        address: SocketAddr,
        /// Last port of the range.
        last_port: u16,
    },
    /// Any other error of the system.
    #[error("cannot listen on {address}")]
    Listen {
        /// Requested address.
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
}

impl ExitsWith for BindError {}

impl Bind {
    /// Creates a plain listener on a loopback port chosen by the system, which needs no permission.
    #[must_use]
    pub fn loopback() -> Self {
        Bind {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            last_port: 0,
            transport: Transport::Plain,
            permissions: Permissions::default(),
        }
    }

    /// Checks that the rules allow this listener for a process that is or is not root.
    ///
    /// # Errors
    /// The first violated rule, in the order everywhere, plaintext, root.
    pub fn validate(&self, is_root: bool) -> Result<(), BindError> {
        let Bind { address, permissions, .. } = *self;
        let ip = address.ip().to_canonical();
        if ip.is_loopback() {
            return Ok(());
        }
        let plain = matches!(self.transport, Transport::Plain);
        let why = if ip.is_unspecified() && !permissions.listen_everywhere {
            EVERYWHERE
        } else if plain && !permissions.insecure_plaintext {
            PLAINTEXT
        } else if is_root && !permissions.allow_root {
            ROOT
        } else {
            return Ok(());
        };
        Err(BindError::Refused { address, why })
    }

    /// Validates and opens the listener.
    ///
    /// # Errors
    /// As [`Bind::validate`], or an error of the system; [`BindError::InUse`] for a port in use.
    pub async fn listen(&self) -> Result<TcpListener, BindError> {
        self.validate(rustix::process::geteuid().is_root())?;
        let first = self.address.port();
        for port in first..=self.last_port.max(first) {
            let address = SocketAddr::new(self.address.ip(), port);
            match TcpListener::bind(address).await {
                Ok(listener) => return Ok(listener),
                Err(source) if source.kind() == io::ErrorKind::AddrInUse => {}
                Err(source) => return Err(BindError::Listen { address, source }),
            }
        }
        let address = self.address;
        match self.last_port {
            last_port if first < last_port => Err(BindError::AllInUse { address, last_port }),
            _ => Err(BindError::InUse { address }),
        }
    }

    /// Creates a request to listen on one of these ports.
    #[must_use]
    pub fn within(listen: ListenAddress, transport: Transport, permissions: Permissions) -> Self {
        let (first, last_port) = (*listen.ports().start(), *listen.ports().end());
        Self { address: SocketAddr::new(listen.ip, first), last_port, transport, permissions }
    }
}

impl Endpoint {
    /// Returns the address of this machine on the route to this one. It needs no server to be available: a datagram
    /// socket only looks up the route.
    pub async fn own_address(&self) -> Option<IpAddr> {
        for target in tokio::net::lookup_host((self.host.as_str(), self.port)).await.ok()? {
            let any: IpAddr = match target.ip() {
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let Ok(socket) = UdpSocket::bind(SocketAddr::new(any, 0)).await else { continue };
            if socket.connect(target).await.is_ok() {
                return socket.local_addr().ok().map(|address| address.ip());
            }
        }
        None
    }
}
