//! Divisions in random histories, and the checks that each reduce gets the whole input exactly once, and that the parts
//! have each key exactly once.

use super::*;

/// Input that attempts read, in bytes, and what the partitions have got of it.
#[derive(Default)]
pub(super) struct Coverage {
    whole: BTreeMap<JobId, u64>,
    by_attempt: BTreeMap<AttemptId, u64>,
    /// Map attempts whose segments are at the homes of partitions.
    got: BTreeMap<(WorkerId, TaskId), BTreeMap<u32, AttemptId>>,
    /// Keys of each reduce, of those that attempts read, and of those that published.
    keys: BTreeMap<TaskId, Keys>,
    keys_read: BTreeMap<AttemptId, Keys>,
    keys_published: BTreeMap<TaskId, Keys>,
    pub(super) divisions: u32,
    pub(super) cuts: u32,
    pub(super) refusals: u32,
}

/// Range of keys of one partition, of 0 to [`KEYS`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Keys {
    partition: u32,
    from: u32,
    until: u32,
}

/// Number of keys of each partition.
const KEYS: u32 = 1_000_000;

fn bytes(spec: &JobSpec) -> u64 {
    spec.maps.iter().map(|map| map.bytes.0).sum()
}

impl Coverage {
    pub(super) fn submitted(&mut self, job: JobId, spec: &JobSpec) {
        self.whole.insert(job, bytes(spec));
        for partition in 0..spec.reduces {
            self.keys.insert(TaskId::reduce(job, partition), Keys { partition, from: 0, until: KEYS });
        }
    }

    /// Enters that the keys of a reduce from this one on are those of a new reduce.
    pub(super) fn reduce_added(&mut self, divided: TaskId, key: &[u8], rest: u32) {
        let cut = u32::from_be_bytes(key.try_into().expect("keys have four bytes here"));
        let keys = self.keys.get_mut(&divided).expect("reduces of live jobs are divided");
        let given = Keys { from: cut, ..*keys };
        keys.until = cut;
        let added = self.keys.insert(TaskId::reduce(divided.job, rest), given);
        assert_eq!(added, None, "new reduces come last");
        self.cuts += 1;
    }

    /// Enters that a new reduce starts with the segments of a divided one.
    pub(super) fn same_segments(&mut self, home: WorkerId, divided: TaskId, rest: u32) {
        let segments = self.got.get(&(home, divided)).cloned().unwrap_or_default();
        self.got.insert((home, TaskId::reduce(divided.job, rest)), segments);
    }

    pub(super) fn permitted(&mut self, attempt: AttemptId) {
        if let Some(keys) = self.keys_read.get(&attempt) {
            self.keys_published.insert(attempt.task, *keys);
        }
    }

    /// Checks that the parts of a job have all keys once.
    pub(super) fn check_keys(&self, job: JobId) {
        let mut published: Vec<Keys> =
            self.keys_published.iter().filter(|(task, _)| task.job == job).map(|(_, keys)| *keys).collect();
        published.sort_unstable();
        for parts in published.chunk_by(|one, two| one.partition == two.partition) {
            let borders = parts.windows(2).all(|two| two[0].until == two[1].from);
            assert!(borders && parts[0].from == 0, "{job}: {parts:?}");
            assert_eq!(parts[parts.len() - 1].until, KEYS, "{job}: {parts:?}");
        }
    }

    pub(super) fn launched(&mut self, attempt: AttemptId, spec: &JobSpec) {
        if attempt.task.kind == TaskKind::Map {
            self.by_attempt.insert(attempt, spec.maps[attempt.task.index as usize].bytes.0);
        } else {
            self.keys_read.insert(attempt, self.keys[&attempt.task]);
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
    /// Lets a worker divide a task, or refuse to.
    pub(super) fn divide(&mut self, worker: WorkerId, attempt: AttemptId) {
        let refuses = self.chance(200);
        let event = match attempt.task.kind {
            TaskKind::Map => {
                let kept = self.rng.random_range(0..=self.coverage.by_attempt[&attempt]);
                Event::MapDivided { attempt, kept: Bytes(kept), work: None }
            }
            TaskKind::Reduce => {
                let keys = self.coverage.keys_read[&attempt];
                let cut = self.rng.random_range(keys.from..=keys.until);
                let key = cut.to_be_bytes().to_vec();
                Event::ReduceDivided { attempt, key, left: [Bytes(1); 2], work: None }
            }
        };
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        sim_worker.inbox.pop_front();
        if sim_worker.running.get(&attempt) != Some(&Phase::Working) {
            return;
        }
        if refuses {
            self.coverage.refusals += 1;
            return sim_worker.outbox.push_back(Event::DivisionRefused { attempt });
        }
        match &event {
            Event::MapDivided { kept, .. } => drop(self.coverage.by_attempt.insert(attempt, kept.0)),
            Event::ReduceDivided { key, .. } => {
                let keys = self.coverage.keys_read.get_mut(&attempt).expect("it was launched");
                keys.until = u32::from_be_bytes(key[..].try_into().expect("four bytes"));
            }
            _ => {}
        }
        sim_worker.outbox.push_back(event);
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
    let histories = (0..60).map(|seed| RandomHistory::new(seed, kind, wild).run().coverage);
    let [done, cuts, refused] =
        histories.fold([0; 3], |sum, one| [sum[0] + one.divisions, sum[1] + one.cuts, sum[2] + one.refusals]);
    assert!(20 < done && 20 < cuts && 5 < refused, "{done} maps, {cuts} reduces, {refused} refusals");
}
