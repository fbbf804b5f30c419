//! Check that an endpoint registered by a peer is its own, that is, at the address of its connection.
//!
//! Without this check a malicious worker could have all others call any address that they reach. A called endpoint must
//! also prove itself before it receives anything (`http::Plaintext`, `http` on proofs); that is not checked here.

use gristmill_worker::http::{Endpoint, Plaintext};
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

/// Timeout of a look-up of a peer's host name.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(2);

/// Endpoint of a peer whose connection came from this address. An endpoint without a host gets that address.
///
/// # Errors
/// Message to a peer whose endpoint is elsewhere, or uses plain HTTP over a network where that is not allowed.
pub(super) async fn of_peer(
    mut endpoint: Endpoint,
    peer: IpAddr,
    plaintext: Plaintext,
) -> Result<Endpoint, String> {
    let peer = peer.to_canonical();
    if endpoint.host.is_empty() {
        endpoint.host = peer.to_string();
    } else if !is_at(&endpoint, peer).await {
        return Err(format!(
            "it says that it is reached at {}, but its connection comes from {peer}: name an address or a name \
             (--advertise) that means {peer} where the master runs",
            endpoint.host.escape_debug()
        ));
    }
    if endpoint.pin.is_none() && !peer.is_loopback() && plaintext == Plaintext::OnLoopback {
        return Err(
            "it speaks plain HTTP over a network; the master must allow that with --insecure-plaintext too"
                .to_owned(),
        );
    }
    Ok(endpoint)
}

async fn is_at(endpoint: &Endpoint, peer: IpAddr) -> bool {
    let is_it = |address: IpAddr| {
        let address = address.to_canonical();
        // A process of this machine may be reached at any of this machine's addresses.
        address == peer || (peer.is_loopback() && (address.is_loopback() || is_local(address)))
    };
    if let Ok(address) = endpoint.host.parse::<IpAddr>() {
        return is_it(address);
    }
    let look_up = tokio::net::lookup_host((endpoint.host.as_str(), endpoint.port));
    match tokio::time::timeout(LOOK_UP_TIMEOUT, look_up).await {
        Ok(Ok(mut found)) => found.any(|address| is_it(address.ip())),
        Ok(Err(_)) | Err(_) => false,
    }
}

/// True if it is one of this machine's addresses: no other can be bound to.
fn is_local(address: IpAddr) -> bool {
    !address.is_unspecified() && UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_worker::http::Pin;

    async fn taken(host: &str, peer: &str, pinned: bool, plaintext: Plaintext) -> Option<String> {
        let pin = pinned.then_some(Pin([1; 32]));
        let endpoint = Endpoint { host: host.to_owned(), port: 7070, pin };
        of_peer(endpoint, peer.parse().unwrap(), plaintext).await.ok().map(|endpoint| endpoint.host)
    }

    #[tokio::test]
    async fn endpoint_is_taken_at_the_address_of_its_connection_only() {
        for (host, peer, expected) in [
            ("", "192.0.2.7", Some("192.0.2.7")),
            ("", "::ffff:192.0.2.7", Some("192.0.2.7")),
            ("192.0.2.7", "192.0.2.7", Some("192.0.2.7")),
            ("192.0.2.8", "192.0.2.7", None),
            ("169.254.169.254", "192.0.2.7", None),
            ("127.0.0.1", "192.0.2.7", None),
            ("localhost", "192.0.2.7", None),
            ("localhost@evil", "192.0.2.7", None),
            ("no-such-name.invalid", "192.0.2.7", None),
            ("127.0.0.1", "127.0.0.1", Some("127.0.0.1")),
            ("127.0.0.9", "127.0.0.1", Some("127.0.0.9")),
            ("localhost", "127.0.0.1", Some("localhost")),
            ("169.254.169.254", "127.0.0.1", None),
            ("0.0.0.0", "127.0.0.1", None),
        ] {
            let found = taken(host, peer, true, Plaintext::OnLoopback).await;
            assert_eq!(found.as_deref(), expected, "{host} from {peer}");
        }
    }

    #[tokio::test]
    async fn plain_endpoint_beyond_loopback_is_taken_if_that_was_allowed_only() {
        assert!(taken("", "192.0.2.7", false, Plaintext::OnLoopback).await.is_none());
        assert!(taken("", "192.0.2.7", false, Plaintext::Everywhere).await.is_some());
        assert!(taken("", "127.0.0.1", false, Plaintext::OnLoopback).await.is_some());
    }
}
