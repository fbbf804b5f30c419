//! Loss of a worker: attempts that ran there, the culprit, and the notices to its jobs.

use super::fleet::WorkerEntry;
use super::job::JobEntry;
use crate::api::{FailureCode, JobFailure, WorkerEnded};
use crate::plural::counted;
use gristmill_scheduler::core::Core;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::exit;
use gristmill_worker::sanitize::message as sanitize;
use std::collections::BTreeSet;
use std::fmt;

/// Number of workers that one job may bring down for lack of memory, each while it ran a single task of it. The job
/// then fails; otherwise it would take down one worker after the other.
const MEMORY_DEATHS_MAX: u32 = 3;

/// Evidence that a worker is gone.
#[derive(Clone, Copy)]
pub(super) enum WorkerEnd<'a> {
    /// It said goodbye.
    Left,
    /// No sign of life arrived for this long.
    Silent(Span),
    /// Its connection closed without a known reason.
    Closed,
    /// The process that started the worker reported how it ended.
    Process(&'a WorkerEnded),
}

impl<'a> WorkerEnd<'a> {
    fn process(self) -> Option<&'a WorkerEnded> {
        match self {
            WorkerEnd::Process(end) => Some(end),
            WorkerEnd::Left | WorkerEnd::Silent(_) | WorkerEnd::Closed => None,
        }
    }
}

impl fmt::Display for WorkerEnd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkerEnd::Left => f.write_str("lost: it left"),
            WorkerEnd::Silent(span) => write!(f, "lost: nothing was heard of it for {:.1} s", span.seconds()),
            WorkerEnd::Closed => f.write_str("lost: its connection closed"),
            WorkerEnd::Process(end) => match (end.signal, end.code) {
                (Some(_), _) if end.out_of_memory => {
                    f.write_str("ended by the kernel for lack of memory (signal 9, SIGKILL)")
                }
                (Some(signal), _) => write!(f, "ended by {}", signal_name(signal)),
                // User code ended the process, whatever else the code means.
                (None, Some(code)) if end.culprit.is_some() => write!(f, "ended with exit code {code}"),
                (None, Some(exit::worker::TERMINATED)) => {
                    f.write_str("ended by SIGTERM or SIGINT from outside")
                }
                (None, Some(exit::worker::OVER_MEMORY)) => f.write_str("ended by itself, over its budget"),
                (None, Some(exit::worker::BROKEN)) => f.write_str("ended by a mistake of the engine"),
                (None, Some(code)) => write!(f, "ended with exit code {code}"),
                (None, None) => f.write_str("lost: its process ended"),
            },
        }
    }
}

/// Circumstances of the loss of a worker.
pub(super) struct Loss {
    worker: WorkerId,
    /// Description in words.
    how: String,
    /// True if its process was ended for lack of memory, by the kernel or by itself.
    pub(super) out_of_memory: bool,
    /// Attempts that it had started and not reported.
    begun: BTreeSet<AttemptId>,
    /// The one of `begun` whose user code ended the process, if known.
    pub(super) culprit: Option<AttemptId>,
    /// Last output of user code.
    last_words: String,
    /// Reason reported for the attempts it had started.
    reason: String,
}

impl Loss {
    /// Finds out what is lost with a worker, and if one of its attempts is to blame.
    pub(super) fn investigate(worker: WorkerId, gone: &WorkerEntry, end: WorkerEnd<'_>, core: &Core) -> Self {
        let (how, end) = (end.to_string(), end.process());
        let is_queued = |attempt| core.attempt(attempt).is_some_and(|attempt| attempt.queued);
        let unreported = gone.running.keys().copied();
        let known = end.map(|end| &end.begun).filter(|begun| !begun.is_empty());
        let begun: BTreeSet<AttemptId> = match known {
            Some(begun) => unreported.filter(|attempt| begun.contains(attempt)).collect(),
            None => unreported.filter(|&attempt| !is_queued(attempt)).collect(),
        };
        // The thread that failed knew its attempt, if it was a slot's thread.
        let named = end.and_then(|end| end.culprit).filter(|culprit| gone.running.contains_key(culprit));
        let exited = named.is_some() && end.is_some_and(|end| end.code.is_some());
        let by_itself = exited || end.is_some_and(|end| crashed(end.signal, end.code));
        // Otherwise, with several attempts in one process, the culprit is unknown. A suspended attempt is never the
        // culprit.
        let mut awake = begun.iter().copied().filter(|attempt| !gone.suspended.contains(attempt));
        let alone = awake.next().filter(|_| awake.next().is_none());
        // The set of started attempts is certain only if the process left a report, or if one attempt alone is
        // possible.
        let certain = known.is_some() || gone.running.len() == 1;
        let last_words = end.map(|end| end.last_words.trim().to_owned()).unwrap_or_default();
        let words =
            if last_words.is_empty() { String::new() } else { format!(": {}", sanitize(&last_words)) };
        let reason = format!("its process was {how}{words}");
        let culprit = named.or(alone.filter(|_| certain)).filter(|_| by_itself);
        let out_of_memory = end.is_some_and(|end| end.out_of_memory);
        Self { worker, how, out_of_memory, begun, culprit, last_words, reason }
    }

    /// Enters an attempt that was lost with the worker.
    pub(super) fn enter_attempt(&self, now: Time, attempt: AttemptId, job: &mut JobEntry) {
        job.records.lost(attempt, now);
        if !self.begun.contains(&attempt) {
            job.records.counts.returned += 1;
            return;
        }
        let worker = self.worker;
        job.failures.note(attempt.task, None, format!("{attempt} on {worker}: {}", self.reason));
        if self.culprit == Some(attempt) {
            job.records.counts.failed_user += 1;
            job.logs.add(Some(attempt), worker, self.last_words.as_bytes());
        } else {
            job.records.counts.lost += 1;
        }
    }

    /// Attempts that were running when memory ran out.
    pub(super) fn awake(&self, gone: &WorkerEntry) -> Vec<AttemptId> {
        self.begun.iter().filter(|attempt| !gone.suspended.contains(attempt)).copied().collect()
    }

    /// Counts a death for lack of memory while only a task of this job ran. Returns true if the job fails with it.
    pub(super) fn count_memory_death(&self, entry: &mut JobEntry) -> bool {
        entry.failures.memory_deaths += 1;
        if entry.failures.memory_deaths < MEMORY_DEATHS_MAX
            || entry.failures.of_job.is_some()
            || entry.output.closing.is_some()
        {
            return false;
        }
        entry.failures.of_job = Some(JobFailure {
            code: FailureCode::Memory,
            message: format!("memory ran out on {MEMORY_DEATHS_MAX} workers while they ran its tasks"),
            detail: Some(format!("{}, the last of them: {}", self.worker, self.reason)),
        });
        true
    }

    /// Reports the loss to a job, of which the worker held `held` map outputs.
    pub(super) fn report(
        &self,
        now: Time,
        (job, entry): (JobId, &mut JobEntry),
        gone: &WorkerEntry,
        held: usize,
    ) {
        let Loss { worker, how, begun, .. } = self;
        let ran = begun.iter().filter(|attempt| attempt.task.job == job).count();
        let next = match self.out_of_memory && 0 < ran {
            true => {
                "; their tasks have a worker process to themselves next, and half the memory for their pairs"
            }
            false => "",
        };
        entry.incident(
            now,
            &format!(
                "{worker} (process {} on {}) was {how}; of this job it ran {} and held {}{next}",
                gone.hello.pid,
                gone.hello.host,
                counted(ran as u64, "attempt", "attempts"),
                counted(held as u64, "map output", "map outputs")
            ),
        );
        entry.touch();
    }
}

/// True if this exit was caused by code in the process, not from outside.
fn crashed(signal: Option<i32>, code: Option<i32>) -> bool {
    match (signal, code) {
        // SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS
        (Some(signal), _) => matches!(signal, 4 | 5 | 6 | 7 | 8 | 11 | 31),
        // A worker exits only with its own codes, so any other code means that user code has called `exit`.
        (None, Some(code)) => !exit::worker::is_own(code),
        (None, None) => false,
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU: the limit on processor time, ulimit -t",
        25 => "SIGXFSZ: the limit on the size of a file, ulimit -f",
        31 => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}
