//! Removal of directories into which a dying process may still write files.

use std::io;
use std::time::Duration;

/// Number of times that a directory is emptied into which files are still written, such as by the attempt of a dead
/// client's job.
const TRIES: u32 = 5;

/// Pause between two tries: file systems in user space notice a closed file a little later.
const PAUSE: Duration = Duration::from_millis(10);

/// Removes a directory, with retries if files were added meanwhile. A missing directory is not an error.
pub(crate) fn remove_retrying(mut remove: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    for tries_left in (0..TRIES).rev() {
        match remove() {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && 0 < tries_left => {
                std::thread::sleep(PAUSE);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => return removed,
        }
    }
    Ok(())
}
