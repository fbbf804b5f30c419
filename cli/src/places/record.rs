//! Record of what `cluster up` has started: a private file below the state directory, which `cluster down` reads.
//!
//! Invariant: everything that may run somewhere is in the record; entries of the record need not run. It
//! contains no secret.

use super::call::refused;
use crate::state::StateDirectory;
use anyhow::Context as _;
use gristmill_worker::http::make_private_directory;
use gristmill_worker::whole_file::{self, Promise};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Cluster that is up.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaceRecord {
    /// Unique name of the cluster.
    pub name: String,
    /// Machine on which `cluster up` was called.
    pub machine: String,
    /// Location of the workers.
    pub place: WorkerPlace,
    #[serde(skip)]
    path: PathBuf,
}

/// Location of workers, and the data needed to end them there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerPlace {
    /// On hosts that `ssh` reaches, named as it takes them: `[USER@]HOST`. Something may run or be stored on each.
    Ssh { hosts: BTreeSet<String> },
    /// In jobs of Slurm, which read the join line from this file.
    Slurm { join: PathBuf },
    /// In actors of Ray.
    Ray,
}

impl PlaceRecord {
    /// Record of a cluster that is not up yet.
    pub fn new(state: &Path, place: WorkerPlace) -> Self {
        // The standard library draws the keys of its hash maps at random.
        let drawn = std::hash::RandomState::new().build_hasher().finish();
        let (name, machine) = (format!("gristmill-{drawn:016x}"), gristmill_worker::host_name());
        Self { name, machine, place, path: path(state) }
    }

    /// Writes the record if neither a record nor a master exists.
    ///
    /// # Errors
    /// A cluster that is up already, a master that was started by hand, or an error of the file system.
    pub fn claim(self, state: &Path) -> anyhow::Result<Self> {
        // The lock excludes another `cluster up` until the record is written.
        let held = StateDirectory::lock(state.to_owned());
        if let Some(there) = Self::read(state)? {
            return Err(refused(format!(
                "{} is up already, by {}; end it with `gristmill cluster down`, or name another directory with --state",
                there.words(),
                self.path.display()
            )));
        }
        let _held = held?;
        self.write()?;
        Ok(self)
    }

    /// Reads the record of a state directory; `None` if nothing is up.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(state: &Path) -> anyhow::Result<Option<Self>> {
        let path = path(state);
        let failed = || format!("could not read {}", path.display());
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.with_context(failed)?,
        };
        let record = serde_json::from_slice(&bytes).map_err(io::Error::from).with_context(failed)?;
        Ok(Some(Self { path, ..record }))
    }

    /// Replaces the file by the current state.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn write(&self) -> anyhow::Result<()> {
        // A directory of its own: masters remove unfinished files from theirs while `cluster up` writes.
        self.path.parent().map_or(Ok(()), make_private_directory)?;
        let text = serde_json::to_vec_pretty(self)?;
        let written =
            whole_file::replace(&self.path, Promise::PrivateAndDurable, |file| file.write_all(&text));
        written.with_context(|| format!("could not write {}", self.path.display()))
    }

    /// Removes the file: nothing is up any more.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn remove(self) -> anyhow::Result<()> {
        fs::remove_file(&self.path).with_context(|| format!("could not remove {}", self.path.display()))
    }

    /// Description of the cluster.
    pub fn words(&self) -> String {
        let workers = match &self.place {
            WorkerPlace::Ssh { hosts } => {
                format!("workers on {}", hosts.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
            }
            WorkerPlace::Slurm { .. } => format!("workers in Slurm's job {}", self.name),
            WorkerPlace::Ray => "actors of Ray".to_owned(),
        };
        format!("a master on {} with {workers}", self.machine)
    }
}

fn path(state: &Path) -> PathBuf {
    state.join("up").join("record.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_survives_a_master_that_tidies_up_and_is_claimed_once() {
        let directory = tempfile::tempdir().unwrap();
        let new = || PlaceRecord::new(directory.path(), WorkerPlace::Slurm { join: "slurm.join".into() });
        let record = new().claim(directory.path()).unwrap();
        whole_file::replace(&record.path, Promise::Private, |file| {
            file.write_all(&serde_json::to_vec(&record)?)?;
            StateDirectory::lock(directory.path().to_path_buf()).map(drop).map_err(io::Error::other)
        })
        .unwrap();
        let refused = new().claim(directory.path()).unwrap_err();
        assert!(refused.to_string().contains("is up already"), "{refused:?}");
        assert_eq!(PlaceRecord::read(directory.path()).unwrap().unwrap().words(), record.words());
        record.remove().unwrap();
        assert!(PlaceRecord::read(directory.path()).unwrap().is_none());
    }
}
