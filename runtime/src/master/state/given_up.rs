//! Workers that were given up because nothing was heard of them: their processes may be there still, and stand still.
//!
//! For people who ask what is wrong; nothing is decided by it. Not here: workers that left, or whose end was told.

use super::MasterState;
use crate::api::GivenUpWorker;
use gristmill_scheduler::ids::WorkerId;
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::http::Secret;
use gristmill_worker::protocol::{Hello, ended_proof};
use std::collections::VecDeque;

/// Workers that are told; the one given up longest ago makes room.
const TOLD_MAX: usize = 64;

/// How long each is told, as long as a worker looks for its master: who has not come back by then is not missed any more.
const TOLD_FOR: Span = Span::whole_seconds(600);

/// The last workers that were given up for their silence.
#[derive(Default)]
pub(super) struct GivenUpWorkers(VecDeque<(GivenUpWorker, Secret)>);

impl GivenUpWorkers {
    /// A worker that said this when it joined was given up.
    pub(super) fn add(&mut self, now: Time, worker: WorkerId, hello: &Hello) {
        if TOLD_MAX <= self.0.len() {
            self.0.pop_front();
        }
        let told = GivenUpWorker { worker, host: hello.host.clone(), pid: hello.pid, given_up_ns: now.0 };
        self.0.push_back((told, hello.ended_proof.clone()));
    }
}

impl MasterState {
    /// Workers that were given up lately because nothing was heard of them, and of whose process nothing was heard since;
    /// the last one first.
    pub(crate) fn given_up(&self, now: Time) -> Vec<GivenUpWorker> {
        let told = self.fleet.given_up.0.iter().rev().map(|(told, _)| told);
        told.filter(|told| now.since(Time(told.given_up_ns)) <= TOLD_FOR).cloned().collect()
    }

    /// A process has ended, says whoever has this key. Answers whether it was a worker that was given up.
    pub(crate) fn given_up_has_ended(&mut self, host: &str, pid: u32, key: &Secret) -> bool {
        let (told, proof) = (&mut self.fleet.given_up.0, ended_proof(key));
        let before = told.len();
        told.retain(|(one, expected)| one.host != host || one.pid != pid || *expected != proof);
        told.len() < before
    }
}
