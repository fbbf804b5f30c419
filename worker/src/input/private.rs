//! Files that are never input: state directories, spill directories, the worker's own join file, and
//! files outside the directories that the worker was limited to.
//!
//! A user who may submit jobs names paths on workers, so secrets of the cluster must not be readable that
//! way.

use super::path::FilePath;
use crate::http::{SECRET_FILE, TOKENS_FILE};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use std::cell::RefCell;
use std::fs::{File, OpenOptions, canonicalize, read_link};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// Directory inside an output directory in which its parts are built, and by which it is claimed.
pub const TEMPORARY: &str = "_temporary";

/// Paths by their canonical names, set once when a worker starts.
#[derive(Default)]
struct AllowedPaths {
    join_file: Option<PathBuf>,
    /// Allowed directories; empty for all.
    within: Vec<PathBuf>,
}

static LIMITS: OnceLock<AllowedPaths> = OnceLock::new();

/// Limits the files that this process reads as input, by canonical names: never the join file, and only
/// files within these directories if there are any. Only the first call has an effect.
pub(crate) fn limit(join_file: Option<&FilePath>, within: &[FilePath]) {
    let path = |path: &FilePath| path.to_path().to_owned();
    let _ = LIMITS
        .set(AllowedPaths { join_file: join_file.map(path), within: within.iter().map(path).collect() });
}

/// Opens a file that was regular a moment ago and may be input.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    // Without waiting: a pipe that replaced the file would otherwise block until a process writes to it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let is_plain = path.is_absolute() && path.components().all(|part| part != Component::ParentDir);
    // A path without links is its own canonical name, which saves a look-up for each of many small files.
    if is_plain && let Ok(file) = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        check_parent(path)?;
        return Ok(file.into());
    }
    let file =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    // The name of the opened file: a link may have changed since.
    let opened = read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    check_parent(&opened.or_else(|_| canonicalize(path))?)?;
    Ok(file)
}

/// Refuses a file of this canonical name if it must not be input.
fn check_parent(file: &Path) -> io::Result<()> {
    thread_local! {
        /// Last directory that was found to be allowed.
        static LAST: RefCell<PathBuf> = RefCell::default();
    }
    let parent = file.parent().unwrap_or(file);
    if LIMITS.get().is_some_and(|limits| limits.join_file.as_deref() == Some(file)) {
        return Err(refusal());
    }
    LAST.with_borrow_mut(|last| {
        if last.as_path() != parent {
            check_directory(parent)?;
            parent.clone_into(last);
        }
        Ok(())
    })
}

/// Refuses a directory, by its canonical name, whose files must not be input.
fn check_directory(directory: &Path) -> io::Result<()> {
    let within = LIMITS.get().map_or(&[][..], |limits| &limits.within);
    let is_outside = !within.is_empty() && !within.iter().any(|open| directory.starts_with(open));
    // A command of a job works in a directory of its own in a spill directory.
    let is_own =
        std::env::current_dir().is_ok_and(|own| directory.starts_with(&own) && own.ancestors().any(is_spill));
    match is_outside || (!is_own && directory.ancestors().any(holds_secrets)) {
        true => Err(refusal()),
        false => Ok(()),
    }
}

/// Refuses to list a file, or the files of a directory, that must not be input.
pub(super) fn check_listed(path: &Path, is_directory: bool) -> io::Result<()> {
    let real = canonicalize(path)?;
    // The name of a job's claim authorizes its holder to publish.
    if is_directory && real.components().any(|part| part.as_os_str() == TEMPORARY) {
        return Err(refusal());
    }
    if is_directory { check_directory(&real) } else { check_parent(&real) }
}

/// True for a state directory of a master, and for a spill directory of a worker process.
fn holds_secrets(directory: &Path) -> bool {
    let has = |file| directory.join(file).symlink_metadata().is_ok();
    is_spill(directory) || (has(SECRET_FILE) && has(TOKENS_FILE))
}

/// True for a spill directory of a worker process.
fn is_spill(directory: &Path) -> bool {
    let name = |path: &Path, start: &str| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(start.as_bytes()))
    };
    name(directory, "worker-") && directory.parent().is_some_and(|of| name(of, "gristmill-"))
}

fn refusal() -> io::Error {
    let why = "it is in a state directory, a spill directory, the _temporary of an output or outside of --input-dir, and is never \
         input";
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::list::list_local;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn state_and_spill_directories_are_neither_listed_nor_opened_by_any_name() {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        let spill = directory.path().join("gristmill-1/worker-1-7");
        let text = directory.path().join("text");
        for directory in [&state.join("ended-jobs"), &spill] {
            fs::create_dir_all(directory).unwrap();
        }
        for file in [SECRET_FILE, TOKENS_FILE, "join", "ended-jobs/1"] {
            fs::write(state.join(file), "s").unwrap();
        }
        fs::write(spill.join("run.spill"), "s").unwrap();
        fs::write(&text, "t").unwrap();
        symlink(&state, directory.path().join("link")).unwrap();
        symlink(state.join("join"), directory.path().join("file-link")).unwrap();
        assert!(open_regular(&text).is_ok() && list_local(&FilePath::from(text.as_path())).is_ok());
        for closed in [
            "state/join",
            "state/ended-jobs/1",
            "link/join",
            "file-link",
            "state/ended-jobs/../join",
            "gristmill-1/worker-1-7/run.spill",
        ] {
            let path = directory.path().join(closed);
            let error = open_regular(&path).unwrap_err();
            assert!(error.to_string().contains("never input"), "{closed}: {error}");
            assert!(list_local(&FilePath::from(path.as_path())).is_err(), "{closed}");
        }
        for closed in ["state", "link", "state/ended-jobs", "state/jo*", "gristmill-1/worker-1-7"] {
            let path = FilePath::from(directory.path().join(closed).as_path());
            let error = crate::error_text::chain(&list_local(&path).unwrap_err());
            assert!(error.contains("never input"), "{closed}: {error}");
        }
    }
}
