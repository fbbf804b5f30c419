//! Bodies of requests and responses: their common type, construction and reading.
//!
//! Bodies are bytes here; [`json`] is a helper for callers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::limits::{BODY_TIME, RATE_BYTES_MIN};
use super::rate::LeastRate;

/// Body of every request and response.
pub type Body = BoxBody<Bytes, io::Error>;

fn never(error: Infallible) -> io::Error {
    match error {}
}

/// Creates a body of these bytes.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(never).boxed()
}

/// Creates an empty body.
#[must_use]
pub fn empty() -> Body {
    Empty::new().map_err(never).boxed()
}

/// Creates a body of this value as JSON; the caller sets the content type.
///
/// # Errors
/// If the value cannot be serialized as JSON, for instance a map whose keys are not strings.
pub fn json<T: serde::Serialize>(value: &T) -> Result<Body, serde_json::Error> {
    Ok(full(serde_json::to_vec(value)?))
}

/// Creates a body of several consecutive slices, of known length, without copying them together.
#[must_use]
pub fn pieces(pieces: Vec<Bytes>) -> Body {
    let left = pieces.iter().map(|piece| piece.len() as u64).sum();
    BodyPieces { pieces: pieces.into(), left }.boxed()
}

struct BodyPieces {
    pieces: VecDeque<Bytes>,
    /// Invariant: the sum of the lengths of `pieces`.
    left: u64,
}

impl hyper::body::Body for BodyPieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// Creates a body whose bytes are produced while it is sent; at most `parts_max` of them wait.
#[must_use]
pub fn stream(parts_max: usize) -> (BodySender, Body) {
    let (sender, receiver) = mpsc::channel(parts_max);
    (BodySender { sender }, Streamed { receiver, ended: false }.boxed())
}

/// Producing end of a streamed body.
///
/// If it is dropped without [`BodySender::finish`], the body ends early, so that the receiver sees a truncated body and
/// not a complete one.
#[derive(Debug)]
pub struct BodySender {
    /// `None` is the end.
    sender: mpsc::Sender<Option<Bytes>>,
}

impl BodySender {
    /// Adds bytes; waits while too many are unsent. Empty bytes are skipped.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] if the connection is closed.
    pub async fn send(&self, bytes: Bytes) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.sender.send(Some(bytes)).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Completes the body.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] if the connection is closed.
    pub async fn finish(self) -> io::Result<()> {
        self.sender.send(None).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Bytes of a file read at once for a body.
const FILE_CHUNK_BYTES: usize = 512 << 10;

/// Number of such chunks that wait for the socket.
const FILE_CHUNKS_AHEAD: usize = 2;

/// Creates a body of the rest of a file. A blocking thread reads it while it is sent; an error of reading is its result,
/// and ends the body early.
pub fn file_body(mut file: File) -> (JoinHandle<io::Result<()>>, Body) {
    let (BodySender { sender }, body) = stream(FILE_CHUNKS_AHEAD);
    let reading = tokio::task::spawn_blocking(move || {
        loop {
            let mut chunk = Vec::with_capacity(FILE_CHUNK_BYTES);
            let got = (&mut file).take(FILE_CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
            let part = (got > 0).then(|| Bytes::from(chunk));
            sender.blocking_send(part).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            if got == 0 {
                return Ok(());
            }
        }
    });
    (reading, body)
}

struct Streamed {
    receiver: mpsc::Receiver<Option<Bytes>>,
    ended: bool,
}

impl hyper::body::Body for Streamed {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.receiver.poll_recv(context).map(|part| match part {
            Some(Some(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(None) => {
                self.ended = true;
                None
            }
            None => {
                self.ended = true;
                Some(Err(io::ErrorKind::ConnectionAborted.into()))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

/// Body that is read piece by piece, and must arrive at least at `RATE_BYTES_MIN`.
#[derive(Debug)]
pub struct Steady<B> {
    body: B,
    rate: LeastRate,
}

impl<B> Steady<B>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    /// Wraps a body. `window` is the longest allowed silence, and the time over which its rate is measured.
    pub fn new(body: B, window: Duration) -> Self {
        Self::with_rate(body, LeastRate::new(window, true))
    }

    /// Wraps a body that must arrive at this rate.
    pub(super) fn with_rate(body: B, rate: LeastRate) -> Self {
        Self { body, rate }
    }

    /// Returns the body.
    pub(super) fn body(&self) -> &B {
        &self.body
    }

    /// Returns the next piece; `None` at the end.
    ///
    /// # Errors
    /// `Slow` and `Broken`.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BodyError<B::Error>> {
        loop {
            let Ok(frame) = self.rate.wait(self.body.frame()).await else { return Err(BodyError::Slow) };
            let Some(frame) = frame else { return Ok(None) };
            // Frames other than data are trailers, which are never sent here.
            let Ok(data) = frame.map_err(|source| BodyError::Broken { source })?.into_data() else {
                continue;
            };
            return self.rate.count(data.len() as u64).map(|()| Some(data)).map_err(|_| BodyError::Slow);
        }
    }
}

/// Error of reading a body.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub enum BodyError<E: std::error::Error + 'static> {
    /// It is longer than allowed.
    #[error("refused a body of more than {bytes_max} bytes")]
    TooLarge {
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// It took too long to arrive.
    #[error("could not read the body within {} s", BODY_TIME.as_secs())]
    Timeout,
    /// It arrived too slowly, or not at all.
    #[error("a body came at less than {RATE_BYTES_MIN} bytes in a second")]
    Slow,
    /// It ended early.
    #[error("could not read the body")]
    Broken {
        #[source]
        source: E,
    },
}

/// Reads a small body as a whole: at most `bytes_max` bytes within `BODY_TIME`.
///
/// # Errors
/// If it is longer, slower or ends early. A body whose declared length is too large is rejected unread.
pub async fn read_limited<B>(body: B, bytes_max: usize) -> Result<Bytes, BodyError<B::Error>>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    timeout(BODY_TIME, collect(body, bytes_max)).await.unwrap_or(Err(BodyError::Timeout))
}

async fn collect<B>(mut body: B, bytes_max: usize) -> Result<Bytes, BodyError<B::Error>>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + 'static,
{
    if (bytes_max as u64) < body.size_hint().lower() {
        return Err(BodyError::TooLarge { bytes_max });
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|source| BodyError::Broken { source })?.into_data() else { continue };
        if bytes_max - first.len() - rest.len() < data.len() {
            return Err(BodyError::TooLarge { bytes_max });
        }
        // Most bodies are one frame, which is passed on without a copy.
        if first.is_empty() { first = data } else { rest.extend_from_slice(&data) }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    Ok([first, rest.freeze()].concat().into())
}
