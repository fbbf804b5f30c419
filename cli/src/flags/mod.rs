//! Flags that several commands share, and their meaning together with the settings file.
//!
//! The structs hold the flags as typed, their methods return what they mean. Those of an embedded cluster are here; those
//! of workers, jobs and masters are in files of their own.

mod job;
mod master;
mod worker;

pub use job::{JobFlags, size};
pub use master::{JOIN_FILE, ListenFlags, MasterFlags, PlaintextFlag, state_dir};
pub use worker::{DiskFlags, WorkerFlags};

use crate::settings::Settings;
use crate::usage::usage;
use clap::Args;
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::deciders::DeciderNames;
use gristmill_runtime::size::parse_bytes;
use gristmill_scheduler::units::Bytes;
use gristmill_worker::machine_memory_bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Reads a finite number above 0.
///
/// # Errors
/// Any other text.
pub fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "it must be a number above 0".to_owned())
}

/// Size of an embedded cluster.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterFlags {
    #[command(flatten)]
    pub workers: WorkerFlags,
    /// Memory of all workers together, such as 2GiB [default: 25 % of the machine's or the control group's memory]
    #[arg(long, global = true, value_name = "SIZE")]
    pub memory: Option<String>,
    #[command(flatten)]
    pub deciders: DeciderFlags,
}

/// Deciders of a master, and the record of their decisions.
#[derive(Args, Clone, Debug)]
pub struct DeciderFlags {
    /// Which job gets a slot: NAME or NAME:PARAMETERS; `gristmill lab sim --list` shows them [default: gristmill; fair
    /// for a master with --pools]
    #[arg(long, global = true, value_name = "POLICY")]
    pub policy: Option<String>,
    /// Placement of tasks: NAME or NAME:PARAMETERS; `gristmill lab sim --list` shows them [default: pull]
    #[arg(long, global = true, value_name = "PLACEMENT", hide_short_help = true)]
    pub placement: Option<String>,
    /// Estimator of job sizes for policies; `gristmill lab sim --list` shows all [default: history]
    #[arg(long, global = true, value_name = "ESTIMATOR", hide_short_help = true)]
    pub estimator: Option<String>,
    /// Record every decision of the master, for `lab replay` and `lab whatif`; the file must not exist
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub journal: Option<PathBuf>,
    /// Disable speculative execution
    #[arg(long, global = true, hide_short_help = true)]
    pub no_backup: bool,
    /// Divide running tasks: an idle slot takes half of what a map has left to read, or a reduce of the same worker; a map
    /// makes way for a more urgent job
    #[arg(long, global = true, hide_short_help = true)]
    pub divide: bool,
}

/// Policy unless another one is named. `benches/results` has the comparison that it won.
const DEFAULT_POLICY: &str = "gristmill";

/// Policy of a master with pools unless another one is named: it shares slots by pool.
const DEFAULT_POLICY_OF_POOLS: &str = "fair";

/// Estimator unless another one is named, of real clusters and simulated ones.
pub const DEFAULT_ESTIMATOR: &str = "history";

impl DeciderFlags {
    /// Returns the deciders of the flags, else of the settings, else the defaults of a master with or without pools.
    pub fn names(&self, settings: &Settings, has_pools: bool) -> DeciderNames {
        let name = |flag: &Option<String>, setting: &Option<String>, default: &str| {
            flag.as_ref().or(setting.as_ref()).map_or_else(|| default.to_owned(), String::clone)
        };
        let policy = if has_pools { DEFAULT_POLICY_OF_POOLS } else { DEFAULT_POLICY };
        DeciderNames {
            policy: name(&self.policy, &settings.policy, policy),
            placement: name(&self.placement, &settings.placement, "pull"),
            estimator: name(&self.estimator, &settings.estimator, DEFAULT_ESTIMATOR),
        }
    }

    /// True if slow tasks get a speculative attempt.
    pub fn backups(&self, settings: &Settings) -> bool {
        !(self.no_backup || settings.no_backup.unwrap_or(false))
    }

    /// True if running tasks are divided for idle slots.
    pub fn divides(&self, settings: &Settings) -> bool {
        self.divide || settings.divide.unwrap_or(false)
    }

    /// Returns the path of the journal, if one is to be written.
    ///
    /// # Errors
    /// A file that exists, or a directory that does not.
    pub fn journal(&self, settings: &Settings) -> anyhow::Result<Option<PathBuf>> {
        let path = self.journal.as_ref().or(settings.journal.as_ref()).cloned();
        let wrong = |path: &Path, reason: &str| Err(usage(format!("--journal {}: {reason}", path.display())));
        match path.as_deref() {
            Some(path) if path.exists() => wrong(path, "that file exists already"),
            Some(path) if !std::path::absolute(path)?.parent().is_some_and(Path::is_dir) => {
                wrong(path, "its parent directory does not exist")
            }
            _ => Ok(path),
        }
    }
}

/// Default distribution of slots over worker processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// A process for each slot: user code may crash its process.
    Apart,
    /// All slots in one process, which costs less: no code that runs in it can crash it.
    Together,
}

impl ClusterFlags {
    /// Returns the size of the cluster.
    ///
    /// # Errors
    /// Invalid numbers.
    pub fn config(&self, settings: &Settings, spread: Spread) -> anyhow::Result<ClusterConfig> {
        let workers = match spread {
            Spread::Together => self.workers.together(settings),
            Spread::Apart => self.workers.clone(),
        };
        let count = workers.count(settings)?;
        let memory = memory(self.memory.as_ref().or(settings.memory.as_ref()), 1)?;
        Ok(ClusterConfig {
            workers: workers.workers(settings, Bytes(memory / u64::from(count)))?,
            deciders: self.deciders.names(settings, false),
            pools: pools(None, settings)?,
            journal: self.deciders.journal(settings)?,
            backups: self.deciders.backups(settings),
            divides: self.deciders.divides(settings),
        })
    }
}

/// Pools and their weights, of the flag or the settings; if empty, any pool is accepted.
///
/// # Errors
/// An invalid name or weight.
pub fn pools(flag: Option<&str>, settings: &Settings) -> anyhow::Result<BTreeMap<String, f64>> {
    let Some(text) = flag else { return check_pools(settings.pools.clone().unwrap_or_default()) };
    let mut pools = BTreeMap::new();
    for piece in text.split(',') {
        let pool = piece.split_once('=').and_then(|(name, weight)| Some((name, weight.parse::<f64>().ok()?)));
        let Some((name, weight)) = pool else {
            return Err(usage(format!("--pools: `{piece}` is not NAME=WEIGHT, such as reports=2")));
        };
        if pools.insert(name.to_owned(), weight).is_some() {
            return Err(usage(format!("--pools names `{name}` twice")));
        }
    }
    check_pools(pools)
}

fn check_pools(pools: BTreeMap<String, f64>) -> anyhow::Result<BTreeMap<String, f64>> {
    for (name, weight) in &pools {
        if name.is_empty() || !(weight.is_finite() && 0.0 < *weight) {
            return Err(usage(format!("--pools: `{name}={weight}` needs a name and a weight above 0")));
        }
    }
    Ok(pools)
}

/// Smallest memory with which workers can work, bytes.
const LEAST_BYTES: u64 = 16 << 20;

/// Share of the memory of the machine, or of its control group, that workers take: one part in this many. The page cache
/// and other programs keep the rest.
const MEMORY_SHARE: u64 = 4;

/// Memory of all workers together, bytes: `named` times `of_each`, or a share of the machine's.
///
/// # Errors
/// An invalid size, or less than 16 MiB.
pub fn memory(named: Option<&String>, of_each: u32) -> anyhow::Result<u64> {
    let Some(text) = named else { return Ok((machine_memory_bytes() / MEMORY_SHARE).max(LEAST_BYTES)) };
    match parse_bytes(text).map_err(|error| usage(format!("--memory: {error}")))? {
        bytes if bytes < LEAST_BYTES => Err(usage(format!("--memory {text} is less than 16MiB"))),
        bytes => Ok(bytes.saturating_mul(u64::from(of_each))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_come_from_the_flag_or_else_from_the_settings() {
        let settings: Settings = toml::from_str("[pools]\nnightly = 0.5").unwrap();
        let weights = |flag: Option<&str>| pools(flag, &settings).map_err(|error| error.to_string());
        assert_eq!(
            weights(Some("a=2,b=1.5")).unwrap(),
            [("a".to_owned(), 2.0), ("b".to_owned(), 1.5)].into()
        );
        assert_eq!(weights(None).unwrap(), [("nightly".to_owned(), 0.5)].into());
        assert!(pools(None, &Settings::default()).unwrap().is_empty(), "any pool is welcome");
        for (flag, words) in
            [("", "NAME=WEIGHT"), ("=1", "needs a name"), ("a=-1", "weight above 0"), ("a=nan", "above 0")]
        {
            let error = weights(Some(flag)).unwrap_err();
            assert!(error.contains(words), "{flag}: {error}");
        }
    }
}
