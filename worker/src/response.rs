//! Constructors of HTTP responses: a status, a JSON value, bytes.

use crate::http::{self, Body};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// Creates a response without a body.
#[must_use]
pub fn status(code: StatusCode) -> Response<Body> {
    with_body(code, http::empty())
}

/// Creates a response with these bytes.
pub fn bytes(code: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    with_body(code, http::full(bytes))
}

/// Creates a response with this body.
#[must_use]
pub fn with_body(code: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response
}

/// Creates a response with this value as JSON; 500 if it cannot be serialized.
pub fn json<T: Serialize>(code: StatusCode, value: &T) -> Response<Body> {
    let Ok(body) = http::json(value) else { return status(StatusCode::INTERNAL_SERVER_ERROR) };
    let mut response = with_body(code, body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
