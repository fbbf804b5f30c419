//! `hadoop fs -chmod`, whose rights are those of this machine.

use super::trees::entries;
use super::{FileCall, Refused, io_refused};
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

impl FileCall<'_> {
    /// `-chmod [-R] MODE PATH…`.
    pub(super) fn change_rights(&self) -> anyhow::Result<u8> {
        let Some((mode, names)) = self.paths.split_first().filter(|(_, names)| !names.is_empty()) else {
            return Ok(self.too_few(2));
        };
        if changed(0, false, mode).is_none() {
            self.refuse(&Refused(format!("chmod : mode '{mode}' does not match the expected pattern.")));
            return Ok(u8::MAX);
        }
        let call = self.with_paths(names);
        call.each_path(|path| Ok(call.change(path, call.look_behind(names, path), mode)))
    }

    /// Links are followed where they are named themselves, and are passed over in folders.
    fn change(&self, path: &Path, found: io::Result<Metadata>, mode: &str) -> Result<(), Refused> {
        let name = self.uri(path);
        let found = io_refused(&name, found)?;
        if found.is_symlink() {
            return Ok(());
        }
        let opened = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        self.change_opened(path, io_refused(&name, opened.map_err(io::Error::from))?, mode)
    }

    /// Changes what was opened, and with `-R` what is below it: by handles, so that no name that becomes a link is followed.
    fn change_opened(&self, path: &Path, opened: OwnedFd, mode: &str) -> Result<(), Refused> {
        let name = self.uri(path);
        let here = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        let opened = File::from(opened);
        let found = io_refused(&name, opened.metadata())?;
        if found.is_symlink() {
            return Ok(());
        }
        let set = || {
            let rights = changed(found.permissions().mode() & 0o7777, found.is_dir(), mode);
            let rights = rights.ok_or_else(|| io::ErrorKind::InvalidInput.into());
            rights.and_then(|rights| fs::set_permissions(&here, Permissions::from_mode(rights)))
        };
        // What is in a folder comes first, as the change may close the folder; or open it.
        if self.has(&["R"]) && found.is_dir() {
            let below = match entries(&here) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    set().and_then(|()| entries(&here))
                }
                below => below,
            };
            for entry in io_refused(&name, below)? {
                let Some(entry) = entry.file_name() else { continue };
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let below = path.join(entry);
                let entry = openat(&opened, entry, flags, Mode::empty()).map_err(io::Error::from);
                let entry = io_refused(&self.uri(&below), entry);
                if let Err(refused) = entry.and_then(|entry| self.change_opened(&below, entry, mode)) {
                    self.refuse(&refused);
                }
            }
        }
        io_refused(&name, set())
    }
}

/// The bits of a folder by which what is made in it belongs to its owner or group. No mode of Hadoop names them.
const SET_IDS: u32 = 0o6000;

/// The bit of a folder by which only owners remove what is in it.
const STICKY: u32 = 0o1000;

/// Rights after a change such as `755`, `u+x,go-w`, `+t` or `a=rX`; `None` if it cannot be read. Digits are three, or four
/// with one for the sticky bit.
fn changed(mut rights: u32, is_folder: bool, mode: &str) -> Option<u32> {
    if mode.bytes().all(|byte| byte.is_ascii_digit()) {
        let digits = u32::from_str_radix(mode, 8).ok().filter(|digits| *digits <= 0o1777);
        let kept = if is_folder { rights & SET_IDS } else { 0 };
        return digits.filter(|_| (3..=4).contains(&mode.len())).map(|digits| kept | digits);
    }
    for change in mode.split(',') {
        let at = change.find(['+', '-', '='])?;
        let (whose, what) = (&change[..at], &change[at + 1..]);
        let mut whom = 0;
        for letter in if whose.is_empty() { "a" } else { whose }.chars() {
            whom |= match letter {
                'u' => 0o700,
                'g' => 0o070,
                // As in Hadoop and chmod, whoever speaks of others speaks of the sticky bit.
                'o' => 0o007 | STICKY,
                'a' => 0o777 | STICKY,
                _ => return None,
            };
        }
        let mut bits = 0;
        for letter in what.chars() {
            bits |= match letter {
                't' => STICKY,
                'r' => 0o444,
                'w' => 0o222,
                // Where somebody may already, and into folders.
                'X' if !is_folder && rights & 0o111 == 0 => 0,
                'x' | 'X' => 0o111,
                _ => return None,
            };
        }
        rights = match change.as_bytes()[at] {
            b'+' => rights | (bits & whom),
            b'-' => rights & !(bits & whom),
            _ => (rights & !whom) | (bits & whom),
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
            (0o644, "u+x", Some(0o744)),
            (0o777, "go-w,o-x", Some(0o754)),
            (0o000, "a=r", Some(0o444)),
            (0o640, "+x", Some(0o751)),
            (0o777, "1777", Some(0o1777)),
            (0o1777, "777", Some(0o777)),
            (0o1777, "g-w", Some(0o1757)),
            (0o755, "+t", Some(0o1755)),
            (0o1777, "o=r", Some(0o774)),
            (0o1777, "g=r,u=rw", Some(0o1647)),
            (0o1777, "=rwx", Some(0o777)),
            (0o777, "u+t", Some(0o777)),
            (0o1777, "ug-t", Some(0o1777)),
            (0o777, "o=rxt", Some(0o1775)),
            (0o1777, "o-wt", Some(0o775)),
            (0o644, "7", None),
            (0o644, "2755", None),
            (0o644, "00755", None),
            (0o644, "888", None),
            (0o644, "u+z", None),
            (0o644, "", None),
        ] {
            assert_eq!(changed(before, false, mode), after, "{mode}");
        }
        assert_eq!(changed(0o640, true, "u=rwX,go=X"), Some(0o711));
        assert_eq!([0o2775, 0o4644].map(|before| changed(before, true, "750")), [Some(0o2750), Some(0o4750)]);
        assert_eq!(changed(0o2775, true, "o-x"), Some(0o2774));
    }
}
