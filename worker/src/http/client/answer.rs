//! Body of a response, read with a minimum rate.

use super::error::{HttpError, Phase};
use crate::http::body::{BodyError, Steady};
use crate::http::limits::ERROR_BODY_BYTES_MAX;
use bytes::{Bytes, BytesMut};
use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use std::time::Duration;

/// Body of a response. If it is dropped before its end, its connection is closed.
#[derive(Debug)]
pub struct Answer {
    pub(super) body: Steady<Incoming>,
    pub(super) peer: String,
    pub(super) stall: Duration,
    /// Takes the connection once the body has been read.
    pub(super) home: Option<Home>,
}

/// Puts a connection back where it came from.
pub(in crate::http) struct Home(pub(in crate::http) Box<dyn FnOnce() + Send + Sync>);

impl std::fmt::Debug for Home {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Home")
    }
}

impl Answer {
    pub(in crate::http) fn returning_to(mut self, home: Home) -> Self {
        self.home = Some(home);
        self.go_home_at_end();
        self
    }

    fn go_home_at_end(&mut self) {
        if hyper::body::Body::is_end_stream(self.body.body())
            && let Some(home) = self.home.take()
        {
            (home.0)();
        }
    }

    /// Returns the number of remaining bytes, if the peer announced it.
    #[must_use]
    pub(crate) fn bytes_left(&self) -> Option<u64> {
        hyper::body::Body::size_hint(self.body.body()).exact()
    }

    /// Returns the next piece of the body; `None` at its proper end.
    ///
    /// # Errors
    /// `Truncated` if the connection ended before the body did, `Timeout` if nothing arrived for too long.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let peer = || self.peer.clone();
        match self.body.next().await {
            Ok(Some(data)) => {
                self.go_home_at_end();
                Ok(Some(data))
            }
            Ok(None) => {
                // The end of a body of unknown length is only known here.
                if let Some(home) = self.home.take() {
                    (home.0)();
                }
                Ok(None)
            }
            Err(BodyError::Broken { source }) => Err(HttpError::Truncated { peer: peer(), source }),
            Err(_) => Err(HttpError::Timeout { peer: peer(), phase: Phase::Body, limit: self.stall }),
        }
    }

    /// Returns the rest of the body, if it has at most `bytes_max` bytes.
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

pub(in crate::http) async fn expect_success(
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
    // The status is the error; the body only explains it, so an error of reading the body is ignored.
    let body = response.body_mut().collect(ERROR_BODY_BYTES_MAX).await.unwrap_or_default();
    let message = String::from_utf8_lossy(&body).trim_end().escape_debug().to_string();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return Err(HttpError::Crowded { peer, method, path, message });
    }
    Err(HttpError::Status { peer, method, path, status, message })
}
