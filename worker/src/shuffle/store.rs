//! What the shuffle of one worker holds: outputs of its own maps, and segments gathered for the partitions
//! whose home it is.
//!
//! Shared between the control loop, the server and the slots, behind one lock that is never held across I/O.
//! Not here: moving bytes (`serve`, `fetch`).
//!
//! Invariant: a gather holds at most one segment for each map, the first that came.

use crate::budget::Reservation;
use crate::http::Secret;
use crate::segment::{MapOutput, SegmentData};
use gristmill_scheduler::ids::{AttemptId, JobId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Outputs and gathered segments of all jobs on this worker. Cloning shares it.
#[derive(Clone, Default)]
pub struct Store(Arc<Mutex<BTreeMap<JobId, JobStore>>>);

struct JobStore {
    key: Secret,
    maps: u32,
    outputs: BTreeMap<u32, (u32, Arc<MapOutput>)>,
    gathers: BTreeMap<u32, Gather>,
}

struct Gather {
    segments: Vec<Option<Held>>,
    missing: u32,
}

/// A segment with the memory it was granted.
#[derive(Clone)]
pub struct Held {
    /// The bytes.
    pub data: SegmentData,
    /// Given back to the budget when the last clone is dropped; `None` for a file or a segment read in place.
    pub reservation: Option<Arc<Reservation>>,
}

impl Store {
    fn jobs(&self) -> MutexGuard<'_, BTreeMap<JobId, JobStore>> {
        // A panic while the lock is held leaves maps that are still well formed: every change is one insert.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job begins here.
    pub fn open_job(&self, job: JobId, key: Secret, maps: u32) {
        self.jobs().entry(job).or_insert_with(|| JobStore {
            key,
            maps,
            outputs: BTreeMap::new(),
            gathers: BTreeMap::new(),
        });
    }

    /// Everything of a job goes.
    pub fn forget(&self, job: JobId) {
        let gone = self.jobs().remove(&job);
        drop(gone); // files are deleted here, outside the lock
    }

    /// What opens the segments of this job; `None` if it is not known here.
    #[must_use]
    pub fn key(&self, job: JobId) -> Option<Secret> {
        self.jobs().get(&job).map(|job| job.key.clone())
    }

    /// Keeps the output of a map attempt; a newer attempt replaces an older one.
    pub fn put_output(&self, map: AttemptId, output: Arc<MapOutput>) {
        let mut jobs = self.jobs();
        if let Some(job) = jobs.get_mut(&map.task.job) {
            let newer = job.outputs.get(&map.task.index).is_none_or(|(epoch, _)| *epoch <= map.epoch);
            if newer {
                job.outputs.insert(map.task.index, (map.epoch, output));
            }
        }
    }

    /// The output of this very attempt, if it is held here.
    #[must_use]
    pub fn output(&self, job: JobId, map: u32, epoch: u32) -> Option<Arc<MapOutput>> {
        let jobs = self.jobs();
        let (held, output) = jobs.get(&job)?.outputs.get(&map)?;
        (*held == epoch).then(|| output.clone())
    }

    /// Starts gathering a partition.
    pub fn home(&self, job: JobId, partition: u32) {
        if let Some(job) = self.jobs().get_mut(&job) {
            let maps = job.maps;
            job.gathers
                .entry(partition)
                .or_insert_with(|| Gather { segments: vec![None; maps as usize], missing: maps });
        }
    }

    /// Stops gathering a partition and drops what there is of it.
    pub fn unhome(&self, job: JobId, partition: u32) {
        let gone = self.jobs().get_mut(&job).and_then(|job| job.gathers.remove(&partition));
        drop(gone);
    }

    /// Partitions gathered here that still lack this map, ascending.
    #[must_use]
    pub fn lacking(&self, job: JobId, map: u32) -> Vec<u32> {
        let jobs = self.jobs();
        let Some(job) = jobs.get(&job) else { return Vec::new() };
        let lacks = |gather: &Gather| matches!(gather.segments.get(map as usize), Some(None));
        job.gathers.iter().filter(|(_, gather)| lacks(gather)).map(|(partition, _)| *partition).collect()
    }

    /// Adds a segment. Answers whether it was still lacking.
    pub fn fill(&self, job: JobId, partition: u32, map: u32, held: Held) -> bool {
        let mut jobs = self.jobs();
        let gather = jobs.get_mut(&job).and_then(|job| job.gathers.get_mut(&partition));
        let Some(gather) = gather else { return false };
        match gather.segments.get_mut(map as usize) {
            Some(place @ None) => {
                *place = Some(held);
                gather.missing -= 1;
                true
            }
            _ => false,
        }
    }

    /// All segments of a partition in map order, without the empty ones; `None` while some are missing.
    #[must_use]
    pub fn complete(&self, job: JobId, partition: u32) -> Option<Vec<Held>> {
        let jobs = self.jobs();
        let gather = jobs.get(&job)?.gathers.get(&partition)?;
        if 0 < gather.missing {
            return None;
        }
        Some(gather.segments.iter().flatten().filter(|held| !held.data.is_empty()).cloned().collect())
    }

    /// Number of jobs that have anything here.
    #[must_use]
    pub fn jobs_held(&self) -> usize {
        self.jobs().len()
    }
}
