//! Pool of connections for further requests to the same peer.
//!
//! A connection returns to the pool once the response's body has been read to its end; a response dropped earlier
//! closes it. The pool limits idle connections, not those in use: the caller decides how many requests run at once.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::{Method, Request, Response};
use tokio::time::{Instant, sleep};

use super::body::Body;
use super::client::{Answer, Connection, Home, HttpError, Timeouts, ends_early, expect_success, new_request};
use super::endpoint::{Endpoint, Plaintext};
use super::limits::{
    CLOSED_EARLY_MAX, CLOSED_EARLY_PAUSE, CLOSED_EARLY_PAUSE_MAX, POOL_IDLE_PER_PEER_MAX, POOL_IDLE_TIME,
};
use super::token::Key;

/// Keeps idle connections by peer. Cheap to clone; clones share the connections.
#[derive(Clone, Debug)]
pub struct Pool {
    timeouts: Timeouts,
    plaintext: Plaintext,
    idle: Arc<IdleConnections>,
}

/// Invariant: no entry is empty, and none has more than [`POOL_IDLE_PER_PEER_MAX`] connections.
#[derive(Default)]
struct IdleConnections(Mutex<HashMap<Endpoint, Vec<IdleConnection>>>);

struct IdleConnection {
    connection: Connection,
    since: Instant,
}

impl fmt::Debug for IdleConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleConnections").finish_non_exhaustive()
    }
}

impl Pool {
    /// Creates an empty pool whose connections have these time limits, and connect to these peers without TLS.
    #[must_use]
    pub fn new(timeouts: Timeouts, plaintext: Plaintext) -> Self {
        Pool { timeouts, plaintext, idle: Arc::default() }
    }

    /// Creates an empty pool with the same settings.
    #[must_use]
    pub fn renewed(&self) -> Self {
        Self::new(self.timeouts, self.plaintext)
    }

    /// Sends a request and returns its response if the status is a success.
    ///
    /// # Errors
    /// As [`Pool::send`]; `Unauthorized` for 401 and `Status` for any other status than 2xx.
    pub async fn request(
        &self,
        endpoint: &Endpoint,
        key: Option<&dyn Key>,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Response<Answer>, HttpError> {
        let peer = endpoint.to_string();
        let request = new_request(&peer, method.clone(), path, body)?;
        let response = self.send(endpoint, key, request).await?;
        expect_success(response, &peer, method, path).await
    }

    /// Sends a request, whose URI is a path, on an idle connection or a new one, and returns its response with any
    /// status.
    ///
    /// If the peer had closed the connection before the request was sent, it is sent on another one. An idle
    /// connection may have been closed since, and one without a shown secret is closed when many
    /// unauthenticated peers connect. The number of tries is limited, and a request of which a byte may have
    /// been sent is never repeated.
    ///
    /// # Errors
    /// As [`Connection::open`] and [`Connection::send`].
    pub async fn send(
        &self,
        endpoint: &Endpoint,
        key: Option<&dyn Key>,
        mut request: Request<Body>,
    ) -> Result<Response<Answer>, HttpError> {
        let mut tries = ReuseTries::new(self.timeouts.connect);
        loop {
            let (mut connection, is_new) = match self.take_idle(endpoint).await {
                Some(connection) => (connection, false),
                None => match Connection::open(endpoint, self.timeouts, self.plaintext).await {
                    Ok(connection) => (connection, true),
                    Err(HttpError::Connect { source, .. })
                        if ends_early(&source) && tries.again(true).await =>
                    {
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            match connection.greet(key, request.method(), request.uri().path()).await {
                Ok(()) => {}
                // No byte of the request itself was sent.
                Err(failure)
                    if matches!(failure.error, HttpError::Closed { .. }) && tries.again(is_new).await =>
                {
                    continue;
                }
                Err(failure) => return Err(failure.error),
            }
            request = connection.prepare(key, request)?;
            match connection.exchange(request).await {
                Ok(response) => {
                    return Ok(response.map(|body| self.response_body(endpoint, connection, body)));
                }
                Err(failure) => match failure.unsent {
                    Some(unsent) if tries.again(is_new).await => request = unsent,
                    _ => return Err(failure.error),
                },
            }
        }
    }

    fn response_body(
        &self,
        endpoint: &Endpoint,
        connection: Connection,
        body: hyper::body::Incoming,
    ) -> Answer {
        let answer = connection.response_body(body);
        let (idle, endpoint) = (Arc::clone(&self.idle), endpoint.clone());
        answer.returning_to(Home(Box::new(move || {
            if !connection.is_spent() {
                idle.push(endpoint, connection);
            }
        })))
    }

    /// Returns the most recently used idle connection that still works.
    async fn take_idle(&self, endpoint: &Endpoint) -> Option<Connection> {
        loop {
            let mut connection = self.idle.pop(endpoint)?;
            if connection.is_usable().await {
                return Some(connection);
            }
        }
    }

    /// Number of idle connections.
    #[cfg(test)]
    pub(crate) fn idle_count(&self) -> usize {
        self.idle.lock().values().map(Vec::len).sum()
    }
}

/// Number of connections that were closed before the request was sent.
struct ReuseTries {
    started: Instant,
    limit: Duration,
    /// Number of those that were new.
    closed: u32,
    pause: Duration,
}

impl ReuseTries {
    fn new(limit: Duration) -> Self {
        Self { started: Instant::now(), limit, closed: 0, pause: CLOSED_EARLY_PAUSE }
    }

    /// Returns true to try once more. After a new connection it first pauses: where many peers connect, they come in
    /// waves.
    async fn again(&mut self, is_new: bool) -> bool {
        self.closed += u32::from(is_new);
        let goes_on = self.closed <= CLOSED_EARLY_MAX && self.started.elapsed() < self.limit;
        if goes_on && is_new {
            sleep(self.pause).await;
            self.pause = (self.pause * 2).min(CLOSED_EARLY_PAUSE_MAX);
        }
        goes_on
    }
}

impl IdleConnections {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Endpoint, Vec<IdleConnection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop(&self, endpoint: &Endpoint) -> Option<Connection> {
        let mut all = self.lock();
        let connections = all.get_mut(endpoint)?;
        let idle = connections.pop();
        if connections.is_empty() {
            all.remove(endpoint);
        }
        idle.filter(|idle| idle.since.elapsed() < POOL_IDLE_TIME).map(|idle| idle.connection)
    }

    fn push(&self, endpoint: Endpoint, connection: Connection) {
        let mut all = self.lock();
        // Every return removes all dead connections, so that lost peers leave nothing behind.
        all.retain(|_, connections| {
            connections.retain(|idle| !idle.connection.is_spent() && idle.since.elapsed() < POOL_IDLE_TIME);
            !connections.is_empty()
        });
        let connections = all.entry(endpoint).or_default();
        if connections.len() < POOL_IDLE_PER_PEER_MAX {
            connections.push(IdleConnection { connection, since: Instant::now() });
        }
    }
}
