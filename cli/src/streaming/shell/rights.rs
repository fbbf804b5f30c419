//! `hadoop fs -chmod [-R] MODE PATH…`, where MODE is three octal digits.

use super::{FsCall, FsError, in_hadoops_words, path_of};
use crate::streaming::glob::entries;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

impl FsCall<'_> {
    pub(super) fn change_rights(&self) -> anyhow::Result<()> {
        let mode = self.paths[0];
        let bits = u32::from_str_radix(mode, 8).ok().filter(|_| (3..=4).contains(&mode.len()));
        let Some(bits) = bits.filter(|bits| *bits <= 0o777) else {
            let words = format!("mode '{mode}' is not supported: write octal digits, such as 755");
            return self.report(Err(FsError(words).into()));
        };
        // A link is followed only where it is named itself, not where it matches a pattern.
        self.each(&self.paths[1..], |name, path| {
            let is_named = path_of(&self.names, name).is_ok_and(|named| named == path);
            let flags = if is_named { OFlags::empty() } else { OFlags::NOFOLLOW };
            self.change(CWD, path, path, bits, flags)
        })
    }

    /// Changes a path below an open directory, and with `-R` all below it. Goes by handles, so that no name that becomes
    /// a link meanwhile is followed.
    fn change(
        &self,
        parent: impl AsFd,
        name: &Path,
        path: &Path,
        bits: u32,
        flags: OFlags,
    ) -> anyhow::Result<()> {
        let shown = self.names.uri(path);
        let opened = openat(parent, name, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty());
        let opened = File::from(in_hadoops_words(&shown, opened.map_err(io::Error::from))?);
        let found = in_hadoops_words(&shown, opened.metadata())?;
        if found.is_symlink() {
            return Ok(());
        }
        let own = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        // Entries come first, as the change may close the directory.
        if self.has("R") && found.is_dir() {
            for entry in in_hadoops_words(&shown, entries(&own))? {
                let entry = Path::new(entry.file_name().unwrap_or_default());
                self.report(self.change(&opened, entry, &path.join(entry), bits, OFlags::NOFOLLOW))?;
            }
        }
        let after = Permissions::from_mode(found.permissions().mode() & 0o7000 | bits);
        Ok(in_hadoops_words(&shown, fs::set_permissions(&own, after))?)
    }
}
