//! The server: accepts connections within limits, puts the gate in front, and answers.
//!
//! The handler sees only requests that passed the gate. The listener, its address rules
//! ([`super::Bind`]) and the moment to stop come from the caller. It is not a router.
//!
//! Invariant: a connection is counted from its acceptance until its socket closes, upgrades
//! included, so that the limits hold for everything that occupies a file descriptor. One address is held to few
//! connections that have shown no secret; those that have are limited by the descriptors there are, and a request
//! beyond that is told so.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONNECTION, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use super::bind::Transport;
use super::body::{Body, empty, json, read_limited};
use super::gate::{Arrival, Doors, Gate, Verdict};
use super::limits::{
    ACCEPT_PAUSE, REFUSALS_MAX, REFUSED_BODY_BYTES_MAX, REFUSED_BODY_TIME, ServerLimits, WARNING_INTERVAL,
};
use super::proof::{PROOF, Reached, ServerSessions};
use super::watch::{HeadTimer, Heard, Watched};

/// How a server speaks and what it is called.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Plain or TLS.
    pub transport: Transport,
    /// Host names under which clients reach it, besides address literals and `localhost`.
    pub host_names: Vec<String>,
    /// Limits; the default unless a test needs small ones.
    pub limits: ServerLimits,
}

impl ServerConfig {
    /// A server with no further names and the usual limits.
    #[must_use]
    pub fn new(transport: Transport) -> Self {
        ServerConfig { transport, host_names: Vec::new(), limits: ServerLimits::default() }
    }
}

/// Who sent a request; found among the request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

/// Serves until `shutdown` resolves, then lets answers under way finish for a limited time.
///
/// The handler is called for requests that passed the gate; a panic in it costs its connection
/// only. Upgraded streams belong to whoever upgraded them and are not waited for.
pub async fn serve<H, F>(
    listener: TcpListener,
    config: Arc<ServerConfig>,
    doors: Arc<dyn Doors>,
    handler: H,
    shutdown: impl Future<Output = ()> + Send,
) where
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let acceptor = match &config.transport {
        Transport::Plain => None,
        Transport::Tls(identity) => Some(TlsAcceptor::from(identity.server_config())),
    };
    let gate = Gate::new(doors, &config.host_names, acceptor.is_some(), &config.limits);
    let server = Arc::new(Server { limits: config.limits.clone(), acceptor, gate, handler });
    let census = Arc::new(Census { limits: config.limits.clone(), counts: Mutex::default() });
    let (stop, stopping) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut last_warning = None;
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => {
                report_panic(ended);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                survive(&error).await;
                continue;
            }
        };
        match census.admit(peer.ip()) {
            Some(admission) => {
                let connection = Arc::clone(&server).connection(stream, peer, admission, stopping.clone());
                connections.spawn(connection);
            }
            None => warn_seldom(&mut last_warning, peer),
        }
    }
    drop(listener);
    drop(stop);
    let drained = async { while connections.join_next().await.is_some() {} };
    if timeout(config.limits.shutdown, drained).await.is_err() {
        debug!("stopped with answers under way");
    }
}

fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        // The panic hook has printed the message; here only that the server lives on.
        warn!("a request handler panicked; its connection is closed");
    }
}

/// What to do after `accept` failed: nothing if the peer went away, a pause if we lack resources.
async fn survive(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
        return;
    }
    warn!(error = %error, pause_ms = ACCEPT_PAUSE.as_millis() as u64, "could not accept a connection");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

fn warn_seldom(last_warning: &mut Option<Instant>, peer: SocketAddr) {
    let now = Instant::now();
    if last_warning.is_none_or(|last| WARNING_INTERVAL <= now.duration_since(last)) {
        *last_warning = Some(now);
        warn!(%peer, "refused a connection: too many are open");
    }
}

/// Counts open connections, in all and by address.
struct Census {
    limits: ServerLimits,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    total: usize,
    peers: HashMap<IpAddr, Peer>,
}

struct Peer {
    /// Connections that have not shown a secret.
    unknown: usize,
    /// One permit for each connection that may be open without having shown a secret.
    strangers: Arc<Semaphore>,
}

impl Census {
    fn admit(self: &Arc<Self>, ip: IpAddr) -> Option<Admission> {
        let ip = ip.to_canonical();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if self.limits.connections_max + REFUSALS_MAX <= counts.total {
            return None;
        }
        let crowded = self.limits.connections_max <= counts.total;
        let peer = counts.peers.entry(ip).or_insert_with(|| Peer {
            unknown: 0,
            strangers: Arc::new(Semaphore::new(self.limits.strangers_per_peer_max)),
        });
        if self.limits.connections_per_peer_max <= peer.unknown {
            return None;
        }
        peer.unknown += 1;
        let strangers = Arc::clone(&peer.strangers);
        counts.total += 1;
        Some(Admission { census: Arc::clone(self), ip, strangers, known: AtomicBool::new(false), crowded })
    }
}

impl Counts {
    fn one_unknown_less(&mut self, ip: IpAddr) {
        if let Some(peer) = self.peers.get_mut(&ip) {
            peer.unknown -= 1;
            if peer.unknown == 0 {
                self.peers.remove(&ip);
            }
        }
    }
}

/// One counted connection; uncounted when dropped.
struct Admission {
    census: Arc<Census>,
    ip: IpAddr,
    strangers: Arc<Semaphore>,
    /// It has shown a secret.
    known: AtomicBool,
    /// It is one too many, and is only told so.
    crowded: bool,
}

impl Admission {
    /// The connection has shown a secret: its address is not held to it any more.
    fn show_secret(&self) {
        if !self.known.swap(true, Ordering::Relaxed) {
            let mut counts = self.census.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.one_unknown_less(self.ip);
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut counts = self.census.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.total -= 1;
        if !*self.known.get_mut() {
            counts.one_unknown_less(self.ip);
        }
    }
}

/// A connection's place among the strangers of its address; given up at its first right secret.
type Stranger = Arc<Mutex<Option<OwnedSemaphorePermit>>>;

struct Server<H> {
    limits: ServerLimits,
    acceptor: Option<TlsAcceptor>,
    gate: Gate,
    handler: H,
}

impl<H, F> Server<H>
where
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        admission: Admission,
        stopping: watch::Receiver<()>,
    ) {
        let Ok(local) = stream.local_addr() else { return };
        // Many workers of one machine may connect at once, so a connection beyond the strangers'
        // limit waits for a place instead of being refused.
        let place = Arc::clone(&admission.strangers).acquire_owned();
        let Ok(Ok(permit)) = timeout(self.limits.head, place).await else {
            debug!(%peer, "closed a connection: too many from its address have shown no secret");
            return;
        };
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%peer, %error, "could not set a connection to send at once");
        }
        let arrival = Arrival { peer, local };
        let admission = Arc::new(admission);
        let stranger = Arc::new(Mutex::new(Some(permit)));
        match self.acceptor.clone() {
            None => self.http(stream, arrival, admission, stranger, stopping).await,
            Some(acceptor) => match timeout(self.limits.handshake, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => self.http(stream, arrival, admission, stranger, stopping).await,
                Ok(Err(error)) => debug!(%peer, %error, "TLS handshake failed"),
                Err(_) => debug!(%peer, "TLS handshake took too long"),
            },
        }
    }

    async fn http<S>(
        self: Arc<Self>,
        stream: S,
        arrival: Arrival,
        admission: Arc<Admission>,
        stranger: Stranger,
        mut stopping: watch::Receiver<()>,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let heard = Heard::default();
        let builder = self.builder(heard.clone());
        let io = TokioIo::new(Watched::new(stream, heard, self.limits.stall, Arc::clone(&admission)));
        let sessions = Arc::new(ServerSessions::default());
        let service = service_fn(move |request| {
            let (server, stranger) = (Arc::clone(&self), Arc::clone(&stranger));
            let (admission, sessions) = (Arc::clone(&admission), Arc::clone(&sessions));
            async move {
                let known = Known { stranger: &stranger, admission: &admission, sessions: &sessions };
                Ok::<_, Infallible>(server.answer(request, arrival, known).await)
            }
        });
        let connection = builder.serve_connection(io, service).with_upgrades();
        tokio::pin!(connection);
        let result = tokio::select! {
            result = connection.as_mut() => result,
            // The sending end says nothing; it is dropped when the server stops.
            _ = stopping.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            debug!(peer = %arrival.peer, %error, "connection ended early");
        }
    }

    /// Proves that we know the secret of the door that a hello names.
    fn greet(
        &self,
        request: &Request<Incoming>,
        arrival: Arrival,
        sessions: &ServerSessions,
    ) -> Response<Body> {
        let reached = match self.acceptor {
            None => Reached::At(arrival.local),
            Some(_) => Reached::Inside,
        };
        let secret_of = |method: &Method, path: &str| self.gate.secret_of(method, path);
        let mut response = Response::new(empty());
        match sessions.greet(request.headers(), &reached, secret_of) {
            Some(proof) => {
                response.headers_mut().insert(PROOF, proof);
            }
            None => *response.status_mut() = StatusCode::BAD_REQUEST,
        }
        response
    }

    fn builder(&self, heard: Heard) -> http1::Builder {
        let ServerLimits { head, idle, head_bytes_max, head_fields_max, .. } = self.limits;
        let mut builder = http1::Builder::new();
        builder
            .timer(HeadTimer { heard, head, idle })
            .header_read_timeout(head)
            .max_headers(head_fields_max)
            .max_header_size(head_bytes_max);
        builder
    }

    async fn answer(
        &self,
        mut request: Request<Incoming>,
        arrival: Arrival,
        Known { stranger, admission, sessions }: Known<'_>,
    ) -> Response<Body> {
        let verdict = self.gate.judge(&request, sessions, arrival, Instant::now());
        let mut response = match verdict {
            Verdict::Greet => self.greet(&request, arrival, sessions),
            Verdict::Pass { authenticated } => {
                if authenticated {
                    stranger.lock().unwrap_or_else(PoisonError::into_inner).take();
                    admission.show_secret();
                }
                if admission.crowded {
                    let mut response = refuse(request, StatusCode::SERVICE_UNAVAILABLE).await;
                    *response.body_mut() = crowded(self.limits.connections_max);
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                    response
                } else {
                    request.extensions_mut().insert(PeerAddress(arrival.peer));
                    (self.handler)(request).await
                }
            }
            Verdict::Refuse(status) => {
                let path = request.uri().path().escape_debug().to_string();
                debug!(peer = %arrival.peer, %status, method = %request.method(), path, "refused a request");
                refuse(request, status).await
            }
        };
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        let is_stranger = stranger.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let goes_on = matches!(response.status(), StatusCode::SWITCHING_PROTOCOLS)
            || response.headers().contains_key(PROOF);
        if is_stranger && !goes_on {
            // Strangers' places are few; an idle connection must not occupy one.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// What the requests of one connection have in common.
struct Known<'a> {
    stranger: &'a Stranger,
    admission: &'a Admission,
    sessions: &'a ServerSessions,
}

/// What a request on a connection too many is told.
fn crowded(connections_max: usize) -> Body {
    let message = format!(
        "there is no room for another connection: {connections_max} are open, as many as this process has \
         descriptors for; end some clients, or raise its limit of open files (ulimit -n)"
    );
    json(&serde_json::json!({"code": "crowded", "message": message})).unwrap_or_else(|_| empty())
}

/// A refusal, after reading a little of the body: closing a socket with bytes unread resets it, and
/// the peer could lose the answer.
async fn refuse(request: Request<Incoming>, status: StatusCode) -> Response<Body> {
    let body = read_limited(request.into_body(), REFUSED_BODY_BYTES_MAX);
    if timeout(REFUSED_BODY_TIME, body).await.is_err() {
        debug!("gave up on a refused request's body");
    }
    let mut response = Response::new(empty());
    *response.status_mut() = status;
    response
}
