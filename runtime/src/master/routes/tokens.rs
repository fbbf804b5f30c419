//! Routes that create, revoke and rotate tokens.

use super::super::input::MasterHandle;
use super::super::tokens::{Tokens, TokensError};
use super::common::{Answered, BODY_BYTES_MAX, RouteRefusal, ShownBody, body, ok, parsed};
use crate::api::{ErrorCode, MadeToken, NewToken, RevokeToken, RotateTokens};
use gristmill_worker::http::Key;
use gristmill_worker::response;
use hyper::StatusCode;
use std::time::Duration;

pub(super) async fn new_token(handle: &MasterHandle, sent: ShownBody) -> Answered {
    let wanted: NewToken = parsed(&body(handle, sent, BODY_BYTES_MAX).await?)?;
    let token =
        handle.tokens.token(wanted.role, wanted.label.as_deref()).map_err(|error| refused_token(&error))?;
    if let Some(quota) = wanted.quota {
        let (role, label) = (wanted.role, wanted.label.clone());
        change_tokens(handle, move |tokens| tokens.set_quota(role, label.as_deref(), quota)).await?;
    }
    let name = token.name().to_owned();
    // A name missing from the list is no reason to refuse the token.
    if change_tokens(handle, move |tokens| tokens.note_made(&name)).await.is_err() {
        tracing::warn!(
            "the state directory cannot be written: `cluster token list` will not show the token that was just made"
        );
    }
    ok(&MadeToken { token: token.to_text().to_string() })
}

pub(super) async fn revoke_token(handle: &MasterHandle, sent: ShownBody) -> Answered {
    let revoke: RevokeToken = parsed(&body(handle, sent, BODY_BYTES_MAX).await?)?;
    change_tokens(handle, move |tokens| tokens.revoke(&revoke.name)).await
}

pub(super) async fn rotate_tokens(handle: &MasterHandle, sent: ShownBody) -> Answered {
    let rotate: RotateTokens = parsed(&body(handle, sent, BODY_BYTES_MAX).await?)?;
    change_tokens(handle, move |tokens| tokens.rotate(Duration::from_secs(rotate.grace_seconds))).await
}

/// Changes the tokens on another thread, because a change must be on disk before it is effective.
async fn change_tokens(
    handle: &MasterHandle,
    change: impl FnOnce(&Tokens) -> Result<(), TokensError> + Send + 'static,
) -> Answered {
    let tokens = handle.tokens.clone();
    let changed =
        tokio::task::spawn_blocking(move || change(&tokens)).await.map_err(|_| RouteRefusal::ending())?;
    changed.map_err(|error| refused_token(&error))?;
    Ok(response::status(StatusCode::NO_CONTENT))
}

fn refused_token(error: &TokensError) -> RouteRefusal {
    let status = match error {
        TokensError::File(_) | TokensError::Content { .. } | TokensError::Rotated { .. } => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        _ => StatusCode::BAD_REQUEST,
    };
    RouteRefusal::new(status, ErrorCode::Token, gristmill_worker::error_text::chain(error))
}
