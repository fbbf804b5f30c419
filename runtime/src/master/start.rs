//! Start of a master: empty, or from the recovery file of an earlier master that did not end in order.

use super::archive::newest_in;
use super::config::{MasterConfig, MasterError};
use super::limits::HEARTBEAT;
use super::recovery::{self, RecallError, Recalled, RecoveryJournal, RecoveryLine};
use super::register::Register;
use super::state::{self, LiveDeciders, MasterState, StateConfig};
use crate::deciders::{DeciderNames, MadeDeciders};
use crate::journal::{Journal, JournalHeader};
use gristmill_scheduler::core::{BackupLimits, Core, CoreConfig, DivideLimits};
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::fault;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Failed action on the recovery file for a later master.
const START_RECOVERY: &str = "start the recovery file,";

/// A master that is ready to run.
pub(super) struct Started {
    pub(super) state: MasterState,
    /// Start of its clock.
    pub(super) base: Time,
}

/// Data left by an earlier master.
struct Left {
    state: MasterState,
    now: Time,
    generation: u64,
    /// Bytes of the intact part of its journal.
    length: u64,
    /// True if it ended in order, so that no job is left.
    ended: bool,
}

/// Starts or recovers.
///
/// # Errors
/// As [`super::PreparedMaster::new`].
pub(super) fn start(mut config: MasterConfig) -> Result<Started, MasterError> {
    let (recovery, user_journal) = (config.recovery.take(), config.journal.take());
    let left = match &recovery {
        Some(path) => {
            let refuse = |source| MasterError::Recovery { path: path.clone(), source };
            left_by_earlier(path, &config).map_err(refuse)?
        }
        None => None,
    };
    let generation = left.as_ref().map_or(0, |left| left.generation);
    let register = match config.register.take() {
        None => Register::in_memory(),
        Some(path) => {
            let mut register = Register::open(&path, state::ENDED_JOBS_MAX)
                .map_err(MasterError::file("open the register of jobs", &path))?;
            let newest = config.archive.as_deref().and_then(newest_in);
            if 0 < generation || newest.is_some() {
                register.expect_earlier(newest);
            }
            register
        }
    };
    match (recovery, left) {
        (Some(path), Some(left)) if !left.ended => go_on(config, path, left, register, user_journal),
        (recovery, left) => {
            left.iter().for_each(|left| remember(&mut config.deciders, &left.state));
            start_empty(config, recovery, generation + 1, register, user_journal)
        }
    }
}

/// Gives the estimator the memory of that of an earlier master, if it is the same.
fn remember(deciders: &mut MadeDeciders, earlier: &MasterState) {
    if deciders.names.estimator == earlier.deciders().estimator
        && let Err(reason) = deciders.estimator.restore(&earlier.memory())
    {
        tracing::warn!(reason, "what the estimator of the last master had learned cannot be used");
    }
}

fn start_empty(
    config: MasterConfig,
    recovery: Option<PathBuf>,
    generation: u64,
    register: Register,
    user_journal: Option<PathBuf>,
) -> Result<Started, MasterError> {
    let backups = config.backups.then(BackupLimits::default);
    let dividing = config.divides.then(|| {
        let limits = DivideLimits::default();
        let part_min = fault::span("divide.part-min", Duration::from_nanos(limits.part_min.0));
        DivideLimits { part_min: Span(part_min.as_nanos() as u64), ..limits }
    });
    let core_config = CoreConfig { backups, dividing, ..CoreConfig::default() };
    let MadeDeciders { names, estimator, .. } = &config.deciders;
    let header = JournalHeader::new(config.build.clone(), names, estimator.memory(), core_config.clone());
    let journal = user_journal
        .map(|path| Journal::create(&path, &header).map_err(MasterError::file("start the journal", &path)));
    let state_config = state_config(&config, names.clone(), journal.transpose()?, register);
    let MadeDeciders { policy, placement, estimator, .. } = config.deciders;
    let core = Core::new(core_config, policy, placement).with_estimator(estimator);
    let mut state = MasterState::new(core, state_config);
    if let Some(path) = recovery {
        let failed = MasterError::file(START_RECOVERY, &path);
        let journal = RecoveryJournal::create(path, &header).map_err(failed)?;
        state.journal.come_back_from(journal);
        state.start_generation(Time::ZERO, generation);
    }
    Ok(Started { state, base: Time::ZERO })
}

/// Reads the data left by an earlier master; `None` if there is none that this program can use.
fn left_by_earlier(path: &Path, config: &MasterConfig) -> Result<Option<Left>, RecallError> {
    let Some(mut journal) = recovery::recall(path)? else { return Ok(None) };
    if journal.header.build != config.build {
        let aside = path.with_extension("old");
        let moved = fs::rename(path, &aside).err();
        let (path, aside) = (path.display(), aside.display());
        tracing::warn!(%path, %aside, ?moved, "the last master was another program: its jobs are lost");
        return Ok(None);
    }
    let mut state = state_like(&journal.header, config)?;
    let replayed = state.replay(&mut journal)?;
    let now = Time(replayed.now.0.saturating_add(since_last_written(path).0));
    let (generation, length) = (replayed.generation, journal.offset());
    if 0 < journal.torn() {
        let (path, bytes) = (path.display(), journal.torn());
        tracing::warn!(%path, at = length, bytes, "the last line was not written to its end and is cut off");
    }
    Ok(Some(Left { state, now, generation, length, ended: replayed.ended }))
}

/// Time for which nothing was written, by the wall clock: jobs age while no master runs, and deadlines do not wait.
/// Zero if that clock was set back, or is unknown.
fn since_last_written(path: &Path) -> Span {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let since = modified.ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
    Span(since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)))
}

/// Creates a state equal to the one with which the journal started.
fn state_like(header: &JournalHeader, config: &MasterConfig) -> Result<MasterState, RecallError> {
    let core = header.make_core(&config.registry);
    let core = core.map_err(|reason| RecallError::Line { offset: 0, reason })?;
    let names = header.names();
    Ok(MasterState::new(core, state_config(config, names, None, Register::in_memory())))
}

/// Configuration of a state with these deciders.
fn state_config(
    config: &MasterConfig,
    names: DeciderNames,
    journal: Option<Journal>,
    register: Register,
) -> StateConfig {
    StateConfig {
        list_secret: config.tokens.list_secret(),
        build: config.build.clone(),
        heartbeat_ms: HEARTBEAT.as_millis() as u32,
        deciders: LiveDeciders::new(config.registry.clone(), names),
        pools: config.pools.clone(),
        divided_slots: config.divided_slots,
        journal,
        register,
    }
}

fn go_on(
    config: MasterConfig,
    path: PathBuf,
    left: Left,
    register: Register,
    user_journal: Option<PathBuf>,
) -> Result<Started, MasterError> {
    let Left { mut state, now, generation, length, .. } = left;
    if let Some(user) = user_journal {
        let copied = copy_facts(&path, &user);
        state.journal.write_also(copied.map_err(MasterError::file("start the journal", &user))?);
    }
    let failed = MasterError::file(START_RECOVERY, &path);
    let journal = RecoveryJournal::go_on(path, length).map_err(failed)?;
    state.go_on(now, generation + 1, register, journal);
    let names = config.deciders.names;
    if names.estimator != state.deciders().estimator {
        let (asked, kept) = (&names.estimator, &state.deciders().estimator);
        tracing::warn!(%asked, %kept, "jobs go on with the estimator that they were begun with");
    }
    state.decide_as_asked(now, names);
    Ok(Started { state, base: now })
}

/// Copies the records that every journal holds from a journal that holds more.
fn copy_facts(from: &Path, to: &Path) -> std::io::Result<Journal> {
    let unreadable = |error: RecallError| std::io::Error::other(gristmill_worker::error_text::chain(&error));
    let recalled: Option<Recalled> = recovery::recall(from).map_err(unreadable)?;
    let Some(mut recalled) = recalled else { return Err(std::io::ErrorKind::NotFound.into()) };
    let mut journal = Journal::create(to, &recalled.header)?;
    while let Some(line) = recalled.next().map_err(unreadable)? {
        if let RecoveryLine::Facts(record) = line {
            journal.record(&record)?;
        }
    }
    Ok(journal)
}
