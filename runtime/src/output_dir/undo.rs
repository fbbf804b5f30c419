//! End of a claim: an abandoned output is undone, moved files come back, and `_temporary` is removed.

use super::claimed_directory::{OutputDirectory, Published, success_first};
use super::{SUCCESS, claim};
use crate::removal::remove_retrying;
use gristmill_worker::commit::{TEMPORARY, is_output_name};
use gristmill_worker::output::PartFormat;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;

impl OutputDirectory {
    /// Removes everything that the job has put into the directory and brings back what was moved aside.
    pub(crate) fn abandon(self) {
        if self.take_claim(claim::ABANDONING).is_ok() {
            self.undo(&Published::Nothing);
        }
    }

    /// Removes temporary files. The output is complete, so a failure here is ignored.
    pub(super) fn clear_away(self) -> RetiredClaim {
        if let Err(error) = remove_retrying(|| self.directory.remove_tree(self.aside())) {
            tracing::warn!(path = %self.directory.path(self.aside()).display(), %error, "could not be removed");
        }
        self.retire()
    }

    /// Gives the claim back. Lingering attempts find no directory any more. Their files are removed while the directory
    /// is still claimed, so that the next job can continue after a crash.
    fn retire(self) -> RetiredClaim {
        self.remove_built();
        if let Err(error) = self.directory.rename(TEMPORARY, &self.directory, self.retired()) {
            tracing::warn!(path = %self.directory.path(TEMPORARY).display(), %error, "could not be removed");
        }
        RetiredClaim(self)
    }

    pub(super) fn remove_built(&self) {
        let names = self.temporary.names().into_iter().flatten();
        for name in names.filter(|name| !claim::is_claim(name)) {
            let _ = self.temporary.remove_file(name);
        }
    }

    /// Undoes the output. Files that cannot be removed are left, because no caller could do better. Only files
    /// published by this job are removed: other parts in the directory are being moved aside, or belong to another
    /// user.
    pub(super) fn undo(self, published: &Published<'_>) {
        self.unpublish(published);
        self.bring_back();
        let made = self.made.then(|| self.path().to_path_buf());
        drop(self.retire());
        if let Some(path) = made {
            // Only an empty directory is removed: other files may belong to another user.
            let _ = fs::remove_dir(path);
        }
    }

    /// Removes published files. This is noted before old files come back: a process that continues after a crash must
    /// not mistake old parts, or an old `_SUCCESS`, for those of the job.
    pub(super) fn unpublish(&self, published: &Published<'_>) {
        match published {
            Published::Nothing => return,
            // In reverse order, because a directory with `_SUCCESS` counts as complete.
            Published::These(names) => {
                for (output, name) in names.iter().rev() {
                    let _ = match output {
                        None => self.directory.remove_file(name),
                        Some(output) => {
                            let directory = self.directory.directory(output.as_str());
                            directory.and_then(|directory| directory.remove_file(name))
                        }
                    };
                }
                // Only an empty directory is removed.
                for output in names.iter().filter_map(|(output, _)| *output).collect::<BTreeSet<_>>() {
                    let _ = self.directory.remove_directory(output.as_str());
                }
            }
            Published::Unknown => {
                let _ = self.directory.remove_file(SUCCESS);
                let names = self.directory.names().into_iter().flatten();
                for name in names {
                    if is_part(&name.to_string_lossy()) {
                        let _ = self.directory.remove_file(name);
                    } else if name
                        .to_str()
                        .and_then(|name| name.parse().ok())
                        .is_some_and(|name| is_output_name(&name))
                    {
                        self.unpublish_named(&name);
                    }
                }
            }
        }
        let [closing, abandoning] =
            [claim::CLOSING, claim::ABANDONING].map(|how| format!("{how}{}", self.nonce()));
        if let Err(error) = self.temporary.rename(&closing, &self.temporary, abandoning) {
            tracing::warn!(path = %self.temporary.path(closing).display(), %error, "could not be renamed");
        }
    }

    /// Removes the parts in the directory of a named output, and the directory if it is then empty.
    fn unpublish_named(&self, name: &OsStr) {
        let Ok(directory) = self.directory.directory(name) else { return };
        let names = directory.names().into_iter().flatten();
        for part in names.filter(|name| is_part(&name.to_string_lossy())) {
            let _ = directory.remove_file(part);
        }
        let _ = self.directory.remove_directory(name);
    }

    /// Brings back what was moved aside.
    fn bring_back(&self) {
        let Ok(aside) = self.directory.directory(self.aside()) else { return };
        // `_SUCCESS` comes last, because it marks the rest as complete.
        for name in success_first(aside.names().unwrap_or_default()).into_iter().rev() {
            if let Err(error) = aside.publish(&name, &self.directory, &name) {
                tracing::warn!(from = %aside.path(&name).display(), %error, "could not be brought back");
            }
        }
        let _ = self.directory.remove_directory(self.aside());
    }
}

/// A claim that was given back: the renamed directory with the claim file. Both are removed when this is dropped.
#[derive(Debug)]
pub(crate) struct RetiredClaim(OutputDirectory);

impl Drop for RetiredClaim {
    fn drop(&mut self) {
        // Some file systems keep an open file under another name. Its owner lives, so no other process takes it.
        drop(self.0.lock.take());
        let (directory, retired) = (&self.0.directory, self.0.retired());
        if let Err(error) = remove_retrying(|| directory.remove_tree(&retired)) {
            tracing::warn!(path = %directory.path(&retired).display(), %error, "could not be removed");
        }
    }
}

/// True if this is the file name of a part.
fn is_part(name: &str) -> bool {
    is_part_behind("part-", name)
}

/// True if a file name is `beginning` and the number of a part, with or without the suffix of a part format.
pub(super) fn is_part_behind(beginning: &str, name: &str) -> bool {
    let name = name.strip_suffix(PartFormat::of_name(&name.into()).suffix()).unwrap_or(name);
    name.strip_prefix(beginning)
        .is_some_and(|digits| 5 <= digits.len() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}
