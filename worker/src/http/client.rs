//! The client: one connection to one peer, plain or TLS with a pinned key, and its time limits.
//!
//! Every failure has a type, so that a caller can tell a peer that cannot be reached from one that
//! refuses the secret and from a body that broke off. It never retries and follows no redirects:
//! both are decisions of the caller. [`super::Pool`] keeps connections for further requests.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONNECTION, HOST, HeaderValue, UPGRADE};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tracing::debug;

use super::body::{Body, empty};
use super::endpoint::Endpoint;
use super::limits::{
    CONNECT_TIME, ERROR_BODY_BYTES_MAX, HEAD_BYTES_MAX, HEAD_FIELDS_MAX, RESPONSE_TIME, STALL_TIME,
};
use super::lived::{lived, step};
use super::pool::Home;
use super::proof::{Asked, ClientSessions, HELLO, HELLO_PATH, Proven, Reached};
use super::rate::LeastRate;
use super::secret::SecretError;
use super::tls::{client_config, is_pin_mismatch, server_name};
use super::token::Key;
use super::upgrade::{Duplex, duplex, names_protocol};

/// How long a client waits, in time that its own process has lived through.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For the connection, name lookup and TLS included.
    pub connect: Duration,
    /// For the head of the answer, counted from when the last piece of the request was taken.
    pub head: Duration,
    /// For the next piece of the answer's body.
    pub stall: Duration,
    /// Whether over that time a body must also come at the rate [`RATE_BYTES_MIN`](super::limits::RATE_BYTES_MIN). One that says something now and
    /// then need not.
    pub steady: bool,
}

impl Default for Timeouts {
    /// 5 s to connect, 30 s for a head, 30 s between pieces, which come steadily.
    fn default() -> Self {
        Timeouts { connect: CONNECT_TIME, head: RESPONSE_TIME, stall: STALL_TIME, steady: true }
    }
}

/// What a client was waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The connection.
    Connect,
    /// The head of the answer.
    Head,
    /// The next piece of the answer's body.
    Body,
}

/// Why a request failed. `peer` is the `host:port` it was meant for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// Nobody reachable listens there.
    #[error("could not connect to {peer}")]
    Connect {
        /// The peer.
        peer: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The TLS handshake failed; the peer may speak plain HTTP.
    #[error("could not agree on TLS with {peer}")]
    Tls {
        /// The peer.
        peer: String,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// The peer has another key than the one it is known by: another server, or an impostor.
    #[error("refused {peer}: it has another key than the pinned one")]
    PinMismatch {
        /// The peer.
        peer: String,
    },
    /// It took too long.
    #[error("gave up on {peer} after {} ms without progress ({phase:?})", limit.as_millis())]
    Timeout {
        /// The peer.
        peer: String,
        /// What was awaited.
        phase: Phase,
        /// For how long.
        limit: Duration,
    },
    /// The peer does not know our secret, or refused it: it belongs to another cluster, job or route, or is something else
    /// altogether. It was sent nothing but a random number.
    #[error("{peer} does not know the secret for {method} {path}")]
    Unauthorized {
        /// The peer.
        peer: String,
        /// The method.
        method: Method,
        /// The path.
        path: String,
    },
    /// The peer knows our token, which may not do this.
    #[error("{peer} does not allow {method} {path} to this token")]
    Forbidden {
        /// The peer.
        peer: String,
        /// The method.
        method: Method,
        /// The path.
        path: String,
    },
    /// Something between us and the peer forwards what is sent, unencrypted.
    #[error(
        "refused {peer}: it was reached at another address than that, so something forwards to it and could read all; use TLS, or allow it with --insecure-plaintext"
    )]
    Forwarded {
        /// The peer.
        peer: String,
    },
    /// The peer is beyond this machine, and has no key by which it could be known.
    #[error(
        "refused to speak to {peer} without TLS: all data would cross the network readable; use a join line with a key in it, or allow it with --insecure-plaintext"
    )]
    Plaintext {
        /// The peer.
        peer: String,
    },
    /// The operating system gave no randomness.
    #[error("could not greet {peer}")]
    Randomness {
        /// The peer.
        peer: String,
        /// What it said.
        #[source]
        source: SecretError,
    },
    /// The peer answered with a status that is no success.
    #[error("{peer} answered {method} {path} with {status}: {message}")]
    Status {
        /// The peer.
        peer: String,
        /// The method.
        method: Method,
        /// The path.
        path: String,
        /// The status.
        status: StatusCode,
        /// The start of the answer's body, made printable.
        message: String,
    },
    /// The peer has as many connections as it can have.
    #[error("{peer} has no room for {method} {path}: {message}")]
    Crowded {
        /// The peer.
        peer: String,
        /// The method.
        method: Method,
        /// The path.
        path: String,
        /// The start of the answer's body, made printable.
        message: String,
    },
    /// The connection ended before an answer; whether the request had an effect is unknown.
    #[error("{peer} closed the connection before it answered")]
    Closed {
        /// The peer.
        peer: String,
        /// What went wrong.
        #[source]
        source: hyper::Error,
    },
    /// The answer is not HTTP, or its head is beyond our limits; the peer may speak TLS.
    #[error("{peer} sent something that is not an HTTP answer within our limits")]
    NotHttp {
        /// The peer.
        peer: String,
        /// What went wrong.
        #[source]
        source: hyper::Error,
    },
    /// The body of the answer broke off.
    #[error("{peer} broke its answer off")]
    Truncated {
        /// The peer.
        peer: String,
        /// What went wrong.
        #[source]
        source: hyper::Error,
    },
    /// The body of the answer is longer than the caller allows.
    #[error("refused an answer of {peer} with more than {bytes_max} bytes")]
    TooLarge {
        /// The peer.
        peer: String,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The peer did not switch to the protocol asked for.
    #[error("{peer} did not switch to {protocol}")]
    NotUpgraded {
        /// The peer.
        peer: String,
        /// The protocol asked for.
        protocol: &'static str,
    },
    /// The request cannot be written; its path or address holds characters that must not stand there.
    #[error("could not form a request to {peer}")]
    Request {
        /// The peer.
        peer: String,
        /// What is wrong with it.
        #[source]
        source: hyper::http::Error,
    },
}

/// To whom a client speaks without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plaintext {
    /// To this machine alone, with nothing in between.
    #[default]
    OnLoopback,
    /// To any, because a person has typed `--insecure-plaintext`.
    Everywhere,
}

/// One HTTP/1.1 connection; requests go one after the other.
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

/// Whether a connection was closed by the other side, or on the way.
pub(super) fn ends_early(source: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(source.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

impl Connection {
    /// Connects; over TLS if the endpoint has a pin, and then to the holder of that key only.
    ///
    /// # Errors
    /// `Connect`, `Plaintext`, `Tls`, `PinMismatch` or `Timeout`.
    pub async fn open(
        endpoint: &Endpoint,
        timeouts: Timeouts,
        plaintext: Plaintext,
    ) -> Result<Self, HttpError> {
        let limit = timeouts.connect;
        tokio::select! {
            biased;
            opened = Connection::open_unlimited(endpoint, timeouts, plaintext) => opened,
            () = lived(limit) => {
                Err(HttpError::Timeout { peer: endpoint.to_string(), phase: Phase::Connect, limit })
            }
        }
    }

    async fn open_unlimited(
        endpoint: &Endpoint,
        timeouts: Timeouts,
        plaintext: Plaintext,
    ) -> Result<Self, HttpError> {
        let peer = endpoint.to_string();
        let connect = |source| HttpError::Connect { peer: peer.clone(), source };
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await.map_err(connect)?;
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
            // It ended under us, as it may where strangers throng; nothing was said about keys.
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
        // Ends by itself once the sender and the last answer's body are gone.
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                debug!(peer = driven, %error, "connection ended early");
            }
        });
        Ok(Connection { peer, timeouts, sender, reached, plaintext, sessions: ClientSessions::default() })
    }

    /// Sends a request and returns its answer if the status is a success.
    ///
    /// # Errors
    /// As [`Connection::send`]; `Unauthorized` for 401 and `Status` for any other status but 2xx.
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

    /// Sends a request, whose URI is a path, and returns its answer whatever the status. If it needs a secret, the
    /// server must have proven first, once for each secret, that it knows it.
    ///
    /// Adds the Host and Authorization headers. The answer's body must be read to its end before
    /// the next request; an unread one closes the connection.
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
        Ok(response.map(|body| self.answer(body)))
    }

    /// Turns the connection into a stream of another protocol.
    ///
    /// # Errors
    /// As [`Connection::request`], and `NotUpgraded` if the peer answers with a success instead.
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
        let response = response.map(|body| self.answer(body));
        expect_success(response, &self.peer, Method::GET, path).await?;
        Err(HttpError::NotUpgraded { peer: self.peer, protocol })
    }

    /// Waits until the connection can take a request; false if it is closed or stays busy.
    pub(super) async fn is_usable(&mut self) -> bool {
        matches!(timeout(self.timeouts.connect, self.sender.ready()).await, Ok(Ok(())))
    }

    /// Whether it will do for another request, whatever its secret.
    pub(super) fn is_spent(&self) -> bool {
        self.sender.is_closed() || self.sessions.is_full()
    }

    pub(super) fn answer(&self, body: Incoming) -> Answer {
        let Timeouts { stall, steady, .. } = self.timeouts;
        Answer { body, peer: self.peer.clone(), stall, steady, rate: LeastRate::new(stall), home: None }
    }

    /// Has the server prove that it knows a secret, unless it has.
    pub(super) async fn greet(
        &mut self,
        key: Option<&dyn Key>,
        method: &Method,
        path: &str,
    ) -> Result<(), Box<ExchangeFailure>> {
        let Some(key) = key.filter(|key| !self.sessions.has(key.secret())) else { return Ok(()) };
        let failed = |error| Box::new(ExchangeFailure { error, unsent: None });
        let peer = || self.peer.clone();
        let (asked, hello) = Asked::new(key, method, path)
            .map_err(|source| failed(HttpError::Randomness { peer: peer(), source }))?;
        let request = new_request(&self.peer, Method::POST, HELLO_PATH, empty());
        let mut request = request.and_then(|request| self.prepare(None, request)).map_err(failed)?;
        request.headers_mut().insert(HELLO, hello);
        let response = self.exchange(request).await?;
        let status = response.status();
        let forwarded = self.plaintext == Plaintext::Everywhere;
        let error = match self.sessions.check(&asked, response.headers(), &self.reached, forwarded) {
            Proven::Yes => {
                drop(response);
                let (peer, limit) = (self.peer.clone(), self.timeouts.connect);
                return match timeout(limit, self.sender.ready()).await {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(source)) => Err(failed(HttpError::Closed { peer, source })),
                    Err(_) => Err(failed(HttpError::Timeout { peer, phase: Phase::Head, limit })),
                };
            }
            Proven::Elsewhere => HttpError::Forwarded { peer: self.peer.clone() },
            // Too many requests or connections: it did not look at the hello.
            Proven::No if status.is_server_error() || status == StatusCode::MISDIRECTED_REQUEST => {
                let response = response.map(|body| self.answer(body));
                match expect_success(response, &self.peer, method.clone(), path).await {
                    Err(error) => error,
                    Ok(_) => HttpError::Unauthorized {
                        peer: self.peer.clone(),
                        method: method.clone(),
                        path: path.to_owned(),
                    },
                }
            }
            Proven::No => HttpError::Unauthorized {
                peer: self.peer.clone(),
                method: method.clone(),
                path: path.to_owned(),
            },
        };
        Err(failed(error))
    }

    /// Adds what every request of ours carries. Only a server that has been greeted for the secret is sent what shows
    /// that we know it too.
    pub(super) fn prepare(
        &mut self,
        key: Option<&dyn Key>,
        mut request: Request<Body>,
    ) -> Result<Request<Body>, HttpError> {
        let invalid = |source| HttpError::Request { peer: self.peer.clone(), source };
        let host = HeaderValue::try_from(&self.peer).map_err(|error| invalid(error.into()))?;
        request.headers_mut().insert(HOST, host);
        if let Some(key) = key {
            let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
            if let Some(value) = self.sessions.sign(key.secret(), request.method(), target) {
                request.headers_mut().insert(AUTHORIZATION, value);
            }
        }
        Ok(request)
    }

    /// Sends a prepared request and waits for the head of its answer.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Box<ExchangeFailure>> {
        let progress = Progress::default();
        let request = request.map(|inner| Tracked { inner, progress: progress.clone() }.boxed());
        let limit = self.timeouts.head;
        let sent = self.sender.try_send_request(request);
        tokio::pin!(sent);
        let (mut seen, mut left) = (progress.pieces(), limit);
        loop {
            tokio::select! {
                biased;
                result = sent.as_mut() => return result.map_err(|mut failure| {
                    let unsent = failure.take_message();
                    Box::new(ExchangeFailure { error: exchange_error(&self.peer, failure.into_error()), unsent })
                }),
                step = step(left) => {
                    // A large request may take longer than any answer; only silence counts.
                    let before = std::mem::replace(&mut seen, progress.pieces());
                    left = if before == seen { left.saturating_sub(step) } else { limit };
                    if left.is_zero() {
                        let error = HttpError::Timeout { peer: self.peer.clone(), phase: Phase::Head, limit };
                        return Err(Box::new(ExchangeFailure { error, unsent: None }));
                    }
                }
            }
        }
    }
}

/// A failed exchange; `unsent` is the request if no byte of it can have reached the peer.
pub(super) struct ExchangeFailure {
    pub(super) error: HttpError,
    pub(super) unsent: Option<Request<Body>>,
}

fn exchange_error(peer: &str, source: hyper::Error) -> HttpError {
    let peer = peer.to_owned();
    if source.is_parse() { HttpError::NotHttp { peer, source } } else { HttpError::Closed { peer, source } }
}

pub(super) fn new_request(
    peer: &str,
    method: Method,
    path: &str,
    body: Body,
) -> Result<Request<Body>, HttpError> {
    Request::builder()
        .method(method)
        .uri(path)
        .body(body)
        .map_err(|source| HttpError::Request { peer: peer.to_owned(), source })
}

pub(super) async fn expect_success(
    mut response: Response<Answer>,
    peer: &str,
    method: Method,
    path: &str,
) -> Result<Response<Answer>, HttpError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let (peer, path) = (peer.to_owned(), path.to_owned());
    if status == StatusCode::UNAUTHORIZED {
        return Err(HttpError::Unauthorized { peer, method, path });
    }
    if status == StatusCode::FORBIDDEN {
        return Err(HttpError::Forbidden { peer, method, path });
    }
    // The status says what went wrong; its body only explains, so a failure to read it is no news.
    let body = response.body_mut().collect(ERROR_BODY_BYTES_MAX).await.unwrap_or_default();
    let message = String::from_utf8_lossy(&body).trim_end().escape_debug().to_string();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return Err(HttpError::Crowded { peer, method, path, message });
    }
    Err(HttpError::Status { peer, method, path, status, message })
}

/// The body of an answer. Dropped before its end, it closes its connection.
#[derive(Debug)]
pub struct Answer {
    body: Incoming,
    peer: String,
    stall: Duration,
    steady: bool,
    rate: LeastRate,
    /// Where the connection goes once the body has been read.
    home: Option<Home>,
}

impl Answer {
    pub(super) fn returning_to(mut self, home: Home) -> Self {
        self.home = Some(home);
        self.go_home_at_end();
        self
    }

    fn go_home_at_end(&mut self) {
        if hyper::body::Body::is_end_stream(&self.body)
            && let Some(home) = self.home.take()
        {
            home.put_back();
        }
    }

    /// The number of bytes still to come, where the peer said so.
    #[must_use]
    pub fn bytes_left(&self) -> Option<u64> {
        hyper::body::Body::size_hint(&self.body).exact()
    }

    /// The next piece of the body; `None` at its proper end.
    ///
    /// # Errors
    /// `Truncated` if the connection ended before the body did, `Timeout` if nothing came for too long.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let Ok(frame) = self.rate.wait(self.body.frame()).await else { return Err(self.too_slow()) };
            match frame {
                None => {
                    // A body of unknown length is at its end only now.
                    if let Some(home) = self.home.take() {
                        home.put_back();
                    }
                    return Ok(None);
                }
                Some(Err(source)) => return Err(HttpError::Truncated { peer: self.peer.clone(), source }),
                Some(Ok(frame)) => {
                    // Anything but data is a trailer, and we send none.
                    if let Ok(data) = frame.into_data() {
                        if self.rate.count(data.len() as u64).is_err() && self.steady {
                            return Err(self.too_slow());
                        }
                        self.go_home_at_end();
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    fn too_slow(&self) -> HttpError {
        HttpError::Timeout { peer: self.peer.clone(), phase: Phase::Body, limit: self.stall }
    }

    /// The rest of the body, if it has at most `bytes_max` bytes.
    ///
    /// # Errors
    /// As [`Answer::chunk`], and `TooLarge`.
    pub async fn collect(&mut self, bytes_max: usize) -> Result<Bytes, HttpError> {
        let too_large = |peer: &str| HttpError::TooLarge { peer: peer.to_owned(), bytes_max };
        if self.bytes_left().is_some_and(|left| (bytes_max as u64) < left) {
            return Err(too_large(&self.peer));
        }
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if bytes_max - whole.len() < chunk.len() {
                return Err(too_large(&self.peer));
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }
}

/// Pieces of a request that have been taken.
#[derive(Clone, Default)]
struct Progress(Arc<AtomicU64>);

impl Progress {
    fn mark(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn pieces(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A request body that notes when a piece of it is taken.
struct Tracked {
    inner: Body,
    progress: Progress,
}

impl hyper::body::Body for Tracked {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(context);
        if frame.is_ready() {
            self.progress.mark();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
