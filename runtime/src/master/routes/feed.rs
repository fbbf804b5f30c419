//! Feed of changes for viewers: a line several times a second.

use super::super::input::MasterHandle;
use super::super::state::FeedCursor;
use super::common::status_in;
use gristmill_worker::http::{Body, ShownKey, stream};
use gristmill_worker::response;
use hyper::{Response, StatusCode};
use std::time::Duration;

/// Interval of lines.
const LINE_PAUSE: Duration = Duration::from_millis(250);

/// A reader that takes nothing for this long is gone.
const READER_TIMEOUT: Duration = Duration::from_secs(30);

/// Streams changes without end. The stream breaks off when its token becomes invalid, or the master ends.
pub(super) fn feed(handle: MasterHandle, key: ShownKey) -> Response<Body> {
    // A reader that is slower than the lines gets fewer, which together contain all changes.
    let (sender, body) = stream(1);
    tokio::spawn(async move {
        let mut cursor = FeedCursor::default();
        while handle.tokens.find(&key.0).is_some() {
            let build = handle.build.clone();
            let told = handle.call(move |state, now| {
                let line = cursor.advance(now, state.queries(), status_in(state, now, build));
                (line, cursor)
            });
            let Some((line, moved)) = told.await else { return };
            cursor = moved;
            let Ok(mut bytes) = serde_json::to_vec(&line) else { return };
            bytes.push(b'\n');
            let sent = tokio::time::timeout(READER_TIMEOUT, sender.send(bytes.into())).await;
            if !matches!(sent, Ok(Ok(()))) {
                return;
            }
            if !line.more {
                tokio::time::sleep(LINE_PAUSE).await;
            }
        }
    });
    response::with_body(StatusCode::OK, body)
}
