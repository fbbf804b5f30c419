//! Publishing a finished part: one rename that either happens or does not.
//!
//! Parts are built as files in `DIR/_temporary`, so the rename never crosses a file system. Not here: who
//! may publish (the master's commit permit) and `_SUCCESS` (the submitter).

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::path::Path;

/// Name of the folder inside the output directory in which parts are built.
pub const TEMPORARY: &str = "_temporary";

/// Moves `built` to `published`. With `replace`, an earlier part of that name goes; without, it is an error of
/// kind [`io::ErrorKind::AlreadyExists`].
///
/// # Errors
/// What the file system says.
pub fn publish(built: &Path, published: &Path, replace: bool) -> io::Result<()> {
    if replace {
        return fs::rename(built, published);
    }
    match renameat_with(CWD, built, CWD, published, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Many network file systems lack the flag; a hard link refuses to replace just the same.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            fs::hard_link(built, published)?;
            fs::remove_file(built)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Makes a rename in `directory` survive a power cut.
///
/// # Errors
/// What the file system says.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    fs::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publish_refuses_to_replace_a_part_unless_told_to() {
        let dir = tempfile::tempdir().unwrap();
        let (built, published) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&built, "new").unwrap();
        fs::write(&published, "old").unwrap();
        let error = publish(&built, &published, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&published).unwrap(), "old");
        publish(&built, &published, true).unwrap();
        assert_eq!(fs::read_to_string(&published).unwrap(), "new");
        assert!(!built.exists());
    }
}
