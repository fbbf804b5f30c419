//! Shipped programs on a worker: fetched once from the master, verified, kept in a directory of this
//! process alone.
//!
//! Invariant: a file with the name of a program's checksum has that checksum, and only such a file is
//! ever run.

use super::failed;
use crate::agent::failed::{Failed, failed as task_failed};
use crate::error_text::chain;
use crate::folder::Folder;
use crate::http::{self, Endpoint, HttpError, Pool, Token};
use crate::protocol::{FailureClass, PROGRAMS_PATH, ProgramSum, ProgramSumming, ShippedProgram};
use crate::segment::ensure;
use crate::task::Progress;
use hyper::{Method, StatusCode};
use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Maximum number of programs that a worker keeps, except those of live jobs, which are all kept.
const PROGRAMS_KEPT_MAX: usize = 64;

/// Maximum total bytes of them, with the same exception.
const PROGRAM_BYTES_KEPT_MAX: u64 = 2 << 30;

/// Name of the directory in the worker's first spill directory.
const FOLDER: &str = "programs";

/// Interval at which a slot checks if another one has fetched its program.
const FETCHED_ELSEWHERE_PAUSE: Duration = Duration::from_millis(20);

/// Source of programs.
pub(super) struct ProgramSource {
    pub(super) master: Endpoint,
    pub(super) token: Token,
    pub(super) pool: Pool,
    pub(super) runtime: tokio::runtime::Handle,
}

/// Programs of a worker.
pub(super) struct Programs {
    spill: PathBuf,
    source: ProgramSource,
    kept: Mutex<BTreeMap<ProgramSum, KeptProgram>>,
}

struct KeptProgram {
    bytes: u64,
    /// Sequence number of its last use.
    used: u64,
    /// Path of the file once it exists. Locked while a slot fetches it.
    path: Arc<Mutex<Option<PathBuf>>>,
}

impl Programs {
    /// Creates an empty collection. Programs will be in a directory in this one.
    pub(super) fn new(spill: &Path, source: ProgramSource) -> Self {
        Self { spill: spill.to_owned(), source, kept: Mutex::default() }
    }

    fn folder(&self) -> io::Result<Folder> {
        ensure(&self.spill)?;
        let spill = Folder::open(&self.spill)?;
        match spill.make_folder(FOLDER) {
            // It exists already, or another slot was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => spill.folder(FOLDER),
            made => made,
        }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<ProgramSum, KeptProgram>> {
        // Every change is one insertion or removal.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the file of a program, fetched if it does not exist here. Programs for which `in_use` is
    /// true are not removed. Blocks.
    pub(super) fn get(
        &self,
        program: &ShippedProgram,
        progress: &Progress,
        in_use: impl Fn(&ProgramSum) -> bool,
    ) -> Result<PathBuf, Failed> {
        let place = self.place(program);
        let mut path = loop {
            match place.try_lock() {
                Ok(path) => break path,
                Err(TryLockError::Poisoned(path)) => break path.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    progress.step().map_err(|failure| task_failed(&failure))?;
                    std::thread::sleep(FETCHED_ELSEWHERE_PAUSE);
                }
            }
        };
        // A cleaner of temporary files may have removed it.
        if let Some(path) = path.as_ref().filter(|path| path.exists()) {
            return Ok(path.clone());
        }
        let folder = &self.folder().map_err(|source| self.unwritable(program, &source))?;
        self.make_room(folder, program, in_use);
        self.fetch(folder, program, progress)?;
        let fetched = folder.path(program.sum.to_string());
        *path = Some(fetched.clone());
        Ok(fetched)
    }

    fn place(&self, program: &ShippedProgram) -> Arc<Mutex<Option<PathBuf>>> {
        let mut kept = self.kept();
        let used = kept.values().map(|program| program.used).max().unwrap_or(0) + 1;
        let entry = kept.entry(program.sum).or_insert_with(|| KeptProgram {
            bytes: program.bytes,
            used,
            path: Arc::default(),
        });
        entry.used = used;
        entry.path.clone()
    }

    /// Removes the least recently used programs until there is room for this one too.
    fn make_room(&self, folder: &Folder, wanted: &ShippedProgram, in_use: impl Fn(&ProgramSum) -> bool) {
        let mut kept = self.kept();
        loop {
            let bytes: u64 = kept.values().map(|program| program.bytes).sum();
            if kept.len() <= PROGRAMS_KEPT_MAX && bytes <= PROGRAM_BYTES_KEPT_MAX {
                return;
            }
            let idle = kept.iter().filter(|(sum, _)| **sum != wanted.sum && !in_use(sum));
            let Some(sum) = idle.min_by_key(|(_, program)| program.used).map(|(sum, _)| *sum) else { return };
            kept.remove(&sum);
            if let Err(error) = folder.remove_file(sum.to_string())
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%sum, %error, "a shipped program could not be removed");
            }
        }
    }

    fn unwritable(&self, program: &ShippedProgram, source: &io::Error) -> Failed {
        let path = self.spill.join(FOLDER).join(program.sum.to_string());
        let words = format!("the shipped program could not be kept in {}: {source}", path.display());
        failed(FailureClass::Worker, &words)
    }

    fn fetch(&self, folder: &Folder, program: &ShippedProgram, progress: &Progress) -> Result<(), Failed> {
        let unwritable = |source: io::Error| self.unwritable(program, &source);
        let (name, draft) = (program.sum.to_string(), format!("{}.draft", program.sum));
        // Left by an earlier attempt.
        let _ = folder.remove_file(&draft);
        let mut file = folder.create(&draft).map_err(unwritable)?;
        let sum = self.receive(program, progress, &mut file)?;
        if sum != program.sum {
            let _ = folder.remove_file(&draft);
            let words =
                format!("the program that came has checksum {sum} and not {}: it is not run", program.sum);
            return Err(failed(FailureClass::Worker, &words));
        }
        file.set_permissions(Permissions::from_mode(0o500)).map_err(unwritable)?;
        // A file that is open for writing cannot be run.
        drop(file);
        folder.rename(&draft, folder, &name).map_err(unwritable)
    }

    /// Writes the bytes from the master, and returns their checksum.
    fn receive(
        &self,
        program: &ShippedProgram,
        progress: &Progress,
        file: &mut File,
    ) -> Result<ProgramSum, Failed> {
        let ProgramSource { master, token, pool, runtime } = &self.source;
        let path = format!("{PROGRAMS_PATH}{}", program.sum);
        let not_had = |source: HttpError| match source {
            HttpError::Status { status: StatusCode::NOT_FOUND, .. } => failed(
                FailureClass::Config,
                &format!("the master does not have program {} any more: ship it again", program.sum),
            ),
            source => failed(
                FailureClass::Worker,
                &format!("program {} could not be fetched: {}", program.sum, chain(&source)),
            ),
        };
        runtime.block_on(async {
            let asked = pool.request(master, Some(token), Method::GET, &path, http::empty());
            let mut answer = asked.await.map_err(&not_had)?;
            let (mut summing, mut bytes) = (ProgramSumming::default(), 0);
            while let Some(chunk) = answer.body_mut().chunk().await.map_err(&not_had)? {
                progress.step().map_err(|failure| task_failed(&failure))?;
                bytes += chunk.len() as u64;
                if program.bytes < bytes {
                    let words = format!(
                        "program {} is longer than the {} bytes it was said to have",
                        program.sum, program.bytes
                    );
                    return Err(failed(FailureClass::Worker, &words));
                }
                summing.add(&chunk);
                file.write_all(&chunk).map_err(|source| self.unwritable(program, &source))?;
            }
            Ok(summing.finish())
        })
    }
}
