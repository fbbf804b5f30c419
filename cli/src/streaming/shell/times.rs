//! `hadoop fs -touch` and `-touchz`: files that are made, and their times.

use super::{FileCall, FileOutcome, Refused, io_refused};
use gristmill_runtime::wall_time::date;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

impl FileCall<'_> {
    /// `-touch [-a] [-m] [-c] [-t yyyyMMdd:HHmmss] PATH…`.
    pub(super) fn touch(&self) -> anyhow::Result<u8> {
        let time = match self.value("t").map(|stamp| seconds_of(stamp).ok_or(stamp)) {
            None => SystemTime::now(),
            Some(Ok(seconds)) => SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
            Some(Err(stamp)) => {
                self.refuse(&Refused(format!(
                    "`{stamp}' is no time since 1970; write one of UTC as yyyyMMdd:HHmmss"
                )));
                return Ok(u8::MAX);
            }
        };
        let times = times_of(time, self.has(&["a"]), self.has(&["m"]));
        self.each_name(|name, path| {
            if !path.exists() {
                if self.has(&["c"]) {
                    return Ok(Ok(()));
                }
                if let Err(refused) = io_refused(name, File::options().append(true).create(true).open(path)) {
                    return Ok(Err(refused));
                }
            }
            // By its name: a pipe would wait to be opened.
            let touched = rustix::fs::utimensat(CWD, path, &times, AtFlags::empty());
            Ok(io_refused(name, touched.map_err(io::Error::from)))
        })
    }
}

/// The times that a file is to have: both, unless one alone is asked for.
fn times_of(time: SystemTime, accessed: bool, modified: bool) -> Timestamps {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let new = Timespec { tv_sec: since.as_secs() as i64, tv_nsec: since.subsec_nanos().into() };
    let kept = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let of = |asked: bool| if asked || accessed == modified { new } else { kept };
    Timestamps { last_access: of(accessed), last_modification: of(modified) }
}

/// `-touchz`.
pub(super) fn touch_empty(name: &str, path: &Path) -> FileOutcome {
    let is_other = fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir());
    if is_other {
        return Ok(Err(Refused(format!("`{name}': is a pipe, a socket or a device, and no file"))));
    }
    let opened = File::options().append(true).create(true).open(path);
    let length = opened.and_then(|file| {
        let length = file.metadata()?.len();
        if length == 0 {
            file.set_modified(SystemTime::now())?;
        }
        Ok(length)
    });
    Ok(io_refused(name, length).and_then(|length| match length {
        0 => Ok(()),
        _ => Err(Refused(format!("`{name}': Not a zero-length file"))),
    }))
}

/// The second since 1970 of a time of UTC as `yyyyMMdd:HHmmss`.
fn seconds_of(stamp: &str) -> Option<u64> {
    let (day, time) = stamp.split_once(':')?;
    let is_number =
        |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(day, 8) || !is_number(time, 6) {
        return None;
    }
    let (day, time): (u64, u64) = (day.parse().ok()?, time.parse().ok()?);
    let (year, month, day) = (day / 10_000, day / 100 % 100, day % 100);
    let (hour, minute, second) = (time / 10_000, time / 100 % 100, time % 100);
    if year < 1970 || !(1..=12).contains(&month) || 23 < hour || 59 < minute || 59 < second {
        return None;
    }
    // Days are counted from March of the year 0, so that leap days come last.
    let (march_year, march_month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days_before = 365 * march_year + march_year / 4 - march_year / 100 + march_year / 400;
    let days = (days_before + (153 * march_month + 2) / 5 + day).checked_sub(719_469)?;
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
    // Not the 31st of a month of thirty days.
    (date(seconds) == format!("{year:04}-{month:02}-{day:02}")).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (stamp, expected) in [
            ("19700101:000000", Some(0)),
            ("19991231:235959", Some(946_684_799)),
            ("20240229:123456", Some(1_709_210_096)),
            ("20000229:000000", Some(951_782_400)),
            ("20230229:000000", None),
            ("20230431:000000", None),
            ("20230400:000000", None),
            ("20231301:000000", None),
            ("20230101:240000", None),
            ("19691231:235959", None),
            ("2023-1-1:000000", None),
            ("20230101", None),
        ] {
            assert_eq!(seconds_of(stamp), expected, "{stamp}");
        }
    }
}
