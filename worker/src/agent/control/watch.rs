//! External monitoring of attempts: signs of life, output of user code, hanging attempts.

use super::{Agent, LOG_CHUNK_BYTES_MAX, LOG_CHUNKS_MAX, RunningAttempt, Suspension};
use crate::agent::slots::{ENGINE_TIMEOUT, KILL_GRACE};
use crate::machine;
use crate::protocol::{AttemptProgress, AttemptReport, DiskRoom, FailureClass, Heartbeat, WorkerFrame};
use crate::segment::SpillDirs;
use gristmill_scheduler::ids::AttemptId;
use gristmill_scheduler::units::Time;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

impl Agent {
    /// Returns the attempts that have started and are not suspended.
    pub(super) fn begun(&self) -> impl Iterator<Item = (AttemptId, &RunningAttempt)> {
        let waiting = self.slots.work.waiting();
        self.running
            .iter()
            .map(|(attempt, running)| (*attempt, running))
            .filter(|(_, running)| running.suspension != Suspension::Suspended)
            .filter(move |(attempt, _)| !waiting.contains(attempt))
    }

    /// Returns the only running attempt; `None` if there are none or several.
    pub(super) fn alone(&self) -> Option<AttemptId> {
        let mut begun = self.begun().map(|(attempt, _)| attempt);
        begun.next().filter(|_| begun.next().is_none())
    }

    pub(super) fn heartbeat(&mut self) {
        let running = self
            .begun()
            .map(|(attempt, running)| AttemptProgress {
                attempt,
                bytes_in: running.progress.bytes_in.load(Ordering::Relaxed),
                divisible_bytes: running.progress.divisible_bytes.load(Ordering::Relaxed),
                records_in: running.progress.records_in.load(Ordering::Relaxed),
            })
            .collect();
        let (disk_free_bytes, disk_room) = self.disk_free.latest();
        let fetches = self.fetching.rates(Time(self.now_ns()));
        let processors = self.processors.since_last(self.now_ns());
        self.send(&WorkerFrame::Heartbeat(Heartbeat {
            running,
            memory_bytes: machine::resident_bytes(),
            processors,
            disk_free_bytes,
            disk_room,
            fetches,
        }));
    }

    /// Forwards the output of user code so far.
    pub(super) fn watch_output(&mut self) {
        let Some(mark) = &self.slots.setting.written else { return };
        let written = mark.now();
        // Attempts that ended before this moment get their part first. The rest belongs to those that run.
        self.drain_slot_events();
        self.forward_output(self.alone(), written);
    }

    /// Sends the output of user code up to this byte to the master, attributed to this attempt.
    pub(super) fn forward_output(&mut self, attempt: Option<AttemptId>, written: u64) {
        // It stays in its file until a master is connected.
        if self.link.is_away() {
            return;
        }
        for _ in 0..LOG_CHUNKS_MAX {
            let Some(capture) = &mut self.config.capture else { return };
            match capture.take(written, LOG_CHUNK_BYTES_MAX) {
                Ok(bytes) if bytes.is_empty() => return,
                Ok(bytes) => self.send(&WorkerFrame::Log { attempt, bytes }),
                Err(error) => return tracing::warn!(%error, "user output could not be read"),
            }
        }
    }

    /// Excuses all attempts after this process itself was stopped, or got no processor.
    pub(super) fn excuse_stall(&mut self) {
        let now = Instant::now();
        for running in self.running.values_mut() {
            running.seen_at = now;
        }
    }

    /// Returns the first attempt that exceeds its limit without progress, or without stopping. Its
    /// failure is reported here.
    pub(super) fn stuck(&mut self) -> Option<AttemptId> {
        let now = Instant::now();
        let mut found = None;
        let waiting = self.slots.work.waiting();
        for (attempt, running) in &mut self.running {
            let suspended = running.suspension == Suspension::Suspended && running.killed_at.is_none();
            if suspended || waiting.contains(attempt) {
                running.seen_at = now;
                continue;
            }
            let seen = (
                running.progress.bytes_in.load(Ordering::Relaxed),
                running.progress.records_in.load(Ordering::Relaxed)
                    + running.progress.records_out.load(Ordering::Relaxed),
                // Sending an output, waiting because the slot is slow, and engine work between calls of
                // user code are not the fault of user code either.
                running
                    .progress
                    .bytes_out
                    .load(Ordering::Relaxed)
                    .wrapping_add(running.progress.paced_ns.load(Ordering::Relaxed))
                    .wrapping_add(running.progress.steps.load(Ordering::Relaxed)),
            );
            if seen != running.seen || running.built {
                (running.seen, running.seen_at) = (seen, now);
            }
            let engine = running.progress.is_in_engine();
            let limit = if engine { running.hang.max(ENGINE_TIMEOUT) } else { running.hang };
            let hangs = limit < now - running.seen_at;
            let lingers = running.killed_at.is_some_and(|killed| KILL_GRACE < now - killed);
            if hangs || lingers {
                found = Some((*attempt, hangs, limit, engine));
                break;
            }
        }
        let (attempt, hangs, limit, engine) = found?;
        if hangs {
            self.watch_output();
            let seconds = limit.as_secs_f64();
            let (class, message) = if engine {
                (FailureClass::Worker, format!("sorting, reading or writing stood still for {seconds} s"))
            } else {
                (FailureClass::Hang, format!("no record read or written for {seconds} s"))
            };
            let report = AttemptReport::default();
            self.send(&WorkerFrame::AttemptFailed { attempt, class, message, report });
        }
        Some(attempt)
    }
}

/// CPU time of this process and the time, both at the last heartbeat, nanoseconds.
#[derive(Default)]
pub(super) struct Processors {
    cpu_ns: u64,
    now_ns: u64,
}

impl Processors {
    /// Returns the processors used on average since the last call. Twentieths keep an idle worker's report the same.
    fn since_last(&mut self, now_ns: u64) -> f64 {
        let before = std::mem::replace(self, Self { cpu_ns: machine::process_cpu_ns(), now_ns });
        let used = (self.cpu_ns - before.cpu_ns) as f64 / (now_ns - before.now_ns).max(1) as f64;
        (used * 20.0).round() / 20.0
    }
}

/// Free bytes of the spill directories. They are queried off the thread of the loop, because a hanging
/// disk would block everything. The value is that of the previous heartbeat.
pub(super) struct DiskFree {
    spill: SpillDirs,
    known: Arc<Mutex<DiskKnown>>,
    asking: Arc<AtomicBool>,
}

/// Last known free bytes of the fullest directory, and of the emptiest, if it is full.
#[derive(Clone, Copy, Default)]
struct DiskKnown {
    bytes: u64,
    most_bytes: Option<u64>,
}

impl DiskKnown {
    fn query(&mut self, spill: &SpillDirs) {
        let free = spill.free_bytes();
        if let Err(error) = &free {
            tracing::warn!(%error, "the free bytes of the directories for spill files are not known");
        }
        self.most_bytes = free.as_ref().ok().map(|(_, most)| *most);
        self.bytes = free.map_or(self.bytes, |(least, _)| least);
    }
}

impl DiskFree {
    /// Creates it with a first, blocking query.
    pub fn new(spill: SpillDirs) -> Self {
        let mut known = DiskKnown::default();
        known.query(&spill);
        Self { spill, known: Arc::new(Mutex::new(known)), asking: Arc::default() }
    }

    /// Returns the last known state of the fullest and of the emptiest directory, and starts a new query
    /// unless one is pending. An unreadable file system does not count as a full disk.
    fn latest(&self) -> (u64, Option<DiskRoom>) {
        let known = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.asking.swap(true, Ordering::Relaxed) {
            let (spill, shared, asking) = (self.spill.clone(), self.known.clone(), self.asking.clone());
            tokio::task::spawn_blocking(move || {
                let mut asked = known;
                asked.query(&spill);
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = asked;
                asking.store(false, Ordering::Relaxed);
            });
        }
        let reserve_bytes = self.spill.reserve_bytes();
        (known.bytes, known.most_bytes.map(|free_bytes| DiskRoom { free_bytes, reserve_bytes }))
    }
}
