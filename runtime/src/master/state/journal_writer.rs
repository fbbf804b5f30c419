//! The journal as the master keeps it: written as facts are entered, flushed a little later, given up if it must be.

use super::super::recovery::{RecoveryJournal, RecoveryNote};
use super::MasterState;
use crate::journal::{InstantLine, Journal, JournalRecord};
use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::ShuffleOrder;
use gristmill_scheduler::event::Event;
use gristmill_scheduler::units::{Span, Time};
use std::io;

/// What was written reaches the file at most this much later, so that a master that is killed loses no more.
const FLUSH_PAUSE: Span = Span::milliseconds(20);

/// The journal of a master, if it keeps one.
pub(super) struct JournalWriter {
    journal: Option<Journal>,
    /// What the next master of the state folder comes back from.
    recovery: Option<RecoveryJournal>,
    /// When lines that were written are flushed.
    due: Option<Time>,
    /// Why it was given up, until somebody was told.
    failure: Option<io::Error>,
}

impl JournalWriter {
    pub(super) fn new(journal: Option<Journal>) -> Self {
        Self { journal, recovery: None, due: None, failure: None }
    }

    /// Writes what the next facts do not hold.
    pub(super) fn note(&mut self, record: impl FnOnce() -> JournalRecord) {
        if self.journal.is_none() && self.recovery.is_none() {
            return;
        }
        let record = record();
        self.write(|journal| journal.record(&record));
        self.write_recovery(|recovery| recovery.lines().facts(&record));
    }

    /// Writes what only a master that comes back needs.
    pub(super) fn keep<'a>(&mut self, note: impl FnOnce() -> RecoveryNote<'a>) {
        self.write_recovery(|recovery| recovery.lines().beside(&note()));
    }

    /// Writes to this from now on, besides.
    pub(super) fn come_back_from(&mut self, recovery: RecoveryJournal) {
        self.recovery = Some(recovery);
    }

    /// Whether what a master comes back from is worth while to begin anew.
    pub(super) fn has_grown(&self) -> bool {
        self.recovery.as_ref().is_some_and(RecoveryJournal::has_grown)
    }

    /// What a master comes back from; nothing is written there until it is given back.
    pub(super) fn take_recovery(&mut self) -> Option<RecoveryJournal> {
        self.recovery.take()
    }

    /// Writes what the other file was begun anew with.
    pub(super) fn note_for_people(&mut self, record: &JournalRecord) {
        self.write(|journal| journal.record(record));
    }

    /// Writes to this journal too, from now on.
    pub(super) fn write_also(&mut self, journal: Journal) {
        self.journal = Some(journal);
    }

    /// Whether a master can come back from what is written.
    pub(super) fn is_recoverable(&self) -> bool {
        self.recovery.is_some()
    }

    /// What was written for a master that comes back outlives this process from now on. Before anybody is told of it.
    pub(super) fn write_out(&mut self) {
        self.write_recovery(RecoveryJournal::write_out);
    }

    fn write_recovery(&mut self, write: impl FnOnce(&mut RecoveryJournal) -> io::Result<()>) {
        let Some(recovery) = &mut self.recovery else { return };
        let Err(error) = write(recovery) else { return };
        let path = recovery.path().display();
        tracing::error!(%path, %error, "what is needed to come back cannot be written: jobs that this master has will be lost with it");
        if let Some(recovery) = self.recovery.take() {
            recovery.give_up();
        }
    }

    fn instant(&mut self, now: Time, facts: &[Event], orders: &[Command], shuffle: Option<&ShuffleOrder>) {
        self.write(|journal| journal.instant(now, facts, orders, shuffle));
        self.write_recovery(|recovery| {
            recovery.lines().facts(&InstantLine::Instant { at: now, facts, orders, shuffle })
        });
        if self.journal.is_some() {
            self.due.get_or_insert(now + FLUSH_PAUSE);
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut Journal) -> io::Result<()>) {
        if let Some(Err(error)) = self.journal.as_mut().map(write) {
            self.failure = Some(error);
            self.journal = None;
            self.due = None;
        }
    }

    fn flush(&mut self, now: Time) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.write(Journal::flush);
        }
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }
}

impl MasterState {
    /// Writes down the facts of this instant and what the core ordered; `lanes` is its count of changes to the
    /// shuffle's order before.
    pub(super) fn write_down(&mut self, now: Time, lanes: u64) {
        let changed = lanes != self.core.shuffle_revision();
        let shuffle = changed.then(|| self.core.shuffle_order());
        self.journal.instant(now, &self.events, &self.commands, shuffle);
    }

    /// Flushes what was written a while ago, and says if the journal was given up.
    pub(super) fn flush_journal(&mut self, now: Time) {
        self.journal.flush(now);
        let Some(error) = self.journal.failure.take() else { return };
        tracing::warn!(%error, "the journal cannot be written and is given up: it ends here");
        for job in self.jobs.values_mut().filter(|job| !job.state.ended()) {
            job.incident(now, &format!("the master's journal cannot be written and is given up: {error}"));
            job.touch();
        }
    }

    /// The master ends, and with it the journal.
    pub(crate) fn end_journal(&mut self) {
        self.journal.note(|| JournalRecord::End);
        self.journal.write_out();
        self.journal.write(Journal::flush);
        self.flush_journal(Time::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{JournalHeader, SCHEMA};
    use gristmill_scheduler::core::CoreConfig;
    use serde_json::Value;

    #[test]
    fn journal_that_cannot_be_written_is_given_up_once() {
        let header = JournalHeader {
            schema: SCHEMA,
            version: String::new(),
            build: String::new(),
            policy: "fifo".into(),
            placement: "pull".into(),
            estimator: String::new(),
            memory: Value::Null,
            core: CoreConfig::default(),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = Journal::create(&path, &header).unwrap();
        let mut journal = JournalWriter::new(Some(journal));
        journal.instant(Time(7), &[Event::Tick], &[], None);
        assert_eq!(journal.due(), Some(Time(7) + FLUSH_PAUSE));
        journal.flush(Time(8));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1, "flushed too early");
        journal.flush(Time(7) + FLUSH_PAUSE);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
        journal.instant(Time(9), &[Event::Tick], &[], None);
        journal.write(|_| Err(io::ErrorKind::StorageFull.into()));
        assert!(journal.failure.take().is_some());
        journal.instant(Time(10), &[Event::Tick], &[], None);
        assert!(journal.failure.is_none() && journal.due().is_none());
    }
}
