//! Time limits of a server's connection: for stalled and slow writes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::rate::LeastRate;

/// Stream that fails when its peer stops receiving, or receives too slowly.
///
/// `held` lives as long as the stream, also after an upgrade: it keeps the connection counted.
pub(super) struct Watched<S, H> {
    stream: S,
    stall_limit: Duration,
    /// Timer of a waiting write, with the time of its start.
    stall: Option<(Instant, Pin<Box<tokio::time::Sleep>>)>,
    rate: LeastRate,
    _held: H,
}

impl<S: Unpin, H: Unpin> Watched<S, H> {
    pub(super) fn new(stream: S, stall_limit: Duration, held: H) -> Self {
        Watched { stream, stall_limit, stall: None, rate: LeastRate::new(stall_limit, true), _held: held }
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
        Pin::new(&mut self.stream).poll_read(context, buffer)
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
