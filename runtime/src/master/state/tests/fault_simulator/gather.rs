//! Segments at a simulated process: served, fetched, verified and read in place, as in
//! `worker/src/agent/control/fetches.rs` and `worker/src/shuffle`.

use super::process::{Answer, Effect, Process};
use super::slots::GROUPS;
use gristmill_scheduler::ids::{AttemptId, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::protocol::{AddedMap, FailureClass, FetchedOutput, WorkerFrame};
use gristmill_worker::segment::{KeyBounds, SegmentData, SegmentId, SegmentReader};
use gristmill_worker::shuffle::plan::{Fetch, Retry};
use gristmill_worker::shuffle::store::{GatheredFor, HeldSegment};

impl Process {
    pub fn launch_reduce(
        &mut self,
        attempt: AttemptId,
        empty: &[u64],
        added: &[AddedMap],
        bounds: &KeyBounds,
    ) {
        let (job, partition) = (attempt.task.job, attempt.task.index);
        let group = |key: &[u8]| key.first().copied().map(usize::from);
        let until = bounds.until.as_deref().and_then(group);
        let keys = group(&bounds.from).unwrap_or(0)..until.unwrap_or(GROUPS);
        for (word, first) in empty.iter().zip((0..).step_by(64)) {
            for map in (0..64).filter(|bit| word >> bit & 1 == 1).map(|bit| first + bit) {
                let nothing = SegmentData::Memory(bytes::Bytes::new());
                self.store.fill(job, partition, map, HeldSegment { data: nothing, reservation: None });
            }
        }
        let Some(held) = self.store.complete(job, partition, added) else {
            // Data in flight when a partition left may be mistaken for data of the same partition after its return.
            if self.housed.get(&(job, partition)).is_none_or(|&times| times < 2) {
                self.incomplete.push(attempt);
            }
            return self.fail(attempt, FailureClass::Fetch);
        };
        let id = |held: HeldSegment| SegmentReader::open(held.data).expect("verified on arrival").header().id;
        let input = held.into_iter().map(id).map(|id| (id.map, id.epoch)).collect();
        self.launch(attempt, input, keys);
    }

    pub fn read_in_place(&mut self, maps: &[AttemptId], from: WorkerId) {
        let mut outputs = Vec::new();
        for &map in maps {
            let held = (!self.lost.contains(&map)).then(|| self.store.fill_own(map)).flatten();
            match held {
                Some(partitions) => outputs.push(FetchedOutput { map, partitions, bytes: 0, resent: 0 }),
                None => self.fetch_failed(map, from, FailureClass::Missing),
            }
        }
        self.send_fetched(outputs, from);
    }

    fn send_fetched(&mut self, outputs: Vec<FetchedOutput>, from: WorkerId) {
        for output in &outputs {
            self.store.mark_reported(output.map.task.job, &output.partitions);
        }
        if !outputs.is_empty() {
            self.send(&WorkerFrame::Fetched { outputs, from, started_ns: 0, ended_ns: 0 });
        }
    }

    fn fetch_failed(&mut self, map: AttemptId, from: WorkerId, class: FailureClass) {
        let message = "simulated".to_owned();
        self.send(&WorkerFrame::FetchFailed { map, from, class, message });
    }

    /// Response with the segments that this process has of an output.
    pub fn serve(&self, map: AttemptId, partitions: &[GatheredFor]) -> Answer {
        let output = self.store.output(map.task.job, map.task.index, map.epoch);
        let Some(output) = output.filter(|_| !self.lost.contains(&map)) else { return Answer::Missing };
        let segment = |&of: &GatheredFor| Some((of, output.segment(of.partition)?));
        partitions.iter().map(segment).collect::<Option<_>>().map_or(Answer::Missing, Answer::Held)
    }

    /// Handles the response to a fetch.
    pub fn fetched(&mut self, now: Time, fetch: &Fetch, answers: Vec<(AttemptId, Answer)>) {
        let (mut outputs, mut failures) = (Vec::new(), Vec::new());
        for (map, answer) in answers {
            let (filled, error) = match answer {
                Answer::Held(segments) => self.keep_intact(map, segments),
                Answer::Missing => (Vec::new(), Some(FailureClass::Missing)),
                Answer::Broken => (Vec::new(), Some(FailureClass::Fetch)),
            };
            let bytes = 10 * filled.len() as u64;
            if !filled.is_empty() {
                outputs.push(FetchedOutput { map, partitions: filled, bytes, resent: 0 });
            }
            let retry = match error {
                None => {
                    self.plan.arrived(fetch.id, map, bytes);
                    continue;
                }
                Some(FailureClass::Missing) => {
                    let wanted = self.plan.wants(fetch.id, map);
                    self.plan.arrived(fetch.id, map, 0);
                    if wanted { Retry::GiveUp } else { Retry::NotWanted }
                }
                Some(_) => self.plan.failed(fetch.id, map, now),
            };
            if let (Retry::GiveUp, Some(class)) = (retry, error) {
                failures.push((map, class));
            }
        }
        self.send_fetched(outputs, fetch.from);
        for (map, class) in failures {
            self.fetch_failed(map, fetch.from, class);
        }
        self.plan.ended(fetch.id);
    }

    /// Verifies segments and keeps the intact ones.
    fn keep_intact(
        &mut self,
        map: AttemptId,
        segments: Vec<(GatheredFor, SegmentData)>,
    ) -> (Vec<u32>, Option<FailureClass>) {
        let (job, index, epoch) = (map.task.job, map.task.index, map.epoch);
        let (mut filled, mut error) = (Vec::new(), None);
        for (GatheredFor { reduce, partition }, data) in segments {
            let id = SegmentId { job, map: index, epoch, partition };
            if !data.is_empty() && self.full {
                self.effects.push(Effect::Fires("fill"));
                error.get_or_insert(FailureClass::Worker);
            } else if !data.is_empty() && gristmill_worker::segment::verify(&data, &id).is_err() {
                error.get_or_insert(FailureClass::Corrupt);
            } else if self.store.fill(job, reduce, index, HeldSegment { data, reservation: None }) {
                filled.push(reduce);
            }
        }
        (filled, error)
    }
}
