//! State while a run is measured from its journal, the master's list of facts and orders: the current time, and the
//! workers, jobs and attempts that exist at that time.

use super::super::RunMeasurements;
use super::super::traffic::Traffic;
use super::book::JobBook;
use super::live::{LiveWorker, OpenAttempt};
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::{Bytes, Time};
use std::collections::BTreeMap;

/// State while a journal is read.
pub(super) struct RunMeter {
    pub(super) result: RunMeasurements,
    pub(super) now: Time,
    /// Reported properties of workers before they join.
    pub(super) told: BTreeMap<WorkerId, (f64, Option<u64>)>,
    pub(super) stations: BTreeMap<WorkerId, LiveWorker>,
    pub(super) ready: Time,
    pub(super) names: BTreeMap<JobId, String>,
    pub(super) jobs: BTreeMap<JobId, JobBook>,
    pub(super) attempts: BTreeMap<AttemptId, OpenAttempt>,
    /// Worker that keeps an output.
    pub(super) made: BTreeMap<AttemptId, WorkerId>,
    pub(super) traffic: Traffic,
    /// Samples in seconds: maps, reduces, fetches, suspensions.
    pub(super) samples: [Vec<f64>; 4],
    /// Bytes that each worker receives per second, where nothing else is known of it.
    pub(super) network: Option<Bytes>,
}

/// Indices in [`RunMeter::samples`].
pub(super) const MAP: usize = 0;
pub(super) const REDUCE: usize = 1;
pub(super) const FETCH: usize = 2;
pub(super) const SUSPENSION: usize = 3;
