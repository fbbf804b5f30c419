//! `gristmill.toml`: defaults of flags.
//!
//! Read from the file named by `--settings`, else `./gristmill.toml`, else `gristmill/gristmill.toml` in the user's
//! configuration directory. A flag wins over an environment variable, that over the file, that over the default.
//! Unknown keys are errors. A file that another user owns or may write is refused: it names the directory of secrets.

use crate::trusted::{self, TrustError};
use crate::usage::usage;
use gristmill_worker::directory::Closed;
use gristmill_worker::settings::Shuffle;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the file.
pub const FILE_NAME: &str = "gristmill.toml";

/// Speeds in the settings file: one number or a list.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum SpeedSetting {
    /// For all workers.
    All(f64),
    /// For the workers, one by one.
    InTurn(Vec<f64>),
}

/// The file's contents; every key is optional and named as its flag.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Worker processes of an embedded cluster.
    pub workers: Option<u32>,
    /// Slots of each worker.
    pub slots: Option<u32>,
    /// Slots of each worker that only maps use.
    pub map_slots: Option<u32>,
    /// Slots of each worker that only reduces use.
    pub reduce_slots: Option<u32>,
    /// Speed of slots.
    pub speed: Option<SpeedSetting>,
    /// Limit of each worker's shuffle, such as `50MB/s`.
    pub nic_rate: Option<String>,
    /// Memory, such as `2GiB`.
    pub memory: Option<String>,
    /// Policy.
    pub policy: Option<String>,
    /// Placement.
    pub placement: Option<String>,
    /// Estimator.
    pub estimator: Option<String>,
    /// Path of the master's journal.
    pub journal: Option<PathBuf>,
    /// Disable speculative execution.
    pub no_backup: Option<bool>,
    pub divide: Option<bool>,
    /// Pools of the master and their weights.
    pub pools: Option<BTreeMap<String, f64>>,
    /// Spill directories.
    pub spill_dir: Option<Vec<PathBuf>>,
    /// Disk space that spills leave free there.
    pub disk_reserve: Option<String>,
    /// Transport of segments.
    pub shuffle: Option<Shuffle>,
    /// Number of parts.
    pub reduces: Option<u32>,
    /// Bytes of input of one map task, such as `64MiB`.
    pub split_size: Option<String>,
    /// Skip syncing to disk.
    pub no_sync: Option<bool>,
    /// Directory of the secret and the join line.
    pub state: Option<PathBuf>,
}

/// Reads the settings.
///
/// # Errors
/// A given file that does not exist, or that has a mistake; the message shows line and column.
pub fn load(named: Option<&Path>) -> anyhow::Result<Settings> {
    let path = match named {
        Some(path) => Some(path.to_path_buf()),
        None => default_places().into_iter().find(|path| path.exists()),
    };
    let Some(path) = path else { return Ok(Settings::default()) };
    let text = trusted::read(&path, Closed::ToWriting).map_err(|error| match error {
        TrustError::Io { path, source } => {
            usage(format!("could not read the settings {}: {source}", path.display()))
        }
        untrusted => untrusted.into(),
    })?;
    toml::from_str(&text)
        .map_err(|error| usage(format!("the settings {} have a mistake: {error}", path.display())))
}

fn default_places() -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from(FILE_NAME)];
    let home = |sub: &str| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(sub));
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| home(".config"));
    places.extend(config.map(|config| config.join("gristmill").join(FILE_NAME)));
    places
}
