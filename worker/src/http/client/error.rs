//! Failures of a request to a master or worker, the phase in which it failed, and exit codes and hints.

use crate::exit::{self, Exit, ExitsWith};
use crate::http::secret::SecretError;
use hyper::{Method, StatusCode};
use std::io;
use std::time::Duration;

/// Event that a client was waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The connection.
    Connect,
    /// TLS over an open connection: a stopped process gets this far, since its system accepts connections for it.
    Handshake,
    /// The head of the response.
    Head,
    /// The next piece of the response's body.
    Body,
}

/// Error of a request. `peer` is the `host:port` of its target.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum HttpError {
    /// The peer is unreachable, or does not listen there.
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
    /// The peer has another key than the pinned one: another server, or an impostor.
    #[error("refused {peer}: it has another key than the pinned one")]
    PinMismatch { peer: String },
    /// The time limit passed.
    #[error("gave up on {peer} after {} ms without progress ({phase:?})", limit.as_millis())]
    Timeout {
        peer: String,
        /// Awaited event.
        phase: Phase,
        /// Time limit.
        limit: Duration,
    },
    /// The peer does not know the secret, or rejected it: it belongs to another cluster, job or route, or is unrelated.
    /// It received only a random number.
    #[error("{peer} does not know the secret for {method} {path}")]
    Unauthorized { peer: String, method: Method, path: String },
    /// The peer knows the token, which has no permission for this.
    #[error("{peer} does not allow {method} {path} to this token")]
    Forbidden { peer: String, method: Method, path: String },
    /// An intermediary between this client and the peer forwards the bytes, unencrypted.
    #[error(
        "refused {peer}: it was reached at another address than that, so something forwards to it and could read all; use TLS, or allow it with --insecure-plaintext"
    )]
    Forwarded { peer: String },
    /// The peer is on another machine, and has no key by which it could be identified.
    #[error(
        "refused to speak to {peer} without TLS: all data would cross the network readable; use a join line with a key in it, or allow it with --insecure-plaintext"
    )]
    Plaintext { peer: String },
    /// The operating system returned no random bytes.
    #[error("could not greet {peer}")]
    Randomness {
        peer: String,
        #[source]
        source: SecretError,
    },
    /// The peer responded with an error status.
    #[error("{peer} answered {method} {path} with {status}: {message}")]
    Status {
        peer: String,
        method: Method,
        path: String,
        status: StatusCode,
        /// Start of the response's body, made printable.
        message: String,
    },
    /// The peer has reached its maximum number of connections.
    #[error("{peer} has no room for {method} {path}: {message}")]
    Crowded {
        peer: String,
        method: Method,
        path: String,
        /// Start of the response's body, made printable.
        message: String,
    },
    /// The connection ended before a response. It is unknown if the request had an effect.
    #[error("{peer} closed the connection before it answered")]
    Closed {
        peer: String,
        #[source]
        source: hyper::Error,
    },
    /// The response is not HTTP, or its head exceeds the limits; the peer may speak TLS.
    #[error("{peer} sent something that is not an HTTP answer within our limits")]
    NotHttp {
        peer: String,
        #[source]
        source: hyper::Error,
    },
    /// The body of the response ended early.
    #[error("{peer} broke its answer off")]
    Truncated {
        peer: String,
        #[source]
        source: hyper::Error,
    },
    /// The body of the response is longer than the caller allows.
    #[error("refused an answer of {peer} with more than {bytes_max} bytes")]
    TooLarge {
        peer: String,
        /// Limit in bytes.
        bytes_max: usize,
    },
    /// The peer did not switch to the requested protocol.
    #[error("{peer} did not switch to {protocol}")]
    NotUpgraded {
        peer: String,
        /// Requested protocol.
        protocol: &'static str,
    },
    /// The request cannot be serialized; its path or address contains invalid characters.
    #[error("could not form a request to {peer}")]
    Request {
        peer: String,
        /// Error of the serialization.
        #[source]
        source: hyper::http::Error,
    },
}

impl ExitsWith for HttpError {
    fn exit(&self) -> Exit {
        match self {
            Self::Unauthorized { .. } => Exit::hinted(
                exit::UNAUTHORISED,
                "use the master's join line: --join FILE; if it is that one, its token was revoked or replaced, or another \
                 program has the port",
            ),
            Self::Forbidden { .. } => Exit::hinted(
                exit::UNAUTHORISED,
                "use a join line with a token that may: `gristmill cluster token new ROLE` makes one where the master runs",
            ),
            Self::Plaintext { .. } | Self::Forwarded { .. } => Exit::with(exit::ENVIRONMENT),
            Self::PinMismatch { .. } => Exit::hinted(
                exit::CLUSTER,
                "use the join line of the master that runs there now: the file `join` in its state directory",
            ),
            Self::Connect { .. } => Exit::hinted(
                exit::CLUSTER,
                "is the master running? `gristmill cluster master` starts it where it was, and it goes on; `gristmill cluster doctor` looks \
                 further",
            ),
            _ => Exit::hinted(
                exit::CLUSTER,
                "`gristmill cluster doctor` looks at the master and the routes to it",
            ),
        }
    }
}

/// True if a connection was closed by the peer or on the route.
pub(in crate::http) fn ends_early(source: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(source.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}
