//! Time limits of a server's connection: for heads, silence and stalled writes.
//!
//! hyper has one timer for a head, and starts it when it begins to wait for one. That would close a
//! kept-alive connection after the few seconds that a head may take. [`HeadTimer`] gives hyper a sleep with
//! two limits. Until the first byte of a later request it lasts as long as silence may, from then on as long
//! as a head may. It is only for heads.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::rate::LeastRate;

/// Bytes that a connection has received so far; written by its stream, read by its timer.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<AtomicU64>);

impl Heard {
    fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    // Relaxed is sufficient: both sides are polled by the same task, one after the other.
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Timer of one server connection.
pub(super) struct HeadTimer {
    pub(super) heard: Heard,
    pub(super) head: Duration,
    pub(super) idle: Duration,
}

impl Timer for HeadTimer {
    fn sleep(&self, _duration: Duration) -> Pin<Box<dyn Sleep>> {
        let heard = self.heard.get();
        // Silence before the first request is not needed: the peer connected in order to send it.
        let limit = if heard == 0 { self.head } else { self.idle };
        Box::pin(HeadSleep {
            heard: self.heard.clone(),
            heard_at_start: heard,
            in_head: heard == 0,
            head: self.head,
            sleep: Box::pin(tokio::time::sleep(limit)),
        })
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(deadline.saturating_duration_since(self.now()))
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

struct HeadSleep {
    heard: Heard,
    heard_at_start: u64,
    in_head: bool,
    head: Duration,
    sleep: Pin<Box<tokio::time::Sleep>>,
}

impl Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !self.in_head && self.heard.get() != self.heard_at_start {
            self.in_head = true;
            let deadline = Instant::now() + self.head;
            self.sleep.as_mut().reset(deadline);
        }
        self.sleep.as_mut().poll(context)
    }
}

/// Stream that counts received bytes and fails when its peer stops receiving, or receives too slowly.
///
/// `held` lives as long as the stream, also after an upgrade: it keeps the connection counted.
pub(super) struct Watched<S, H> {
    stream: S,
    heard: Heard,
    stall_limit: Duration,
    /// Timer of a waiting write, with the time of its start.
    stall: Option<(Instant, Pin<Box<tokio::time::Sleep>>)>,
    rate: LeastRate,
    _held: H,
}

impl<S: Unpin, H: Unpin> Watched<S, H> {
    pub(super) fn new(stream: S, heard: Heard, stall_limit: Duration, held: H) -> Self {
        Watched {
            stream,
            heard,
            stall_limit,
            stall: None,
            rate: LeastRate::new(stall_limit, true),
            _held: held,
        }
    }

    fn watch_write<T>(
        &mut self,
        context: &mut Context<'_>,
        progress: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            if let Some((since, _)) = self.stall.take() {
                self.rate.waited(since.elapsed());
            }
            return progress;
        }
        let limit = self.stall_limit;
        let (_, stall) =
            self.stall.get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(limit))));
        ready!(stall.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn watch_bytes(
        &mut self,
        context: &mut Context<'_>,
        progress: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let bytes = ready!(self.watch_write(context, progress))?;
        let steady = self.rate.count(bytes as u64).map(|()| bytes);
        Poll::Ready(steady.map_err(|_| io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin, H: Unpin> AsyncRead for Watched<S, H> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.heard.add((buffer.filled().len() - before) as u64);
        result
    }
}

impl<S: AsyncWrite + Unpin, H: Unpin> AsyncWrite for Watched<S, H> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch_bytes(context, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch_bytes(context, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_flush(context);
        self.watch_write(context, progress)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch_write(context, progress)
    }
}
