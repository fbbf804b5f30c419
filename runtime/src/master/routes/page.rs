//! Admission of a browser: the code for the link, and the token for the code.

use super::super::input::MasterHandle;
use super::super::page::ENTER_PATH;
use super::common::{Answered, RouteRefusal, ok, parsed};
use crate::api::{EnterPage, ErrorCode, MadeToken, PageCode};
use crate::role::Role;
use gristmill_worker::error_text::chain;
use gristmill_worker::http::{Body, ShownKey, read_limited};
use gristmill_worker::response;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use tokio::time::Instant;

/// Longest body with a code, bytes.
const ENTER_BYTES_MAX: usize = 1 << 10;

/// Responds with a code for a page with a token of this role. The gate has checked that the caller has at least this
/// role.
pub(super) fn code(handle: &MasterHandle, key: &ShownKey, role: Role) -> Answered {
    let code = handle.page_codes.issue(&key.0, role, Instant::now()).map_err(|wrong| {
        RouteRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Token, chain(&wrong))
    })?;
    ok(&PageCode { code: code.to_text().to_string() })
}

/// Responds to requests outside the routes of clients.
pub(super) async fn respond(handle: &MasterHandle, request: Request<Incoming>) -> Response<Body> {
    if (request.method(), request.uri().path()) != (&Method::POST, ENTER_PATH) {
        return response::status(StatusCode::NOT_FOUND);
    }
    enter(handle, request.into_body()).await.unwrap_or_else(RouteRefusal::into_response)
}

async fn enter(handle: &MasterHandle, incoming: Incoming) -> Answered {
    let body = read_limited(incoming, ENTER_BYTES_MAX)
        .await
        .map_err(|wrong| RouteRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::Body, chain(&wrong)))?;
    let EnterPage { code } = parsed(&body)?;
    let refusal = |message: &str| RouteRefusal::new(StatusCode::FORBIDDEN, ErrorCode::Token, message);
    let token = handle.page_codes.redeem(&code, &handle.tokens, Instant::now());
    let token = token.ok_or_else(|| {
        refusal(
            "this link was used before, is more than ten minutes old, or gave way to newer ones: `gristmill cluster page` \
             prints another",
        )
    })?;
    let token = token.map_err(|wrong| refusal(&chain(&wrong)))?;
    ok(&MadeToken { token })
}
