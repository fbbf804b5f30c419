//! Writer of the master's journals: appends facts as they are entered, flushes them a little later, and stops writing a
//! journal that fails.
//!
//! Guarantees are given only after they are written down: acknowledged submissions, commit permits, and ends of jobs.
//! Everything else follows a weaker rule: it is written before it is reported, and synced together with the next
//! guarantee. All guarantees that wait for one sync are given together. A job whose output is not synced (`--no-sync`)
//! does not ask for syncs of its guarantees.

use super::super::ending::Ending;
use super::super::recovery::{BESIDE, FACTS, RecoveryJournal, RecoveryNote};
use crate::journal::{Encoded, Journal, JournalRecord};
use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::ShuffleOrder;
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::{AttemptId, JobId, WorkerId};
use gristmill_scheduler::units::{Span, Time};
use std::fs::File;
use std::io;

/// Time after which written lines are flushed to the file at the latest. A killed master loses no more than this.
const FLUSH_PAUSE: Span = Span::milliseconds(20);

/// Maximum number of bytes of lines waiting for disk space. Orders wait meanwhile, and without orders workers have
/// little to report.
const UNWRITTEN_BYTES_MAX: usize = 64 << 20;

/// Pause between two attempts to rewrite a file that could not be synced.
const REWRITE_PAUSE: Span = Span::milliseconds(500);

/// The journals of a master, if it keeps any.
pub(crate) struct JournalWriter {
    journal: Option<Journal>,
    /// Recovery file, from which the next master of the state directory recovers.
    recovery: Option<RecoveryJournal>,
    lines: JournalLines,
    /// Reason why lines cannot be written or synced now.
    trouble: Option<Trouble>,
    /// Reason, in words, why the next master would not find the file.
    gone: Option<String>,
    /// Time at which written lines are flushed.
    due: Option<Time>,
    /// Error that ended the journal, until it is reported.
    failure: Option<io::Error>,
    /// Permits and ends of jobs that wait for lines to be written.
    permits: Vec<(Guarantee, AttemptId, WorkerId)>,
    ends: Vec<(Guarantee, JobId)>,
}

/// Condition of a guarantee: a position in the written lines, and if they must be on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Guarantee {
    at: u64,
    sync: bool,
}

/// Positions in the recovery lines, counted from the first line ever written.
#[derive(Default)]
struct JournalLines {
    appended: u64,
    /// Written to the operating system: these lines survive this process.
    written: u64,
    /// Synced to disk: these lines survive a power failure.
    synced: u64,
    /// Lines whose sync a guarantee waits for.
    wanted: u64,
    /// True while a thread syncs.
    syncing: bool,
    /// Number of the current file; increases with each rewrite.
    file: u64,
}

/// Reason why guarantees cannot be given.
struct Trouble {
    words: String,
    /// Set if data handed to the operating system may be lost: the file is to be rewritten, not before this time.
    unsynced: Option<Time>,
    reported: bool,
}

/// Lines to be synced on another thread than the one that writes them.
pub(crate) struct SyncOrder {
    file: File,
    lines: u64,
    number: u64,
}

/// Result of a [`SyncOrder`].
pub(crate) struct Synced {
    lines: u64,
    number: u64,
    result: io::Result<()>,
}

impl SyncOrder {
    pub(crate) fn carry_out(self) -> Synced {
        Synced { lines: self.lines, number: self.number, result: self.file.sync_data() }
    }

    /// Fails like a disk with an I/O error.
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
            lines: JournalLines::default(),
            trouble: None,
            gone: None,
            due: None,
            failure: None,
            permits: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Writes a record that the next facts do not contain.
    pub(super) fn note(&mut self, record: impl FnOnce() -> JournalRecord) {
        if self.journal.is_none() && self.recovery.is_none() {
            return;
        }
        let record = record();
        self.write(|journal| journal.record(&record));
        self.append(|recovery| recovery.lines().line(FACTS, &record));
    }

    /// Writes a note that only recovery needs.
    pub(super) fn keep<'a>(&mut self, note: impl FnOnce() -> RecoveryNote<'a>) {
        self.append(|recovery| recovery.lines().line(BESIDE, &note()));
    }

    /// Also writes to this recovery file from now on.
    pub(crate) fn come_back_from(&mut self, recovery: RecoveryJournal) {
        self.recovery = Some(recovery);
    }

    /// True if the recovery file has grown enough to be compacted.
    pub(super) fn has_grown(&self) -> bool {
        self.recovery.as_ref().is_some_and(RecoveryJournal::has_grown)
    }

    /// True if the recovery file must be rewritten because its content on disk is unknown. At most once per
    /// [`REWRITE_PAUSE`].
    pub(super) fn must_rewrite(&mut self, now: Time) -> bool {
        let Some(at) = self.trouble.as_mut().and_then(|trouble| trouble.unsynced.as_mut()) else {
            return false;
        };
        let due = *at <= now;
        if due {
            *at = now + REWRITE_PAUSE;
        }
        due
    }

    /// Takes the recovery file. Nothing is written to it until it is given back.
    pub(super) fn take_recovery(&mut self) -> Option<RecoveryJournal> {
        self.recovery.take()
    }

    /// Notes that the recovery file was rewritten with the current state and is on disk.
    pub(super) fn rewritten(&mut self) {
        let lines = &mut self.lines;
        (lines.written, lines.synced) = (lines.appended, lines.appended);
        lines.file += 1;
        lines.syncing = false;
        self.end_trouble();
    }

    /// Writes the record with which the recovery file was rewritten to the journal for people.
    pub(super) fn note_for_people(&mut self, record: &JournalRecord) {
        self.write(|journal| journal.record(record));
    }

    /// Also writes to this journal from now on.
    pub(crate) fn write_also(&mut self, journal: Journal) {
        self.journal = Some(journal);
    }

    /// True if a master can recover from what is written.
    pub(crate) fn is_recoverable(&self) -> bool {
        self.recovery.is_some()
    }

    /// Reason why no new guarantee can be given, if there is one.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_ref().map(|trouble| trouble.words.as_str()).or(self.gone.as_deref())
    }

    /// Checks if the state directory, or the file in it, was removed under this master.
    pub(crate) fn look_for_file(&mut self) {
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

    /// Returns the position behind all entered lines, for a guarantee that depends on them. With `sync`, the guarantee
    /// also depends on their sync to disk.
    pub(crate) fn guarantee(&mut self, sync: bool) -> Guarantee {
        let at = self.lines.appended;
        if sync && self.recovery.is_some() {
            self.lines.wanted = self.lines.wanted.max(at);
        }
        Guarantee { at, sync }
    }

    /// True if the lines that a guarantee depends on are written, or synced if it asks for that.
    pub(crate) fn stands(&self, guarantee: Guarantee) -> bool {
        let reached = if guarantee.sync { self.lines.synced } else { self.lines.written };
        self.recovery.is_none() || guarantee.at <= reached
    }

    /// Delays the report of a job's end until it is written down. Returns true if it has to wait.
    pub(super) fn keeps_back_end(&mut self, id: JobId, sync: bool) -> bool {
        let guarantee = self.guarantee(sync);
        let waits = !self.stands(guarantee);
        if waits {
            self.ends.push((guarantee, id));
        }
        waits
    }

    /// Delays a permit to commit until it is written down. Returns true if it has to wait.
    pub(super) fn keeps_back_permit(&mut self, attempt: AttemptId, worker: WorkerId, sync: bool) -> bool {
        // Frames queued now are sent after this instant is written down.
        let waits = sync && self.is_recoverable();
        if waits {
            let guarantee = self.guarantee(sync);
            self.permits.push((guarantee, attempt, worker));
        }
        waits
    }

    /// Drops the waiting permits of a worker that lost its route to this master: it asks for them again.
    pub(super) fn forget_permits(&mut self, worker: WorkerId) {
        self.permits.retain(|(.., to)| *to != worker);
    }

    /// Returns the permits and the ends of jobs that need not wait any more.
    pub(super) fn take_guarantees(&mut self) -> (Vec<(AttemptId, WorkerId)>, Vec<JobId>) {
        let (mut permits, mut ends) = (std::mem::take(&mut self.permits), std::mem::take(&mut self.ends));
        let given = permits.extract_if(.., |(guarantee, ..)| self.stands(*guarantee));
        let given = given.map(|(_, attempt, worker)| (attempt, worker)).collect();
        let ended =
            ends.extract_if(.., |(guarantee, _)| self.stands(*guarantee)).map(|(_, job)| job).collect();
        (self.permits, self.ends) = (permits, ends);
        (given, ended)
    }

    /// Returns lines to be synced if a guarantee waits for them and no sync is running. Lines written meanwhile are
    /// synced together the next time.
    pub(crate) fn sync_order(&mut self) -> Option<SyncOrder> {
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

    /// Enters the result of a sync.
    pub(crate) fn synced(&mut self, synced: Synced) {
        if synced.number != self.lines.file {
            // That file has been replaced, and all of its content is on disk.
            return;
        }
        self.lines.syncing = false;
        match synced.result {
            Ok(()) => self.lines.synced = self.lines.synced.max(synced.lines),
            Err(error) => self.not_synced(&error),
        }
    }

    /// Notes a failed sync. It is not retried: the operating system may have dropped what it could not write, and a
    /// second sync would then succeed wrongly.
    fn not_synced(&mut self, error: &io::Error) {
        let words = format!("what was written could not be synced: {error}");
        self.trouble = Some(Trouble { words, unsynced: Some(Time::ZERO), reported: false });
    }

    fn end_trouble(&mut self) {
        if self.trouble.take().is_some_and(|trouble| trouble.reported) {
            tracing::info!(
                "what is needed to come back can be written again: guarantees are given from now on"
            );
        }
    }

    /// Writes the pending recovery lines to the operating system if there is disk space, so that they survive this
    /// process. Returns true if actions that depend on them may be reported.
    #[must_use]
    pub(super) fn write_out(&mut self) -> bool {
        let Some(recovery) = &mut self.recovery else { return true };
        let Err(error) = recovery.write_out() else {
            self.lines.written = self.lines.appended;
            if self.trouble.as_ref().is_some_and(|trouble| trouble.unsynced.is_none()) {
                self.end_trouble();
            }
            return true;
        };
        if UNWRITTEN_BYTES_MAX < recovery.waiting() {
            self.give_up(&error);
            return true;
        }
        if self.trouble.is_none() {
            let words = format!("{} cannot be written: {error}", recovery.path().display());
            self.trouble = Some(Trouble { words, unsynced: None, reported: false });
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

    pub(super) fn instant(
        &mut self,
        now: Time,
        facts: &[Event],
        orders: &[Command],
        shuffle: Option<&ShuffleOrder>,
    ) {
        self.write(|journal| journal.instant(now, facts, orders, shuffle));
        // The binary note takes a quarter of the bytes of JSON, and there are as many of these notes as tasks.
        self.keep(|| RecoveryNote::Instant {
            at: now,
            facts: Encoded::new(&facts),
            orders: Encoded::new(&orders),
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

    /// Flushes lines whose time has come. Returns what live jobs are to know: recovery lines that cannot be written, and
    /// a journal that failed.
    #[must_use]
    pub(super) fn flush_due(&mut self, now: Time) -> Vec<String> {
        self.flush(now);
        let mut incidents = Vec::new();
        if let Some(trouble) = self.trouble.as_mut().filter(|trouble| !trouble.reported) {
            trouble.reported = true;
            let words = trouble.words.clone();
            tracing::error!(
                reason = words,
                "no new guarantee is given until what is needed to come back can be written"
            );
            incidents.push(format!("the master gives no new guarantee for now: {words}"));
        }
        if let Some(error) = self.failure.take() {
            tracing::warn!(%error, "the journal cannot be written and is given up: it ends here");
            incidents.push(format!("the master's journal cannot be written and is given up: {error}"));
        }
        incidents
    }

    /// Ends the journal with the master, unless the next master is to continue it.
    pub(crate) fn end(&mut self, ending: Ending) {
        match ending {
            Ending::Abandons => self.note(|| JournalRecord::End),
            Ending::Keeps => self.note_for_people(&JournalRecord::End),
        }
        if !self.write_out() && ending == Ending::Abandons {
            tracing::warn!(
                "the end of this master could not be written down: the next one goes on with its jobs"
            );
        }
        self.write(Journal::flush);
        // No job is left that could show these.
        drop(self.flush_due(Time::ZERO));
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.due
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
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
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
