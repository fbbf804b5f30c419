//! Private directories of a cluster's processes: created, left and removed.

use super::error::ClusterError;
use crate::scratch;
use gristmill_worker::http::Secret;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time for a killed process to end: until then it holds its directories.
const DYING_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause between two checks of that.
const DYING_PAUSE: Duration = Duration::from_millis(5);

/// Creates a private directory, 0700, in each of these places (the system's directory for temporary files if there are
/// none), and the locks that keep them. Remains of dead processes in these places are removed.
pub(super) fn private_directories(
    places: &[PathBuf],
    secret: &Secret,
) -> Result<(Vec<PathBuf>, Vec<scratch::DirectoryLock>), ClusterError> {
    let places = match places {
        [] => vec![std::env::temp_dir()],
        places => places.to_vec(),
    };
    let name = scratch::name("", secret);
    let (mut made, mut holds) = (Vec::with_capacity(places.len()), Vec::with_capacity(places.len()));
    for place in places {
        // User code has another working directory, and receives paths in these directories.
        let place =
            std::path::absolute(&place).map_err(|source| ClusterError::Directory { path: place, source })?;
        scratch::sweep(&place);
        let path = place.join(&name);
        match scratch::make(&path) {
            Ok(hold) => {
                made.push(path);
                holds.push(hold);
            }
            Err(source) => {
                remove_directories(&made);
                return Err(ClusterError::Directory { path, source });
            }
        }
    }
    Ok((made, holds))
}

/// Removes a worker's directories. If the process that created their parent directory was killed, that is removed too
/// once no other process uses it.
pub fn leave_directories(directories: &[PathBuf], holds: Vec<scratch::DirectoryLock>, orphaned: bool) {
    remove_directories(directories);
    drop(holds);
    if !orphaned {
        return;
    }
    let mut left: Vec<&Path> = directories.iter().filter_map(|directory| directory.parent()).collect();
    let began = Instant::now();
    loop {
        left.retain(|parent| {
            scratch::sweep_directory(parent);
            parent.exists()
        });
        if left.is_empty() || DYING_TIMEOUT < began.elapsed() {
            return;
        }
        std::thread::sleep(DYING_PAUSE);
    }
}

/// Removes directories of this process, as far as possible.
pub fn remove_directories(directories: &[PathBuf]) {
    for directory in directories {
        if let Err(error) = scratch::remove(directory) {
            tracing::warn!(directory = %directory.display(), %error, "a temporary directory could not be removed");
        }
    }
}
