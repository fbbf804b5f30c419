//! Divisions of maps in random histories, and the check that each reduce gets the whole input exactly once.

use super::*;

/// Input that attempts read, in bytes, and what the partitions have got of it.
#[derive(Default)]
pub(super) struct Coverage {
    whole: BTreeMap<JobId, u64>,
    by_attempt: BTreeMap<AttemptId, u64>,
    /// Map attempts whose segments are at the homes of partitions.
    got: BTreeMap<(WorkerId, TaskId), BTreeMap<u32, AttemptId>>,
    pub(super) divisions: u32,
    pub(super) refusals: u32,
}

fn bytes(spec: &JobSpec) -> u64 {
    spec.maps.iter().map(|map| map.bytes.0).sum()
}

impl Coverage {
    pub(super) fn submitted(&mut self, job: JobId, spec: &JobSpec) {
        self.whole.insert(job, bytes(spec));
    }

    pub(super) fn launched(&mut self, attempt: AttemptId, spec: &JobSpec) {
        if attempt.task.kind == TaskKind::Map {
            self.by_attempt.insert(attempt, spec.maps[attempt.task.index as usize].bytes.0);
        }
    }

    pub(super) fn fetched(&mut self, home: WorkerId, map: AttemptId, partitions: &[u32]) {
        for &partition in partitions {
            let reduce = TaskId::reduce(map.task.job, partition);
            self.got.entry((home, reduce)).or_default().insert(map.task.index, map);
        }
    }

    /// Checks that the segments of this reduce come from the whole input. Maps without output were not fetched.
    pub(super) fn check(&self, home: WorkerId, reduce: TaskId, spec: &JobSpec) {
        let got = self.got.get(&(home, reduce));
        let of_map = |map: u32| {
            let empty = map % 3 == reduce.job.0 % 3;
            let attempt = got.and_then(|got| got.get(&map)).filter(|_| !empty);
            attempt.map_or(spec.maps[map as usize].bytes.0, |attempt| self.by_attempt[attempt])
        };
        let read: u64 = (0..spec.maps.len() as u32).map(of_map).sum();
        assert_eq!(read, self.whole[&reduce.job], "{reduce} has not got the input once");
        assert_eq!(bytes(spec), self.whole[&reduce.job], "the splits of {} are not its input", reduce.job);
    }
}

impl RandomHistory {
    /// Lets a worker divide a map, or refuse to.
    pub(super) fn divide(&mut self, worker: WorkerId, attempt: AttemptId) {
        let refuses = self.chance(200);
        let reads = self.coverage.by_attempt[&attempt];
        let kept = self.rng.random_range(0..=reads);
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        sim_worker.inbox.pop_front();
        if sim_worker.running.get(&attempt) != Some(&Phase::Working) {
            return;
        }
        if refuses {
            self.coverage.refusals += 1;
            return sim_worker.outbox.push_back(Event::DivisionRefused { attempt });
        }
        self.coverage.by_attempt.insert(attempt, kept);
        sim_worker.outbox.push_back(Event::MapDivided { attempt, kept: Bytes(kept), work: None });
    }

    /// Enters a new map, which workers learn of with what they are ordered about it.
    pub(super) fn map_added(&mut self, divided: AttemptId, kept: Bytes, rest: u32) {
        self.coverage.divisions += 1;
        let spec = self.specs.get_mut(&divided.task.job).expect("maps are added to jobs that were submitted");
        let map = &mut spec.maps[divided.task.index as usize];
        let end = MapSpec { bytes: Bytes(map.bytes.0 - kept.0), ..map.clone() };
        map.bytes = kept;
        spec.maps.push(end);
        assert_eq!(spec.maps.len() as u32, rest + 1, "new maps come last");
    }
}

#[test]
fn histories_have_divisions_and_refusals() {
    let wild = Wildness { steps: 1_500, failure: 20, loss: 4, cancel: 0 };
    let kind = Kind { policy: Rule::Fair, pools: false, deals: false };
    let histories = (0..20).map(|seed| RandomHistory::new(seed, kind, wild).run().coverage);
    let [done, refused] = histories.fold([0; 2], |sum, one| [sum[0] + one.divisions, sum[1] + one.refusals]);
    assert!(20 < done && 5 < refused, "{done} divisions, {refused} refusals");
}
