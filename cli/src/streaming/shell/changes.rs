//! `hadoop fs -chmod`, whose rights are those of this machine.

use super::trees::entries;
use super::{FileCall, Refused, io_refused};
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

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
        let set = || {
            let rights = changed(found.permissions().mode() & 0o777, found.is_dir(), mode);
            let rights = rights.ok_or_else(|| io::ErrorKind::InvalidInput.into());
            rights.and_then(|rights| fs::set_permissions(path, Permissions::from_mode(rights)))
        };
        // What is in a folder comes first, as the change may close the folder; or open it.
        if self.has(&["R"]) && found.is_dir() {
            let below = match entries(path) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    set().and_then(|()| entries(path))
                }
                below => below,
            };
            for path in io_refused(&name, below)? {
                if let Err(refused) = self.change(&path, fs::symlink_metadata(&path), mode) {
                    self.refuse(&refused);
                }
            }
        }
        io_refused(&name, set())
    }
}

/// Rights after a change such as `755`, `u+x,go-w` or `a=rX`; `None` if it cannot be read.
fn changed(mut rights: u32, is_folder: bool, mode: &str) -> Option<u32> {
    if !mode.is_empty() && mode.bytes().all(|byte| (b'0'..=b'7').contains(&byte)) {
        // What stands in front of nine bits, such as the sticky one, is not kept here.
        return u32::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o1777).map(|mode| mode & 0o777);
    }
    for change in mode.split(',') {
        let at = change.find(['+', '-', '='])?;
        let (whose, what) = (&change[..at], &change[at + 1..]);
        let mut whom = 0;
        for letter in if whose.is_empty() { "a" } else { whose }.chars() {
            whom |= match letter {
                'u' => 0o700,
                'g' => 0o070,
                'o' => 0o007,
                'a' => 0o777,
                _ => return None,
            };
        }
        let mut bits = 0;
        for letter in what.chars() {
            bits |= match letter {
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
            (0o777, "1777", Some(0o777)),
            (0o644, "888", None),
            (0o644, "u+z", None),
            (0o644, "", None),
        ] {
            assert_eq!(changed(before, false, mode), after, "{mode}");
        }
        assert_eq!(changed(0o640, true, "u=rwX,go=X"), Some(0o711));
    }
}
