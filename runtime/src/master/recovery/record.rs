//! Notes that a master writes in addition to facts and orders, for recovery.
//!
//! Frames and handshakes of workers are in the encoding of the wire, so only a master of the same build reads them.

use crate::api::Submission;
use crate::journal::Encoded;
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_scheduler::units::Time;
use serde::{Deserialize, Serialize};

/// Letters of the kinds of lines: the header, records of every journal, and notes of this one.
pub(super) const HEADER: u8 = b'h';
pub(super) const FACTS: u8 = b'j';
pub(super) const BESIDE: u8 = b'r';

/// A note, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::master) enum RecoveryNote<'a> {
    /// A master of this generation starts here.
    Began {
        generation: u64,
        at: Time,
    },
    /// A job has been accepted; its arrival is a fact of the next instant.
    Submitted {
        at: Time,
        job: JobId,
        submission: &'a Submission,
    },
    /// A worker has joined.
    Joined {
        at: Time,
        worker: WorkerId,
        hello: Encoded,
    },
    /// A worker has sent a numbered frame.
    Said {
        at: Time,
        worker: WorkerId,
        frame: Encoded,
    },
    /// Facts of one instant and the orders that followed.
    Instant {
        at: Time,
        facts: Encoded,
        orders: Encoded,
    },
    /// The output of a job has been closed by the master.
    Closed {
        at: Time,
        job: JobId,
        failed: Option<&'a str>,
    },
    /// The output of a job has been closed by its client.
    ClientClosed {
        at: Time,
        job: JobId,
        failed: Option<&'a str>,
    },
    /// The client of a job is gone.
    ClientLost {
        job: JobId,
    },
    /// The client of a job is disconnected since then, or is back.
    ClientAway {
        job: JobId,
        since: Option<Time>,
    },
    /// State at a compaction apart from the core: common to all workers, of one worker, or of a job.
    Standing {
        at: Time,
        state: Encoded,
    },
    StandingWorker {
        worker: WorkerId,
        entry: Encoded,
    },
    StandingJob {
        job: JobId,
        entry: Encoded,
    },
}

/// A note, as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::master) enum RecoveryRecord {
    Began { generation: u64, at: Time },
    Submitted { at: Time, job: JobId, submission: Box<Submission> },
    Joined { at: Time, worker: WorkerId, hello: Encoded },
    Said { at: Time, worker: WorkerId, frame: Encoded },
    Instant { at: Time, facts: Encoded, orders: Encoded },
    Closed { at: Time, job: JobId, failed: Option<String> },
    ClientClosed { at: Time, job: JobId, failed: Option<String> },
    ClientLost { job: JobId },
    ClientAway { job: JobId, since: Option<Time> },
    Standing { at: Time, state: Encoded },
    StandingWorker { worker: WorkerId, entry: Encoded },
    StandingJob { job: JobId, entry: Encoded },
}
