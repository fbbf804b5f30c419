//! Limits the rate at which a worker sends map outputs to others, to simulate a slow network. Responses take turns
//! chunk by chunk, in the order of their requests.

use super::bucket::TokenBucket;
use super::{chunk_bytes, since, until};
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Maximum unsent bytes in the system for each connection of a paced server, so that it does not run far ahead of the
/// receivers. The system doubles it.
const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Paces outgoing bytes. Clones share the state.
#[derive(Clone, Debug)]
pub(crate) struct OutPace {
    /// Its lock is fair, and is held while its holder waits.
    bucket: Arc<Mutex<TokenBucket>>,
    epoch: Instant,
    chunk_bytes: usize,
}

impl OutPace {
    /// Creates a pace with a full bucket.
    #[must_use]
    pub fn new(bytes_per_second: NonZeroU64) -> Self {
        let epoch = Instant::now();
        Self {
            bucket: Arc::new(Mutex::new(TokenBucket::new(bytes_per_second, since(epoch)))),
            epoch,
            chunk_bytes: chunk_bytes(bytes_per_second) as usize,
        }
    }

    /// Limits the unsent bytes of this listener's connections to about [`SEND_BUFFER_BYTES`].
    ///
    /// # Errors
    /// An error of the operating system.
    pub(crate) fn keep_little_unsent(&self, listener: &TcpListener) -> io::Result<()> {
        // Connections inherit it from their listener.
        Ok(set_socket_send_buffer_size(listener, SEND_BUFFER_BYTES)?)
    }

    /// Returns the maximum bytes to pass at once, so that others get their turn.
    #[must_use]
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Waits until this many bytes may be sent, after earlier requests.
    pub async fn pass(&self, bytes: usize) {
        let mut bucket = self.bucket.lock().await;
        while !bucket.take(bytes as u64, since(self.epoch)) {
            let ready = bucket.ready_at(since(self.epoch));
            until(self.epoch, Some(ready)).await;
        }
    }
}
