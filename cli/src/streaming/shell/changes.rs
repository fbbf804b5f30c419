//! `hadoop fs -chmod`, whose rights are those of this machine.

use super::trees::{DEPTH_MAX, entries};
use super::{FileCall, Refused, io_refused};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

impl FileCall<'_> {
    /// `-chmod [-R] MODE PATH…`.
    pub(super) fn change_rights(&self) -> anyhow::Result<u8> {
        let Some((mode, names)) = self.paths.split_first().filter(|(_, names)| !names.is_empty()) else {
            return Ok(self.too_few(2));
        };
        if changed(0, mode).is_none() {
            self.refuse(&Refused(format!("chmod : mode '{mode}' does not match the expected pattern.")));
            return Ok(u8::MAX);
        }
        let call = FileCall {
            name: self.name,
            flags: self.flags.clone(),
            paths: names.to_vec(),
            places: self.places.clone(),
        };
        call.each_path(|path| Ok(io_refused(&call.uri(path), change(path, mode, call.has(&["R"]), 0))))
    }
}

fn change(path: &Path, mode: &str, recursive: bool, depth: usize) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Ok(());
    }
    // What is in a folder comes first, as the change may close the folder.
    if recursive && found.is_dir() && depth < DEPTH_MAX {
        entries(path)?.iter().try_for_each(|path| change(path, mode, true, depth + 1))?;
    }
    let mode = changed(found.permissions().mode() & 0o777, mode).ok_or(io::ErrorKind::InvalidInput)?;
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Rights after a change such as `755`, `u+x,go-w` or `a=r`; `None` if it cannot be read.
fn changed(mut rights: u32, mode: &str) -> Option<u32> {
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
            assert_eq!(changed(before, mode), after, "{mode}");
        }
    }
}
