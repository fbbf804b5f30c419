//! Client: one connection to one peer, plain or TLS with a pinned key, and its time limits.
//!
//! Every failure has a type, so that a caller can distinguish an unreachable peer from a rejected secret and from a
//! truncated body. The client never retries and follows no redirects: both are decisions of the caller. [`super::Pool`]
//! keeps connections for further requests.

mod answer;
mod error;
mod exchange;

use super::active_time::active_time;
use super::body::{Body, Steady, empty};
use super::endpoint::{Endpoint, Plaintext};
use super::limits::{CONNECT_TIME, HEAD_BYTES_MAX, HEAD_FIELDS_MAX, RESPONSE_TIME, STALL_TIME};
use super::proof::{ClientSessions, Reached};
use super::rate::LeastRate;
use super::tls::{client_config, is_pin_mismatch, server_name};
use super::token::Key;
use super::upgrade::{Duplex, duplex, names_protocol};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tracing::debug;

pub use answer::Answer;
pub(super) use answer::{Home, expect_success};
pub(super) use error::ends_early;
pub use error::{HttpError, Phase};
pub(super) use exchange::new_request;

/// Time limits of a client, in active time of its own process.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Limit for the connection, including name lookup and TLS.
    pub connect: Duration,
    /// Limit for the head of the response, counted from the last piece of the request that was sent.
    pub head: Duration,
    /// Limit for the next piece of the response's body.
    pub stall: Duration,
    /// True if a body must also arrive at `RATE_BYTES_MIN` over that time. False for a
    /// body that sends something only from time to time.
    pub steady: bool,
}

impl Default for Timeouts {
    /// Returns 5 s to connect, 30 s for a head, 30 s between pieces, with a minimum rate.
    fn default() -> Self {
        Timeouts { connect: CONNECT_TIME, head: RESPONSE_TIME, stall: STALL_TIME, steady: true }
    }
}

/// One HTTP/1.1 connection; requests are sent one after the other.
pub struct Connection {
    peer: String,
    timeouts: Timeouts,
    sender: SendRequest<Body>,
    reached: Reached,
    plaintext: Plaintext,
    sessions: ClientSessions,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects. If the endpoint has a pin, the connection uses TLS, and only accepts the holder of that key.
    ///
    /// # Errors
    /// `Connect`, `Plaintext`, `Tls`, `PinMismatch` or `Timeout`.
    pub async fn open(
        endpoint: &Endpoint,
        timeouts: Timeouts,
        plaintext: Plaintext,
    ) -> Result<Self, HttpError> {
        let limit = timeouts.connect;
        let late = |phase| HttpError::Timeout { peer: endpoint.to_string(), phase, limit };
        let passed = active_time(limit);
        tokio::pin!(passed);
        let stream = tokio::select! {
            biased;
            connected = TcpStream::connect((endpoint.host.as_str(), endpoint.port)) => connected,
            () = passed.as_mut() => return Err(late(Phase::Connect)),
        };
        let stream = stream.map_err(|source| HttpError::Connect { peer: endpoint.to_string(), source })?;
        tokio::select! {
            biased;
            opened = Connection::over(stream, endpoint, timeouts, plaintext) => opened,
            () = passed => Err(late(Phase::Handshake)),
        }
    }

    /// Continues over an open connection.
    async fn over(
        stream: TcpStream,
        endpoint: &Endpoint,
        timeouts: Timeouts,
        plaintext: Plaintext,
    ) -> Result<Self, HttpError> {
        let peer = endpoint.to_string();
        let connect = |source| HttpError::Connect { peer: peer.clone(), source };
        stream.set_nodelay(true).map_err(connect)?;
        let Some(pin) = endpoint.pin else {
            let address = stream.peer_addr().map_err(connect)?;
            if plaintext == Plaintext::OnLoopback && !address.ip().to_canonical().is_loopback() {
                return Err(HttpError::Plaintext { peer });
            }
            return Connection::handshake(stream, peer, timeouts, Reached::At(address), plaintext).await;
        };
        let tls = |source: io::Error| match source.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(error) if is_pin_mismatch(error) => HttpError::PinMismatch { peer: peer.clone() },
            // The connection was closed, as an overloaded server does; this does not depend on keys.
            None if ends_early(&source) => HttpError::Connect { peer: peer.clone(), source },
            _ => HttpError::Tls { peer: peer.clone(), source },
        };
        let config = client_config(pin).map_err(|error| tls(io::Error::other(error)))?;
        let stream = TlsConnector::from(config).connect(server_name(), stream).await.map_err(tls)?;
        Connection::handshake(stream, peer, timeouts, Reached::Tls(pin), plaintext).await
    }

    async fn handshake<S>(
        stream: S,
        peer: String,
        timeouts: Timeouts,
        reached: Reached,
        plaintext: Plaintext,
    ) -> Result<Self, HttpError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let result = http1::Builder::new()
            .max_headers(HEAD_FIELDS_MAX)
            .max_header_size(HEAD_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = match result {
            Ok(parts) => parts,
            Err(source) => return Err(HttpError::Closed { peer, source }),
        };
        let driven = peer.clone();
        // Ends once the sender and the last response's body are dropped.
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                debug!(peer = driven, %error, "connection ended early");
            }
        });
        Ok(Connection { peer, timeouts, sender, reached, plaintext, sessions: ClientSessions::default() })
    }

    /// Sends a request and returns its response if the status is a success.
    ///
    /// # Errors
    /// As [`Connection::send`]; `Unauthorized` for 401 and `Status` for any other status than 2xx.
    pub async fn request(
        &mut self,
        key: Option<&dyn Key>,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Response<Answer>, HttpError> {
        let request = new_request(&self.peer, method.clone(), path, body)?;
        let response = self.send(key, request).await?;
        expect_success(response, &self.peer, method, path).await
    }

    /// Sends a request, whose URI is a path, and returns its response with any status. If it needs a secret, the server
    /// must first have proven that it knows it, once for each secret.
    ///
    /// Adds the Host and Authorization headers. The response's body must be read to its end before the next request; an
    /// unread one closes the connection.
    ///
    /// # Errors
    /// `Unauthorized` if the server does not know the secret, `Forwarded`, `Timeout`, `Closed`, `NotHttp` or `Request`.
    pub async fn send(
        &mut self,
        key: Option<&dyn Key>,
        request: Request<Body>,
    ) -> Result<Response<Answer>, HttpError> {
        self.greet(key, request.method(), request.uri().path()).await.map_err(|failure| failure.error)?;
        let request = self.prepare(key, request)?;
        let response = self.exchange(request).await.map_err(|failure| failure.error)?;
        Ok(response.map(|body| self.response_body(body)))
    }

    /// Turns the connection into a stream of another protocol.
    ///
    /// # Errors
    /// As [`Connection::request`], and `NotUpgraded` if the peer responds with a success instead.
    pub async fn upgrade(
        mut self,
        key: Option<&dyn Key>,
        path: &str,
        protocol: &'static str,
    ) -> Result<Duplex, HttpError> {
        let mut request = new_request(&self.peer, Method::GET, path, empty())?;
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
        request.headers_mut().insert(UPGRADE, HeaderValue::from_static(protocol));
        self.greet(key, &Method::GET, path).await.map_err(|failure| failure.error)?;
        let request = self.prepare(key, request)?;
        let mut response = self.exchange(request).await.map_err(|failure| failure.error)?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS
            && names_protocol(response.headers(), protocol)
        {
            let upgraded = hyper::upgrade::on(&mut response).await;
            return upgraded.map(duplex).map_err(|source| HttpError::Closed { peer: self.peer, source });
        }
        let response = response.map(|body| self.response_body(body));
        expect_success(response, &self.peer, Method::GET, path).await?;
        Err(HttpError::NotUpgraded { peer: self.peer, protocol })
    }

    /// Waits until the connection can take a request; false if it is closed or stays busy.
    pub(super) async fn is_usable(&mut self) -> bool {
        matches!(timeout(self.timeouts.connect, self.sender.ready()).await, Ok(Ok(())))
    }

    /// True if it cannot be used for another request with any secret.
    pub(super) fn is_spent(&self) -> bool {
        self.sender.is_closed() || self.sessions.is_full()
    }

    pub(super) fn response_body(&self, body: Incoming) -> Answer {
        let Timeouts { stall, steady, .. } = self.timeouts;
        let body = Steady::with_rate(body, LeastRate::new(stall, steady));
        Answer { body, peer: self.peer.clone(), stall, home: None }
    }
}
