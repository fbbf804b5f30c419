//! Directory of a comparison: its settings, every completed run, and the data to resume it.
//!
//! `compare.json` holds the settings. `runs/NAME-REPETITION/results.json` is created atomically once a
//! run has ended, next to its journal. `knowledge.json` holds the prior knowledge of a given master's
//! estimator, `isolated.json` jobs alone, `calibration.json` the system's cost of tasks. `looks.json`
//! holds the requested number of repetitions of each page that was written. Not here: the report.

use super::record::{Contender, RunRecord, SCHEMA};
use crate::IoError;
use gristmill_runtime::api::EstimatorMemory;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use gristmill_worker::whole_file::{self, Promise};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// File that identifies a directory of this kind.
pub const MARK: &str = "compare.json";

/// Reason why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The directory exists and is not empty.
    #[error("the output directory {path} exists and is not empty")]
    NotEmpty {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The directory contains no comparison.
    #[error("the output directory {path} holds no comparison that could go on")]
    Nothing {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The directory holds runs of another setting, whose numbers are not comparable.
    #[error(
        "the runs in {path} cannot be compared with new ones, because {what} was {was} there and is {is} now: \
         clusters or workloads that differ"
    )]
    Differs {
        /// Path of the directory.
        path: PathBuf,
        /// First setting that differs.
        what: String,
        /// Stored value.
        was: String,
        /// Requested value.
        is: String,
    },
    /// A comparison may be planned before the first run, and not after it.
    #[error(
        "the comparison in {path} was begun with {was} as `against`, not {is}: a comparison that is planned once there \
         are results is not a planned one"
    )]
    Planned {
        /// Path of the directory.
        path: PathBuf,
        /// Stored value.
        was: String,
        /// Requested value.
        is: String,
    },
    /// A file operation failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A file of the store cannot be parsed.
    #[error("{path} is damaged; remove it and its runs are done again")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: serde_json::Error,
    },
}

impl ExitsWith for StoreError {
    fn exit(&self) -> Exit {
        match self {
            Self::NotEmpty { .. } => Exit::hinted(
                exit::ENVIRONMENT,
                "choose another directory with --out, or continue with --resume",
            ),
            Self::Differs { .. } | Self::Planned { .. } => {
                Exit::hinted(exit::USAGE, "choose another directory with --out")
            }
            _ => Exit::with(exit::ENVIRONMENT),
        }
    }
}

impl StoreError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| IoError { action, path, source }.into()
    }
}

#[derive(Serialize, Deserialize)]
struct Mark {
    schema: u32,
    setting: Value,
}

/// Directory of a comparison.
#[derive(Debug)]
pub struct ComparisonStore {
    path: PathBuf,
}

impl ComparisonStore {
    /// Opens a directory that does not exist or is empty, or with `resume` also one that holds runs of
    /// the same setting.
    ///
    /// # Errors
    /// The directory has other content, or a file operation failed.
    pub fn open(path: &Path, setting: &Value, resume: bool) -> Result<Self, StoreError> {
        let path = std::path::absolute(path).map_err(StoreError::io("resolve", path))?;
        let mark = path.join(MARK);
        let store = Self { path };
        if resume {
            let found: Option<Mark> = store.read_json(&mark)?;
            // Parsed from text like the other, so that both have lost the same last digits.
            let damaged = |source| StoreError::Damaged { path: mark.clone(), source };
            let is = serde_json::from_str(&setting.to_string()).map_err(damaged)?;
            let found = found.map(|found| first_difference("", &found.setting, &is));
            match found {
                Some(None) => return Ok(store),
                Some(Some((what, was, is))) if what == "against" => {
                    return Err(StoreError::Planned { path: store.path, was, is });
                }
                Some(Some((what, was, is))) => {
                    return Err(StoreError::Differs { path: store.path, what, was, is });
                }
                // No earlier call has stored anything.
                None => {}
            }
        }
        fs::create_dir_all(&store.path).map_err(StoreError::io("make", &store.path))?;
        let mut entries = fs::read_dir(&store.path).map_err(StoreError::io("list", &store.path))?;
        if entries.next().is_some() {
            let path = store.path;
            return Err(if resume { StoreError::Nothing { path } } else { StoreError::NotEmpty { path } });
        }
        store.write_json(&mark, &Mark { schema: SCHEMA, setting: setting.clone() })?;
        Ok(store)
    }

    /// Absolute path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory of inputs.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// Returns the directory of a run's files.
    #[must_use]
    pub(crate) fn run_directory(&self, contender: &Contender, repetition: u32) -> PathBuf {
        let name = format!("{}-{}", crate::report::names::slug(&contender.name), repetition + 1);
        self.path.join("runs").join(name)
    }

    /// Returns a run that ended in an earlier call.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn finished(&self, contender: &Contender, repetition: u32) -> Result<Option<RunRecord>, StoreError> {
        self.read_json(self.run_directory(contender, repetition).join("results.json"))
    }

    /// Stores a run that has ended.
    ///
    /// # Errors
    /// A file operation failed.
    pub fn keep(&self, run: &RunRecord) -> Result<(), StoreError> {
        self.write_json(self.run_directory(&run.contender, run.repetition).join("results.json"), run)
    }

    /// Creates an empty directory for a run, after removing files of an interrupted one.
    ///
    /// # Errors
    /// A file operation failed.
    pub fn start_run(&self, contender: &Contender, repetition: u32) -> Result<PathBuf, StoreError> {
        let directory = self.run_directory(contender, repetition);
        remove_tree(&directory)?;
        fs::create_dir_all(&directory).map_err(StoreError::io("make", &directory))?;
        Ok(directory)
    }

    /// Returns the requested numbers of repetitions of the pages that were written, each of which showed
    /// verdicts.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn looks(&self) -> Result<BTreeSet<u32>, StoreError> {
        Ok(self.read_json("looks.json")?.unwrap_or_default())
    }

    /// Records that a page with this requested number of repetitions was written.
    ///
    /// # Errors
    /// A file operation failed.
    pub(crate) fn keep_look(&self, repetitions: u32) -> Result<(), StoreError> {
        let mut looks = self.looks()?;
        looks.insert(repetitions);
        self.write_json("looks.json", &looks)
    }

    /// Returns the knowledge of a given master's estimator before the first run of all. It is `now`,
    /// unless an earlier call has stored it.
    ///
    /// # Errors
    /// A file operation failed.
    pub fn knowledge(&self, now: &EstimatorMemory) -> Result<EstimatorMemory, StoreError> {
        const FILE: &str = "knowledge.json";
        if let Some(kept) = self.read_json(FILE)? {
            return Ok(kept);
        }
        self.write_json(FILE, now)?;
        Ok(now.clone())
    }

    /// Reads a file of the directory; `None` if it does not exist.
    pub(super) fn read_json<T: for<'a> Deserialize<'a>>(
        &self,
        name: impl AsRef<Path>,
    ) -> Result<Option<T>, StoreError> {
        let path = &self.path.join(name);
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("read", path)(error)),
        };
        let damaged = |source| StoreError::Damaged { path: path.to_path_buf(), source };
        serde_json::from_slice(&text).map(Some).map_err(damaged)
    }

    /// Writes a file of the directory.
    pub(super) fn write_json(
        &self,
        name: impl AsRef<Path>,
        value: &impl Serialize,
    ) -> Result<(), StoreError> {
        let path = &self.path.join(name);
        let bytes =
            serde_json::to_vec(value).map_err(io::Error::other).map_err(StoreError::io("write", path))?;
        self.write(path, &bytes)
    }

    /// Writes a file of the directory atomically.
    ///
    /// # Errors
    /// A file operation failed.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(StoreError::io("make", parent))?;
        }
        whole_file::replace(path, Promise::Durable, |file| file.write_all(bytes))
            .map_err(StoreError::io("write", path))
    }
}

/// Removes a directory with its content, if it exists.
pub(super) fn remove_tree(path: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Returns the first path at which two settings differ, with both values.
fn first_difference(place: &str, was: &Value, is: &Value) -> Option<(String, String, String)> {
    let inside = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    match (was, is) {
        (Value::Object(old), Value::Object(new)) => {
            let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
            let get =
                |map: &serde_json::Map<String, Value>, key: &str| map.get(key).cloned().unwrap_or_default();
            keys.into_iter().find_map(|key| first_difference(&inside(key), &get(old, key), &get(new, key)))
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => old
            .iter()
            .zip(new)
            .enumerate()
            .find_map(|(place, (old, new))| first_difference(&inside(&place.to_string()), old, new)),
        _ if was == is => None,
        _ => Some((place.to_owned(), shown(was), shown(is))),
    }
}

fn shown(value: &Value) -> String {
    const SHOWN_MAX: usize = 80;
    let text = if value.is_null() { "not set".to_owned() } else { value.to_string() };
    if text.chars().count() <= SHOWN_MAX {
        text
    } else {
        text.chars().take(SHOWN_MAX).collect::<String>() + "…"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn resumed_directory_must_hold_runs_of_the_same_setting() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let setting =
            |workers: u32| json!({"workload": {"seed": 1}, "cluster": {"workers": workers, "slots": 1}});
        fs::create_dir(&path).unwrap();
        fs::write(path.join("other"), "").unwrap();
        assert!(matches!(ComparisonStore::open(&path, &setting(2), true), Err(StoreError::Nothing { .. })));
        fs::remove_file(path.join("other")).unwrap();
        ComparisonStore::open(&path, &setting(2), true).unwrap();
        assert!(matches!(ComparisonStore::open(&path, &setting(2), false), Err(StoreError::NotEmpty { .. })));
        ComparisonStore::open(&path, &setting(2), true).unwrap();
        let words = ComparisonStore::open(&path, &setting(3), true).unwrap_err().to_string();
        assert!(words.contains("because cluster.workers was 2 there and is 3 now"), "{words}");
        assert!(words.contains("clusters or workloads that differ"), "{words}");
    }

    #[test]
    fn comparison_cannot_be_planned_once_it_has_started() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        ComparisonStore::open(&path, &json!({"against": null}), false).unwrap();
        let words = ComparisonStore::open(&path, &json!({"against": "fair"}), true).unwrap_err().to_string();
        assert!(words.contains("begun with not set as `against`, not \"fair\""), "{words}");
    }

    #[test]
    fn setting_with_long_fractions_is_the_same_after_reading() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let lengths: Vec<f64> = (1..2000).map(|place| 1.0 / f64::from(place) * 0.07).collect();
        let setting = json!({"map_seconds": lengths});
        ComparisonStore::open(&path, &setting, false).unwrap();
        ComparisonStore::open(&path, &setting, true).unwrap();
    }

    #[test]
    fn started_run_is_empty_and_does_not_count_as_finished() {
        let directory = tempfile::tempdir().unwrap();
        let store = ComparisonStore::open(&directory.path().join("out"), &json!({}), false).unwrap();
        let name = "asrpt:preemptive=yes";
        let contender = Contender::new(name, name, "pull");
        let begun = store.start_run(&contender, 0).unwrap();
        assert_eq!(begun.file_name().unwrap(), "asrpt-preemptive-yes-1");
        fs::write(begun.join("journal.jsonl"), "half").unwrap();
        assert_eq!(store.finished(&contender, 0).unwrap(), None);
        assert_eq!(fs::read_dir(store.start_run(&contender, 0).unwrap()).unwrap().count(), 0);
    }
}
