//! Why a request failed.

use crate::http::secret::SecretError;
use hyper::{Method, StatusCode};
use std::io;
use std::time::Duration;

/// What a client was waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The connection.
    Connect,
    /// TLS over a connection that stands: a process that is stopped gets that far, as its system takes connections for it.
    Handshake,
    /// The head of the answer.
    Head,
    /// The next piece of the answer's body.
    Body,
}

/// Why a request failed. `peer` is the `host:port` it was meant for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum HttpError {
    /// Nobody reachable listens there.
    #[error("could not connect to {peer}")]
    Connect {
        peer: String,
        #[source]
        source: io::Error,
    },
    /// The TLS handshake failed; the peer may speak plain HTTP.
    #[error("could not agree on TLS with {peer}")]
    Tls {
        peer: String,
        #[source]
        source: io::Error,
    },
    /// The peer has another key than the one it is known by: another server, or an impostor.
    #[error("refused {peer}: it has another key than the pinned one")]
    PinMismatch { peer: String },
    /// It took too long.
    #[error("gave up on {peer} after {} ms without progress ({phase:?})", limit.as_millis())]
    Timeout {
        peer: String,
        /// What was awaited.
        phase: Phase,
        /// For how long.
        limit: Duration,
    },
    /// The peer does not know our secret, or refused it: it belongs to another cluster, job or route, or is something
    /// else altogether. It was sent nothing but a random number.
    #[error("{peer} does not know the secret for {method} {path}")]
    Unauthorized { peer: String, method: Method, path: String },
    /// The peer knows our token, which may not do this.
    #[error("{peer} does not allow {method} {path} to this token")]
    Forbidden { peer: String, method: Method, path: String },
    /// Something between us and the peer forwards what is sent, unencrypted.
    #[error(
        "refused {peer}: it was reached at another address than that, so something forwards to it and could read all; use TLS, or allow it with --insecure-plaintext"
    )]
    Forwarded { peer: String },
    /// The peer is beyond this machine, and has no key by which it could be known.
    #[error(
        "refused to speak to {peer} without TLS: all data would cross the network readable; use a join line with a key in it, or allow it with --insecure-plaintext"
    )]
    Plaintext { peer: String },
    /// The operating system gave no randomness.
    #[error("could not greet {peer}")]
    Randomness {
        peer: String,
        #[source]
        source: SecretError,
    },
    /// The peer answered with a status that is no success.
    #[error("{peer} answered {method} {path} with {status}: {message}")]
    Status {
        peer: String,
        method: Method,
        path: String,
        status: StatusCode,
        /// The start of the answer's body, made printable.
        message: String,
    },
    /// The peer has as many connections as it can have.
    #[error("{peer} has no room for {method} {path}: {message}")]
    Crowded {
        peer: String,
        method: Method,
        path: String,
        /// The start of the answer's body, made printable.
        message: String,
    },
    /// The connection ended before an answer; whether the request had an effect is unknown.
    #[error("{peer} closed the connection before it answered")]
    Closed {
        peer: String,
        #[source]
        source: hyper::Error,
    },
    /// The answer is not HTTP, or its head is beyond our limits; the peer may speak TLS.
    #[error("{peer} sent something that is not an HTTP answer within our limits")]
    NotHttp {
        peer: String,
        #[source]
        source: hyper::Error,
    },
    /// The body of the answer broke off.
    #[error("{peer} broke its answer off")]
    Truncated {
        peer: String,
        #[source]
        source: hyper::Error,
    },
    /// The body of the answer is longer than the caller allows.
    #[error("refused an answer of {peer} with more than {bytes_max} bytes")]
    TooLarge {
        peer: String,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The peer did not switch to the protocol asked for.
    #[error("{peer} did not switch to {protocol}")]
    NotUpgraded {
        peer: String,
        /// The protocol asked for.
        protocol: &'static str,
    },
    /// The request cannot be written; its path or address holds characters that must not stand there.
    #[error("could not form a request to {peer}")]
    Request {
        peer: String,
        /// What is wrong with it.
        #[source]
        source: hyper::http::Error,
    },
}

/// Whether a connection was closed by the other side, or on the way.
pub(in crate::http) fn ends_early(source: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(source.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}
