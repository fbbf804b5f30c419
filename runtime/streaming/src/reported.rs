//! Standard error of commands: lines for the framework, which are counted, and lines for users, which are
//! kept.

use super::fields::{LineCutter, each_line};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io::{self, Write as _};

/// Maximum number of lines of standard error in the report of a failed attempt.
const TAIL_LINES_MAX: usize = 50;

/// Maximum bytes of such a line.
const TAIL_LINE_BYTES_MAX: usize = 400;

/// Maximum bytes of all of them. The message of a failure has 4 KiB at most, and the last lines matter most.
const TAIL_BYTES_MAX: usize = 3 << 10;

/// Bytes of the end of a line.
const LINE_END_BYTES: usize = 1;

/// Maximum number of counters of one attempt. The engine has room for this many names in a task.
const COUNTERS_MAX: usize = 400;

/// Prefix of subtracted amounts, as counters of the engine do not decrease.
const MINUS: &str = "minus,";

/// Maximum bytes of a line that is kept whole.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Prefix of lines for the framework.
const PREFIX: &[u8] = b"reporter:";

/// Prefix of the bytes that a function runner has read and written, which shows that its task is complete.
const END_MARK: &str = "gristmill:end:";

/// Standard error of a command as it arrives. Lines for the framework are kept here, all others go line
/// by line to the captured output of the worker's user code.
#[derive(Debug, Default)]
pub(super) struct Talk {
    cutter: LineCutter,
    pub reported: Reported,
}

impl Talk {
    /// Handles bytes of standard error.
    pub fn push(&mut self, bytes: &[u8]) {
        let Ok(_) = self.cutter.push(bytes, |lines| each_line(lines, |line| self.reported.handle_line(line)));
        if LINE_BYTES_MAX < self.cutter.held() {
            self.end_line();
        }
    }

    /// Ends the last line, if it has no end.
    pub fn end_line(&mut self) {
        let Ok(_) = self.cutter.finish(|lines| each_line(lines, |line| self.reported.handle_line(line)));
    }
}

fn end_counts(text: &[u8]) -> Option<(u64, u64)> {
    let (read, written) = std::str::from_utf8(text).ok()?.split_once(',')?;
    Some((read.parse().ok()?, written.parse().ok()?))
}

/// Reports of a command so far.
#[derive(Debug, Default)]
pub(super) struct Reported {
    counters: BTreeMap<(String, String), i64>,
    tail: VecDeque<String>,
    /// Bytes read and written, of a command that reports them at its end.
    pub end: Option<(u64, u64)>,
}

impl Reported {
    /// Handles one line, without its end. Lines that are not for the framework go to the log.
    fn handle_line(&mut self, mut line: &[u8]) -> Result<(), Infallible> {
        // It may follow text without a line end.
        if let Some((at, counts)) = memchr::memmem::rfind(line, END_MARK.as_bytes())
            .and_then(|at| Some((at, end_counts(&line[at + END_MARK.len()..])?)))
        {
            self.end = Some(counts);
            line = &line[..at];
            if line.is_empty() {
                return Ok(());
            }
        }
        if let Some(remark) = self.remark(line) {
            // If it cannot be written, there is no reader.
            let _ = io::stderr().lock().write_all(&[line, remark, b"\n"].concat());
        }
        Ok(())
    }

    /// Counts a line for the framework, and keeps one for users. Returns the remark with which it goes to the
    /// log; `None` if it does not.
    fn remark(&mut self, line: &[u8]) -> Option<&'static [u8]> {
        let Some(rest) = line.strip_prefix(PREFIX) else {
            self.keep(line);
            return Some(b"");
        };
        let text = String::from_utf8_lossy(rest);
        if text.starts_with("status:") {
            return None;
        }
        let words: Vec<&str> = text.strip_prefix("counter:").unwrap_or_default().split(',').collect();
        let (&[group, name, _], Some(Ok(amount))) =
            (&words[..], words.last().map(|amount| amount.trim().parse::<i64>()))
        else {
            return Some(b" (not GROUP,NAME,NUMBER: ignored)");
        };
        let key = (group.to_owned(), name.to_owned());
        if self.counters.len() < COUNTERS_MAX || self.counters.contains_key(&key) {
            let sum = self.counters.entry(key).or_default();
            *sum = sum.saturating_add(amount);
        }
        None
    }

    fn keep(&mut self, line: &[u8]) {
        if self.tail.len() == TAIL_LINES_MAX {
            self.tail.pop_front();
        }
        let cut = &line[..line.len().min(TAIL_LINE_BYTES_MAX)];
        self.tail.push_back(String::from_utf8_lossy(cut).into_owned());
    }

    /// Returns the last lines for users, as many as there is room for.
    pub fn tail(&self) -> impl Iterator<Item = &str> {
        let mut room = TAIL_BYTES_MAX;
        let fits = |line: &&String| {
            let taken = line.len() + LINE_END_BYTES;
            let fits = taken <= room;
            room = room.saturating_sub(taken);
            fits
        };
        let count = self.tail.iter().rev().take_while(fits).count();
        self.tail.iter().skip(self.tail.len() - count).map(String::as_str)
    }

    /// Adds to the counters of the task, and resets them here.
    pub fn count(&mut self, mut add: impl FnMut(&str, u64)) {
        for ((group, name), amount) in std::mem::take(&mut self.counters) {
            let sign = if amount < 0 { MINUS } else { "" };
            add(&format!("{sign}{group},{name}"), amount.unsigned_abs());
        }
    }
}

/// Counter of a job: its group, its name and its sum.
pub type CounterSum = (String, String, i64);

/// Returns the counters of commands among those of a job, in the order of groups and names.
#[must_use]
pub fn counter_sums(counters: &BTreeMap<String, u64>) -> Vec<CounterSum> {
    let mut sums: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for (name, count) in counters {
        let (name, sign) = name
            .strip_prefix(MINUS)
            .filter(|rest| rest.contains(','))
            .map_or((name.as_str(), 1), |rest| (rest, -1));
        let Some(named) = name.split_once(',') else { continue };
        let sum = sums.entry(named).or_default();
        *sum = sum.saturating_add(sign * i64::try_from(*count).unwrap_or(i64::MAX));
    }
    sums.into_iter().map(|((group, name), sum)| (group.to_owned(), name.to_owned(), sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_the_framework_have_three_parts_and_a_whole_number() {
        let mut reported = Reported::default();
        let mut take = |line: &str| match reported.remark(line.as_bytes()) {
            None => "taken",
            Some(b"") => "text",
            Some(_) => "wrong",
        };
        assert_eq!(take("reporter:counter:G,n,3"), "taken");
        assert_eq!(take("reporter:counter:G,n,-5"), "taken");
        assert_eq!(take("reporter:counter:G,other one,7"), "taken");
        assert_eq!(take("reporter:status:half way"), "taken");
        assert_eq!(take("reporter:counter:G,n"), "wrong");
        assert_eq!(take("reporter:counter:G,n,1,2"), "wrong");
        assert_eq!(take("reporter:counter:G,n,many"), "wrong");
        assert_eq!(take("Traceback"), "text");
        assert_eq!(reported.tail().collect::<Vec<_>>(), ["Traceback"]);
        let mut counted = BTreeMap::new();
        reported.count(|name, n| counted.extend([(name.to_owned(), n)]));
        assert_eq!(counted, [("G,other one".to_owned(), 7), ("minus,G,n".to_owned(), 2)].into());
        counted.insert("G,n".to_owned(), 10);
        counted.insert("one of the engine".to_owned(), 1);
        let group = || "G".to_owned();
        let sums = [(group(), "n".to_owned(), 8), (group(), "other one".to_owned(), 7)];
        assert_eq!(counter_sums(&counted), sums);
    }

    #[test]
    fn last_words_are_those_that_fit_into_a_report() {
        let mut reported = Reported::default();
        for number in 0..TAIL_LINES_MAX * 2 {
            let line = format!("{number} {}", "x".repeat(TAIL_LINE_BYTES_MAX));
            reported.remark(line.as_bytes());
        }
        let tail: Vec<&str> = reported.tail().collect();
        assert_eq!(tail.len(), TAIL_BYTES_MAX / (TAIL_LINE_BYTES_MAX + LINE_END_BYTES));
        assert!(tail.last().unwrap().starts_with(&format!("{} x", TAIL_LINES_MAX * 2 - 1)));
    }
}
