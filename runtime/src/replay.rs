//! Replay check: a journal's facts fed through a core must give the recorded orders again.

use crate::deciders::DeciderNames;
use crate::journal::ledger::{go_on_from, ledger_of};
use crate::journal::{JournalReadError, JournalReader, JournalRecord};
use crate::registry::Registry;
use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::Core;
use gristmill_scheduler::event::Event;
use gristmill_scheduler::units::Time;
use serde_json::Value;
use std::io::BufRead;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Result of a replay.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Replayed {
    /// Number of instants that agree.
    pub instants: u64,
    /// Number of their facts.
    pub facts: u64,
    /// Number of their orders.
    pub orders: u64,
    /// Number of changes of the order in which the shuffle serves jobs.
    pub shuffles: u64,
    /// Number of changes of the deciders.
    pub changes: u64,
    /// Number of the last line, if it is incomplete; it was skipped.
    pub torn: Option<u64>,
    /// True if the journal records that its master ended in order. Otherwise its last instants may be missing.
    pub ended: bool,
    /// The first difference of orders; the rest of the journal was not compared.
    pub difference: Option<ReplayDifference>,
}

/// An instant whose orders differ.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplayDifference {
    /// Its line in the journal.
    pub line: u64,
    /// Time by the master's clock.
    pub at: Time,
    /// Number of the first order that differs, from 1, within the instant. `None` if all orders agree and the order of
    /// the shuffle differs.
    pub order: Option<usize>,
    /// The order as recorded; `None` if there are fewer.
    pub recorded: Option<Value>,
    /// The order as replayed; `None` if there are fewer.
    pub replayed: Option<Value>,
}

/// Error for which a journal cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
#[non_exhaustive]
pub enum ReplayError {
    /// The journal cannot be read.
    #[error("the journal cannot be read")]
    Read {
        #[source]
        source: JournalReadError,
    },
    /// A policy, placement or estimator that this program cannot create, or a memory that the estimator rejects.
    #[error("line {line} cannot be replayed: {reason}")]
    Name {
        /// Line that names it.
        line: u64,
        /// Cause, with the name.
        reason: String,
    },
    /// No master can have entered these facts: the journal was changed, or there is a bug.
    #[error("the facts of line {line} are impossible: {words}")]
    Impossible {
        /// Number of the line.
        line: u64,
        /// Message of the core.
        words: String,
    },
    /// The ledger after these facts differs from the one with which the master continued.
    #[error("the facts before line {line} do not lead to the ledger that it holds")]
    Ledger {
        /// Number of the line.
        line: u64,
    },
    /// An order that is not a number, word or list of such.
    #[error("the orders that follow from line {line} cannot be written down")]
    Orders {
        /// Number of the line.
        line: u64,
        #[source]
        source: serde_json::Error,
    },
}

/// Feeds the facts of a journal through a new core that starts like the master's, and compares the orders up to the
/// first that differs.
///
/// # Errors
/// An unreadable journal, unknown names, and facts that no master enters.
pub fn replay<R: BufRead>(
    registry: &Registry,
    journal: &mut JournalReader<R>,
) -> Result<Replayed, ReplayError> {
    let header = journal.header();
    let names = header.names();
    let core = header.make_core(registry).map_err(|reason| ReplayError::Name { line: 1, reason })?;
    let mut replay = Replay { registry, core, names, commands: Vec::new(), replayed: Replayed::default() };
    while let Some(record) = journal.record().map_err(|source| ReplayError::Read { source })? {
        replay.enter(journal.line(), record)?;
        if replay.replayed.difference.is_some() {
            return Ok(replay.replayed);
        }
    }
    Ok(Replayed { torn: journal.torn(), ..replay.replayed })
}

/// A replay in progress.
struct Replay<'a> {
    registry: &'a Registry,
    core: Core,
    names: DeciderNames,
    /// Orders of the last instant.
    commands: Vec<Command>,
    replayed: Replayed,
}

impl Replay<'_> {
    fn enter(&mut self, line: u64, record: JournalRecord) -> Result<(), ReplayError> {
        let name = |reason| ReplayError::Name { line, reason };
        match record {
            JournalRecord::Instant { at, facts, orders, shuffle } => {
                self.instant(line, (at, &facts), &orders, shuffle.as_ref())?;
            }
            JournalRecord::DecideBy { policy, placement, .. } => {
                let made = self.registry.make_policy(&policy).map_err(name)?;
                self.core.decide_by(made, self.registry.make_placement(&placement).map_err(name)?);
                (self.names.policy, self.names.placement) = (policy, placement);
                self.replayed.changes += 1;
            }
            JournalRecord::Ledger { ledger, .. } => {
                // A journal that starts with this record has nothing to compare.
                if 0 < self.replayed.instants && ledger_of(&self.core).as_ref() != Some(&ledger) {
                    return Err(ReplayError::Ledger { line });
                }
                self.core = go_on_from(&self.core, &ledger, &self.names, self.registry).map_err(name)?;
            }
            JournalRecord::Memory { memory, .. } => self.core.restore_memory(&memory).map_err(name)?,
            JournalRecord::End => self.replayed.ended = true,
            JournalRecord::Job { .. } | JournalRecord::Worker { .. } => {}
        }
        Ok(())
    }

    fn instant(
        &mut self,
        line: u64,
        (at, facts): (Time, &[Event]),
        recorded: &[Value],
        shuffle: Option<&Value>,
    ) -> Result<(), ReplayError> {
        self.commands.clear();
        let before = self.core.shuffle_revision();
        enter(&mut self.core, at, facts, &mut self.commands)
            .map_err(|words| ReplayError::Impossible { line, words })?;
        let unwritten = |source| ReplayError::Orders { line, source };
        let again: Result<Vec<Value>, _> = self.commands.iter().map(serde_json::to_value).collect();
        let again = again.map_err(unwritten)?;
        let mut differs = |order, recorded: Option<&Value>, replayed| {
            let recorded = recorded.cloned();
            self.replayed.difference = Some(ReplayDifference { line, at, order, recorded, replayed });
        };
        if let Some(order) = first_difference(recorded, &again) {
            differs(Some(order + 1), recorded.get(order), again.get(order).cloned());
            return Ok(());
        }
        let moved = before != self.core.shuffle_revision();
        let again =
            moved.then(|| serde_json::to_value(self.core.shuffle_order())).transpose().map_err(unwritten)?;
        if shuffle != again.as_ref() {
            differs(None, shuffle, again);
            return Ok(());
        }
        self.replayed.shuffles += u64::from(shuffle.is_some());
        self.replayed.instants += 1;
        self.replayed.facts += facts.len() as u64;
        self.replayed.orders += recorded.len() as u64;
        Ok(())
    }
}

/// Enters the facts of an instant. The core panics at facts that only a bug can produce. A file can hold such facts
/// anyway, and the core is not used after that.
fn enter(core: &mut Core, at: Time, facts: &[Event], commands: &mut Vec<Command>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| core.handle(at, facts, commands))).map_err(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words").to_owned()
    })
}

/// The place of the first order that differs.
fn first_difference(recorded: &[Value], again: &[Value]) -> Option<usize> {
    let alike = recorded.iter().zip(again).take_while(|(one, other)| one == other).count();
    (alike < recorded.len().max(again.len())).then_some(alike)
}
