//! Opens and removes jobs.

use super::Agent;
use crate::agent::job::{JobCode, JobMeans, RunningJob, plan_of};
use crate::narration::Narration;
use crate::protocol::JobOrder;
use gristmill_scheduler::ids::{AttemptId, JobId};
use std::sync::Arc;

impl Agent {
    pub(super) fn open_job(&mut self, order: JobOrder) {
        let job = order.job;
        if self.jobs.contains_key(&job) {
            return;
        }
        self.store.open_job(job, order.key.clone(), order.maps);
        let code = match &order.program {
            Some(program) => {
                self.slots.setting.runners.open(job, program);
                JobCode::Shipped(*program)
            }
            None => JobCode::Linked(plan_of(&*self.source, &order)),
        };
        let narration = self.config.settings.narration.as_ref();
        let means = JobMeans {
            worker: self.worker,
            pool: self.slots.setting.pool.clone(),
            runtime: self.slots.setting.runtime.clone(),
            slot_bytes: self.memory.slot_bytes,
            recycler: self.memory.recycler.clone(),
            kept_in_files: self.memory.kept_in_files.clone(),
            narration: narration.map(|folder| Narration::new(folder.to_path())),
        };
        let spill = self.slots.setting.spill.clone();
        self.jobs.insert(job, Arc::new(RunningJob::new(order, code, &means, spill)));
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
        let (store, handovers) = (self.store.clone(), self.handovers.clone());
        let runners = self.slots.setting.runners.clone();
        tokio::task::spawn_blocking(move || {
            store.forget(job);
            handovers.forget(job);
            runners.forget(job);
        });
    }
}
