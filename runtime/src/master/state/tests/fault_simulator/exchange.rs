//! Requests between workers for segments, and their responses.

use super::process::{Answer, Process, ProcessId};
use super::transport::{Node, SimEvent};
use super::world::World;
use bytes::Bytes;
use gristmill_scheduler::ids::AttemptId;
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::segment::SegmentData;
use gristmill_worker::shuffle::plan::Fetch;
use gristmill_worker::shuffle::store::GatheredFor;

/// Timeout of a request.
pub(super) const ANSWER_TIMEOUT: Span = Span::whole_seconds(10);

/// A request between two workers.
pub(super) struct Request {
    pub home: ProcessId,
    pub fetch: Fetch,
    pub wanted: Vec<(AttemptId, Vec<GatheredFor>)>,
    pub sent: Time,
    /// Responses that have arrived; `None` if the connection broke.
    pub answers: Option<Vec<(AttemptId, Answer)>>,
}

impl World {
    fn node(&self, id: ProcessId) -> Option<Node> {
        self.processes.get(&id).map(|process| Node::Place(process.place))
    }

    /// True if bytes get from one process to another.
    fn reaches(&self, from: ProcessId, to: ProcessId) -> bool {
        match (self.node(from), self.node(to)) {
            (Some(from), Some(to)) => !self.cuts.is_cut(from, to),
            _ => false,
        }
    }

    /// Delivers a request to its addressee, if that exists.
    pub fn asked(&mut self, number: u64) {
        let Some(request) = self.requests.get(&number) else { return };
        let (home, at, sent) = (request.home, Process::at(&request.fetch.endpoint), request.sent);
        let late = sent + ANSWER_TIMEOUT;
        if !self.processes.contains_key(&at) {
            // Connection refused: no process listens there.
            return self.answer_at(self.now + Span::milliseconds(1), number);
        }
        if !self.reaches(home, at) {
            self.fires("cut between workers");
            return self.answer_at(late, number);
        }
        if let Some(until) = self.processes.get(&at).and_then(|process| process.stopped_until) {
            return match until < late {
                true => self.schedule(until, SimEvent::Asked(number)),
                false => self.answer_at(late, number),
            };
        }
        let Some(server) = self.processes.get(&at) else { return };
        let served =
            |(map, partitions): &(AttemptId, Vec<GatheredFor>)| (*map, server.serve(*map, partitions));
        let answers: Vec<_> = self.requests[&number].wanted.iter().map(served).collect();
        let answers = self.damaged(answers);
        let after = self.latency(at);
        if let Some(request) = self.requests.get_mut(&number) {
            request.answers = Some(answers);
        }
        self.answer_at(self.now + after, number);
    }

    fn answer_at(&mut self, at: Time, number: u64) {
        self.schedule(at.max(self.now), SimEvent::Answered(number));
    }

    /// Applies transfer faults to segments in flight.
    fn damaged(&mut self, mut answers: Vec<(AttemptId, Answer)>) -> Vec<(AttemptId, Answer)> {
        for (_, answer) in &mut answers {
            let Answer::Held(segments) = answer else { continue };
            if 0 < self.transfers_to_break {
                self.transfers_to_break -= 1;
                *answer = Answer::Broken;
                self.fires("broken transfer");
                continue;
            }
            for (_, data) in segments.iter_mut().filter(|(_, data)| !data.is_empty()) {
                if 0 < self.transfers_to_damage {
                    self.transfers_to_damage -= 1;
                    flip(data, self.transfers_to_damage as usize);
                    self.fires("damaged transfer");
                }
            }
        }
        answers
    }

    /// Delivers the response to a request to its home.
    pub fn answered(&mut self, number: u64) {
        let Some(request) = self.requests.get(&number) else { return };
        let (home, at) = (request.home, Process::at(&request.fetch.endpoint));
        let Some(process) = self.processes.get(&home) else {
            self.requests.remove(&number);
            return;
        };
        if let Some(until) = process.stopped_until {
            return self.schedule(until, SimEvent::Answered(number));
        }
        let late = request.sent + ANSWER_TIMEOUT;
        // The responder may have died meanwhile; a response in flight still arrives.
        let cut = self.processes.contains_key(&at) && !self.reaches(at, home);
        if cut && request.answers.is_some() {
            self.fires("cut between workers");
            if let Some(request) = self.requests.get_mut(&number) {
                request.answers = None;
            }
            return self.answer_at(late, number);
        }
        let Some(Request { fetch, wanted, answers, .. }) = self.requests.remove(&number) else { return };
        let broken = || wanted.iter().map(|(map, _)| (*map, Answer::Broken)).collect();
        let answers = answers.unwrap_or_else(broken);
        let now = self.now;
        self.turn(home, |process| process.fetched(now, &fetch, answers));
    }
}

/// Flips a bit of a segment.
fn flip(data: &mut SegmentData, salt: usize) {
    if let SegmentData::Memory(bytes) = data {
        let mut damaged = bytes.to_vec();
        let place = salt * 7 % damaged.len();
        damaged[place] ^= 1 << (salt % 8);
        *bytes = Bytes::from(damaged);
    }
}
