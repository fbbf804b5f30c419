//! The replay check: a journal's facts fed back through a core must give the recorded orders again.

use crate::deciders::DeciderNames;
use crate::journal::ledger::{go_on_from, ledger_of};
use crate::journal::{JournalHeader, JournalReadError, JournalReader, JournalRecord};
use crate::registry::Registry;
use gristmill_scheduler::command::Command;
use gristmill_scheduler::core::Core;
use gristmill_scheduler::event::Event;
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::policy::Policy;
use gristmill_scheduler::units::Time;
use serde_json::Value;
use std::io::BufRead;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a replay found.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Replayed {
    /// Instants that agree.
    pub instants: u64,
    /// Their facts.
    pub facts: u64,
    /// Their orders.
    pub orders: u64,
    /// Changes of the order in which the shuffle serves jobs.
    pub shuffles: u64,
    /// How often somebody else decided from then on.
    pub changes: u64,
    /// The last line, if it was cut off; it was left out.
    pub torn: Option<u64>,
    /// Whether the journal says that its master ended in order. If not, it may lack its last instants.
    pub ended: bool,
    /// Where the orders were others for the first time; what comes after was not looked at.
    pub difference: Option<ReplayDifference>,
}

/// An instant whose orders were others.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplayDifference {
    /// Its line in the journal.
    pub line: u64,
    /// When, by the master's clock.
    pub at: Time,
    /// The first order that differs, from 1, counted within the instant; `None` if all are alike and the order of the
    /// shuffle is another.
    pub order: Option<usize>,
    /// It, as recorded; `None` if there are fewer.
    pub recorded: Option<Value>,
    /// It, as replayed; `None` if there are fewer.
    pub replayed: Option<Value>,
}

/// Why a journal cannot be replayed.
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
    /// A policy, placement or estimator that this program cannot make, or a memory that the estimator refuses.
    #[error("line {line} cannot be replayed: {reason}")]
    Name {
        /// Where it is named.
        line: u64,
        /// Why, with the name.
        reason: String,
    },
    /// No master can have entered these facts: the journal was changed, or there is a bug.
    #[error("the facts of line {line} are impossible: {words}")]
    Impossible {
        /// Which line.
        line: u64,
        /// What the core said.
        words: String,
    },
    /// What the facts lead to is another ledger than the one that the master went on with.
    #[error("the facts before line {line} do not lead to the ledger that it holds")]
    Ledger {
        /// Which line.
        line: u64,
    },
    /// An order that is not a number, word or list of such.
    #[error("the orders that follow from line {line} cannot be written down")]
    Orders {
        /// Which line.
        line: u64,
        #[source]
        source: serde_json::Error,
    },
}

/// Somebody who follows a replay instant by instant, while other policies look on.
pub trait ReplayFollower {
    /// The policies that look on ([`Core::look_on`]), made anew.
    ///
    /// # Errors
    /// Names that mean nothing here, in words.
    fn onlookers(&self) -> Result<Vec<Box<dyn Policy>>, String>;

    /// A job is to arrive under this name.
    fn job(&mut self, job: JobId, name: &str);

    /// This was entered and ordered, as recorded; [`Core::sight`] says what policies saw and wanted.
    fn instant(&mut self, at: Time, facts: &[Event], orders: &[Command], core: &Core);
}

/// Feeds the facts of a journal through a fresh core that begins as the master's did, and compares the orders up to the
/// first that differs. If somebody follows, they are told of what agrees.
///
/// # Errors
/// What cannot be read, names that mean nothing here, and facts that no master enters.
pub fn replay<'a, R: BufRead>(
    registry: &'a Registry,
    journal: &mut JournalReader<R>,
    follower: Option<&'a mut dyn ReplayFollower>,
) -> Result<Replayed, ReplayError> {
    let header = journal.header();
    let names = DeciderNames {
        policy: header.policy.clone(),
        placement: header.placement.clone(),
        estimator: header.estimator.clone(),
    };
    let core = core_of(registry, header)?;
    let mut replay =
        Replay { registry, core, names, follower, commands: Vec::new(), replayed: Replayed::default() };
    replay.look_on(1)?;
    while let Some(record) = journal.record().map_err(|source| ReplayError::Read { source })? {
        replay.enter(journal.line(), record)?;
        if replay.replayed.difference.is_some() {
            return Ok(replay.replayed);
        }
    }
    Ok(Replayed { torn: journal.torn(), ..replay.replayed })
}

/// A replay under way.
struct Replay<'a> {
    registry: &'a Registry,
    core: Core,
    names: DeciderNames,
    follower: Option<&'a mut dyn ReplayFollower>,
    /// Of the last instant.
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
                // One that begins with it has nothing to compare.
                if 0 < self.replayed.instants && ledger_of(&self.core).as_ref() != Some(&ledger) {
                    return Err(ReplayError::Ledger { line });
                }
                self.core = go_on_from(&self.core, &ledger, &self.names, self.registry).map_err(name)?;
                self.look_on(line)?;
            }
            JournalRecord::Memory { memory, .. } => self.core.restore_memory(&memory).map_err(name)?,
            JournalRecord::End => self.replayed.ended = true,
            JournalRecord::Job { job, name, .. } => {
                if let Some(follower) = &mut self.follower {
                    follower.job(job, &name);
                }
            }
            JournalRecord::Worker { .. } => {}
        }
        Ok(())
    }

    /// Has the follower's policies look on.
    fn look_on(&mut self, line: u64) -> Result<(), ReplayError> {
        if let Some(follower) = &self.follower {
            self.core.look_on(follower.onlookers().map_err(|reason| ReplayError::Name { line, reason })?);
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
        if let Some(follower) = &mut self.follower {
            follower.instant(at, facts, &self.commands, &self.core);
        }
        self.replayed.shuffles += u64::from(shuffle.is_some());
        self.replayed.instants += 1;
        self.replayed.facts += facts.len() as u64;
        self.replayed.orders += recorded.len() as u64;
        Ok(())
    }
}

/// A core as the master began with.
fn core_of(registry: &Registry, header: &JournalHeader) -> Result<Core, ReplayError> {
    let name = |reason| ReplayError::Name { line: 1, reason };
    let policy = registry.make_policy(&header.policy).map_err(name)?;
    let placement = registry.make_placement(&header.placement).map_err(name)?;
    let estimator = registry.make_estimator(&header.estimator).map_err(name);
    let mut estimator = estimator?;
    estimator.restore(&header.memory).map_err(name)?;
    Ok(Core::new(header.core.clone(), policy, placement).with_estimator(estimator))
}

/// Enters the facts of an instant. The core stops at facts that only a bug can produce; a file can hold them all the
/// same, and the core is not used after that.
fn enter(core: &mut Core, at: Time, facts: &[Event], commands: &mut Vec<Command>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| core.handle(at, facts, commands))).map_err(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words").to_owned()
    })
}

/// The place of the first order that is not the same in both.
fn first_difference(recorded: &[Value], again: &[Value]) -> Option<usize> {
    let alike = recorded.iter().zip(again).take_while(|(one, other)| one == other).count();
    (alike < recorded.len().max(again.len())).then_some(alike)
}
