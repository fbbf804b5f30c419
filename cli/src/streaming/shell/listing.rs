//! What `hadoop fs` tells of files: lists as drivers read them, and single facts.

use super::trees::{Trail, look_at};
use super::{FileCall, FileOutcome, Refused, io_refused, look};
use crate::terminal::stdout_line;
use gristmill_runtime::wall_time::{clock, date};
use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a block of Hadoop's file system.
const BLOCK_BYTES: u64 = 128 << 20;

impl FileCall<'_> {
    pub(super) fn list(&self, path: &Path, recursive: bool) -> FileOutcome {
        let metadata = match look(path, &self.uri(path)) {
            Ok(metadata) => metadata,
            Err(refused) => return Ok(Err(refused)),
        };
        if !metadata.is_dir() || self.has(&["d"]) {
            self.list_line(path, &metadata)?;
            return Ok(Ok(()));
        }
        let mut trail = Trail::default();
        let entries = match self.enter(path, &mut trail) {
            Ok(entries) => self.ordered(entries),
            Err(refused) => return Ok(Err(refused)),
        };
        if !recursive && !entries.is_empty() && !self.has(&["C"]) {
            stdout_line(&format!("Found {} items", entries.len()))?;
        }
        self.list_entries(&entries, recursive, &mut trail)?;
        Ok(Ok(()))
    }

    /// By name; with `-t` the latest first, with `-S` the largest, with `-r` the other way round.
    fn ordered(&self, mut entries: Vec<PathBuf>) -> Vec<PathBuf> {
        let fact = |path: &PathBuf, of: fn(&Metadata) -> i64| {
            std::cmp::Reverse(fs::metadata(path).map(|found| of(&found)).unwrap_or(0))
        };
        if self.has(&["t"]) {
            entries.sort_by_key(|path| fact(path, MetadataExt::mtime));
        } else if self.has(&["S"]) {
            entries.sort_by_key(|path| fact(path, |found| i64::try_from(found.len()).unwrap_or(i64::MAX)));
        }
        if self.has(&["r"]) {
            entries.reverse();
        }
        entries
    }

    /// One that cannot be looked at does not keep the others from it.
    fn list_entries(&self, entries: &[PathBuf], recursive: bool, trail: &mut Trail) -> anyhow::Result<()> {
        for path in entries {
            let metadata = match io_refused(&self.uri(path), look_at(path)) {
                Ok(metadata) => metadata,
                Err(refused) => {
                    self.refuse(&refused);
                    continue;
                }
            };
            self.list_line(path, &metadata)?;
            if !recursive || !metadata.is_dir() {
                continue;
            }
            match self.enter(path, trail) {
                Ok(below) => {
                    self.list_entries(&self.ordered(below), true, trail)?;
                    trail.leave();
                }
                Err(refused) => self.refuse(&refused),
            }
        }
        Ok(())
    }

    fn list_line(&self, path: &Path, metadata: &Metadata) -> anyhow::Result<()> {
        if self.has(&["C"]) {
            return stdout_line(&self.uri(path));
        }
        let seconds = u64::try_from(metadata.mtime()).unwrap_or(0);
        let time = clock(seconds);
        let kind = if metadata.is_dir() { 'd' } else { '-' };
        let copies = if metadata.is_dir() { "-" } else { "1" };
        let size = self.size_text(if metadata.is_dir() { 0 } else { metadata.len() });
        stdout_line(&format!(
            "{kind}{}   {copies} {} supergroup {size:>10} {} {} {}",
            rights(metadata.permissions().mode()),
            self.places.user(),
            date(seconds),
            &time[..5],
            self.uri(path)
        ))
    }

    /// Bytes as a number, or with `-h` for people.
    pub(super) fn size_text(&self, bytes: u64) -> String {
        if !self.has(&["h"]) || bytes < 1024 {
            return bytes.to_string();
        }
        let (mut unit, mut names) = (1024_u64, "KMGTPE".chars());
        let mut name = names.next().unwrap_or_default();
        while let Some(next) = names.next().filter(|_| 1024 <= bytes / unit) {
            (unit, name) = (unit * 1024, next);
        }
        let tenths = (u128::from(bytes) * 10 + u128::from(unit) / 2) / u128::from(unit);
        match tenths % 10 {
            0 => format!("{} {name}", tenths / 10),
            rest => format!("{}.{rest} {name}", tenths / 10),
        }
    }

    /// `-stat [FORMAT] PATH…`.
    pub(super) fn stat(&self) -> anyhow::Result<u8> {
        match &self.paths[..] {
            [format, paths @ ..] if format.contains('%') => {
                let call = self.with_paths(paths);
                call.each_path(|path| call.show_stat(path, format))
            }
            _ => self.each_path(|path| self.show_stat(path, "%y")),
        }
    }

    fn show_stat(&self, path: &Path, format: &str) -> FileOutcome {
        let metadata = match look(path, &self.uri(path)) {
            Ok(metadata) => metadata,
            Err(refused) => return Ok(Err(refused)),
        };
        let [seconds, accessed] =
            [metadata.mtime(), metadata.atime()].map(|seconds| u64::try_from(seconds).unwrap_or(0));
        let (size, block) = if metadata.is_dir() { (0, 0) } else { (metadata.len(), BLOCK_BYTES) };
        let mut text = String::new();
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                text.push(letter);
                continue;
            }
            match letters.next() {
                Some('a') => text.push_str(&format!("{:o}", metadata.permissions().mode() & 0o777)),
                Some('A') => text.push_str(&rights(metadata.permissions().mode())),
                Some('b') => text.push_str(&size.to_string()),
                Some('F') => text.push_str(if metadata.is_dir() { "directory" } else { "regular file" }),
                Some('g') => text.push_str("supergroup"),
                Some('n') => text.push_str(&path.file_name().unwrap_or_default().to_string_lossy()),
                Some('o') => text.push_str(&block.to_string()),
                Some('r') => text.push(if metadata.is_dir() { '0' } else { '1' }),
                Some('u') => text.push_str(self.places.user()),
                Some('x') => text.push_str(&format!("{} {}", date(accessed), clock(accessed))),
                Some('X') => text.push_str(&format!("{accessed}000")),
                Some('y') => text.push_str(&format!("{} {}", date(seconds), clock(seconds))),
                Some('Y') => text.push_str(&format!("{seconds}000")),
                Some(other) => text.push(other),
                None => text.push('%'),
            }
        }
        stdout_line(&text)?;
        Ok(Ok(()))
    }

    /// `-df`: the room of the disk on which a file lies.
    pub(super) fn show_room(&self, path: &Path) -> FileOutcome {
        let room = match rustix::fs::statvfs(path) {
            Ok(room) => room,
            Err(error) => return Ok(Err(Refused(format!("`{}': {error}", self.uri(path))))),
        };
        let [size, free] = [room.f_blocks, room.f_bavail].map(|blocks| blocks.saturating_mul(room.f_frsize));
        let used = size.saturating_sub(free);
        let share = (used * 100).checked_div(size).unwrap_or(0);
        let [size, used, free] = [size, used, free].map(|bytes| self.size_text(bytes));
        stdout_line(&format!(
            "{:<24} {:>16} {:>16} {:>16}  Use%",
            "Filesystem", "Size", "Used", "Available"
        ))?;
        stdout_line(&format!("{:<24} {size:>16} {used:>16} {free:>16}  {share:>3}%", self.uri(path)))?;
        Ok(Ok(()))
    }
}

fn rights(mode: u32) -> String {
    const LETTERS: [char; 9] = ['r', 'w', 'x', 'r', 'w', 'x', 'r', 'w', 'x'];
    LETTERS
        .iter()
        .enumerate()
        .map(|(at, letter)| if mode >> (8 - at) & 1 == 1 { *letter } else { '-' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_nine_letters() {
        assert_eq!(rights(0o100_754), "rwxr-xr--");
    }
}
