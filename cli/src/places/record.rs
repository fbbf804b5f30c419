//! What `up` has started, as `down` will find it: a file below the state folder that only its user can read, written before
//! each thing is started and not after.
//!
//! Invariant: what may run somewhere stands in the file; what stands there need not run. No secret is in it.

use super::PlaceError;
use super::process::ProcessName;
use gristmill_worker::http::make_private_directory;
use gristmill_worker::whole_file::{self, Promise, ReadError};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Folder of the file in the state folder: of its own, as masters tidy up theirs while `up` writes.
const RECORD_FOLDER: &str = "up";

/// Name of the file.
const RECORD_FILE: &str = "record.json";

/// Folder in the state folder: what workers have said.
pub const LOGS_FOLDER: &str = "logs";

/// Version of the file.
const SCHEMA: u32 = 1;

/// Longest record that is read, bytes: thousands of hosts.
const RECORD_BYTES_MAX: u64 = 4 << 20;

/// What is up.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    schema: u32,
    /// The machine on which `up` was typed, where the master runs.
    pub machine: String,
    /// The master's process, once it was started.
    pub master: Option<ProcessName>,
    /// Where the workers are.
    pub place: Place,
    #[serde(skip)]
    path: PathBuf,
}

/// Where workers are, and what is needed to end them there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// On hosts that `ssh` reaches.
    Ssh(SshPlace),
    /// In jobs of Slurm.
    Slurm(SlurmPlace),
    /// In actors of Ray.
    Ray(RayPlace),
    /// In pods of Kubernetes, and the master too.
    Kubernetes(KubernetesPlace),
}

/// Hosts of ssh.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SshPlace {
    /// Of this use of `up`: folders on hosts are named by it.
    pub name: String,
    /// The settings file of `ssh`; `None`: the user's.
    pub config: Option<PathBuf>,
    /// Seconds for a connection.
    pub connect_s: u32,
    /// Hosts at once.
    pub at_once: u32,
    /// The program's file on the hosts.
    pub program: String,
    /// The hosts.
    pub hosts: Vec<SshHost>,
}

impl SshPlace {
    /// Hosts on which something may run or lie, with their numbers.
    pub fn touched(&self) -> impl Iterator<Item = (usize, &SshHost)> {
        self.hosts.iter().enumerate().filter(|(_, host)| host.state != HostState::Untouched)
    }
}

/// A host of ssh.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SshHost {
    /// `[USER@]HOST`, as `ssh` takes it.
    pub target: String,
    /// Its port; `None`: as the settings of `ssh` say.
    pub port: Option<u16>,
    /// Worker processes; `None`: as many as all.
    pub workers: Option<u32>,
    /// How far it is.
    pub state: HostState,
    /// The program was sent there, and is removed at the end.
    pub sent: bool,
}

/// How far a host is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostState {
    /// Nothing was started there.
    Untouched,
    /// Something may run there, or lie there.
    Asked,
    /// Workers were started there.
    Begun,
}

/// Jobs of Slurm.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SlurmPlace {
    /// Number of the job array; `None`: it may have been handed in, under its name.
    pub job: Option<u64>,
    /// Its name, which no other has.
    pub name: String,
    /// The file with the line by which its workers join.
    pub join: PathBuf,
}

/// Actors of Ray.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RayPlace {
    /// The namespace of the actors, which no other has.
    pub name: String,
    /// The Python that has Ray.
    pub python: PathBuf,
    /// The cluster's address, as `ray.init` takes it.
    pub address: String,
    /// How many actors.
    pub nodes: u32,
}

/// Pods of Kubernetes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KubernetesPlace {
    /// The cluster's name, which all that belongs to it bears.
    pub name: String,
    /// The namespace.
    pub namespace: String,
}

impl Record {
    /// Takes hold of the state folder for what comes up now.
    ///
    /// # Errors
    /// Something is up already, or what the file system says.
    pub fn claim(state: &Path, place: Place) -> Result<Self, PlaceError> {
        let path = path(state);
        let folder = state.join(RECORD_FOLDER);
        let failed = |source| PlaceError::Record { action: "make a place for", path: path.clone(), source };
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => return Err(failed(source)),
            _ => {}
        }
        let record =
            Self { schema: SCHEMA, machine: gristmill_worker::host_name(), master: None, place, path };
        let made = File::options().write(true).create_new(true).mode(0o600).open(&record.path);
        match made {
            Ok(_) => {
                // Nobody else writes there now.
                whole_file::remove_drafts(&folder).map_err(|source| PlaceError::Record {
                    action: "tidy up beside",
                    path: record.path.clone(),
                    source,
                })?;
                record.keep()?;
                Ok(record)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let what = Self::read(state).ok().flatten().map(|there| there.words());
                Err(PlaceError::Up {
                    what: what.unwrap_or_else(|| "something".to_owned()),
                    path: record.path,
                })
            }
            Err(source) => Err(PlaceError::Record { action: "write", path: record.path, source }),
        }
    }

    /// What is up by this state folder; `None`: nothing.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(state: &Path) -> Result<Option<Self>, PlaceError> {
        let path = path(state);
        let failed = |source| PlaceError::Record { action: "read", path: path.clone(), source };
        let bytes = match whole_file::read(&path, RECORD_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(ReadError::Io { source }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(ReadError::Io { source }) => return Err(failed(source)),
            Err(other) => return Err(failed(io::Error::other(other))),
        };
        let record: Self = serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))?;
        if record.schema != SCHEMA {
            return Err(failed(io::Error::other("it was written by another version of gristmill")));
        }
        Ok(Some(Self { path, ..record }))
    }

    /// Writes it down as it is now.
    ///
    /// # Errors
    /// What the file system says.
    pub fn keep(&self) -> Result<(), PlaceError> {
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        let written = text.and_then(|text| {
            whole_file::replace(&self.path, Promise::PrivateAndDurable, |file| file.write_all(&text))
        });
        written.map_err(|source| PlaceError::Record { action: "write", path: self.path.clone(), source })
    }

    /// Forgets it: nothing is up any more.
    ///
    /// # Errors
    /// What the file system says.
    pub fn remove(self) -> Result<(), PlaceError> {
        let removed = fs::remove_file(&self.path);
        removed.map_err(|source| PlaceError::Record { action: "remove", path: self.path, source })
    }

    /// What is up, in words.
    pub fn words(&self) -> String {
        let master = match &self.master {
            Some(master) => format!("a master (process {} on {})", master.pid(), self.machine),
            None => format!("a master on {}", self.machine),
        };
        match &self.place {
            Place::Ssh(place) => {
                let targets: Vec<&str> = place.hosts.iter().map(|host| host.target.as_str()).collect();
                format!("{master} with workers on {}", targets.join(", "))
            }
            Place::Slurm(SlurmPlace { job: Some(job), .. }) => {
                format!("{master} with workers in Slurm's job {job}")
            }
            Place::Slurm(place) => format!("{master} with workers in Slurm's job {}", place.name),
            Place::Ray(place) => format!("{master} with {} actors of Ray at {}", place.nodes, place.address),
            Place::Kubernetes(KubernetesPlace { name, namespace }) => {
                format!("{name} in the namespace {namespace} of Kubernetes")
            }
        }
    }
}

fn path(state: &Path) -> PathBuf {
    state.join(RECORD_FOLDER).join(RECORD_FILE)
}

/// A record that is written to from several sides.
pub fn locked(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The folder for what workers have said, made if need be.
///
/// # Errors
/// A folder that cannot be made, or is not ours alone.
pub fn logs(state: &Path) -> anyhow::Result<PathBuf> {
    let logs = state.join(LOGS_FOLDER);
    make_private_directory(&logs)?;
    Ok(logs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateFolder;

    fn place() -> Place {
        Place::Kubernetes(KubernetesPlace { name: "mill".to_owned(), namespace: "default".to_owned() })
    }

    #[test]
    fn master_that_tidies_up_its_state_folder_leaves_alone_what_up_is_writing() {
        let folder = tempfile::tempdir().unwrap();
        let record = Record::claim(folder.path(), place()).unwrap();
        let written = whole_file::replace(&record.path, Promise::Private, |file| {
            file.write_all(b"{}")?;
            let state = StateFolder::take(folder.path().to_path_buf());
            state.map(drop).map_err(io::Error::other)
        });
        written.unwrap();
    }

    #[test]
    fn record_that_is_claimed_removes_what_an_up_that_was_killed_has_left() {
        let folder = tempfile::tempdir().unwrap();
        Record::claim(folder.path(), place()).unwrap().remove().unwrap();
        let left = folder.path().join(RECORD_FOLDER).join(".gristmill-draft-Ab3");
        fs::write(&left, "half").unwrap();
        let record = Record::claim(folder.path(), place()).unwrap();
        assert!(!left.exists());
        assert!(matches!(Record::claim(folder.path(), place()), Err(PlaceError::Up { .. })));
        assert_eq!(Record::read(folder.path()).unwrap().unwrap().words(), record.words());
        record.remove().unwrap();
        assert!(Record::read(folder.path()).unwrap().is_none());
    }
}
