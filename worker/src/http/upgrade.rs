//! Upgrade from HTTP to another stream: the response 101 and the rest of the connection.
//!
//! The client's side is [`super::Connection::upgrade`]. The caller defines the bytes of the stream and their limits.

use std::io;

use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::body::{Body, empty};

/// Byte stream for reading and writing.
pub trait ReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ReadWrite for T {}

/// Upgraded connection, plain or TLS.
pub type Duplex = Box<dyn ReadWrite>;

pub(super) fn duplex(upgraded: Upgraded) -> Duplex {
    Box::new(TokioIo::new(upgraded))
}

/// True if a head requests, or agrees to, an upgrade to `protocol`.
pub(super) fn names_protocol(headers: &HeaderMap, protocol: &str) -> bool {
    let lists = |name, wanted: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value: &HeaderValue| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|word| word.trim().eq_ignore_ascii_case(wanted))
    };
    lists(CONNECTION, "upgrade") && lists(UPGRADE, protocol)
}

/// Accepts a request for an upgrade to `protocol`. Returns the response, and a future for the stream after that
/// response has been sent; `None` if the request does not ask for the upgrade.
///
/// Dropping the future closes the connection after the response.
pub fn accept_upgrade<B>(
    request: &mut Request<B>,
    protocol: &'static str,
) -> Option<(Response<Body>, impl Future<Output = io::Result<Duplex>> + Send + use<B>)> {
    if !names_protocol(request.headers(), protocol) {
        return None;
    }
    let pending: OnUpgrade = hyper::upgrade::on(request);
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static(protocol));
    Some((response, async move { pending.await.map(duplex).map_err(io::Error::other) }))
}
