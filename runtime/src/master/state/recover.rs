//! Recovery: replay of an earlier master's journal by a new master, line by line, up to the moment at which the earlier
//! one ended, and compaction of that journal.
//!
//! The core repeats each decision and must reach the same result. During the replay no frame is sent, no output is
//! touched and nothing is written. Workers receive what they are owed when they reconnect (`membership`).
//!
//! When the file has grown, it is rewritten with the current state, which replaces the history that led to it. The file
//! stays bounded however long a master runs, also if it always has a job. The core that is written is read back before
//! the old file is replaced. This master then continues with the copy, as a recovered master does, so that both decide
//! alike. Policies start again at that point and see the live jobs as new arrivals.

use super::super::recovery::{
    BESIDE, FACTS, RecallError, Recalled, RecoveryJournal, RecoveryLine, RecoveryNote, RecoveryRecord,
};
use super::super::register::Register;
use super::MasterState;
use super::snapshot::{ClusterStanding, write_standing};
use crate::api::{FailureCode, JobFailure, PolicyChange, Submission};
use crate::deciders::DeciderNames;
use crate::journal::checked::CheckedWriter;
use crate::journal::ledger::{go_on_from, ledger_of};
use crate::journal::{Encoded, JournalHeader, JournalRecord};
use crate::output_dir::ClaimedOutput;
use gristmill_scheduler::command::Command;
use gristmill_scheduler::event::{Event, External};
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::units::Time;
use gristmill_worker::error_text::chain;
use gristmill_worker::objects::is_url;
use gristmill_worker::protocol::{HELLO_BYTES_MAX, Hello, WORKER_FRAME_MEMORY_MAX, WorkerFrame};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokio::sync::mpsc::unbounded_channel;

/// Result of the replay of a journal.
#[derive(Default)]
pub(crate) struct RecoveredEnd {
    /// Generation of the master that wrote its end.
    pub(crate) generation: u64,
    /// The last instant.
    pub(crate) now: Time,
    /// True if that master ended in order, so that no process waits for it.
    pub(crate) ended: bool,
}

/// Any error of a line except its format.
enum Wrong {
    Reason(String),
    Differs(String),
}

impl MasterState {
    /// Replays a journal. The state must be new, around a core like the one with which the journal started.
    ///
    /// # Errors
    /// A damaged journal, or one that now leads to other orders. The state must then be discarded.
    pub(crate) fn replay(&mut self, journal: &mut Recalled) -> Result<RecoveredEnd, RecallError> {
        self.replaying = true;
        let mut replayed = RecoveredEnd::default();
        while let Some(line) = journal.next()? {
            let offset = journal.offset();
            let done = match line {
                RecoveryLine::Facts(record) => self.replay_facts(record, &mut replayed),
                RecoveryLine::Beside(record) => self.replay_record(record, &mut replayed),
            };
            done.map_err(|wrong| match wrong {
                Wrong::Reason(reason) => RecallError::Line { offset, reason },
                Wrong::Differs(what) => RecallError::Differs { offset, what },
            })?;
        }
        Ok(replayed)
    }

    fn replay_facts(&mut self, record: JournalRecord, replayed: &mut RecoveredEnd) -> Result<(), Wrong> {
        match record {
            JournalRecord::Instant { .. } => {
                return Err(Wrong::Reason("an instant is written in another way here".to_owned()));
            }
            JournalRecord::DecideBy { policy, placement, .. } => {
                let registry = &self.deciders.registry;
                let made = registry.make_policy(&policy).map_err(Wrong::Reason)?;
                let made_placement = registry.make_placement(&placement).map_err(Wrong::Reason)?;
                self.core.decide_by(made, made_placement);
                (self.deciders.names.policy, self.deciders.names.placement) = (policy, placement);
            }
            JournalRecord::Memory { memory, .. } => {
                self.core.restore_memory(&memory).map_err(Wrong::Reason)?;
            }
            JournalRecord::Ledger { at, ledger } => {
                replayed.now = replayed.now.max(at);
                self.restore_ledger(at, &ledger).map_err(Wrong::Reason)?;
            }
            JournalRecord::End => replayed.ended = true,
            JournalRecord::Job { .. } | JournalRecord::Worker { .. } => {}
        }
        Ok(())
    }

    fn replay_instant(&mut self, at: Time, facts: &[Event], orders: &Encoded) -> Result<(), Wrong> {
        facts.iter().for_each(|fact| self.replay_fact(at, fact));
        // The recorded facts include the events raised here.
        self.events.clear();
        let handle = AssertUnwindSafe(|| self.core.handle(at, facts, &mut self.commands));
        if catch_unwind(handle).is_err() {
            return Err(Wrong::Reason("its facts are impossible".to_owned()));
        }
        self.jobs.notice_shuffles_done(at, facts, &self.core);
        let mut commands = std::mem::take(&mut self.commands);
        let again = Encoded::new(&commands);
        if again != *orders {
            return Err(Wrong::Differs(first_other(&commands, &again, orders)));
        }
        for command in commands.drain(..) {
            self.carry_out(at, &command);
        }
        self.announce();
        self.commands = commands;
        self.lanes.notice(at, &self.core);
        Ok(())
    }

    /// Repeats the state's side effects of a fact that no frame reported.
    fn replay_fact(&mut self, at: Time, fact: &Event) {
        match *fact {
            Event::WorkerLost { worker, .. } => self.lost(at, worker, None),
            // An attempt that was missing when its worker reconnected: no frame reports this.
            Event::AttemptFailed { attempt, .. } => {
                if let Some(known) = self.core.attempt(attempt) {
                    self.stopped_there(known.worker, attempt);
                }
            }
            Event::WorkerDraining { worker } => drop(self.drain(worker)),
            Event::WorkerSilent { worker, silent } => {
                if let Some(entry) = self.fleet.get_mut(worker) {
                    entry.silent = silent;
                }
            }
            _ => {}
        }
    }

    fn replay_record(&mut self, record: RecoveryRecord, replayed: &mut RecoveredEnd) -> Result<(), Wrong> {
        match record {
            RecoveryRecord::Began { generation, at } => {
                replayed.generation = generation;
                replayed.now = replayed.now.max(at);
                replayed.ended = false;
            }
            RecoveryRecord::Submitted { at, job, submission } => {
                replayed.now = replayed.now.max(at);
                let entered = self.submitted_before(at, job, *submission);
                entered.map_err(|error| Wrong::Reason(error.message))?;
            }
            RecoveryRecord::Joined { at, worker, hello } => {
                replayed.now = replayed.now.max(at);
                let hello: Hello = decoded(&hello, HELLO_BYTES_MAX)?;
                let (disconnected, _) = unbounded_channel();
                self.enter_worker(at, worker, hello, disconnected);
            }
            RecoveryRecord::Said { at, worker, frame } => {
                replayed.now = replayed.now.max(at);
                let frame: WorkerFrame = decoded(&frame, WORKER_FRAME_MEMORY_MAX)?;
                self.frame(at, worker, frame);
            }
            RecoveryRecord::Instant { at, facts, orders } => {
                replayed.now = replayed.now.max(at);
                let facts: Vec<Event> = decoded(&facts, usize::MAX)?;
                self.replay_instant(at, &facts, &orders)?;
            }
            RecoveryRecord::Closed { at, job, failed } => self.closed(at, job, failed),
            RecoveryRecord::ClientClosed { at, job, failed } => {
                self.jobs.client_closed(at, job, failed, &mut self.journal);
            }
            RecoveryRecord::ClientLost { job } => self.client_lost(job),
            RecoveryRecord::ClientAway { job, since } => {
                if let Some(entry) = self.jobs.get_mut(job) {
                    entry.followers.away = since;
                }
            }
            RecoveryRecord::Standing { at, state } => {
                replayed.now = replayed.now.max(at);
                let standing: ClusterStanding = decoded(&state, usize::MAX)?;
                self.set_aside_reported = standing.restore(&mut self.fleet, &mut self.pools);
            }
            RecoveryRecord::StandingWorker { worker, entry } => {
                self.fleet.insert(worker, decoded(&entry, usize::MAX)?);
            }
            RecoveryRecord::StandingJob { job, entry } => {
                self.jobs.restore(job, decoded(&entry, usize::MAX)?);
            }
        }
        Ok(())
    }

    /// Continues with the replayed state as the next generation, and writes it down.
    pub(crate) fn go_on(&mut self, now: Time, generation: u64, register: Register, journal: RecoveryJournal) {
        self.replaying = false;
        self.journal.come_back_from(journal);
        self.start_generation(now, generation);
        self.fleet.reset_silence(now);
        self.jobs.move_to(now, register);
        for id in self.jobs.attended() {
            self.jobs.client_away(now, id, &mut self.journal);
        }
        for id in self.jobs.entries.keys().copied().collect::<Vec<_>>() {
            self.go_on_with(now, id);
        }
        let workers = self.fleet.workers.len();
        tracing::info!(
            generation,
            jobs = self.jobs.live_count(),
            workers,
            "going on where the last master ended"
        );
        self.settle(now);
    }

    /// Starts a generation: writes down that this master now acts.
    pub(crate) fn start_generation(&mut self, now: Time, generation: u64) {
        self.join_terms.generation = generation;
        self.journal.keep(|| RecoveryNote::Began { generation, at: now });
        self.flush();
    }

    /// Switches to the deciders requested on the command line, if they differ.
    pub(crate) fn decide_as_asked(&mut self, now: Time, names: DeciderNames) {
        let mine = &self.deciders.names;
        if (&mine.policy, &mine.placement) == (&names.policy, &names.placement) {
            return;
        }
        let change = PolicyChange { policy: Some(names.policy), placement: Some(names.placement) };
        if let Err(error) = self.change_policy(now, change) {
            tracing::warn!(reason = error.message, "the policy stays what it was");
        }
    }

    fn go_on_with(&mut self, now: Time, id: JobId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        if let Some(outcome) = job.output.closing {
            return self.jobs.close_output(now, id, outcome, true);
        }
        if job.state.ended() {
            // The client died before it had closed the output, and then the master that closed it in its place.
            let is_open = !*job.output.closed.borrow();
            if job.submission.attached && !job.followers.client && is_open {
                self.jobs.close_for_client(id);
            }
            return;
        }
        job.incident(now, "the master that had the job ended; another goes on with it, and what its tasks had printed before is lost");
        if job.followers.client {
            // The client may reconnect, and closes the output itself.
            return;
        }
        match ClaimedOutput::adopt(&job.submission, Some(id)) {
            Ok(_) => hold_later(&job.submission),
            // This failure passes, and the output is opened again when it is closed.
            Err(error) if error.is_of_resources() => {
                tracing::warn!(%id, error = chain(&error), "the claim keeps the name of the master before this one");
            }
            Err(error) => {
                let message = "the output directory was lost while no master ran".to_owned();
                let detail = Some(chain(&error));
                let code = if error.is_of_missing() { FailureCode::OutputGone } else { FailureCode::Output };
                job.failures.of_job = Some(JobFailure { code, message, detail });
                self.events.push(Event::JobFailed { job: id, cause: External::OutputUnavailable });
            }
        }
    }
}

/// Compaction.
impl MasterState {
    /// Rewrites the recovery file if it has grown. All facts must have been entered.
    pub(crate) fn compact_if_grown(&mut self, now: Time) {
        // A file that could not be synced is not trusted any more.
        if !(self.journal.has_grown() || self.journal.must_rewrite(now)) || !self.events.is_empty() {
            return;
        }
        if let Err(reason) = self.compact(now) {
            tracing::warn!(reason, "the recovery file could not be rewritten");
        }
    }

    pub(super) fn compact(&mut self, now: Time) -> Result<(), String> {
        let Some(ledger) = ledger_of(&self.core) else { return Ok(()) };
        let core = go_on_from(&self.core, &ledger, &self.deciders.names, &self.deciders.registry);
        let header = self.header_now();
        let record = JournalRecord::Ledger { at: now, ledger };
        // Taken out, so that it can be written to while the rest of the state is read.
        let Some(mut recovery) = self.journal.take_recovery() else { return Ok(()) };
        let begun = core.and_then(|core| {
            let begun = recovery.rewrite(&header, |lines| self.write_state(now, &record, lines));
            begun.map(|()| core).map_err(|error| chain(&error))
        });
        self.journal.come_back_from(recovery);
        self.core = begun?;
        self.journal.rewritten();
        self.journal.note_for_people(&record);
        self.wake = None;
        self.events.push(Event::Tick);
        self.settle(now);
        Ok(())
    }

    fn write_state(
        &self,
        now: Time,
        core: &JournalRecord,
        lines: &mut CheckedWriter<impl Write>,
    ) -> io::Result<()> {
        lines.line(BESIDE, &RecoveryNote::Began { generation: self.join_terms.generation, at: now })?;
        lines.line(FACTS, core)?;
        lines.write_out()?;
        write_standing(now, (&self.fleet, &self.jobs, &self.pools), &self.set_aside_reported, lines)
    }

    /// Header from which an equal core can be built.
    fn header_now(&self) -> JournalHeader {
        let (build, core) = (self.join_terms.build.clone(), self.core.config().clone());
        JournalHeader::new(build, &self.deciders.names, self.core.memory(), core)
    }

    /// Restores the ledger of a core from its encoded form.
    fn restore_ledger(&mut self, at: Time, ledger: &Encoded) -> Result<(), String> {
        self.core = go_on_from(&self.core, ledger, &self.deciders.names, &self.deciders.registry)?;
        // The master that wrote it may have died before it asked for a wake-up.
        self.wake = Some(at);
        Ok(())
    }
}

/// Writes this master's name to a claim in a store that names the dead master, on another thread. Until then, or if the
/// store is unreachable, another job of this host may take the claim over; the process that closes the output notices
/// that.
fn hold_later(submission: &Submission) {
    if !is_url(&submission.output.to_text()) {
        return;
    }
    let submission = submission.clone();
    let hold = move || {
        let held = ClaimedOutput::adopt(&submission, None).and_then(|output| output.take_over());
        if let Err(error) = held {
            let error = chain(&error);
            tracing::warn!(output = %submission.output, error, "the claim keeps the name of the master before this one");
        }
    };
    let started = std::thread::Builder::new().name("claim".to_owned()).spawn(hold);
    if let Err(error) = started {
        tracing::warn!(%error, "the claim keeps the name of the master before this one");
    }
}

/// Describes the first order that differs from the recorded one.
fn first_other(commands: &[Command], again: &Encoded, orders: &Encoded) -> String {
    let lengths: Vec<usize> = commands.iter().map(|order| Encoded::new(order).bytes().len()).collect();
    // The number of orders is written before them.
    let head = again.bytes().len() - lengths.iter().sum::<usize>();
    let both = again.bytes().iter().zip(orders.bytes()).skip(head);
    let mut alike = both.take_while(|(one, other)| one == other).count();
    for (number, (order, length)) in (1..).zip(commands.iter().zip(lengths)) {
        match alike.checked_sub(length) {
            Some(rest) => alike = rest,
            None => return format!("order {number} of that moment is {order:?}"),
        }
    }
    format!("there are only {} orders at that moment", commands.len())
}

fn decoded<T: serde::de::DeserializeOwned>(encoded: &Encoded, memory_max: usize) -> Result<T, Wrong> {
    encoded.decode(memory_max).map_err(|error| Wrong::Reason(chain(&error)))
}
