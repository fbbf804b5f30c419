//! What drivers of Hadoop Streaming read of its log: lines with a time, a level and who speaks, as Hadoop's own have them.
//!
//! No colours and no bars, also on a terminal: programs look for these lines there.

use crate::terminal::stderr_line;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How loud a line is.
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

/// One line, of now.
pub fn record(level: Level, logger: &str, message: &str) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    line(since, level, logger, message)
}

fn line(since: Duration, level: Level, logger: &str, message: &str) -> String {
    let level = match level {
        Level::Info => "INFO",
        Level::Warn => "WARN",
        Level::Error => "ERROR",
    };
    let seconds = since.as_secs();
    let millis = since.subsec_millis();
    format!("{} {},{millis:03} {level} {logger}: {message}", date(seconds), clock(seconds))
}

/// The date of this second since 1970, in UTC.
pub fn date(seconds: u64) -> String {
    // Days are counted from March of the year 0, so that leap days come last.
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The time of day of this second since 1970, in UTC.
pub fn clock(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60)
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
        let dates = [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_164_800, "2024-02-29"),
            (4_107_542_400, "2100-03-01"),
        ];
        for (seconds, expected) in dates {
            assert_eq!(date(seconds), expected);
        }
    }
}
