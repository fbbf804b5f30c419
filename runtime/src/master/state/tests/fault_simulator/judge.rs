//! Final checks of a run: the outcomes of its jobs, and that no state is left behind.

use super::oracle::{AddedTasks, leaves_nothing};
use super::scenario::Mode;
use super::world::World;
use gristmill_scheduler::units::{Span, Time};
use std::ops::ControlFlow;

/// After the last fault, every job ends within this time plus twice its work.
const JOBS_END_WITHIN: Span = Span::whole_seconds(60);

/// Time after the end of the last job within which all state must be gone.
const ALL_IS_QUIET_WITHIN: Span = Span::whole_seconds(10);

/// End of a run without healing.
const SAFETY_ENDS: Time = Time(90_000_000_000);

impl World {
    pub fn is_over(&mut self) -> ControlFlow<Result<(), String>> {
        let (now, healed) = (self.now, self.scenario.healed());
        let all_ended = self.over.len() == self.scenario.jobs.len();
        match self.scenario.mode {
            Mode::Safety if SAFETY_ENDS <= now => ControlFlow::Break(Ok(())),
            Mode::Safety => ControlFlow::Continue(()),
            Mode::Liveness if all_ended => {
                let calm = self.calm_at.max(healed) + ALL_IS_QUIET_WITHIN;
                if now < calm {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(self.nothing_is_left())
                }
            }
            Mode::Liveness if self.jobs_end_by() < now => {
                let open = self.state.core.live_jobs().map(|job| format!("{job:?}"));
                let open = open.collect::<Vec<_>>().join("\n");
                let why = self.submitted.keys().filter(|job| !self.over.contains(job));
                let why: Vec<String> =
                    why.flat_map(|job| self.state.explain(now, *job, None).unwrap_or_default()).collect();
                ControlFlow::Break(Err(format!("these jobs do not end: {open}\n{}", why.join("\n"))))
            }
            Mode::Liveness => ControlFlow::Continue(()),
        }
    }

    fn jobs_end_by(&self) -> Time {
        let work = self.scenario.work();
        self.calm_at.max(self.scenario.healed()) + JOBS_END_WITHIN + work + work
    }

    fn nothing_is_left(&self) -> Result<(), String> {
        for (id, process) in &self.processes {
            let left: [(&str, usize); 4] = [
                ("jobs", process.jobs.len()),
                ("attempts", process.tries.len()),
                ("outputs", process.outputs.len()),
                ("stores", self.submitted.keys().filter(|job| process.store.key(**job).is_some()).count()),
            ];
            leaves_nothing(*id, &left)?;
        }
        let running: usize = self.state.fleet.workers.values().map(|worker| worker.running.len()).sum();
        let (slots, free) = self.state.core.slots();
        let attempts = self.state.core.attempts().count();
        match (running, attempts, slots - free) {
            (0, 0, 0) => Ok(()),
            _ => Err(format!(
                "the master still has {running} attempts, its core {attempts}, {free} slots of {slots} free"
            )),
        }
    }

    /// Checks the outcomes of the jobs.
    pub fn watch(&mut self) {
        let open = self.submitted.iter().filter(|(job, _)| !self.over.contains(job));
        for (job, plan) in open.map(|(job, plan)| (*job, plan.clone())).collect::<Vec<_>>() {
            let Some(entry) = self.state.jobs.get(job) else { continue };
            let parts = entry.output.parts.iter().map(|(index, (_, built))| (*index, built.attempt));
            let done = (plan.reduces, entry.output.reduces_done);
            let held = self.oracle.parts(job, parts, done);
            let ended = entry.state.ended();
            self.must(held);
            if !ended {
                continue;
            }
            self.over.insert(job);
            self.calm_at = self.calm_at.max(self.now);
            self.shown.ended_after = self.now.since(self.scenario.healed());
            let status = self
                .state
                .queries()
                .followed_status(self.now, job, true)
                .expect("it is a job of this master");
            for (what, count) in
                [("backup", status.attempts.backups), ("backup won", status.attempts.backups_won)]
            {
                (0..count).for_each(|_| self.fires(what));
            }
            let entry = self.state.jobs.get(job).expect("it is a job of this master");
            let (maps, reduces) = (entry.input.added.clone(), entry.input.reduces_added());
            let added = AddedTasks { maps: &maps, reduces };
            let held = self.oracle.ended((&plan, added), &status, &self.files);
            self.must(held);
            self.state.jobs.client_closed(self.now, job, None, &mut self.state.journal);
            (self.shown.jobs, self.shown.succeeded) = (self.over.len(), self.oracle.succeeded.len());
            self.shown.late_events = self.state.core.late_events();
        }
    }
}
