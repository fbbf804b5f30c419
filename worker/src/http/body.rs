//! Bodies of requests and answers: the one type they all have, how they are made and read.
//!
//! It is not a codec: bodies are bytes here, except that [`json`] saves the callers a line.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::limits::{BODY_TIME, RATE_BYTES_MIN};
use super::rate::LeastRate;

/// The body of every request sent and every answer given.
pub type Body = BoxBody<Bytes, io::Error>;

fn never(error: Infallible) -> io::Error {
    match error {}
}

/// A body of these bytes.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(never).boxed()
}

/// A body of nothing.
#[must_use]
pub fn empty() -> Body {
    Empty::new().map_err(never).boxed()
}

/// A body of this value as JSON; the content type is the caller's to set.
///
/// # Errors
/// If the value cannot be written as JSON, for instance a map whose keys are not strings.
pub fn json<T: serde::Serialize>(value: &T) -> Result<Body, serde_json::Error> {
    Ok(full(serde_json::to_vec(value)?))
}

/// A body of several slices one after the other, of known length, without copying them together.
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

enum BodyPart {
    Data(Bytes),
    End,
}

/// A body whose bytes are produced while it is sent; at most `parts_max` of them wait.
#[must_use]
pub fn stream(parts_max: usize) -> (BodySender, Body) {
    let (sender, receiver) = mpsc::channel(parts_max);
    (BodySender { sender }, Streamed { receiver, ended: false }.boxed())
}

/// The producing end of a streamed body.
///
/// Dropped without [`BodySender::finish`], it breaks the body off, so that the receiver sees a
/// truncated body and never takes half of one for the whole.
#[derive(Debug)]
pub struct BodySender {
    sender: mpsc::Sender<BodyPart>,
}

impl std::fmt::Debug for BodyPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BodyPart::Data(bytes) => write!(f, "Data({} bytes)", bytes.len()),
            BodyPart::End => f.write_str("End"),
        }
    }
}

impl BodySender {
    /// Adds bytes; waits while too many are unsent. Empty bytes are skipped.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] if the connection has gone.
    pub async fn send(&self, bytes: Bytes) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.sender.send(BodyPart::Data(bytes)).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// As [`BodySender::send`], from a thread that is not the runtime's.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] if the connection has gone.
    ///
    /// # Panics
    /// On a thread of an asynchronous runtime, which it would block.
    pub fn send_blocking(&self, bytes: Bytes) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.sender.blocking_send(BodyPart::Data(bytes)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Ends the body whole.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] if the connection has gone.
    pub async fn finish(self) -> io::Result<()> {
        self.sender.send(BodyPart::End).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// As [`BodySender::finish`], from a thread that is not the runtime's.
    ///
    /// # Errors
    /// [`io::ErrorKind::BrokenPipe`] if the connection has gone.
    ///
    /// # Panics
    /// On a thread of an asynchronous runtime, which it would block.
    pub fn finish_blocking(self) -> io::Result<()> {
        self.sender.blocking_send(BodyPart::End).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

struct Streamed {
    receiver: mpsc::Receiver<BodyPart>,
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
            Some(BodyPart::Data(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(BodyPart::End) => {
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

/// A body that is read piece by piece, as long as it comes at [`RATE_BYTES_MIN`] at least.
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
    /// A body of which `window` is the longest silence, and the time over which its rate is taken.
    pub fn new(body: B, window: Duration) -> Self {
        Self { body, rate: LeastRate::new(window, true) }
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// `Slow` and `Broken`.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BodyError<B::Error>> {
        loop {
            let Ok(frame) = self.rate.wait(self.body.frame()).await else { return Err(BodyError::Slow) };
            let Some(frame) = frame else { return Ok(None) };
            // Anything but data is a trailer, and we send none.
            let Ok(data) = frame.map_err(|source| BodyError::Broken { source })?.into_data() else {
                continue;
            };
            return self.rate.count(data.len() as u64).map(|()| Some(data)).map_err(|_| BodyError::Slow);
        }
    }
}

/// Why a body could not be read whole.
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
    /// It came too slowly, or not at all.
    #[error("a body came at less than {RATE_BYTES_MIN} bytes in a second")]
    Slow,
    /// It broke off.
    #[error("could not read the body")]
    Broken {
        #[source]
        source: E,
    },
}

/// Reads a whole small body: at most `bytes_max` bytes within [`BODY_TIME`].
///
/// # Errors
/// If it is longer, slower or breaks off. A body that declares its length is refused unread.
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
        // Most bodies are one frame, which is handed on as it is.
        if first.is_empty() { first = data } else { rest.extend_from_slice(&data) }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    Ok([first, rest.freeze()].concat().into())
}
