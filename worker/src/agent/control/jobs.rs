//! Opens a job on a worker when the master orders it, and removes its data when it has ended.

use super::Agent;
use crate::agent::files::{self, FileKey, JobFiles};
use crate::agent::job::{RunningJob, plan_of};
use crate::attempt::SideInputs;
use crate::collect::pair_bytes_max;
use crate::input::InputLimits;
use crate::memory_watch::item_bytes_max;
use crate::narration::Narration;
use crate::protocol::JobOrder;
use crate::task::TaskSettings;
use gristmill_scheduler::ids::{AttemptId, JobId};
use std::sync::{Arc, Mutex, OnceLock};

impl Agent {
    pub(super) fn open_job(&mut self, order: JobOrder) {
        let job = order.job;
        if self.jobs.contains_key(&job) {
            return;
        }
        self.store.open_job(job, order.key.clone(), order.maps);
        let running = self.running_job(order);
        self.jobs.insert(job, Arc::new(running));
    }

    fn running_job(&self, order: JobOrder) -> RunningJob {
        let (job, setting, slot_bytes) = (order.job, &self.slots.setting, self.memory.slot_bytes);
        let files = Arc::new(JobFiles {
            route: files::job_route(job),
            worker: Some(self.worker),
            key: FileKey::OfJob(order.key.clone()),
            submitter: order.submitter.clone(),
            peers: order.peers.iter().cloned().collect(),
            pool: setting.pool.clone(),
            runtime: setting.runtime.clone(),
        });
        let limits = InputLimits {
            record_max: order.limits.record_bytes_max,
            buffered_record_max: pair_bytes_max(slot_bytes) as u64,
            held_max: item_bytes_max(slot_bytes) as u64,
            expansion_max: order.limits.expansion_max,
            bad_records_max: order.limits.bad_records_max,
            ..InputLimits::default()
        };
        let narration = self.config.settings.narration.as_ref();
        let settings = TaskSettings {
            collector_bytes: slot_bytes,
            merge_bytes: slot_bytes,
            cuts: Arc::new(order.cuts.clone()),
            recycler: self.memory.recycler.clone(),
            kept_in_files: self.memory.kept_in_files.clone(),
            limits,
            narration: narration.map(|directory| Narration::new(directory.to_path())),
            ..TaskSettings::new(job, order.partitions, setting.spill.clone())
        };
        let side = SideInputs::new(order.side.clone(), files.clone(), limits);
        RunningJob {
            plan: plan_of(&*self.source, &order),
            side: Arc::new(side.narrated(settings.narration.is_some())),
            order,
            files,
            settings,
            destination: OnceLock::new(),
            named: Mutex::default(),
        }
    }

    pub(super) fn forget(&mut self, job: JobId) {
        let attempts: Vec<AttemptId> =
            self.running.keys().filter(|attempt| attempt.task.job == job).copied().collect();
        for attempt in attempts {
            self.kill(attempt);
        }
        self.fetching.plan.forget(job);
        if let Some(pace) = &self.fetching.pace {
            pace.forget(job);
        }
        self.jobs.remove(&job);
        if self.jobs.is_empty() {
            self.memory.recycler.clear();
        }
        // It deletes files, and disks may be slow.
        let store = self.store.clone();
        tokio::task::spawn_blocking(move || {
            store.forget(job);
        });
    }
}
