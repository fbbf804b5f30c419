//! Reasons of file system errors that the error code does not explain.

use rustix::fs::statvfs;
use rustix::io::Errno;
use std::io;
use std::path::Path;

/// Returns a remark for the error of a write to this path, or to a file to be created there; `None` if the error needs
/// none.
#[must_use]
pub fn remark(path: &Path, error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::NOSPC if !has_inodes(path) => {
            Some("it has no inodes left: not its bytes have run out, but the number of its files")
        }
        Errno::FBIG => {
            Some("the limit on the size of a file is reached (ulimit -f, or that of its file system)")
        }
        _ => None,
    }
}

/// True if more files can be created at this path.
fn has_inodes(path: &Path) -> bool {
    let Some(stat) = path.ancestors().find_map(|part| statvfs(part).ok()) else { return true };
    // File systems that create inodes on demand report none at all.
    stat.f_files == 0 || 0 < stat.f_favail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_that_has_inodes_is_just_full() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("not/there/yet");
        assert_eq!(remark(&path, &Errno::NOSPC.into()), None);
        assert_eq!(remark(&path, &Errno::IO.into()), None);
        assert_eq!(remark(&path, &io::Error::new(io::ErrorKind::StorageFull, "the reserve")), None);
        assert!(remark(&path, &Errno::FBIG.into()).is_some_and(|words| words.contains("ulimit -f")));
    }
}
