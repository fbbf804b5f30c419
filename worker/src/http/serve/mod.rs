//! Server: accepts connections within limits, checks requests by the gate, and responds.
//!
//! The handler receives only requests that passed the gate. The caller provides the listener, its address rules
//! ([`super::Bind`]) and the time to stop. The server does no routing.
//!
//! Invariant: a connection is counted from its acceptance until its socket closes, including upgrades, so that the
//! limits hold for everything that occupies a file descriptor. Connections without a shown secret are few in total and
//! are closed for one another ([`Census`]). Those with one are limited by the available descriptors, and a request
//! beyond that gets an error response.

mod connection;

use super::bind::Transport;
use super::body::Body;
use super::census::Census;
use super::gate::{Gate, RouteAuth};
use super::limits::{ACCEPT_PAUSE, ServerLimits, WARNING_INTERVAL};
use connection::HttpServer;
pub use connection::{PeerAddress, ShownKey};
use hyper::body::Incoming;
use hyper::{Request, Response};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Plain or TLS.
    pub transport: Transport,
    /// Host names under which clients reach it, in addition to address literals and `localhost`.
    pub host_names: Vec<String>,
    /// Limits; only tests change the default.
    pub limits: ServerLimits,
}

impl ServerConfig {
    /// Creates settings without further names and with the default limits.
    #[must_use]
    pub fn new(transport: Transport) -> Self {
        ServerConfig { transport, host_names: Vec::new(), limits: ServerLimits::default() }
    }
}

/// Serves until `shutdown` completes, then lets responses in progress finish for a limited time.
///
/// The handler is called for requests that passed the gate; a panic in it only closes its connection. Upgraded streams
/// are the responsibility of their creator, and the server does not wait for them.
pub async fn serve<H, F>(
    listener: TcpListener,
    config: Arc<ServerConfig>,
    auth: Arc<dyn RouteAuth>,
    handler: H,
    shutdown: impl Future<Output = ()> + Send,
) where
    H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let acceptor = match &config.transport {
        Transport::Plain => None,
        Transport::Tls(identity) => Some((TlsAcceptor::from(identity.server_config()), identity.pin())),
    };
    let gate = Gate::new(auth, &config.host_names, acceptor.is_some(), &config.limits);
    let server = Arc::new(HttpServer { limits: config.limits.clone(), acceptor, gate, handler });
    let census = Census::new(config.limits.connections_max, config.limits.strangers_max);
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
                survive(&error, &census).await;
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
        // The panic hook has printed the message; this only reports that the server continues.
        warn!("a request handler panicked; its connection is closed");
    }
}

/// Handles a failed `accept`: nothing if the peer disconnected; if resources are exhausted, an unauthenticated
/// connection is closed, followed by a pause.
async fn survive(error: &io::Error, census: &Census) {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
        return;
    }
    census.make_room();
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
