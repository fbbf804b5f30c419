//! From HTTP to a stream of our own: the answer 101 and what remains of the connection after it.
//!
//! The client's side is [`super::Connection::upgrade`]. What flows afterwards, and its limits, are
//! the business of whoever upgraded.

use std::io;

use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::body::{Body, empty};

/// Reads and writes bytes.
pub trait ReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ReadWrite for T {}

/// An upgraded connection, plain or TLS.
pub type Duplex = Box<dyn ReadWrite>;

pub(super) fn duplex(upgraded: Upgraded) -> Duplex {
    Box::new(TokioIo::new(upgraded))
}

/// Whether a head asks for, or agrees to, an upgrade to `protocol`.
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

/// Agrees to a request for an upgrade to `protocol`: the answer to return, and a future that gives
/// the stream once that answer has been sent. `None` if the request does not ask for it.
///
/// Dropping the future closes the connection after the answer.
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
