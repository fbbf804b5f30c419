//! What a master writes down beside facts and orders, to come back from: what the facts do not hold.
//!
//! Frames and introductions of workers stand in the encoding of the wire: only a master of the same build reads them.

use crate::api::Submission;
use crate::journal::Encoded;
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_scheduler::units::Time;
use serde::{Deserialize, Serialize};

/// The letters of lines: the header, what every journal holds, and what only this one does.
pub(super) const HEADER: u8 = b'h';
pub(super) const FACTS: u8 = b'j';
pub(super) const BESIDE: u8 = b'r';

/// A line, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::master) enum RecoveryNote<'a> {
    /// A master of this generation begins here.
    Began {
        generation: u64,
        at: Time,
    },
    /// A job has been taken; its arrival is a fact of the next instant.
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
    /// A worker has said something that counts.
    Said {
        at: Time,
        worker: WorkerId,
        frame: Encoded,
    },
    /// Facts of one moment and the orders that followed.
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
    /// The client of a job is away since then, or is back.
    ClientAway {
        job: JobId,
        since: Option<Time>,
    },
    /// What stands when the file is begun anew, beside the core: what is known of all workers together, of one of
    /// them, and of a job.
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

/// A line, as it is read.
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
