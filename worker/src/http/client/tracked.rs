//! Request body that reports its progress, so that a large one is not mistaken for a silent peer.

use crate::http::body::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// Number of pieces of a request that have been sent.
#[derive(Clone, Default)]
pub(super) struct UploadProgress(Arc<AtomicU64>);

impl UploadProgress {
    fn mark(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn pieces(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Request body that counts its sent pieces.
pub(super) struct Tracked {
    pub(super) inner: Body,
    pub(super) progress: UploadProgress,
}

impl hyper::body::Body for Tracked {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(context);
        if frame.is_ready() {
            self.progress.mark();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
