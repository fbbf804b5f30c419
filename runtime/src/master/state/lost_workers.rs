//! Workers lost because of their silence. Their processes may still exist, suspended.
//!
//! For diagnosis only; no decision depends on it. Workers that left, or whose end was reported, are excluded.

use crate::api::GivenUpWorker;
use gristmill_scheduler::ids::WorkerId;
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::http::Secret;
use gristmill_worker::protocol::{Hello, ended_proof};
use std::collections::VecDeque;

/// Maximum number of workers listed; the oldest one is dropped.
const LISTED_MAX: usize = 64;

/// Time for which each is listed: as long as a worker looks for its master. A worker that is not back by then is not
/// expected any more.
const LISTED_FOR: Span = Span::whole_seconds(600);

/// The last workers lost because of their silence.
#[derive(Default)]
pub(crate) struct LostWorkers(VecDeque<(GivenUpWorker, Secret)>);

impl LostWorkers {
    /// Adds a lost worker with the `hello` of its join.
    pub(super) fn add(&mut self, now: Time, worker: WorkerId, hello: &Hello) {
        if LISTED_MAX <= self.0.len() {
            self.0.pop_front();
        }
        let lost = GivenUpWorker { worker, host: hello.host.clone(), pid: hello.pid, given_up_ns: now.0 };
        self.0.push_back((lost, hello.ended_proof.clone()));
    }

    /// Workers lost lately because of their silence whose process has given no sign of life since; the last one first.
    pub(crate) fn listed(&self, now: Time) -> Vec<GivenUpWorker> {
        let listed = self.0.iter().rev().map(|(lost, _)| lost);
        listed.filter(|lost| now.since(Time(lost.given_up_ns)) <= LISTED_FOR).cloned().collect()
    }

    /// Enters the end of a process, reported with this key. Returns true if it was a lost worker.
    pub(crate) fn has_ended(&mut self, host: &str, pid: u32, key: &Secret) -> bool {
        let (before, proof) = (self.0.len(), ended_proof(key));
        self.0.retain(|(one, expected)| one.host != host || one.pid != pid || *expected != proof);
        self.0.len() < before
    }
}
