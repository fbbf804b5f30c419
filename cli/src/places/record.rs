//! Record of what `up` has started: a private file below the state directory, which `down` reads.
//!
//! Invariant: everything that may run somewhere is in the record; entries of the record need not run. It
//! contains no secret.

use super::PlaceError;
use super::ray::RayPlace;
use super::ssh::SshPlace;
use gristmill_worker::http::make_private_directory;
use gristmill_worker::whole_file::{self, Promise, ReadError};
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Version of the file.
const SCHEMA: u32 = 2;

/// Maximum length of a record, bytes: enough for thousands of hosts.
const RECORD_BYTES_MAX: u64 = 4 << 20;

/// Cluster that is up.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    schema: u32,
    /// Unique name of the cluster.
    pub name: String,
    /// Machine on which `up` was called.
    pub machine: String,
    /// Location of the workers.
    pub place: Place,
    #[serde(skip)]
    path: PathBuf,
}

/// Location of workers, and the data needed to end them there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// On hosts that `ssh` reaches.
    Ssh(SshPlace),
    /// In jobs of Slurm, which read the join line from this file.
    Slurm { join: PathBuf },
    /// In actors of Ray.
    Ray(RayPlace),
}

impl Record {
    /// Record of a cluster that is not up yet.
    pub fn new(state: &Path, place: Place) -> Self {
        // The standard library draws the keys of its hash maps at random.
        let drawn = std::hash::RandomState::new().build_hasher().finish();
        let (name, machine) = (format!("gristmill-{drawn:016x}"), gristmill_worker::host_name());
        Self { schema: SCHEMA, name, machine, place, path: path(state) }
    }

    /// Writes the record if none exists.
    ///
    /// # Errors
    /// A cluster that is up already, or an error of the file system.
    pub fn claim(&self) -> anyhow::Result<()> {
        // A directory of its own: masters remove unfinished files from theirs while `up` writes.
        self.path.parent().map_or(Ok(()), make_private_directory)?;
        let text = serde_json::to_vec_pretty(self)?;
        match whole_file::create_new(&self.path, Promise::PrivateAndDurable, |file| file.write_all(&text)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let there = self.path.parent().and_then(Path::parent).map(Self::read);
                let what = there.and_then(Result::ok).flatten().map(|there| there.words());
                let what = what.unwrap_or_else(|| "something".to_owned());
                Err(PlaceError::Up { what, path: self.path.clone() }.into())
            }
            written => Ok(written.map_err(|error| self.failed("write", error))?),
        }
    }

    /// Reads the record of a state directory; `None` if nothing is up.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(state: &Path) -> Result<Option<Self>, PlaceError> {
        let path = path(state);
        let failed = |source| PlaceError::File { action: "read", path: path.clone(), source };
        let bytes = match whole_file::read(&path, RECORD_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(ReadError::Io { source }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(other) => return Err(failed(io::Error::other(other))),
        };
        let record: Self = serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))?;
        match record.schema {
            SCHEMA => Ok(Some(Self { path, ..record })),
            _ => Err(failed(io::Error::other("it was written by another version of gristmill"))),
        }
    }

    /// Replaces the file by the current state.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn write(&self) -> Result<(), PlaceError> {
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        let written = text.and_then(|text| {
            whole_file::replace(&self.path, Promise::PrivateAndDurable, |file| file.write_all(&text))
        });
        written.map_err(|error| self.failed("write", error))
    }

    /// Removes the file: nothing is up any more.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn remove(self) -> Result<(), PlaceError> {
        fs::remove_file(&self.path).map_err(|error| self.failed("remove", error))
    }

    fn failed(&self, action: &'static str, source: io::Error) -> PlaceError {
        PlaceError::File { action, path: self.path.clone(), source }
    }

    /// Description of the cluster.
    pub fn words(&self) -> String {
        let workers = match &self.place {
            Place::Ssh(place) => {
                let targets: Vec<&str> = place.hosts.iter().map(|host| host.target.as_str()).collect();
                format!("workers on {}", targets.join(", "))
            }
            Place::Slurm { .. } => format!("workers in Slurm's job {}", self.name),
            Place::Ray(place) => format!("actors of Ray at {}", place.address),
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
    use crate::state::StateFolder;

    #[test]
    fn record_survives_a_master_that_tidies_up_and_is_claimed_once() {
        let folder = tempfile::tempdir().unwrap();
        let record = Record::new(folder.path(), Place::Slurm { join: "slurm.join".into() });
        record.claim().unwrap();
        whole_file::replace(&record.path, Promise::Private, |file| {
            file.write_all(&serde_json::to_vec(&record)?)?;
            StateFolder::take(folder.path().to_path_buf()).map(drop).map_err(io::Error::other)
        })
        .unwrap();
        let refused = record.claim().unwrap_err();
        assert!(matches!(refused.downcast_ref(), Some(PlaceError::Up { .. })), "{refused:?}");
        assert_eq!(Record::read(folder.path()).unwrap().unwrap().words(), record.words());
        record.remove().unwrap();
        assert!(Record::read(folder.path()).unwrap().is_none());
    }
}
