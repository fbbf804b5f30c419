//! The journal as the master keeps it: written as facts are entered, flushed a little later, given up if it must be.

use super::super::input::Ending;
use super::super::recovery::{RecoveryJournal, RecoveryNote};
use super::MasterState;
use super::promises::Promised;
use crate::journal::{Encoded, Journal, JournalRecord};
use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::ShuffleOrder;
use gristmill_scheduler::event::Event;
use gristmill_scheduler::units::{Span, Time};
use std::fs::File;
use std::io;

/// What was written reaches the file at most this much later, so that a master that is killed loses no more.
const FLUSH_PAUSE: Span = Span::milliseconds(20);

/// Lines that wait for room on the disk, bytes: orders wait meanwhile, and workers have little to say without them.
const UNWRITTEN_BYTES_MAX: usize = 64 << 20;

/// A file that could not be synced is begun anew so often until that succeeds.
const MEND_PAUSE: Span = Span::milliseconds(500);

/// The journal of a master, if it keeps one.
pub(super) struct JournalWriter {
    journal: Option<Journal>,
    /// What the next master of the state folder comes back from.
    recovery: Option<RecoveryJournal>,
    lines: Lines,
    /// What keeps it from being written, or on disk.
    trouble: Option<Trouble>,
    /// Why the next master would not find the file, in words.
    gone: Option<String>,
    /// When lines that were written are flushed.
    due: Option<Time>,
    /// Why it was given up, until somebody was told.
    failure: Option<io::Error>,
}

/// Lines to come back from, counted from the first ever.
#[derive(Default)]
struct Lines {
    appended: u64,
    /// The system has them: they outlive this process.
    written: u64,
    /// They are on disk: they outlive the machine's power.
    synced: u64,
    /// Up to here somebody waits for that.
    wanted: u64,
    /// A thread syncs.
    syncing: bool,
    /// Rises with each file.
    file: u64,
}

/// What keeps promises waiting.
struct Trouble {
    words: String,
    /// What was handed to the system may be lost, so that the file is to be begun anew; not before this time.
    unsynced: Option<Time>,
    told: bool,
}

/// Lines to be synced, off the thread that writes them.
pub(crate) struct SyncOrder {
    file: File,
    lines: u64,
    number: u64,
}

/// What came of that.
pub(crate) struct Synced {
    lines: u64,
    number: u64,
    result: io::Result<()>,
}

impl SyncOrder {
    pub(crate) fn carry_out(self) -> Synced {
        Synced { lines: self.lines, number: self.number, result: self.file.sync_data() }
    }

    /// As a disk does that has an error.
    #[cfg(test)]
    pub(crate) fn fail(self) -> Synced {
        Synced { lines: self.lines, number: self.number, result: Err(io::ErrorKind::Other.into()) }
    }
}

impl JournalWriter {
    pub(super) fn new(journal: Option<Journal>) -> Self {
        Self {
            journal,
            recovery: None,
            lines: Lines::default(),
            trouble: None,
            gone: None,
            due: None,
            failure: None,
        }
    }

    /// Writes what the next facts do not hold.
    pub(super) fn note(&mut self, record: impl FnOnce() -> JournalRecord) {
        if self.journal.is_none() && self.recovery.is_none() {
            return;
        }
        let record = record();
        self.write(|journal| journal.record(&record));
        self.append(|recovery| recovery.lines().facts(&record));
    }

    /// Writes what only a master that comes back needs.
    pub(super) fn keep<'a>(&mut self, note: impl FnOnce() -> RecoveryNote<'a>) {
        self.append(|recovery| recovery.lines().beside(&note()));
    }

    /// Writes to this from now on, besides.
    pub(super) fn come_back_from(&mut self, recovery: RecoveryJournal) {
        self.recovery = Some(recovery);
    }

    /// Whether what a master comes back from is worth while to begin anew.
    pub(super) fn has_grown(&self) -> bool {
        self.recovery.as_ref().is_some_and(RecoveryJournal::has_grown)
    }

    /// Whether it must be begun anew, because nobody knows what of it is on disk; asked now and then.
    pub(super) fn must_begin_anew(&mut self, now: Time) -> bool {
        let Some(at) = self.trouble.as_mut().and_then(|trouble| trouble.unsynced.as_mut()) else {
            return false;
        };
        let due = *at <= now;
        if due {
            *at = now + MEND_PAUSE;
        }
        due
    }

    /// What a master comes back from; nothing is written there until it is given back.
    pub(super) fn take_recovery(&mut self) -> Option<RecoveryJournal> {
        self.recovery.take()
    }

    /// It holds what stands, and is on disk.
    pub(super) fn begun_anew(&mut self) {
        let lines = &mut self.lines;
        (lines.written, lines.synced) = (lines.appended, lines.appended);
        lines.file += 1;
        lines.syncing = false;
        self.mended();
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

    /// Why nothing new can be promised, if that is so.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| trouble.words.as_str()).or(self.gone.as_deref())
    }

    /// Notices that the state directory, or the file in it, was removed under this master.
    pub(super) fn look_for_file(&mut self) {
        let lacking = self.recovery.as_ref().filter(|recovery| !recovery.is_there());
        let words = lacking.map(|recovery| {
            format!(
                "{} was removed or replaced while this master runs, so no other could go on with its jobs; end it and start it \
                 again",
                recovery.path().display()
            )
        });
        if let Some(words) = words.as_ref().filter(|_| self.gone.is_none()) {
            tracing::error!("no new jobs are taken: {words}");
        }
        self.gone = words;
    }

    /// The place in the file behind all that was entered, for a promise that hangs on it; `sync`: on its being on disk.
    pub(super) fn promise(&mut self, sync: bool) -> Promised {
        let at = self.lines.appended;
        if sync && self.recovery.is_some() {
            self.lines.wanted = self.lines.wanted.max(at);
        }
        Promised { at, sync }
    }

    /// Whether what a promise hangs on is where it must be.
    pub(super) fn stands(&self, promised: Promised) -> bool {
        let reached = if promised.sync { self.lines.synced } else { self.lines.written };
        self.recovery.is_none() || promised.at <= reached
    }

    /// Something to be synced, if somebody waits for it and nothing is being synced: what is written meanwhile goes
    /// together the next time.
    pub(super) fn sync_order(&mut self) -> Option<SyncOrder> {
        let recovery = self.recovery.as_ref()?;
        let lines = &mut self.lines;
        let wanted = lines.synced < lines.wanted.min(lines.written);
        if !wanted || lines.syncing || self.trouble.as_ref().is_some_and(|trouble| trouble.unsynced.is_some())
        {
            return None;
        }
        let order = recovery.file().map(|file| SyncOrder { file, lines: lines.written, number: lines.file });
        lines.syncing = order.is_ok();
        order.map_err(|error| self.not_synced(&error)).ok()
    }

    /// What came of it.
    pub(super) fn synced(&mut self, synced: Synced) {
        if synced.number != self.lines.file {
            // That file is not there any more, and all that it held is on disk.
            return;
        }
        self.lines.syncing = false;
        match synced.result {
            Ok(()) => self.lines.synced = self.lines.synced.max(synced.lines),
            Err(error) => self.not_synced(&error),
        }
    }

    /// The system may have dropped what it could not write: a second try would say that all is well.
    fn not_synced(&mut self, error: &io::Error) {
        let words = format!("what was written could not be synced: {error}");
        self.trouble = Some(Trouble { words, unsynced: Some(Time::ZERO), told: false });
    }

    fn mended(&mut self) {
        if self.trouble.take().is_some_and(|trouble| trouble.told) {
            tracing::info!("what is needed to come back can be written again: promises are kept from now on");
        }
    }

    /// What was written for a master that comes back outlives this process from now on, if there is room for it. Before
    /// anybody is told of it: says whether that may be.
    #[must_use]
    pub(super) fn write_out(&mut self) -> bool {
        let Some(recovery) = &mut self.recovery else { return true };
        let Err(error) = recovery.write_out() else {
            self.lines.written = self.lines.appended;
            if self.trouble.as_ref().is_some_and(|trouble| trouble.unsynced.is_none()) {
                self.mended();
            }
            return true;
        };
        if UNWRITTEN_BYTES_MAX < recovery.waiting() {
            self.give_up(&error);
            return true;
        }
        if self.trouble.is_none() {
            let words = format!("{} cannot be written: {error}", recovery.path().display());
            self.trouble = Some(Trouble { words, unsynced: None, told: false });
        }
        false
    }

    fn append(&mut self, write: impl FnOnce(&mut RecoveryJournal) -> io::Result<()>) {
        let Some(recovery) = &mut self.recovery else { return };
        self.lines.appended += 1;
        if let Err(error) = write(recovery) {
            self.give_up(&error);
        }
    }

    fn give_up(&mut self, error: &io::Error) {
        let Some(recovery) = self.recovery.take() else { return };
        let path = recovery.path().display();
        tracing::error!(%path, %error, "what is needed to come back cannot be written: jobs that this master has will be lost with it");
        recovery.give_up();
        self.trouble = None;
    }

    fn instant(&mut self, now: Time, facts: &[Event], orders: &[Command], shuffle: Option<&ShuffleOrder>) {
        self.write(|journal| journal.instant(now, facts, orders, shuffle));
        // In a quarter of the bytes of JSON: there are as many of these as there are tasks.
        self.keep(|| RecoveryNote::Instant {
            at: now,
            facts: Encoded::of(&facts),
            orders: Encoded::of(&orders),
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

    /// Flushes what was written a while ago, and says if the journal was given up or what is needed to come back cannot
    /// be written.
    pub(super) fn flush_journal(&mut self, now: Time) {
        self.journal.flush(now);
        if let Some(trouble) = self.journal.trouble.as_mut().filter(|trouble| !trouble.told) {
            trouble.told = true;
            let words = trouble.words.clone();
            tracing::error!(
                reason = words,
                "nothing new is promised until what is needed to come back can be written"
            );
            for job in self.jobs.values_mut().filter(|job| !job.state.ended()) {
                job.incident(now, &format!("the master promises nothing new for now: {words}"));
                job.touch();
            }
        }
        let Some(error) = self.journal.failure.take() else { return };
        tracing::warn!(%error, "the journal cannot be written and is given up: it ends here");
        for job in self.jobs.values_mut().filter(|job| !job.state.ended()) {
            job.incident(now, &format!("the master's journal cannot be written and is given up: {error}"));
            job.touch();
        }
    }

    /// The master ends, and with it the journal; unless the next one is to go on from it.
    pub(crate) fn end_journal(&mut self, ending: Ending) {
        match ending {
            Ending::Abandons => self.journal.note(|| JournalRecord::End),
            Ending::Keeps => self.journal.note_for_people(&JournalRecord::End),
        }
        if !self.journal.write_out() && ending == Ending::Abandons {
            tracing::warn!(
                "the end of this master could not be written down: the next one goes on with its jobs"
            );
        }
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
