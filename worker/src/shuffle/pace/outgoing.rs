//! The pace of what a worker serves, in the order of asking.

use super::bucket::TokenBucket;
use super::{chunk_bytes, since, until};
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Bytes that wait unsent in the system for each connection of a paced server, so that they do not run ahead of
/// those who fetch by more; the system takes twice as many.
pub const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Paces what goes out. Cloning shares it.
#[derive(Clone, Debug)]
pub struct OutPace {
    /// Its lock is handed on in the order of asking, and held while its holder waits.
    bucket: Arc<Mutex<TokenBucket>>,
    epoch: Instant,
    chunk_bytes: usize,
}

impl OutPace {
    /// With a full bucket.
    #[must_use]
    pub fn new(bytes_per_second: NonZeroU64) -> Self {
        let epoch = Instant::now();
        Self {
            bucket: Arc::new(Mutex::new(TokenBucket::new(bytes_per_second, since(epoch)))),
            epoch,
            chunk_bytes: chunk_bytes(bytes_per_second) as usize,
        }
    }

    /// Makes the connections of this listener hold no more than about [`SEND_BUFFER_BYTES`] unsent.
    ///
    /// # Errors
    /// An error of the operating system.
    pub(crate) fn keep_little_unsent(&self, listener: &TcpListener) -> io::Result<()> {
        // Connections take it over from their listener.
        Ok(set_socket_send_buffer_size(listener, SEND_BUFFER_BYTES)?)
    }

    /// Most bytes to pass at once, so that others get their turn.
    #[must_use]
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Waits until so many bytes may go, after those that asked before.
    pub async fn pass(&self, bytes: usize) {
        let mut bucket = self.bucket.lock().await;
        while !bucket.take(bytes as u64, since(self.epoch)) {
            let ready = bucket.ready_at(since(self.epoch));
            until(self.epoch, Some(ready)).await;
        }
    }
}
