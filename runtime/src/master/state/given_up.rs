//! Workers lost because of their silence. Their processes may still exist, suspended.
//!
//! For diagnosis only; no decision depends on it. Workers that left, or whose end was reported, are excluded.

use super::MasterState;
use crate::api::GivenUpWorker;
use gristmill_scheduler::ids::WorkerId;
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::http::Secret;
use gristmill_worker::protocol::{Hello, ended_proof};
use std::collections::VecDeque;

/// Maximum number of workers listed; the oldest one is dropped.
const TOLD_MAX: usize = 64;

/// Time for which each is listed: as long as a worker looks for its master. A worker that is not back by then is not
/// expected any more.
const TOLD_FOR: Span = Span::whole_seconds(600);

/// The last workers lost because of their silence.
#[derive(Default)]
pub(super) struct GivenUpWorkers(VecDeque<(GivenUpWorker, Secret)>);

impl GivenUpWorkers {
    /// Adds a lost worker with the `hello` of its join.
    pub(super) fn add(&mut self, now: Time, worker: WorkerId, hello: &Hello) {
        if TOLD_MAX <= self.0.len() {
            self.0.pop_front();
        }
        let told = GivenUpWorker { worker, host: hello.host.clone(), pid: hello.pid, given_up_ns: now.0 };
        self.0.push_back((told, hello.ended_proof.clone()));
    }
}

impl MasterState {
    /// Workers lost lately because of their silence whose process has given no sign of life since; the last one first.
    pub(crate) fn given_up(&self, now: Time) -> Vec<GivenUpWorker> {
        let told = self.fleet.given_up.0.iter().rev().map(|(told, _)| told);
        told.filter(|told| now.since(Time(told.given_up_ns)) <= TOLD_FOR).cloned().collect()
    }

    /// Enters the end of a process, reported with this key. Returns true if it was a lost worker.
    pub(crate) fn given_up_has_ended(&mut self, host: &str, pid: u32, key: &Secret) -> bool {
        let (told, proof) = (&mut self.fleet.given_up.0, ended_proof(key));
        let before = told.len();
        told.retain(|(one, expected)| one.host != host || one.pid != pid || *expected != proof);
        told.len() < before
    }
}
