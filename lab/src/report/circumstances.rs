//! When, where and how fast a run was: all that differs between two runs of the same command.
//!
//! Not here: anything that results depend on.

use super::number;
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// Circumstances of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Circumstances {
    /// The command as it was given.
    pub command: String,
    /// When it ended, in UTC.
    pub date: String,
    /// Processor, number of cores, memory and system.
    pub machine: String,
    /// Seconds for each paper.
    pub seconds: Vec<(String, f64)>,
}

impl Circumstances {
    /// Of this process, now.
    #[must_use]
    pub fn now(command: String, seconds: Vec<(String, f64)>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { command, date: date(since.as_secs()), machine: machine(), seconds }
    }

    /// In a few sentences.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let total: f64 = self.seconds.iter().map(|(_, seconds)| seconds).sum();
        let each: Vec<String> = self
            .seconds
            .iter()
            .map(|(name, seconds)| format!("{name} {}", number::number(*seconds)))
            .collect();
        vec![
            format!("Run by `{}`", self.command),
            self.date.clone(),
            self.machine.clone(),
            format!("{} s in all ({})", number::number(total), each.join(", ")),
        ]
    }
}

/// Seconds since 1970 as `2026-11-21 09:30 UTC`.
fn date(seconds: u64) -> String {
    let (mut days, rest) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while 365 + u64::from(leap(year)) <= days {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while lengths[month] <= days {
        days -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02} {:02}:{:02} UTC", month + 1, days + 1, rest / 3600, rest / 60 % 60)
}

/// What runs this, as far as it tells.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let line = |file: &str, name: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let found = text.lines().find(|line| line.starts_with(name))?;
        Some(found.split_once(':')?.1.trim().to_owned())
    };
    let processor = line("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let mut words = format!("{processor}, {cores} {}", if cores == 1 { "core" } else { "cores" });
    let kilobytes = line("/proc/meminfo", "MemTotal");
    let kilobytes = kilobytes.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    if let Some(kilobytes) = kilobytes {
        words.push_str(&format!(", {:.1} GiB", kilobytes / (1024.0 * 1024.0)));
    }
    format!("{words}, {}", std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_795_253_400, "2026-11-21 09:30 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(date(seconds), expected);
        }
    }
}
