//! Time, machine and duration of a run: everything that differs between two runs of the same command.
//!
//! Not here: anything that results depend on.

use super::number;
use serde::Serialize;
use std::env::consts::{ARCH, OS};
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};
use time::OffsetDateTime;

/// Circumstances of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Circumstances {
    /// Command line of the run.
    pub command: String,
    /// End of the run, in UTC.
    pub date: String,
    /// Processor, number of cores, memory and system.
    pub machine: String,
    /// Duration of each paper, in seconds.
    pub seconds: Vec<(String, f64)>,
}

impl Circumstances {
    /// Returns the circumstances of this process, now.
    #[must_use]
    pub fn now(command: String, seconds: Vec<(String, f64)>) -> Self {
        Self { command, date: written(OffsetDateTime::now_utc()), machine: machine(), seconds }
    }

    /// Describes the circumstances in a few sentences.
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

/// Formats a date as `2026-11-21 09:30 UTC`.
fn written(date: OffsetDateTime) -> String {
    let (year, month, day) = date.to_calendar_date();
    format!("{year}-{:02}-{day:02} {:02}:{:02} UTC", u8::from(month), date.hour(), date.minute())
}

/// Describes this machine, as far as it can be detected.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let looks = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(looks).ok();
    let brand = system.as_ref().and_then(|system| Some(system.cpus().first()?.brand().to_owned()));
    let processor = brand.filter(|brand| !brand.is_empty()).unwrap_or_else(|| ARCH.to_owned());
    let mut words = format!("{processor}, {cores} {}", if cores == 1 { "core" } else { "cores" });
    if let Some(bytes) = system.map(|system| system.total_memory()).filter(|bytes| 0 < *bytes) {
        words.push_str(&format!(", {:.1} GiB", bytes as f64 / (1_u64 << 30) as f64));
    }
    format!("{words}, {OS}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(written(OffsetDateTime::from_unix_timestamp(seconds).unwrap()), expected);
        }
    }

    #[test]
    fn machine_is_named_with_its_cores_and_memory() {
        let words = machine();
        assert!(words.contains(" core") && words.contains(" GiB") && words.ends_with(OS), "{words}");
    }
}
