//! Chunks of a file: made by several threads, written in order by one; and the random numbers of a chunk.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::sync_channel;

/// Chunks that wait to be written, per thread.
const QUEUE_MAX: usize = 2;

/// Which file a chunk belongs to: two files of one run must not repeat each other's choices.
#[derive(Clone, Copy)]
pub(super) enum Stream {
    Text = 0,
    Records = 1,
    Users = 2,
    Visits = 3,
}

/// The random numbers of one chunk.
pub(super) struct Draws(ChaCha8Rng);

impl Draws {
    pub(super) fn new(seed: u64, stream: Stream, chunk: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(((stream as u64) << 56) + chunk);
        Self(generator)
    }

    /// 64 random bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, evenly to within `end / 2^64`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }
}

/// How much was written.
#[derive(Default)]
pub(super) struct Written {
    pub(super) bytes: u64,
    pub(super) lines: u64,
}

/// Writes chunks `0..count` to `file`, in order. Thread `t` makes chunks `t`, `t + threads`, and so on, so
/// the writer knows whom to ask for the next one, and no thread runs more than [`QUEUE_MAX`] chunks ahead.
pub(super) fn write_in_order(
    mut file: File,
    count: u64,
    threads: usize,
    chunk: impl Fn(u64) -> Vec<u8> + Sync,
) -> io::Result<Written> {
    std::thread::scope(|scope| {
        let mut makers = Vec::new();
        for first in 0..threads.max(1) as u64 {
            let (sender, receiver) = sync_channel(QUEUE_MAX);
            let chunk = &chunk;
            let make = move || {
                for index in (first..count).step_by(threads.max(1)) {
                    // The writer is gone after an error: there is no use for further chunks.
                    if sender.send(chunk(index)).is_err() {
                        return;
                    }
                }
            };
            std::thread::Builder::new().spawn_scoped(scope, make)?;
            makers.push(receiver);
        }
        let mut written = Written::default();
        for receiver in makers.iter().cycle().take(usize::try_from(count).unwrap_or(usize::MAX)) {
            let bytes = receiver.recv().map_err(|_| io::Error::other("a generating thread ended early"))?;
            file.write_all(&bytes)?;
            written.bytes += bytes.len() as u64;
            written.lines += memchr::memchr_iter(b'\n', &bytes).count() as u64;
        }
        drop(makers);
        file.flush()?;
        Ok(written)
    })
}
