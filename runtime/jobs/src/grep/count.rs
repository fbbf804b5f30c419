//! `grep --count`: the number of matching lines of each file.
//!
//! All counts have the same key. They reach the one reducer in the order of the input, and the counts of the splits of
//! one file are adjacent. Only one count is held in memory.

use super::pattern::LinePattern;
use gristmill_worker::prelude::*;
use serde::{Deserialize, Serialize};

/// The matching lines of one range of a file.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub(super) struct FileCount {
    pub(super) path: String,
    /// Start of the range. A later range of the same file has a larger offset; the same file named twice starts again.
    pub(super) offset: u64,
    pub(super) lines: u64,
}

impl FileCount {
    fn goes_on(&self, path: &str, offset: u64) -> bool {
        self.path == path && self.offset < offset
    }
}

pub(super) struct CountLines {
    pattern: LinePattern,
    invert: bool,
    current: Option<FileCount>,
}

impl CountLines {
    pub(super) fn new(pattern: LinePattern, invert: bool) -> Self {
        Self { pattern, invert, current: None }
    }

    fn count(&mut self, path: &str, offset: u64, lines: &[u8], out: &mut Emitter<(), FileCount>) {
        let mut found = 0;
        self.pattern.for_each_line(lines, self.invert, |_| found += 1);
        match &mut self.current {
            Some(current) if current.goes_on(path, offset) => current.lines += found,
            current => {
                let next = FileCount { path: path.to_owned(), offset, lines: found };
                if let Some(done) = current.replace(next) {
                    out.emit((), done);
                }
            }
        }
    }
}

impl Mapper for CountLines {
    type Key = ();
    type Value = FileCount;

    fn map(&mut self, record: Record<'_>, out: &mut Emitter<(), FileCount>) -> TaskResult {
        self.count(&record.source().path, record.offset(), record.bytes(), out);
        Ok(())
    }

    fn block(&mut self, block: Block<'_>, out: &mut Emitter<(), FileCount>) -> TaskResult {
        self.count(&block.source().path, block.offset(), block.bytes(), out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Emitter<(), FileCount>) -> TaskResult {
        if let Some(done) = self.current.take() {
            out.emit((), done);
        }
        Ok(())
    }
}

/// Adds up the ranges of each file.
pub(super) struct CountPerFile {
    /// True if there may be just one file, for which only the count is written.
    maybe_single: bool,
    current: Option<FileCount>,
}

impl CountPerFile {
    pub(super) fn new(one_input: bool) -> Self {
        Self { maybe_single: one_input, current: None }
    }

    /// Adds a range. Returns the previous file if `next` starts another one.
    pub(super) fn add(&mut self, next: FileCount) -> Option<FileCount> {
        match &mut self.current {
            Some(current) if current.goes_on(&next.path, next.offset) => {
                current.lines += next.lines;
                current.offset = next.offset;
                None
            }
            current => {
                let before = current.replace(next);
                self.maybe_single &= before.is_none();
                before
            }
        }
    }

    /// The last file.
    pub(super) fn take_last(&mut self) -> Option<FileCount> {
        self.current.take()
    }

    fn write(file: &FileCount, out: &mut Output) {
        if file.lines > 0 {
            out.line(format!("{}:{}", file.path, file.lines).as_bytes());
        }
    }
}

impl Reducer for CountPerFile {
    type Key = ();
    type Value = FileCount;

    fn reduce(&mut self, _key: (), counts: &mut Values<'_, (), FileCount>, out: &mut Output) -> TaskResult {
        while let Some(count) = counts.next()? {
            if let Some(done) = self.add(count) {
                Self::write(&done, out);
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Output) -> TaskResult {
        match self.take_last() {
            Some(file) if !self.maybe_single => Self::write(&file, out),
            Some(file) => out.line(file.lines.to_string().as_bytes()),
            None if self.maybe_single => out.line(b"0"),
            None => {}
        }
        Ok(())
    }
}
