//! Holds a worker's shuffle to a rate, in each direction, so that a fast network can play a slow one.
//!
//! Coming in, the bytes of all fetches draw on one [`TokenBucket`]; [`PacedLanes`] gives each chunk to the job whose
//! turn it is by the master's order, and within a job to its oldest request, so that bytes and not only requests
//! follow the order. A fetch pays for bytes when they have come and reads no more before they are paid for: what it has
//! read ahead is one piece of an answer, [`READ_AHEAD_BYTES_MAX`] at most, and what the system's sockets hold.
//! Going out, all answers draw on another bucket, chunk by chunk in the order of asking: whose bytes are urgent is
//! decided by those who fetch.
//!
//! Only what crosses the shuffle's connections is held: map outputs that a worker fetches from others, and from itself
//! if it does so over HTTP. Not here: segments that a worker reads in place, input files, parts.
//!
//! Invariants:
//! * In any time no more passes than the rate allows, a burst and a chunk.
//! * While anyone who is served waits, the bucket does not fill: it passes what the rate allows. The exception are
//!   [`GRACE`]s, which the burst makes up for.

use super::lanes::{Lanes, Tier};
use crate::protocol::LaneOrder;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::{Span, Time};
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex, oneshot};
use tokio::time::Instant;

/// Most bytes that pass in one turn.
pub const CHUNK_BYTES_MAX: u64 = 64 << 10;

/// Fewest, so that a slow network does not cost a wake-up for every packet.
pub const CHUNK_BYTES_MIN: u64 = 16 << 10;

/// A chunk is this part of what passes in a second, within the bounds above: 2 ms.
const CHUNKS_PER_SECOND: u64 = 500;

/// A bucket that nobody draws on holds at least so many bytes when it is full.
pub const BURST_BYTES_MIN: u64 = 64 << 10;

/// It holds this part of what passes in a second if that is more: 10 ms, because timers are no finer than 1 ms.
const BURSTS_PER_SECOND: u64 = 100;

/// Bytes that a fetch has read from its connection and not paid for yet: the longest piece of a body that hyper hands
/// on.
pub const READ_AHEAD_BYTES_MAX: usize = 8192 + 4096 * 100;

/// Bytes that wait unsent in the system for each connection of a paced server, so that they do not run ahead of
/// those who fetch by more; the system takes twice as many.
pub const SEND_BUFFER_BYTES: usize = 64 << 10;

/// How long chunks of less urgent jobs are held back for a job that has just had one and is about to ask again.
pub const GRACE: Span = Span::milliseconds(2);

/// A request that gets nothing for so long gives way: its connection would be given up by the other side, which sees
/// that nobody reads.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Bytes that may pass, growing at a rate up to a burst. Pure. Who finds any in it may take more than there are; the
/// next one then waits longer.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    bytes_per_second: u64,
    burst_bytes: u64,
    /// Byte-nanoseconds, so that nothing is lost in rounding: a byte is [`NANOSECONDS`] of them.
    level: i128,
    /// When the level was that.
    at: Time,
}

/// Nanoseconds in a second.
const NANOSECONDS: i128 = 1_000_000_000;

impl TokenBucket {
    /// A full bucket.
    #[must_use]
    pub fn new(bytes_per_second: NonZeroU64, now: Time) -> Self {
        let bytes_per_second = bytes_per_second.get();
        let burst_bytes = (bytes_per_second / BURSTS_PER_SECOND).max(BURST_BYTES_MIN);
        Self { bytes_per_second, burst_bytes, level: i128::from(burst_bytes) * NANOSECONDS, at: now }
    }

    fn fill(&mut self, now: Time) {
        let gained = i128::from(now.since(self.at).0) * i128::from(self.bytes_per_second);
        self.level = (self.level + gained).min(i128::from(self.burst_bytes) * NANOSECONDS);
        self.at = now.max(self.at);
    }

    /// When there is something to take, from `now` on.
    #[must_use]
    pub fn ready_at(&self, now: Time) -> Time {
        let lacking = 1 - self.level;
        if lacking <= 0 {
            return now;
        }
        let rate = i128::from(self.bytes_per_second);
        let span = u64::try_from((lacking + rate - 1) / rate).unwrap_or(u64::MAX);
        now.max(Time(self.at.0.saturating_add(span)))
    }

    /// Takes so many bytes if there is anything to take.
    pub fn take(&mut self, bytes: u64, now: Time) -> bool {
        self.fill(now);
        let any = 0 < self.level;
        if any {
            self.level -= i128::from(bytes) * NANOSECONDS;
        }
        any
    }
}

/// Bytes of one turn at this rate.
fn chunk_bytes(bytes_per_second: NonZeroU64) -> u64 {
    (bytes_per_second.get() / CHUNKS_PER_SECOND).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX)
}

/// Whose bytes come in next. Pure.
#[derive(Debug)]
pub struct PacedLanes {
    bucket: TokenBucket,
    lanes: Lanes,
    /// Requests under way.
    open: BTreeMap<JobId, u32>,
    /// Of those, the ones that wait for a turn, with the bytes that they want.
    asking: BTreeMap<JobId, BTreeMap<u64, u64>>,
    /// Who had the last turn, and until when others wait for it.
    last: Option<(JobId, Time)>,
}

impl PacedLanes {
    /// Nobody waits, and the bucket is full.
    #[must_use]
    pub fn new(bytes_per_second: NonZeroU64, now: Time) -> Self {
        Self {
            bucket: TokenBucket::new(bytes_per_second, now),
            lanes: Lanes::new(chunk_bytes(bytes_per_second)),
            open: BTreeMap::new(),
            asking: BTreeMap::new(),
            last: None,
        }
    }

    /// Whose bytes go first from now on.
    pub fn order(&mut self, order: &LaneOrder) {
        self.lanes.order(order);
    }

    /// A request of this job begins.
    pub fn open(&mut self, job: JobId) {
        *self.open.entry(job).or_default() += 1;
        self.lanes.enter(job);
    }

    /// A request of this job has so many bytes to pay for. Requests are served in the order of their numbers.
    pub fn ask(&mut self, job: JobId, request: u64, bytes: u64) {
        self.asking.entry(job).or_default().insert(request, bytes);
    }

    /// A request of this job ends.
    pub fn close(&mut self, job: JobId, request: u64) {
        self.withdraw(job, request);
        let Some(open) = self.open.get_mut(&job) else { return };
        *open -= 1;
        if *open == 0 {
            self.open.remove(&job);
            self.lanes.leave(job);
        }
    }

    /// What the request asked for; it asks no more.
    fn withdraw(&mut self, job: JobId, request: u64) -> Option<u64> {
        let line = self.asking.get_mut(&job)?;
        let bytes = line.remove(&request);
        if line.is_empty() {
            self.asking.remove(&job);
        }
        bytes
    }

    /// The requests of this job that asked; they ask no more.
    pub fn forget(&mut self, job: JobId) -> Vec<u64> {
        self.asking.remove(&job).map_or_else(Vec::new, |line| line.into_keys().collect())
    }

    /// The request whose bytes pass now, if any may.
    pub fn grant(&mut self, now: Time) -> Option<(JobId, u64)> {
        if self.asking.is_empty() || now < self.bucket.ready_at(now) {
            return None;
        }
        let before = self.held_back(now).map_or(Tier::LAST, |(tier, _)| tier);
        let asking = &self.asking;
        let job = self.lanes.next(before, |job, _, _| asking.contains_key(&job))?;
        let request = *self.asking.get(&job)?.keys().next()?;
        let bytes = self.withdraw(job, request)?;
        self.bucket.take(bytes, now);
        self.lanes.charge(job, bytes as f64);
        self.last = Some((job, now + GRACE));
        Some((job, request))
    }

    /// While the job that had the last turn is about to ask again: only jobs before this tier are served, until then.
    fn held_back(&self, now: Time) -> Option<(Tier, Time)> {
        let (job, until) = self.last?;
        let asks_again = now < until && self.open.contains_key(&job) && !self.asking.contains_key(&job);
        asks_again.then(|| (self.lanes.tier(job).behind(), until))
    }

    /// When [`PacedLanes::grant`] is worth another try after it gave nothing, if nothing else happens; `None` if only
    /// that can help.
    #[must_use]
    pub fn wake_at(&self, now: Time) -> Option<Time> {
        if self.asking.is_empty() {
            return None;
        }
        let ready = self.bucket.ready_at(now);
        if now < ready { Some(ready) } else { self.held_back(now).map(|(_, until)| until) }
    }
}

/// What those who fetch say to the task that paces them.
enum Word {
    Order(LaneOrder),
    Open(JobId),
    Ask { job: JobId, request: u64, bytes: u64, pass: oneshot::Sender<()> },
    Close { job: JobId, request: u64 },
    Forget(JobId),
}

/// Paces what comes in. Cloning shares it; when the last clone and the last [`PacedStream`] are gone, its task ends.
///
/// The words that wait in its channel are bounded by the requests under way: each asks once at a time.
#[derive(Clone, Debug)]
pub struct InPace {
    words: UnboundedSender<Word>,
    chunk_bytes: u64,
    patience: Duration,
}

impl InPace {
    /// Starts the task that paces, on the runtime of the caller.
    #[must_use]
    pub fn start(bytes_per_second: NonZeroU64) -> Self {
        let (words, heard) = unbounded_channel();
        tokio::spawn(pace(bytes_per_second, heard));
        Self { words, chunk_bytes: chunk_bytes(bytes_per_second), patience: PATIENCE }
    }

    /// Requests give way after this time and not after [`PATIENCE`].
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Whose bytes go first from now on.
    pub fn order(&self, order: LaneOrder) {
        // The task ends only when nobody can say anything any more, or with the runtime.
        let _ = self.words.send(Word::Order(order));
    }

    /// Nobody wants the bytes of this job any more: requests that wait give way at once.
    pub fn forget(&self, job: JobId) {
        let _ = self.words.send(Word::Forget(job));
    }

    /// A request begins; its number is unique and rises.
    #[must_use]
    pub fn open(&self, job: JobId, request: u64) -> PacedStream {
        let _ = self.words.send(Word::Open(job));
        PacedStream { pace: self.clone(), job, request }
    }
}

/// The way of one request's bytes.
#[derive(Debug)]
pub struct PacedStream {
    pace: InPace,
    job: JobId,
    request: u64,
}

/// Others left nothing to a request for [`PATIENCE`], or nobody wants its bytes any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GaveWay;

impl PacedStream {
    /// Waits until so many bytes have passed.
    ///
    /// # Errors
    /// [`GaveWay`] if not a chunk of them passed for too long.
    pub async fn pass(&self, bytes: u64) -> Result<(), GaveWay> {
        let mut left = bytes;
        while 0 < left {
            let bytes = left.min(self.pace.chunk_bytes);
            let (pass, passed) = oneshot::channel();
            let ask = Word::Ask { job: self.job, request: self.request, bytes, pass };
            let _ = self.pace.words.send(ask);
            match tokio::time::timeout(self.pace.patience, passed).await {
                Ok(Ok(())) => left -= bytes,
                // Too long, or its job was forgotten; the task that paces is gone only when the runtime stops.
                Ok(Err(_)) | Err(_) => return Err(GaveWay),
            }
        }
        Ok(())
    }
}

impl Drop for PacedStream {
    fn drop(&mut self) {
        let _ = self.pace.words.send(Word::Close { job: self.job, request: self.request });
    }
}

/// Time since a moment, as the pure parts count it.
fn since(epoch: Instant) -> Time {
    Time(u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

async fn until(epoch: Instant, at: Option<Time>) {
    match at {
        Some(at) => tokio::time::sleep_until(epoch + Duration::from_nanos(at.0)).await,
        None => std::future::pending().await,
    }
}

async fn pace(bytes_per_second: NonZeroU64, mut heard: UnboundedReceiver<Word>) {
    let epoch = Instant::now();
    let mut lanes = PacedLanes::new(bytes_per_second, since(epoch));
    let mut passes: BTreeMap<u64, oneshot::Sender<()>> = BTreeMap::new();
    loop {
        // All who ask are heard before anyone is served.
        while let Ok(word) = heard.try_recv() {
            hear(&mut lanes, &mut passes, word);
        }
        let now = since(epoch);
        if let Some((_, request)) = lanes.grant(now) {
            if let Some(pass) = passes.remove(&request) {
                let _ = pass.send(());
            }
            // The one who was served may ask again before the next is.
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            word = heard.recv() => match word {
                Some(word) => hear(&mut lanes, &mut passes, word),
                None => return,
            },
            () = until(epoch, lanes.wake_at(now)) => {}
        }
    }
}

fn hear(lanes: &mut PacedLanes, passes: &mut BTreeMap<u64, oneshot::Sender<()>>, word: Word) {
    match word {
        Word::Order(order) => lanes.order(&order),
        Word::Open(job) => lanes.open(job),
        Word::Ask { job, request, bytes, pass } => {
            lanes.ask(job, request, bytes);
            passes.insert(request, pass);
        }
        Word::Close { job, request } => {
            lanes.close(job, request);
            passes.remove(&request);
        }
        // What is dropped here tells those who wait.
        Word::Forget(job) => lanes.forget(job).iter().for_each(|request| drop(passes.remove(request))),
    }
}

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
    /// What the system says.
    pub fn keep_little_unsent(&self, listener: &TcpListener) -> io::Result<()> {
        // Connections take it over from their listener.
        Ok(set_socket_send_buffer_size(listener, SEND_BUFFER_BYTES)?)
    }

    /// Most bytes to pass at once, so that others get their turn.
    #[must_use]
    pub fn chunk_bytes(&self) -> usize {
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

#[cfg(test)]
mod tests;
