//! `hadoop fs -chmod [-R] MODE PATH…`, where MODE is three octal digits.

use super::{FsCall, FsError, in_hadoops_words};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use walkdir::WalkDir;

impl FsCall<'_> {
    pub(super) fn change_rights(&self) -> anyhow::Result<()> {
        let mode = self.paths[0];
        let bits = u32::from_str_radix(mode, 8).ok().filter(|_| (3..=4).contains(&mode.len()));
        let Some(bits) = bits.filter(|bits| *bits <= 0o777) else {
            let words = format!("mode '{mode}' is not supported: write octal digits, such as 755");
            return self.report(Err(FsError(words).into()));
        };
        let depth = if self.has("R") { usize::MAX } else { 0 };
        self.each(&self.paths[1..], |name, path| {
            // Entries come first, as the change may close the directory.
            for entry in WalkDir::new(path).max_depth(depth).contents_first(true) {
                let entry = in_hadoops_words(name, entry.map_err(std::io::Error::from));
                self.report(entry.map_err(anyhow::Error::from).and_then(|entry| {
                    // Links lead to files that were not named.
                    if entry.path_is_symlink() {
                        return Ok(());
                    }
                    let shown = self.names.uri(entry.path());
                    let before = in_hadoops_words(&shown, fs::metadata(entry.path()))?.permissions().mode();
                    let after = Permissions::from_mode(before & 0o7000 | bits);
                    Ok(in_hadoops_words(&shown, fs::set_permissions(entry.path(), after))?)
                }))?;
            }
            Ok(())
        })
    }
}
