//! One request and the head of its response: the greeting before it, common headers, and the wait.

use super::Connection;
use super::answer::expect_success;
use super::error::{HttpError, Phase};
use crate::http::active_time::step;
use crate::http::body::{Body, empty};
use crate::http::endpoint::Plaintext;
use crate::http::proof::{Asked, HELLO, HELLO_PATH, Proven};
use crate::http::token::Key;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::time::timeout;

impl Connection {
    /// Makes the server prove that it knows a secret, unless it already has.
    pub(in crate::http) async fn greet(
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
        let (peer, asked_path) = (self.peer.clone(), path.to_owned());
        let unauthorized = HttpError::Unauthorized { peer, method: method.clone(), path: asked_path };
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
            // Too many requests or connections: the server did not process the hello.
            Proven::No if status.is_server_error() || status == StatusCode::MISDIRECTED_REQUEST => {
                let response = response.map(|body| self.response_body(body));
                expect_success(response, &self.peer, method.clone(), path).await.err().unwrap_or(unauthorized)
            }
            Proven::No => unauthorized,
        };
        Err(failed(error))
    }

    /// Waits until the peer has responded to a greeting, with any result. A connection alone proves nothing: the system
    /// accepts connections for a stopped process. No secret is needed, and none is shown.
    ///
    /// # Errors
    /// `Timeout`, `Closed` or `NotHttp`.
    pub(crate) async fn await_any_answer(&mut self) -> Result<(), HttpError> {
        let request = new_request(&self.peer, Method::POST, HELLO_PATH, empty())?;
        let request = self.prepare(None, request)?;
        self.exchange(request).await.map(drop).map_err(|failure| failure.error)
    }

    /// Adds the headers of every request. The proof that this client knows the secret is only sent to a server that has
    /// been greeted for it.
    pub(in crate::http) fn prepare(
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

    /// Sends a prepared request and waits for the head of its response.
    pub(in crate::http) async fn exchange(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Box<ExchangeFailure>> {
        // Number of pieces of the request that were sent, so that a large one is not mistaken for a silent peer.
        let pieces = Arc::new(AtomicU64::new(0));
        let sending = pieces.clone();
        let count = move |_: &Frame<Bytes>| {
            sending.fetch_add(1, Relaxed);
        };
        let request = request.map(|body| body.inspect_frame(count).boxed());
        let limit = self.timeouts.head;
        let sent = self.sender.try_send_request(request);
        tokio::pin!(sent);
        let (mut seen, mut left) = (pieces.load(Relaxed), limit);
        loop {
            tokio::select! {
                biased;
                result = sent.as_mut() => return result.map_err(|mut failure| {
                    let unsent = failure.take_message();
                    Box::new(ExchangeFailure { error: exchange_error(&self.peer, failure.into_error()), unsent })
                }),
                step = step(left) => {
                    // A large request may take longer than any response; only silence counts.
                    let before = std::mem::replace(&mut seen, pieces.load(Relaxed));
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

/// Failed exchange; `unsent` is the request if no byte of it can have reached the peer.
pub(in crate::http) struct ExchangeFailure {
    pub(in crate::http) error: HttpError,
    pub(in crate::http) unsent: Option<Request<Body>>,
}

fn exchange_error(peer: &str, source: hyper::Error) -> HttpError {
    let peer = peer.to_owned();
    if source.is_parse() { HttpError::NotHttp { peer, source } } else { HttpError::Closed { peer, source } }
}

pub(in crate::http) fn new_request(
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
