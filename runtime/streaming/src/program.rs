//! Finds the program of a command, and describes why one cannot be run.

use super::directory::EXECUTABLE;
use gristmill_worker::prelude::*;
use gristmill_worker::{descriptors, threads};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Returns the file of a command: the path itself if that is absolute, else in the working directory,
/// else in `PATH`.
pub(super) fn look_up(program: &str, directory: &Path, path: &std::ffi::OsStr) -> io::Result<PathBuf> {
    if Path::new(program).is_absolute() {
        return Ok(PathBuf::from(program));
    }
    let here = directory.join(program);
    if here.exists() {
        return Ok(here);
    }
    let places = std::env::split_paths(path).map(|directory| directory.join(program));
    let can_run = |place: &PathBuf| {
        std::fs::metadata(place)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & EXECUTABLE != 0)
    };
    let mut found = places.filter(|place| !program.contains('/') && can_run(place));
    found.next().ok_or_else(|| io::Error::from_raw_os_error(rustix::io::Errno::NOENT.raw_os_error()))
}

/// Maximum bytes of the first line of a script that are read.
const SCRIPT_LINE_BYTES: u64 = 256;

/// Returns the error for a script that exists and cannot be found: its interpreter is missing.
pub(super) fn without_interpreter(file: &Path, error: io::Error) -> io::Error {
    let mut head = Vec::new();
    let read = File::open(file).and_then(|file| file.take(SCRIPT_LINE_BYTES).read_to_end(&mut head));
    let line = head.strip_prefix(b"#!").and_then(|line| line.split(|byte| *byte == b'\n').next());
    let (Ok(_), Some(line), io::ErrorKind::NotFound) = (read, line, error.kind()) else { return error };
    let hint = match line.ends_with(b"\r") {
        true => {
            "; the line ends with a carriage return, as of Windows: convert the file (sed -i 's/\\r$//' FILE)"
        }
        false => "",
    };
    let interpreter = String::from_utf8_lossy(line);
    let said =
        format!("its interpreter `{}` does not exist{hint}", interpreter.trim_matches(' ').escape_debug());
    io::Error::new(io::ErrorKind::NotFound, said)
}

/// Returns the error for a command that cannot be started. It would fail on other workers too, unless a
/// local resource limit was reached: then the worker is at fault, and not the command.
pub(super) fn cannot_run(program: &str, directory: &Path, error: &io::Error) -> TaskError {
    let number = error.raw_os_error().map(|number| format!("error={number}, ")).unwrap_or_default();
    let said = format!(
        "Cannot run program \"{program}\" (in directory \"{}\"): {number}{error}",
        directory.display()
    );
    if threads::are_used_up(error) {
        return TaskError::worker(format!("{said}; the limit of processes is reached (ulimit -u, pids.max)"));
    }
    match error.kind() == io::ErrorKind::OutOfMemory || descriptors::are_used_up(error) {
        true => TaskError::worker(said),
        false => TaskError::config(said),
    }
}
