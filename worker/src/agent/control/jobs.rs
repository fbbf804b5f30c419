//! Opening jobs and forgetting them.

use super::Agent;
use crate::agent::files;
use crate::agent::files::JobFiles;
use crate::agent::slots::RunningJob;
use crate::attempt::SideInputs;
use crate::collect::pair_bytes_max;
use crate::input::InputLimits;
use crate::narration::Narration;
use crate::protocol::JobOrder;
use crate::segment::PARTITIONS_MAX;
use crate::task::TaskSettings;
use gristmill_scheduler::ids::{AttemptId, JobId};
use std::sync::{Arc, OnceLock};

impl Agent {
    pub(super) fn open_job(&mut self, order: JobOrder) {
        let job = order.job;
        if self.jobs.contains_key(&job) {
            return;
        }
        self.store.open_job(job, order.key.clone(), order.maps);
        let source = self.source.clone();
        let (name, parameters) = (order.name.clone(), order.parameters.clone());
        let making = std::panic::AssertUnwindSafe(move || source.plan(&name, &parameters));
        let plan = std::panic::catch_unwind(making);
        let plan = match plan {
            // A sort has 20 bits for a partition's number.
            Ok(Ok(_)) if PARTITIONS_MAX < order.partitions => Err(format!(
                "{} partitions are more than the {PARTITIONS_MAX} that a job can have",
                order.partitions
            )),
            Ok(Ok(plan)) => Ok(plan),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the job's plan panicked".to_owned()),
        };
        let files = Arc::new(JobFiles {
            route: files::job_route(job),
            worker: Some(self.worker),
            key: files::FileKey::OfJob(order.key.clone()),
            submitter: order.submitter.clone(),
            peers: order.peers.iter().cloned().collect(),
            pool: self.slots.setting.pool.clone(),
            runtime: self.slots.setting.runtime.clone(),
        });
        let limits = InputLimits {
            record_max: order.limits.record_bytes_max,
            buffered_record_max: pair_bytes_max(self.memory.slot_bytes) as u64,
            expansion_max: order.limits.expansion_max,
            bad_records_max: order.limits.bad_records_max,
            ..InputLimits::default()
        };
        let settings = TaskSettings {
            collector_bytes: self.memory.slot_bytes,
            merge_bytes: self.memory.slot_bytes,
            cuts: Arc::new(order.cuts.clone()),
            recycler: self.memory.recycler.clone(),
            kept_in_files: self.memory.kept_in_files.clone(),
            limits,
            narration: self.config.settings.narration.as_ref().map(|folder| Narration::new(folder.to_path())),
            ..TaskSettings::new(job, order.partitions, self.slots.setting.spill.clone())
        };
        // Every task sees all of a side input, so a bad record of one is not left out.
        let whole = InputLimits { bad_records_max: 0, ..limits };
        let side = Arc::new(SideInputs::new(order.side.clone(), files.clone(), whole));
        let destination = OnceLock::new();
        self.jobs.insert(job, Arc::new(RunningJob { order, plan, files, side, settings, destination }));
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
        // Files are deleted there, and disks may be slow.
        let (store, handovers) = (self.store.clone(), self.handovers.clone());
        tokio::task::spawn_blocking(move || {
            store.forget(job);
            handovers.forget(job);
        });
    }
}
