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
pub(in crate::master) const FACTS: u8 = b'j';
pub(in crate::master) const BESIDE: u8 = b'r';

/// A note. Submission and text are borrowed where it is written, and owned where it is read.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::master) enum Note<S, T> {
    /// A master of this generation starts here.
    Began {
        generation: u64,
        at: Time,
    },
    /// A job has been accepted; its arrival is a fact of the next instant.
    Submitted {
        at: Time,
        job: JobId,
        submission: S,
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
        failed: Option<T>,
    },
    /// The output of a job has been closed by its client.
    ClientClosed {
        at: Time,
        job: JobId,
        failed: Option<T>,
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

/// A note, as it is written.
pub(in crate::master) type RecoveryNote<'a> = Note<&'a Submission, &'a str>;

/// A note, as it is read.
pub(in crate::master) type RecoveryRecord = Note<Box<Submission>, String>;
