//! Kills the master in the middle of an instant and replaces it.

use super::process::ProcessId;
use super::scenario::{PlacePlan, Scenario};
use super::transport::SimEvent;
use super::world::{World, master};
use crate::journal::{JournalHeader, SCHEMA};
use crate::master::recovery::{RecoveryJournal, recall};
use crate::master::register::Register;
use crate::master::state::MasterState;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::Time;
use rand::RngExt as _;
use std::path::PathBuf;

/// Recovery file of a master.
pub(super) struct Recovery {
    directory: tempfile::TempDir,
    generation: u64,
    /// Growth in bytes after which it is compacted.
    compact_after: u64,
    /// True if the master is to be killed in the next instant in which it writes.
    doomed: bool,
    /// Size of the file in bytes before this instant, if it is.
    before: u64,
}

impl Recovery {
    pub fn start(scenario: &Scenario, compact_after: u64, state: &mut MasterState) -> Self {
        let directory = tempfile::tempdir().expect("there is a directory for temporary files");
        let names = &scenario.deciders;
        let header = JournalHeader {
            schema: SCHEMA,
            version: String::new(),
            build: "build".to_owned(),
            policy: names.policy.clone(),
            placement: names.placement.clone(),
            estimator: names.estimator.clone(),
            memory: state.memory(),
            core: scenario.limits.clone(),
        };
        let recovery = Self { directory, generation: 1, compact_after, doomed: false, before: 0 };
        let journal = RecoveryJournal::create(recovery.path(), &header).expect("it can be written");
        state.journal.come_back_from(journal.compact_after(compact_after));
        state.start_generation(Time(1), 1);
        recovery
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("recovery")
    }

    fn length(&self) -> u64 {
        std::fs::metadata(self.path()).map_or(0, |file| file.len())
    }

    pub fn is_doomed(&self) -> bool {
        self.doomed
    }

    /// True if the master is to be killed now.
    pub fn is_due(&self) -> bool {
        self.doomed && self.before < self.length()
    }

    /// Starts an instant. All earlier frames have been sent.
    pub fn begin_instant(&mut self) {
        if self.doomed {
            self.before = self.length();
        }
    }

    /// Cancels the kill.
    pub fn relent(&mut self) {
        self.doomed = false;
    }

    /// Cuts the file off after `bytes` bytes and builds a state from the rest. Returns an error if that is
    /// inconsistent.
    fn next_master(
        &mut self,
        now: Time,
        length: u64,
        register: Register,
        places: &[PlacePlan],
    ) -> Result<MasterState, String> {
        let file = std::fs::File::options().write(true).open(self.path());
        file.and_then(|file| file.set_len(length)).map_err(|error| error.to_string())?;
        let mut journal = recall(&self.path())
            .map_err(|error| gristmill_worker::error_text::chain(&error))?
            .ok_or("no header")?;
        let header = journal.header.clone();
        let names = crate::deciders::DeciderNames {
            policy: header.policy,
            placement: header.placement,
            estimator: header.estimator,
        };
        let mut state = master(&names, header.core, places);
        state.core.restore_memory(&header.memory)?;
        state.replay(&mut journal).map_err(|error| gristmill_worker::error_text::chain(&error))?;
        self.generation += 1;
        let journal =
            RecoveryJournal::go_on(self.path(), journal.offset()).map_err(|error| error.to_string())?;
        state.go_on(now, self.generation, register, journal.compact_after(self.compact_after));
        Ok(state)
    }
}

impl World {
    /// Dooms the master: it will not survive the next instant in which it has something to write.
    pub fn doom_master(&mut self) {
        // Everything before this is written and sent.
        self.state.settle(self.now);
        self.send_what_was_said();
        if let Some(recovery) = &mut self.recovery {
            recovery.doomed = true;
            recovery.begin_instant();
        }
    }

    /// Kills the master and continues with another one.
    pub fn replace_master(&mut self) {
        let Some(mut recovery) = self.recovery.take() else { return };
        recovery.doomed = false;
        let (before, after) = (recovery.before, recovery.length());
        let torn = self.rng.random_range(0..2) == 0;
        let length = if torn { self.rng.random_range(before..after) } else { after };
        self.fires("kill master");
        if torn {
            self.fires("torn journal");
        } else {
            // Some of the frames it was about to send are sent.
            self.send_what_was_said();
        }
        let links: Vec<ProcessId> = self.links.keys().copied().collect();
        for id in links {
            self.lose_under_way(id);
            let Some(link) = self.links.get_mut(&id) else { continue };
            while link.said.try_recv().is_ok() {}
            // Frames in flight to it are lost.
            link.up.under_way.clear();
            link.up.closed = true;
        }
        self.going.clear();
        self.losers.clear();
        let register = std::mem::replace(&mut self.state.jobs.register, Register::in_memory());
        match recovery.next_master(self.now, length, register, &self.scenario.places) {
            Ok(state) => self.state = state,
            Err(wrong) => self.must(Err(format!("no master could come back: {wrong}"))),
        }
        self.recovery = Some(recovery);
        self.submit_again();
    }

    /// Submits jobs again that were not written down. They were not acknowledged, so their clients retry.
    fn submit_again(&mut self) {
        let lost = |job: &JobId| !self.over.contains(job) && !self.state.jobs.entries.contains_key(job);
        for job in self.submitted.keys().copied().filter(lost).collect::<Vec<_>>() {
            let Some(plan) = self.submitted.remove(&job) else { continue };
            self.fires("submission lost");
            if let Some(number) = self.scenario.jobs.iter().position(|other| *other == plan) {
                self.schedule(self.now, SimEvent::Submit(number));
            }
        }
    }
}
