//! Data of one worker's shuffle: outputs of its own maps, and segments gathered for the partitions whose home it is.
//!
//! Shared between the control loop, the server and the slots, behind one lock that is never held across I/O. A job may
//! have many maps times many partitions, so an empty segment, or one in an output of this worker, costs one bit here.
//! Only fetched segments are listed.
//!
//! Invariant: a gather holds at most one segment for each map, the first that arrived.

use super::index_set::IndexSet;
use crate::budget::Reservation;
use crate::descriptors;
use crate::http::Secret;
use crate::protocol::AddedMap;
use crate::segment::{self, MapOutput, SegmentData, SegmentId};
use gristmill_scheduler::ids::{AttemptId, JobId, TaskKind};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Outputs and gathered segments of all jobs on this worker. Clones share the data.
#[derive(Clone, Default)]
pub struct SegmentStore(Arc<Mutex<BTreeMap<JobId, JobStore>>>);

struct JobStore {
    key: Secret,
    maps: u32,
    outputs: BTreeMap<u32, (u32, Arc<MapOutput>)>,
    gathers: BTreeMap<u32, Gather>,
}

impl JobStore {
    /// Keeps segments gathered from an own output that is about to be removed.
    fn keep_gathered(&mut self, map: u32, output: &MapOutput) {
        for gather in self.gathers.values_mut() {
            if gather.own.clear(map)
                && let Some(data) = output.segment(gather.of).filter(|data| !data.is_empty())
            {
                gather.held.insert(map, HeldSegment { data, reservation: None });
            }
        }
    }
}

/// Segments gathered for one reduce.
#[derive(Clone)]
struct Gather {
    /// Partition as submitted: that of the reduce, or of the one that was divided.
    of: u32,
    /// Maps whose segment is here.
    arrived: IndexSet,
    /// Maps of those whose segment is in the output of this worker.
    own: IndexSet,
    /// Non-empty segments of the others.
    held: BTreeMap<u32, HeldSegment>,
    missing: u32,
    /// Number of maps reported to the master as arrived; smaller than the number here while a fetch is running.
    told: u32,
}

impl Gather {
    fn new(of: u32, maps: u32) -> Self {
        let (arrived, own) = (IndexSet::new(maps), IndexSet::new(maps));
        Self { of, arrived, own, held: BTreeMap::new(), missing: maps, told: 0 }
    }

    /// Records that the segment of a map is here. Returns true if it was still lacking.
    fn arrives(&mut self, map: u32) -> bool {
        let news = self.arrived.set(map);
        self.missing -= u32::from(news);
        news
    }
}

/// Segment with its granted memory.
#[derive(Clone)]
pub struct HeldSegment {
    /// Bytes of the segment.
    pub data: SegmentData,
    /// Returned to the budget when the last clone is dropped; `None` for a file or a segment read locally.
    pub reservation: Option<Arc<Reservation>>,
}

/// A reduce whose segments are gathered, and the partition that it reads, as submitted. Both numbers are the same unless
/// a division added the reduce.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the fields say all there is to say")]
pub struct GatheredFor {
    pub reduce: u32,
    pub partition: u32,
}

/// Data removed from a store. Its files are deleted when this is dropped, so it must not be dropped on a thread that
/// drives connections.
#[derive(Default)]
pub struct DiscardedData {
    gather: Option<Gather>,
    output: Option<Arc<MapOutput>>,
}

impl DiscardedData {
    /// Wraps an output that is not to be held at all.
    #[must_use]
    pub(crate) fn new(output: MapOutput) -> Self {
        Self { gather: None, output: Some(Arc::new(output)) }
    }

    /// True if there is nothing to delete.
    #[must_use]
    pub(crate) fn is_nothing(&self) -> bool {
        self.gather.is_none() && self.output.is_none()
    }
}

impl SegmentStore {
    fn jobs(&self) -> MutexGuard<'_, BTreeMap<JobId, JobStore>> {
        // A panic while the lock is held leaves the maps well formed: every change is one insert.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job.
    pub fn open_job(&self, job: JobId, key: Secret, maps: u32) {
        self.jobs().entry(job).or_insert_with(|| JobStore {
            key,
            maps,
            outputs: BTreeMap::new(),
            gathers: BTreeMap::new(),
        });
    }

    /// Adds maps to a job, which has `maps` from now on.
    pub fn add_maps(&self, job: JobId, maps: u32) {
        let mut jobs = self.jobs();
        let Some(job) = jobs.get_mut(&job).filter(|job| job.maps < maps) else { return };
        for gather in job.gathers.values_mut() {
            gather.arrived.grow(maps);
            gather.own.grow(maps);
            gather.missing += maps - job.maps;
        }
        job.maps = maps;
    }

    /// Removes all data of a job.
    pub fn forget(&self, job: JobId) {
        let gone = self.jobs().remove(&job);
        drop(gone); // files are deleted here, outside the lock
    }

    /// Returns the key of this job's segments; `None` if the job is not known here.
    #[must_use]
    pub fn key(&self, job: JobId) -> Option<Secret> {
        self.jobs().get(&job).map(|job| job.key.clone())
    }

    /// Stores the output of a map attempt; a newer attempt replaces an older one. Data that is not kept is in the
    /// result, and deleted with it.
    pub fn put_output(&self, map: AttemptId, output: Arc<MapOutput>) -> DiscardedData {
        let gone = |output| DiscardedData { gather: None, output: Some(output) };
        let mut jobs = self.jobs();
        let Some(job) = jobs.get_mut(&map.task.job) else { return gone(output) };
        let index = map.task.index;
        if job.outputs.get(&index).is_some_and(|(epoch, _)| map.epoch < *epoch) {
            return gone(output);
        }
        let Some((_, old)) = job.outputs.insert(index, (map.epoch, output)) else {
            return DiscardedData::default();
        };
        job.keep_gathered(index, &old);
        gone(old)
    }

    /// Drops the output of this attempt, from which nothing was read: another attempt of its map counts.
    #[must_use]
    pub fn discard_output(&self, map: AttemptId) -> DiscardedData {
        let mut jobs = self.jobs();
        let outputs = jobs.get_mut(&map.task.job).filter(|_| map.task.kind == TaskKind::Map);
        let Some(outputs) = outputs.map(|job| &mut job.outputs) else { return DiscardedData::default() };
        if outputs.get(&map.task.index).is_none_or(|(epoch, _)| *epoch != map.epoch) {
            return DiscardedData::default();
        }
        DiscardedData { gather: None, output: outputs.remove(&map.task.index).map(|(_, output)| output) }
    }

    /// Drops the own outputs whose segment for this reduce cannot be read. Returns their maps and paths. Later
    /// requests learn that they are not here, so that these maps run again. Reads disks.
    #[must_use]
    pub(crate) fn drop_unreadable(&self, job: JobId, reduce: u32) -> Vec<(u32, Option<PathBuf>)> {
        let mut dropped = Vec::new();
        for (partition, map, epoch, output) in self.own_outputs(job, reduce) {
            let id = SegmentId { job, map, epoch, partition };
            if output.segment(partition).is_none_or(|data| segment::verify(&data, &id).is_ok()) {
                continue;
            }
            if self.drop_output(job, (map, epoch), &output) {
                dropped.push((map, output.path().map(Path::to_owned)));
            }
        }
        dropped
    }

    /// Drops the output of this attempt of a map if one of these segments cannot be read, so that the map runs again.
    /// Returns true if so. Reads disks.
    #[must_use]
    pub(crate) fn drop_damaged(&self, job: JobId, (map, epoch): (u32, u32), partitions: &[u32]) -> bool {
        let Some(output) = self.output(job, map, epoch) else { return false };
        let is_damaged = |partition: &u32| {
            let id = SegmentId { job, map, epoch, partition: *partition };
            output.segment(*partition).is_some_and(|data| segment::verify(&data, &id).is_err())
        };
        if !partitions.iter().any(is_damaged) {
            return false;
        }
        let place = output.path().map_or_else(|| "memory".to_owned(), |path| path.display().to_string());
        tracing::error!(%job, map, place, "the output of a map is damaged where it is kept; the map runs again");
        self.drop_output(job, (map, epoch), &output);
        true
    }

    /// Drops the output of this attempt of a map because it could not be read, unless descriptors were exhausted, so
    /// that the map runs again. To others, a failing disk here looks like a cut route.
    pub(crate) fn give_up_unreadable(&self, job: JobId, (map, epoch): (u32, u32), error: &io::Error) {
        if descriptors::are_used_up(error) {
            return tracing::warn!(%job, map, %error, "the output of a map could not be read");
        }
        let Some(output) = self.output(job, map, epoch) else { return };
        let place = output.path().map_or_else(|| "memory".to_owned(), |path| path.display().to_string());
        tracing::error!(%job, map, place, %error, "the output of a map cannot be read; the map runs again");
        self.drop_output(job, (map, epoch), &output);
    }

    /// Drops an own output if it is still that of this attempt. Returns true if so.
    fn drop_output(&self, job: JobId, (map, epoch): (u32, u32), output: &MapOutput) -> bool {
        let mut jobs = self.jobs();
        let Some(job) = jobs.get_mut(&job) else { return false };
        let held = job.outputs.get(&map).is_some_and(|(held, _)| *held == epoch);
        if held {
            job.outputs.remove(&map);
            job.keep_gathered(map, output);
        }
        held
    }

    /// Returns partition, map, epoch and output of what a reduce has from this worker itself.
    fn own_outputs(&self, job: JobId, reduce: u32) -> Vec<(u32, u32, u32, Arc<MapOutput>)> {
        let jobs = self.jobs();
        let Some(job) = jobs.get(&job) else { return Vec::new() };
        let Some(gather) = job.gathers.get(&reduce) else { return Vec::new() };
        let held =
            |map| job.outputs.get(&map).map(|(epoch, output)| (gather.of, map, *epoch, output.clone()));
        gather.own.iter().filter_map(held).collect()
    }

    /// Returns the output of this attempt, if it is held here.
    #[must_use]
    pub fn output(&self, job: JobId, map: u32, epoch: u32) -> Option<Arc<MapOutput>> {
        let jobs = self.jobs();
        let (held, output) = jobs.get(&job)?.outputs.get(&map)?;
        (*held == epoch).then(|| output.clone())
    }

    /// Starts gathering for a reduce, which reads the partition `of`.
    pub fn home(&self, job: JobId, reduce: u32, of: u32) {
        if let Some(job) = self.jobs().get_mut(&job) {
            let maps = job.maps;
            job.gathers.entry(reduce).or_insert_with(|| Gather::new(of, maps));
        }
    }

    /// Starts gathering for a reduce that a division added, with the segments of the divided one. If these are not here
    /// any more, all are lacking.
    pub fn home_of_rest(&self, job: JobId, divided: u32, rest: u32, of: u32) {
        if let Some(job) = self.jobs().get_mut(&job) {
            let gather = job.gathers.get(&divided).cloned().unwrap_or_else(|| Gather::new(of, job.maps));
            job.gathers.entry(rest).or_insert(gather);
        }
    }

    /// Stops gathering a partition. Its data is in the result and deleted with it, which may take time on a disk.
    #[must_use]
    pub fn unhome(&self, job: JobId, partition: u32) -> DiscardedData {
        DiscardedData {
            gather: self.jobs().get_mut(&job).and_then(|job| job.gathers.remove(&partition)),
            output: None,
        }
    }

    /// Returns the reduces gathered for here that still lack this map, ascending.
    #[must_use]
    pub fn lacking(&self, job: JobId, map: u32) -> Vec<GatheredFor> {
        let jobs = self.jobs();
        let Some(job) = jobs.get(&job) else { return Vec::new() };
        let lacks = |gather: &Gather| gather.arrived.get(map) == Some(false);
        let lacking = job.gathers.iter().filter(|(_, gather)| lacks(gather));
        lacking.map(|(reduce, gather)| GatheredFor { reduce: *reduce, partition: gather.of }).collect()
    }

    /// Records that the master was notified of a segment of these partitions.
    pub fn mark_reported(&self, job: JobId, partitions: &[u32]) {
        let mut jobs = self.jobs();
        let Some(job) = jobs.get_mut(&job) else { return };
        for partition in partitions {
            if let Some(gather) = job.gathers.get_mut(partition) {
                gather.told += 1;
            }
        }
    }

    /// Returns all partitions gathered here, with the number of maps whose segment was reported to the master.
    #[must_use]
    pub fn homes(&self) -> Vec<(JobId, u32, u32)> {
        let jobs = self.jobs();
        let of_job = |(id, job): (&JobId, &JobStore)| {
            let told = job.gathers.iter().map(|(partition, gather)| (*id, *partition, gather.told));
            told.collect::<Vec<_>>()
        };
        jobs.iter().flat_map(of_job).collect()
    }

    /// Adds a segment. Returns true if it was still lacking.
    pub fn fill(&self, job: JobId, partition: u32, map: u32, held: HeldSegment) -> bool {
        let mut jobs = self.jobs();
        let gather = jobs.get_mut(&job).and_then(|job| job.gathers.get_mut(&partition));
        let Some(gather) = gather else { return false };
        let news = gather.arrives(map);
        if news && !held.data.is_empty() {
            gather.held.insert(map, held);
        }
        news
    }

    /// Adds the segments of an output of this worker to the partitions that lack it. Returns these, ascending; `None`
    /// if that attempt's output is not held here.
    #[must_use]
    pub fn fill_own(&self, map: AttemptId) -> Option<Vec<u32>> {
        let mut jobs = self.jobs();
        let job = jobs.get_mut(&map.task.job)?;
        let index = map.task.index;
        job.outputs.get(&index).filter(|(epoch, _)| *epoch == map.epoch)?;
        let mut filled = Vec::new();
        for (partition, gather) in &mut job.gathers {
            if gather.arrives(index) {
                gather.own.set(index);
                filled.push(*partition);
            }
        }
        Some(filled)
    }

    /// Returns all segments of a partition in the order of the input, without empty ones; `None` while some are missing.
    /// `added` has the places of the last maps.
    #[must_use]
    pub fn complete(&self, job: JobId, partition: u32, added: &[AddedMap]) -> Option<Vec<HeldSegment>> {
        let jobs = self.jobs();
        let job = jobs.get(&job)?;
        let gather = job.gathers.get(&partition)?;
        if 0 < gather.missing {
            return None;
        }
        let own = gather.own.iter().filter_map(|map| {
            let data = job.outputs.get(&map)?.1.segment(gather.of)?;
            Some((map, HeldSegment { data, reservation: None }))
        });
        let mut all: Vec<(u32, HeldSegment)> = own.filter(|(_, held)| !held.data.is_empty()).collect();
        all.extend(gather.held.iter().map(|(map, held)| (*map, held.clone())));
        all.sort_unstable_by_key(|(map, _)| AddedMap::of_map(*map, job.maps, added));
        Some(all.into_iter().map(|(_, held)| held).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::segment::{
        SegmentOrder, SegmentReader, SegmentsWriter, SpillCompression, SpillDirs, WriteSetting,
    };
    use bytes::Bytes;
    use gristmill_scheduler::ids::TaskId;

    const JOB: JobId = JobId(3);

    fn setting(map: u32, epoch: u32) -> WriteSetting {
        WriteSetting {
            job: JOB,
            map,
            epoch,
            partitions: 4,
            order: SegmentOrder::Key,
            spill: SpillDirs::new(vec![std::env::temp_dir()]),
            compression: SpillCompression::None,
        }
    }

    /// Builds an output with one pair in each of these partitions, of 4.
    fn output(map: u32, epoch: u32, partitions: &[u32]) -> Arc<MapOutput> {
        let mut writer = SegmentsWriter::in_memory(setting(map, epoch), &Budget::new(1 << 20), 1000).unwrap();
        for partition in partitions {
            writer.pair(*partition, b"key", b"").unwrap();
        }
        Arc::new(writer.finish().unwrap())
    }

    fn attempt(map: u32, epoch: u32) -> AttemptId {
        TaskId::map(JOB, map).attempt(epoch)
    }

    /// Returns map and epoch of each segment of a partition.
    fn gathered(store: &SegmentStore, partition: u32) -> Option<Vec<(u32, u32)>> {
        let held = store.complete(JOB, partition, &[])?;
        let id = |held: HeldSegment| SegmentReader::open(held.data).unwrap().header().id;
        Some(held.into_iter().map(id).map(|id| (id.map, id.epoch)).collect())
    }

    #[test]
    fn a_store_gathers_own_and_fetched_segments_in_map_order_without_the_empty_ones() {
        let store = SegmentStore::default();
        store.open_job(JOB, Secret::generate().unwrap(), 70);
        store.home(JOB, 1, 1);
        store.home(JOB, 2, 2);
        for map in 0..70 {
            let lacking = [1, 2].map(|reduce| GatheredFor { reduce, partition: reduce });
            assert_eq!(store.lacking(JOB, map), lacking);
            if map % 2 == 0 {
                store.put_output(attempt(map, 0), output(map, 0, &[1]));
                assert_eq!(store.fill_own(attempt(map, 1)), None, "another attempt's");
                assert_eq!(store.fill_own(attempt(map, 0)), Some(vec![1, 2]));
                assert_eq!(store.fill_own(attempt(map, 0)), Some(vec![]), "it is there");
            } else {
                assert_eq!(gathered(&store, 1), None);
                let data = output(map, 0, &[1]).segment(1).unwrap();
                assert!(store.fill(JOB, 1, map, HeldSegment { data: data.clone(), reservation: None }));
                assert!(
                    !store.fill(JOB, 1, map, HeldSegment { data, reservation: None }),
                    "the first one counts"
                );
                let nothing = SegmentData::Memory(Bytes::new());
                assert!(store.fill(JOB, 2, map, HeldSegment { data: nothing, reservation: None }));
            }
            assert!(store.lacking(JOB, map).is_empty());
        }
        let all: Vec<(u32, u32)> = (0..70).map(|map| (map, 0)).collect();
        assert_eq!((gathered(&store, 1), gathered(&store, 2)), (Some(all), Some(vec![])));
    }

    #[test]
    fn a_segment_counts_for_its_home_when_the_master_is_told_of_it_and_not_when_it_comes() {
        let store = SegmentStore::default();
        store.open_job(JOB, Secret::generate().unwrap(), 2);
        store.home(JOB, 1, 1);
        let data = output(0, 0, &[1]).segment(1).unwrap();
        assert!(store.fill(JOB, 1, 0, HeldSegment { data, reservation: None }));
        assert_eq!(store.homes(), [(JOB, 1, 0)], "its fetch goes on with other maps");
        store.mark_reported(JOB, &[1, 2]);
        assert_eq!(store.homes(), [(JOB, 1, 1)]);
        drop(store.unhome(JOB, 1));
        store.home(JOB, 1, 1);
        assert_eq!(store.homes(), [(JOB, 1, 0)], "started again");
    }

    #[test]
    fn what_was_gathered_of_an_output_stays_when_a_newer_attempt_replaces_it() {
        let store = SegmentStore::default();
        store.open_job(JOB, Secret::generate().unwrap(), 1);
        store.home(JOB, 1, 1);
        store.put_output(attempt(0, 0), output(0, 0, &[1, 2]));
        assert_eq!(store.fill_own(attempt(0, 0)), Some(vec![1]));
        store.put_output(attempt(0, 1), output(0, 1, &[1, 2]));
        store.home(JOB, 2, 2);
        assert_eq!(store.fill_own(attempt(0, 1)), Some(vec![2]));
        assert_eq!(gathered(&store, 1), Some(vec![(0, 0)]));
        assert_eq!(gathered(&store, 2), Some(vec![(0, 1)]));
    }

    #[test]
    fn rest_of_a_divided_reduce_has_the_segments_that_were_gathered_also_when_the_other_has_ended() {
        let store = SegmentStore::default();
        store.open_job(JOB, Secret::generate().unwrap(), 2);
        store.home(JOB, 1, 1);
        store.put_output(attempt(0, 0), output(0, 0, &[1]));
        assert_eq!(store.fill_own(attempt(0, 0)), Some(vec![1]));
        let data = output(1, 0, &[1]).segment(1).unwrap();
        assert!(store.fill(JOB, 1, 1, HeldSegment { data, reservation: None }));
        store.home_of_rest(JOB, 1, 4, 1);
        drop(store.unhome(JOB, 1));
        assert_eq!(gathered(&store, 4), Some(vec![(0, 0), (1, 0)]));
        assert_eq!(store.homes(), [(JOB, 4, 0)]);

        store.home_of_rest(JOB, 1, 5, 1);
        assert_eq!(gathered(&store, 5), None, "there is nothing to start with any more");
        assert_eq!(store.lacking(JOB, 0), [GatheredFor { reduce: 5, partition: 1 }]);
        assert_eq!(store.fill_own(attempt(0, 0)), Some(vec![5]), "it reads partition 1 as well");
    }

    #[test]
    fn an_output_is_dropped_by_its_attempt_and_by_no_other() {
        let store = SegmentStore::default();
        store.open_job(JOB, Secret::generate().unwrap(), 1);
        store.put_output(attempt(0, 1), output(0, 1, &[1]));
        assert!(store.discard_output(attempt(0, 0)).is_nothing());
        assert!(store.discard_output(TaskId::reduce(JOB, 0).attempt(1)).is_nothing());
        assert!(store.output(JOB, 0, 1).is_some());
        assert!(!store.discard_output(attempt(0, 1)).is_nothing());
        assert!(store.output(JOB, 0, 1).is_none());
    }

    #[test]
    fn a_gather_costs_bits_for_segments_that_were_not_fetched() {
        let mut gather = Gather::new(0, 1000);
        assert!((0..1000).all(|map| gather.arrives(map)) && gather.missing == 0);
        assert!(gather.held.is_empty());
        assert!(!gather.arrives(1000), "there is no such map");
    }

    #[test]
    fn an_own_output_that_cannot_be_read_is_given_up_and_the_others_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = SegmentStore::default();
        store.open_job(JOB, Secret::generate().unwrap(), 3);
        store.home(JOB, 1, 1);
        store.home(JOB, 2, 2);
        let path = |map: u32| store.output(JOB, map, 0).unwrap().path().unwrap().to_owned();
        for map in 0..3 {
            let output = SegmentsWriter::on_disk(WriteSetting {
                spill: SpillDirs::new(vec![directory.path().to_owned()]),
                ..setting(map, 0)
            });
            let mut writer = output.unwrap();
            for partition in [1, 2] {
                writer.pair(partition, b"key", b"value").unwrap();
            }
            store.put_output(attempt(map, 0), Arc::new(writer.finish().unwrap()));
            assert_eq!(store.fill_own(attempt(map, 0)), Some(vec![1, 2]));
        }
        assert_eq!(store.drop_unreadable(JOB, 1), []);

        // A bit of the last value of partition 1 is flipped in one file, and another file is truncated to 0 bytes.
        let (flipped, cut) = (path(0), path(2));
        let mut bytes = std::fs::read(&flipped).unwrap();
        let at = bytes.windows(5).position(|window| window == b"value").unwrap();
        bytes[at] ^= 1;
        std::fs::write(&flipped, bytes).unwrap();
        std::fs::File::options().write(true).open(&cut).unwrap().set_len(0).unwrap();

        assert_eq!(store.drop_unreadable(JOB, 1), [(0, Some(flipped)), (2, Some(cut))]);
        assert_eq!(store.fill_own(attempt(0, 0)), None, "its map has to run again");
        assert_eq!(store.fill_own(attempt(1, 0)), Some(vec![]));
        let two: Vec<u32> = store
            .complete(JOB, 2, &[])
            .unwrap()
            .iter()
            .map(|held| u32::from(!held.data.is_empty()))
            .collect();
        assert_eq!(two, [1, 1, 1], "no partition loses a segment in silence");
    }
}
