//! Private folders of a cluster's processes: made, left and removed.

use super::ClusterError;
use crate::scratch;
use gristmill_worker::http::Secret;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a process that is being killed may take to be dead: until then it holds its folders.
const DYING_PATIENCE: Duration = Duration::from_secs(2);

/// Between two looks whether it is.
const DYING_PAUSE: Duration = Duration::from_millis(5);

/// A folder of our own, 0700, in each of these places (the system's folder for temporary files if there are none), and
/// what keeps it. What the dead have left there is removed.
pub(super) fn private_folders(
    places: &[PathBuf],
    secret: &Secret,
) -> Result<(Vec<PathBuf>, Vec<scratch::FolderLock>), ClusterError> {
    let places = match places {
        [] => vec![std::env::temp_dir()],
        places => places.to_vec(),
    };
    let name = scratch::name("", secret);
    let (mut made, mut holds) = (Vec::with_capacity(places.len()), Vec::with_capacity(places.len()));
    for place in places {
        // User code works elsewhere, and is given names in them.
        let place =
            std::path::absolute(&place).map_err(|source| ClusterError::Folder { path: place, source })?;
        scratch::sweep(&place);
        let path = place.join(&name);
        match scratch::make(&path) {
            Ok(hold) => {
                made.push(path);
                holds.push(hold);
            }
            Err(source) => {
                remove_folders(&made);
                return Err(ClusterError::Folder { path, source });
            }
        }
    }
    Ok((made, holds))
}

/// Removes a worker's folders, and if whoever made what they lie in was killed, that too once nobody else uses it.
pub fn leave_folders(folders: &[PathBuf], holds: Vec<scratch::FolderLock>, orphaned: bool) {
    remove_folders(folders);
    drop(holds);
    if !orphaned {
        return;
    }
    let mut left: Vec<&Path> = folders.iter().filter_map(|folder| folder.parent()).collect();
    let began = Instant::now();
    loop {
        left.retain(|parent| {
            scratch::sweep_folder(parent);
            parent.exists()
        });
        if left.is_empty() || DYING_PATIENCE < began.elapsed() {
            return;
        }
        std::thread::sleep(DYING_PAUSE);
    }
}

/// Removes folders of this process, as far as that goes.
pub fn remove_folders(folders: &[PathBuf]) {
    for folder in folders {
        if let Err(error) = scratch::remove(folder) {
            tracing::warn!(folder = %folder.display(), %error, "a temporary folder could not be removed");
        }
    }
}
