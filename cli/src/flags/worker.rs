//! Flags of worker processes, shared by `run`, which starts its own, and by `cluster worker`.
//!
//! The two read their memory in different ways. The meaning of the settings is in `gristmill_worker::settings`.

use crate::settings::{Settings, SpeedSetting};
use crate::usage::usage;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gristmill_runtime::cluster::WorkerProcesses;
use gristmill_runtime::rate::parse_rate;
use gristmill_runtime::size::parse_bytes;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::protocol::{SLOTS_MAX, Slots};
use gristmill_worker::settings::{Shuffle, WatchedJob, WorkerSettings};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of worker processes of one machine.
const WORKERS_MAX: u32 = 1000;

/// Maximum number of speeds.
const SPEEDS_MAX: usize = 1000;

/// The slowest pace, with the speed of the slots: a millisecond of computing takes ten seconds.
const SLOW_MAX: f64 = 10_000.0;

/// Maximum time that a job can be slowed down to.
const WATCHED_MAX: Span = Span::whole_seconds(3600);

/// The slowest slots: a second of work takes 1,000 s.
const SPEED_MIN: f64 = 0.001;

/// Number and settings of workers, as typed.
#[derive(Args, Clone, Debug, Default)]
pub struct WorkerFlags {
    /// Worker processes to start [default: one for each core]
    ///
    /// `run` and `streaming` start one with a slot for each core if the code cannot crash a worker.
    #[arg(long, global = true, value_name = "N")]
    pub workers: Option<u32>,
    /// Slots of each worker [default: 1]
    ///
    /// With one slot, user code that aborts ends no other attempt.
    #[arg(long, global = true, value_name = "N")]
    pub slots: Option<u32>,
    /// Slots of each worker for maps only, with --reduce-slots
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    pub map_slots: Option<u32>,
    /// Slots of each worker for reduces only, with --map-slots
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    pub reduce_slots: Option<u32>,
    /// Speed of slots: at 0.5 they take twice as long; a list such as 1,0.5 is for the workers in turn
    #[arg(long, global = true, value_name = "S,...", hide_short_help = true)]
    pub speed: Option<String>,
    /// Slow jobs down to watch them: with 30s a job takes about that long; with 5x its computing takes five times as
    /// long. A worker of --speed 0.5 takes twice the time given here
    #[arg(long, global = true, value_name = "TIME|TIMES", hide_short_help = true)]
    pub slow: Option<String>,
    /// Limit each worker's shuffle, in and out: 50MB/s, 64MiB/s, 400Mbit/s
    #[arg(long, global = true, value_name = "RATE", hide_short_help = true)]
    pub nic_rate: Option<String>,
    #[command(flatten)]
    pub disk: DiskFlags,
    /// Transport of segments [default: auto]
    #[arg(long, global = true, value_parser = shuffles(), hide_short_help = true)]
    pub shuffle: Option<Shuffle>,
}

/// Disks of workers, as typed.
#[derive(Args, Clone, Debug, Default)]
pub struct DiskFlags {
    /// Directory for what does not fit in memory; several allowed [default: the system's temporary directory]
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true)]
    pub spill_dir: Vec<PathBuf>,
    /// Disk space that spills leave free in the file system of each spill directory [default: 1GiB]
    #[arg(long, global = true, value_name = "SIZE", hide_short_help = true)]
    pub disk_reserve: Option<String>,
}

impl DiskFlags {
    /// Returns the named spill directories, which must be different ones under all names.
    ///
    /// # Errors
    /// One directory under two names.
    pub fn spill_dirs(&self, settings: &Settings) -> anyhow::Result<Vec<PathBuf>> {
        let named = match &self.spill_dir[..] {
            [] => settings.spill_dir.clone().unwrap_or_default(),
            named => named.to_vec(),
        };
        let mut seen: Vec<(PathBuf, &Path)> = Vec::with_capacity(named.len());
        for path in &named {
            // A missing one is refused when it is used.
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            if let Some((_, before)) = seen.iter().find(|(other, _)| *other == real) {
                let (before, path) = (before.display(), path.display());
                return Err(usage(format!(
                    "--spill-dir {path} is the same directory as {before}: name each directory once"
                )));
            }
            seen.push((real, path));
        }
        Ok(named)
    }

    /// Returns the space that stays free.
    ///
    /// # Errors
    /// An invalid size.
    pub fn reserve(&self, settings: &Settings) -> anyhow::Result<Bytes> {
        let named = self.disk_reserve.as_ref().or(settings.disk_reserve.as_ref());
        let wrong = |error| usage(format!("--disk-reserve: {error}"));
        named.map_or(Ok(WorkerSettings::DISK_RESERVE), |text| parse_bytes(text).map(Bytes).map_err(wrong))
    }
}

/// Parser of the values of `--shuffle`.
fn shuffles() -> impl TypedValueParser<Value = Shuffle> {
    let auto = "HTTP for those of other workers; a worker reads its own in place";
    let values = [
        PossibleValue::new("auto").help(auto),
        PossibleValue::new("http").help("HTTP for all, also a worker's own"),
    ];
    PossibleValuesParser::new(values).map(|text| if text == "http" { Shuffle::Http } else { Shuffle::Auto })
}

impl WorkerFlags {
    /// Number of workers.
    ///
    /// # Errors
    /// None, or too many.
    pub fn count(&self, settings: &Settings) -> anyhow::Result<u32> {
        match self.workers.or(settings.workers).unwrap_or_else(cores) {
            workers @ 1..=WORKERS_MAX => Ok(workers),
            workers => Err(usage(format!("--workers {workers} must be from 1 to {WORKERS_MAX}"))),
        }
    }

    /// One process with a slot for each core, unless a flag or setting of each worker is set.
    #[must_use]
    pub fn together(&self, settings: &Settings) -> Self {
        let numbers = [self.workers, self.slots, self.map_slots, self.reduce_slots];
        let of_file = [settings.workers, settings.slots, settings.map_slots, settings.reduce_slots];
        let named = numbers.iter().chain(&of_file).any(Option::is_some)
            || self.speed.is_some()
            || settings.speed.is_some()
            || self.slow.is_some()
            || self.nic_rate.is_some()
            || settings.nic_rate.is_some();
        match named {
            true => self.clone(),
            false => Self { workers: Some(1), slots: Some(cores().min(SLOTS_MAX)), ..self.clone() },
        }
    }

    /// Settings of workers that have this memory each.
    ///
    /// # Errors
    /// Invalid numbers.
    pub fn workers(&self, settings: &Settings, memory: Bytes) -> anyhow::Result<WorkerProcesses> {
        let count = self.count(settings)?;
        let slots = self.slots(settings)?;
        let speeds = self.speeds(settings)?;
        let rate = self.nic_rate.as_ref().or(settings.nic_rate.as_ref());
        let rate = rate.map(|text| parse_rate(text).map_err(|error| usage(format!("--nic-rate: {error}"))));
        let nic_bytes_per_second = rate.transpose()?;
        let spill_dirs = self.disk.spill_dirs(settings)?;
        let watched = self.slow.as_deref().and_then(parse_watched);
        let watched = watched.map(|takes| WatchedJob { takes, slots: count.saturating_mul(slots.total()) });
        let slow = self.slow.as_deref().filter(|_| watched.is_none()).map(parse_slow).transpose()?;
        // Speeds in the file are for another purpose.
        let is_for_this = self.slow.is_none() || self.speed.is_some();
        let speeds = if is_for_this { speeds } else { Vec::new() };
        if let Some(speed) = speeds.iter().find(|speed| SLOW_MAX < slow.unwrap_or(1.0) / *speed) {
            return Err(usage(format!("--slow with --speed {speed} is more than {SLOW_MAX} times as slow")));
        }
        let each = WorkerSettings {
            slow: slow.unwrap_or(1.0),
            watched,
            nic_bytes_per_second,
            disk_reserve: self.disk.reserve(settings)?,
            shuffle: self.shuffle.or(settings.shuffle).unwrap_or_default(),
            ..WorkerSettings::new(slots, memory)
        };
        Ok(WorkerProcesses { count, each, speeds, spill_dirs })
    }

    fn speeds(&self, settings: &Settings) -> anyhow::Result<Vec<f64>> {
        let speeds = match (&self.speed, &settings.speed) {
            (Some(text), _) => parse_speeds(text)?,
            (None, Some(SpeedSetting::All(speed))) => vec![*speed],
            (None, Some(SpeedSetting::InTurn(speeds))) => speeds.clone(),
            (None, None) => Vec::new(),
        };
        if let Some(speed) = speeds.iter().find(|speed| !(SPEED_MIN..=1.0).contains(*speed)) {
            return Err(usage(format!(
                "--speed {speed} must be from {SPEED_MIN} to 1: workers can be made slower, not faster"
            )));
        }
        if SPEEDS_MAX < speeds.len() {
            return Err(usage(format!("--speed lists {} speeds, more than {SPEEDS_MAX}", speeds.len())));
        }
        Ok(speeds)
    }

    /// Slots of a worker. Typed slots hide the other kind of slots in the file.
    fn slots(&self, settings: &Settings) -> anyhow::Result<Slots> {
        let typed_pools = self.map_slots.is_some() || self.reduce_slots.is_some();
        let (slots, map, reduce) = match (self.slots, typed_pools) {
            (Some(slots), true) => (Some(slots), self.map_slots, self.reduce_slots),
            (Some(slots), false) => (Some(slots), None, None),
            (None, true) => {
                let reduce = self.reduce_slots.or(settings.reduce_slots);
                (None, self.map_slots.or(settings.map_slots), reduce)
            }
            (None, false) => (settings.slots, settings.map_slots, settings.reduce_slots),
        };
        let check = |flag: &str, slots: u32| match slots {
            1..=SLOTS_MAX => Ok(slots),
            _ => Err(usage(format!("{flag} {slots} must be from 1 to {SLOTS_MAX}"))),
        };
        match (slots, map, reduce) {
            (slots, None, None) => Ok(Slots::Unified(check("--slots", slots.unwrap_or(1))?)),
            (None, Some(map), Some(reduce)) => {
                let (map, reduce) = (check("--map-slots", map)?, check("--reduce-slots", reduce)?);
                Ok(Slots::Pools { map, reduce })
            }
            (Some(_), _, _) => Err(usage(
                "slots are either shared, with --slots, or separate, with --map-slots and --reduce-slots"
                    .to_owned(),
            )),
            (None, Some(_), None) => Err(usage("--map-slots needs --reduce-slots too".to_owned())),
            (None, None, Some(_)) => Err(usage("--reduce-slots needs --map-slots too".to_owned())),
        }
    }
}

/// Number of cores that this process may use.
fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// Reads a factor: `5x`. A number alone could mean seconds.
fn parse_slow(text: &str) -> anyhow::Result<f64> {
    let times = text.strip_suffix(['x', 'X']).and_then(|times| times.parse::<f64>().ok());
    match times.filter(|times| (1.0..=SLOW_MAX).contains(times)) {
        Some(times) => Ok(times),
        None => Err(usage(format!(
            "--slow {text} must be a time of up to {WATCHED_MAX}, such as 30s, or from 1x to {SLOW_MAX}x, such as 5x"
        ))),
    }
}

/// Reads the target time of a job: `30s`, always with a unit.
fn parse_watched(text: &str) -> Option<Duration> {
    let span = text.parse::<Span>().ok().filter(|span| 0 < span.0 && *span <= WATCHED_MAX);
    span.map(|span| Duration::from_nanos(span.0))
}

fn parse_speeds(text: &str) -> anyhow::Result<Vec<f64>> {
    let parse = |piece: &str| {
        piece.trim().parse::<f64>().map_err(|_| {
            usage(format!(
                "--speed {text}: `{piece}` is not a number; write one such as 0.5, or a list such as 1,0.5"
            ))
        })
    };
    text.split(',').map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;

    fn workers(flags: &WorkerFlags, settings: &str) -> Result<WorkerProcesses, String> {
        let settings: Settings = toml::from_str(settings).unwrap();
        flags.workers(&settings, Bytes::mib(64)).map_err(|error| error.to_string())
    }

    fn flags() -> WorkerFlags {
        WorkerFlags::default()
    }

    #[test]
    fn workers_have_one_slot_of_full_speed_and_no_rate_unless_told_otherwise() {
        let workers = workers(&flags(), "").unwrap();
        assert_eq!(workers.each.slots, Slots::Unified(1));
        assert_eq!((workers.each.speed, workers.speeds), (1.0, Vec::new()));
        assert_eq!(workers.each.nic_bytes_per_second, None);
    }

    #[test]
    fn slots_are_for_both_kinds_or_apart() {
        let slots = |flags: &WorkerFlags, settings: &str| workers(flags, settings).unwrap().each.slots;
        let pools = |map, reduce| Slots::Pools { map, reduce };
        let apart = WorkerFlags { map_slots: Some(2), reduce_slots: Some(1), ..flags() };
        assert_eq!(slots(&apart, "slots = 7"), pools(2, 1), "what is typed wins");
        assert_eq!(slots(&apart, "slots = 7").total(), 3);
        let both = WorkerFlags { slots: Some(4), ..flags() };
        let filed = "map-slots = 2\nreduce-slots = 2";
        assert_eq!(slots(&both, filed), Slots::Unified(4), "what is typed wins");
        let filed = "map-slots = 2\nreduce-slots = 3";
        assert_eq!(slots(&flags(), filed), pools(2, 3));
        assert_eq!(slots(&WorkerFlags { map_slots: Some(5), ..flags() }, filed), pools(5, 3));
    }

    #[test]
    fn half_a_pair_of_pools_is_refused() {
        for (flags, settings, word) in [
            (WorkerFlags { map_slots: Some(2), ..flags() }, "", "--map-slots needs --reduce-slots"),
            (WorkerFlags { reduce_slots: Some(2), ..flags() }, "", "--reduce-slots needs --map-slots"),
            (WorkerFlags { slots: Some(1), map_slots: Some(1), ..flags() }, "", "either shared"),
            (flags(), "slots = 1\nmap-slots = 2\nreduce-slots = 2", "either shared"),
            (WorkerFlags { map_slots: Some(0), reduce_slots: Some(1), ..flags() }, "", "--map-slots 0"),
            (WorkerFlags { slots: Some(1001), ..flags() }, "", "--slots 1001"),
        ] {
            let error = workers(&flags, settings).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn speeds_are_one_number_or_a_list_above_0_and_at_most_1() {
        let speeds = |text: &str| {
            workers(&WorkerFlags { speed: Some(text.to_owned()), ..flags() }, "speed = 0.25")
                .map(|workers| workers.speeds)
        };
        assert_eq!(speeds("0.8"), Ok(vec![0.8]));
        assert_eq!(speeds("1, 1,0.5,0.5"), Ok(vec![1.0, 1.0, 0.5, 0.5]));
        for text in ["0", "-1", "1.01", "2", "nan", "inf", "", "1,,1", "fast", "0.0001"] {
            let error = speeds(text).unwrap_err();
            assert!(error.contains("--speed"), "{text}: {error}");
        }
        assert_eq!(workers(&flags(), "speed = 0.25").unwrap().speeds, [0.25]);
        assert_eq!(workers(&flags(), "speed = [1, 0.5]").unwrap().speeds, [1.0, 0.5]);
    }

    #[test]
    fn nic_rates_are_read_from_flag_and_file() {
        let rate = |text: &str| {
            let flags = WorkerFlags { nic_rate: Some(text.to_owned()), ..flags() };
            workers(&flags, "nic-rate = '1MB/s'")
                .map(|workers| workers.each.nic_bytes_per_second.map(NonZeroU64::get))
        };
        assert_eq!(rate("50MB/s"), Ok(Some(50_000_000)));
        assert!(rate("0B").unwrap_err().contains("--nic-rate: 0B is not a rate"));
        assert!(rate("100").unwrap_err().contains("--nic-rate: 100 has no unit"));
        let filed = workers(&flags(), "nic-rate = '1MB/s'").unwrap();
        assert_eq!(filed.each.nic_bytes_per_second, NonZeroU64::new(1_000_000));
    }
}
