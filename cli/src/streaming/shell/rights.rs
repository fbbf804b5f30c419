//! `hadoop fs -chmod [-R] MODE PATH…`.

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
        if changed(0, false, mode).is_none() {
            let words = format!("mode '{mode}' does not match the expected pattern.");
            return self.report(Err(FsError(words).into()));
        }
        // A link is followed only if the name is the link itself, not if it matches a pattern.
        self.each(&self.paths[1..], |name, path| {
            let is_named = path_of(&self.names, name).is_ok_and(|named| named == path);
            let flags = if is_named { OFlags::empty() } else { OFlags::NOFOLLOW };
            self.change(CWD, path, path, mode, flags)
        })
    }

    /// Changes a path below an open directory, and with `-R` all below it. Uses handles, so that a name
    /// replaced by a link meanwhile is not followed.
    fn change(
        &self,
        parent: impl AsFd,
        name: &Path,
        path: &Path,
        mode: &str,
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
        // Entries come first, as the change may make the directory inaccessible.
        if self.has("R") && found.is_dir() {
            for entry in in_hadoops_words(&shown, entries(&own))? {
                let entry = Path::new(entry.file_name().unwrap_or_default());
                self.report(self.change(&opened, entry, &path.join(entry), mode, OFlags::NOFOLLOW))?;
            }
        }
        let rights = changed(found.permissions().mode() & 0o7777, found.is_dir(), mode).unwrap_or_default();
        Ok(in_hadoops_words(&shown, fs::set_permissions(&own, Permissions::from_mode(rights)))?)
    }
}

/// Returns the permissions after a change such as `755`, `u+x,go-w` or `a=rX`; `None` if it is invalid. Bits
/// above 0o777 stay.
fn changed(mut rights: u32, is_directory: bool, mode: &str) -> Option<u32> {
    if mode.bytes().all(|byte| byte.is_ascii_digit()) {
        let digits = u32::from_str_radix(mode, 8).ok().filter(|digits| *digits <= 0o777);
        return digits.filter(|_| (3..=4).contains(&mode.len())).map(|digits| rights & !0o777 | digits);
    }
    for change in mode.split(',') {
        let at = change.find(['+', '-', '='])?;
        let (classes, letters) = (&change[..at], &change[at + 1..]);
        let mut mask = 0;
        for class in if classes.is_empty() { "a" } else { classes }.chars() {
            mask |= match class {
                'u' => 0o700,
                'g' => 0o070,
                'o' => 0o007,
                'a' => 0o777,
                _ => return None,
            };
        }
        let mut bits = 0;
        for letter in letters.chars() {
            bits |= match letter {
                'r' => 0o444,
                'w' => 0o222,
                'X' if !is_directory && rights & 0o111 == 0 => 0,
                'x' | 'X' => 0o111,
                _ => return None,
            };
        }
        rights = match change.as_bytes()[at] {
            b'+' => rights | bits & mask,
            b'-' => rights & !(bits & mask),
            _ => rights & !mask | bits & mask,
        };
    }
    Some(rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_change_as_letters_and_digits_say() {
        for (before, mode, after) in [
            (0o644, "a+X", Some(0o644)),
            (0o744, "a+X", Some(0o755)),
            (0o644, "755", Some(0o755)),
            (0o1777, "0700", Some(0o1700)),
            (0o777, "go-w,o-x", Some(0o754)),
            (0o000, "a=r", Some(0o444)),
            (0o640, "+x", Some(0o751)),
            (0o1777, "o=r", Some(0o1774)),
            (0o644, "7", None),
            (0o644, "2755", None),
            (0o644, "888", None),
            (0o644, "u+z", None),
            (0o644, "", None),
        ] {
            assert_eq!(changed(before, false, mode), after, "{mode}");
        }
        assert_eq!(changed(0o640, true, "u=rwX,go=X"), Some(0o711));
    }
}
