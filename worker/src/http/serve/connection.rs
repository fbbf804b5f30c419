//! One connection of a server: TLS, the proof of the secret, and its requests.

use crate::http::body::{Body, empty, json, read_limited};
use crate::http::census::Admission;
use crate::http::gate::{Arrival, Gate, GateVerdict};
use crate::http::limits::{REFUSED_BODY_BYTES_MAX, REFUSED_BODY_TIME, ServerLimits};
use crate::http::proof::{PROOF, PROVE_PATH, Reached, ServerSessions};
use crate::http::tls::Pin;
use crate::http::watch::Watched;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONNECTION, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::debug;

/// Address of the sender of a request, stored in the request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

/// The name of the key that the sender of a request has shown, empty if it has none; found among the request's
/// extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownKey(pub String);

pub(super) struct HttpServer<H> {
    pub(super) limits: ServerLimits,
    /// TLS acceptor with the pin of its key.
    pub(super) acceptor: Option<(TlsAcceptor, Pin)>,
    pub(super) gate: Gate,
    pub(super) handler: H,
}

impl<H, F> HttpServer<H>
where
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    pub(super) async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        admission: Admission,
        stopping: watch::Receiver<()>,
    ) {
        let Ok(local) = stream.local_addr() else { return };
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%peer, %error, "could not set a connection to send at once");
        }
        let arrival = Arrival { peer, local };
        let admission = Arc::new(admission);
        let stranger_time = self.limits.stranger;
        tokio::select! {
            () = admission.sent_away() => debug!(%peer, "closed a stranger's connection: others came"),
            () = overdue(stranger_time, &admission) => debug!(%peer, "closed a connection that shows no secret"),
            () = self.speak(stream, arrival, Arc::clone(&admission), stopping) => {}
        }
    }

    async fn speak(
        self: Arc<Self>,
        stream: TcpStream,
        arrival: Arrival,
        admission: Arc<Admission>,
        stopping: watch::Receiver<()>,
    ) {
        let peer = arrival.peer;
        match self.acceptor.clone() {
            None => self.http(stream, arrival, admission, stopping).await,
            Some((acceptor, _)) => match timeout(self.limits.handshake, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => self.http(stream, arrival, admission, stopping).await,
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
        mut stopping: watch::Receiver<()>,
    ) where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let builder = self.builder();
        let io = TokioIo::new(Watched::new(stream, self.limits.stall, Arc::clone(&admission)));
        let sessions = Arc::new(ServerSessions::default());
        let service = service_fn(move |request| {
            let (server, admission) = (Arc::clone(&self), Arc::clone(&admission));
            let sessions = Arc::clone(&sessions);
            async move { Ok::<_, Infallible>(server.respond(request, arrival, &admission, &sessions).await) }
        });
        let connection = builder.serve_connection(io, service).with_upgrades();
        tokio::pin!(connection);
        let result = tokio::select! {
            result = connection.as_mut() => result,
            // No value is ever sent; the sender is dropped when the server stops.
            _ = stopping.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            debug!(peer = %arrival.peer, %error, "connection ended early");
        }
    }

    /// Proves that this server knows the secret of the route that a hello names. Only a hello to its own path opens a
    /// session.
    fn greet(
        &self,
        request: &Request<Incoming>,
        arrival: Arrival,
        sessions: &ServerSessions,
    ) -> Response<Body> {
        let reached = match self.acceptor {
            None => Reached::At(arrival.local),
            Some((_, pin)) => Reached::Tls(pin),
        };
        let secret_of = |method: &Method, path: &str, key: &str| self.gate.secret_of(method, path, key);
        let mut response = Response::new(empty());
        let none = ServerSessions::default();
        let sessions = if request.uri().path() == PROVE_PATH { &none } else { sessions };
        match sessions.greet(request.headers(), &reached, secret_of) {
            Some(proof) => {
                response.headers_mut().insert(PROOF, proof);
            }
            None => *response.status_mut() = StatusCode::BAD_REQUEST,
        }
        response
    }

    fn builder(&self) -> http1::Builder {
        let ServerLimits { idle, head_bytes_max, head_fields_max, .. } = self.limits;
        let mut builder = http1::Builder::new();
        // hyper's limit for a head includes the silence before it. A peer without a secret has less time for both.
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(idle)
            .max_headers(head_fields_max)
            .max_header_size(head_bytes_max);
        builder
    }

    async fn respond(
        &self,
        mut request: Request<Incoming>,
        arrival: Arrival,
        admission: &Admission,
        sessions: &ServerSessions,
    ) -> Response<Body> {
        let verdict = self.gate.judge(&request, sessions, arrival, Instant::now());
        let mut response = match verdict {
            GateVerdict::Greet => {
                admission.greet();
                self.greet(&request, arrival, sessions)
            }
            GateVerdict::Pass { authenticated } => {
                if authenticated && !admission.show_secret() {
                    let mut response = refuse(request, StatusCode::SERVICE_UNAVAILABLE).await;
                    *response.body_mut() = crowded(self.limits.connections_max);
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                    response
                } else {
                    request.extensions_mut().insert(PeerAddress(arrival.peer));
                    // On an open route the proof has not been checked.
                    let named = authenticated.then(|| self.gate.key_of(request.headers(), sessions));
                    let key = ShownKey(named.flatten().unwrap_or_default());
                    request.extensions_mut().insert(key);
                    (self.handler)(request).await
                }
            }
            GateVerdict::Refuse(status) => {
                let path = request.uri().path().escape_debug().to_string();
                debug!(peer = %arrival.peer, %status, method = %request.method(), path, "refused a request");
                refuse(request, status).await
            }
        };
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        let goes_on = matches!(response.status(), StatusCode::SWITCHING_PROTOCOLS)
            || response.headers().contains_key(PROOF);
        if !admission.is_known() && !goes_on {
            // Places of unauthenticated connections are few; an idle connection must not occupy one.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Completes when a connection has been unauthenticated for this long.
async fn overdue(stranger_time: Duration, admission: &Admission) {
    tokio::time::sleep(stranger_time).await;
    if admission.is_known() {
        std::future::pending::<()>().await;
    }
}

/// Returns the response to a request on a connection beyond the limit.
fn crowded(connections_max: usize) -> Body {
    let message = format!(
        "there is no room for another connection: {connections_max} are open, as many as this process has \
         descriptors for; end some clients, or raise its limit of open files (ulimit -n)"
    );
    json(&serde_json::json!({"code": "crowded", "message": message})).unwrap_or_else(|_| empty())
}

/// Returns an error response after reading a little of the body: closing a socket with unread bytes resets it, and the
/// peer could lose the response.
async fn refuse(request: Request<Incoming>, status: StatusCode) -> Response<Body> {
    let body = read_limited(request.into_body(), REFUSED_BODY_BYTES_MAX);
    if timeout(REFUSED_BODY_TIME, body).await.is_err() {
        debug!("gave up on a refused request's body");
    }
    let mut response = Response::new(empty());
    *response.status_mut() = status;
    response
}
