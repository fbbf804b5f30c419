//! Log for drivers of Hadoop Streaming: lines with a time, a level and a logger, as in Hadoop.
//!
//! No colours and no bars, also on a terminal: programs parse these lines there.

use crate::terminal::stderr_line;
use gristmill_runtime::wall_time::{clock, date};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Level of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    Info,
    Warn,
    Error,
}

/// Writes one line.
pub fn log(level: Level, logger: &str, message: &str) {
    stderr_line(&record(level, logger, message));
}

/// Returns a line with the present time.
pub fn record(level: Level, logger: &str, message: &str) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    line(since, level, logger, message)
}

fn line(since: Duration, level: Level, logger: &str, message: &str) -> String {
    let level = format!("{level:?}").to_uppercase();
    let seconds = since.as_secs();
    let millis = since.subsec_millis();
    format!("{} {},{millis:03} {level} {logger}: {message}", date(seconds), clock(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_that_drivers_read() {
        let since = Duration::from_millis(1_795_519_412_007);
        assert_eq!(
            line(since, Level::Info, "mapreduce.Job", "Running job: job_1_0001"),
            "2026-11-24 11:23:32,007 INFO mapreduce.Job: Running job: job_1_0001"
        );
    }
}
