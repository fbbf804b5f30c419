//! Removing folders to which somebody who is ending still adds files.

use std::io;
use std::time::Duration;

/// How often a folder is emptied to which somebody, such as the attempt of a dead client's job, still adds files.
const TRIES: u32 = 5;

/// Between two tries: file systems in user space take notice of a closed file a little later.
const PAUSE: Duration = Duration::from_millis(10);

/// Removes a folder, again if something was added to it meanwhile. One that is not there is no error.
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
