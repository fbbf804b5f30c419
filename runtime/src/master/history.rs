//! The estimator's memory, kept in a file between one master and the next.
//!
//! A damaged file is moved aside; a file of another estimator is left alone. The content is defined by the estimator.

use gristmill_scheduler::estimate::Estimator;
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::whole_file::{self, Promise};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use tokio::task::JoinHandle;

/// Version of the file.
const SCHEMA: u32 = 1;

/// Longest file that is read, bytes. A thousand names take a fifth of a megabyte.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Minimum pause between two writes of the file while the master runs.
const PAUSE: Span = Span::whole_seconds(3);

/// Contents of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedHistory {
    /// [`SCHEMA`].
    schema: u32,
    /// Name of the estimator.
    estimator: String,
    /// Memory in the estimator's own form.
    memory: Value,
}

/// The file of one master's estimator.
pub(super) struct HistoryFile {
    path: PathBuf,
    estimator: &'static str,
    /// Time of the next write.
    due: Option<Time>,
    /// Earliest time of the next write.
    not_before: Time,
    writing: Option<JoinHandle<()>>,
}

impl HistoryFile {
    /// Restores the estimator's memory from the file. `None` if there is nothing to keep, or if the file belongs to
    /// another estimator.
    pub(super) fn recall(path: PathBuf, estimator: &mut dyn Estimator) -> Option<Self> {
        if estimator.memory().is_null() {
            return None;
        }
        match read(&path) {
            Ok(None) => {}
            Ok(Some(kept)) if kept.estimator != estimator.name() => {
                let (path, of) = (path.display(), &kept.estimator);
                tracing::warn!(%path, %of, "the history is another estimator's: it is neither read nor written");
                return None;
            }
            Ok(Some(kept)) => {
                if let Err(reason) = estimator.restore(&kept.memory) {
                    set_aside(&path, &reason);
                }
            }
            Err(reason) => set_aside(&path, &reason),
        }
        Some(Self { path, estimator: estimator.name(), due: None, not_before: Time::ZERO, writing: None })
    }

    /// Time at which [`HistoryFile::keep`] has work to do.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Writes the memory if the estimator has learned something, or had and the file could not be written yet.
    pub(super) fn keep(&mut self, now: Time, learned: bool, memory: impl FnOnce() -> Value) {
        if learned && self.due.is_none() {
            self.due = Some(self.not_before.max(now));
        }
        let busy = self.writing.as_ref().is_some_and(|writing| !writing.is_finished());
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        self.not_before = now + PAUSE;
        if busy {
            // A disk that is still busy gets another pause.
            self.due = Some(self.not_before);
            return;
        }
        self.due = None;
        let (path, kept) = (self.path.clone(), self.of(memory()));
        self.writing = Some(tokio::task::spawn_blocking(move || save(&path, &kept)));
    }

    /// Writes the memory at the end of the master.
    pub(super) async fn keep_at_end(&mut self, memory: Value) {
        if let Some(writing) = self.writing.take() {
            let _ = writing.await;
        }
        save(&self.path, &self.of(memory));
    }

    fn of(&self, memory: Value) -> SavedHistory {
        SavedHistory { schema: SCHEMA, estimator: self.estimator.to_owned(), memory }
    }
}

/// Contents of the file; `None` if it does not exist. `Err` describes in words why it is invalid.
fn read(path: &Path) -> Result<Option<SavedHistory>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(|error| error.to_string())?;
    if FILE_BYTES_MAX < text.len() as u64 {
        return Err(format!("it is longer than {FILE_BYTES_MAX} bytes"));
    }
    let kept: SavedHistory = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    if kept.schema != SCHEMA {
        return Err(format!("its schema {} is not {SCHEMA}", kept.schema));
    }
    Ok(Some(kept))
}

/// Moves an unusable file aside, so that its content is kept.
fn set_aside(path: &Path, reason: &str) {
    let aside = beside(path, "damaged");
    let moved = fs::rename(path, &aside);
    let (path, aside, failed) = (path.display(), aside.display(), moved.err());
    tracing::warn!(%path, %aside, reason, ?failed, "the history cannot be used: it is moved aside, and a new one is started");
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ending);
    path.with_file_name(name)
}

/// Writes the file. A failure is logged and does not stop the master.
fn save(path: &Path, kept: &SavedHistory) {
    if let Err(error) = write(path, kept) {
        tracing::warn!(path = %path.display(), %error, "the history could not be written");
    }
}

fn write(path: &Path, saved: &SavedHistory) -> io::Result<()> {
    let text = serde_json::to_vec(saved)?;
    whole_file::replace(path, Promise::PrivateAndDurable, |file| file.write_all(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::estimate::{self, Facts, ReduceFacts};
    use gristmill_scheduler::ids::JobId;
    use std::os::unix::fs::PermissionsExt;

    fn facts(name: &str) -> Facts<'_> {
        Facts {
            now: Time(1),
            job: JobId(1),
            name: Some(name),
            maps: 2,
            maps_done: 2,
            input_bytes: 10.0,
            input_bytes_done: 10.0,
            map_time: 4.0,
            running_since: &[],
            output_bytes: 5.0,
            fetched_bytes: 5.0,
            reduces: ReduceFacts { count: 1, done: 1, time: 3.0 },
            network: f64::INFINITY,
            exact: None,
        }
    }

    fn learned() -> Box<dyn Estimator> {
        let mut estimator = estimate::by_name("history").unwrap();
        estimator.learn(&facts("words"));
        estimator
    }

    #[tokio::test]
    async fn what_was_learned_is_known_to_the_next_master() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let mut before = learned();
        let mut file = HistoryFile::recall(path.clone(), &mut *before).unwrap();
        file.keep(Time(5), true, || before.memory());
        file.keep_at_end(before.memory()).await;
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut after = estimate::by_name("history").unwrap();
        assert!(HistoryFile::recall(path, &mut *after).is_some());
        assert_eq!(after.memory(), before.memory());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside the file");
    }

    #[tokio::test]
    async fn file_is_written_again_only_after_a_pause() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let mut estimator = learned();
        let mut file = HistoryFile::recall(path.clone(), &mut *estimator).unwrap();
        file.keep(Time(5), false, || unreachable!("nothing was learned"));
        file.keep(Time(5), true, || estimator.memory());
        file.keep(Time(6), true, || unreachable!("too early"));
        assert_eq!(file.due(), Some(Time(5) + PAUSE));
        file.writing.take().unwrap().await.unwrap();
        file.keep(Time(5) + PAUSE, false, || estimator.memory());
        assert_eq!(file.due(), None);
        file.keep_at_end(estimator.memory()).await;
    }

    #[test]
    fn damaged_file_is_moved_aside_and_nothing_is_recalled() {
        for damage in [
            "",
            "{",
            r#"{"schema":2,"estimator":"history","memory":null}"#,
            r#"{"schema":1,"estimator":"history","memory":{"schema":1,"past":{"a":{}}}}"#,
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("history");
            fs::write(&path, damage).unwrap();
            let mut estimator = estimate::by_name("history").unwrap();
            assert!(HistoryFile::recall(path.clone(), &mut *estimator).is_some());
            assert!(!path.exists(), "{damage}");
            assert_eq!(fs::read_to_string(beside(&path, "damaged")).unwrap(), damage);
            assert_eq!(estimator.memory(), estimate::by_name("history").unwrap().memory());
        }
    }

    #[test]
    fn file_of_another_estimator_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let text = r#"{"schema":1,"estimator":"other","memory":{"x":1}}"#;
        fs::write(&path, text).unwrap();
        let mut estimator = estimate::by_name("history").unwrap();
        assert!(HistoryFile::recall(path.clone(), &mut *estimator).is_none());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let mut forgetful = estimate::by_name("linear").unwrap();
        assert!(HistoryFile::recall(path, &mut *forgetful).is_none());
    }
}
