//! Quantities with their unit in the type: times, spans, bytes.
//!
//! Wall-clock time is not covered. [`Time`] counts from the start of its master.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// Point in time, in nanoseconds since the master (or the simulation) started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Time(pub u64);

/// Duration in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Span(pub u64);

/// Number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Bytes(pub u64);

/// Maximum number of map tasks of one job.
pub const MAPS_MAX: u32 = 1_000_000;

/// Maximum number of reduce tasks of one job.
pub const REDUCES_MAX: u32 = 100_000;

/// Decodes a number of map tasks, before memory is allocated by it.
///
/// # Errors
/// More than [`MAPS_MAX`].
pub fn decode_maps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    decode_count(deserializer, "maps", MAPS_MAX)
}

/// Decodes a number of reduce tasks, before memory is allocated by it.
///
/// # Errors
/// More than [`REDUCES_MAX`].
pub fn decode_reduces<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    decode_count(deserializer, "reduces", REDUCES_MAX)
}

fn decode_count<'de, D: Deserializer<'de>>(
    deserializer: D,
    of: &'static str,
    max: u32,
) -> Result<u32, D::Error> {
    let count = u32::deserialize(deserializer)?;
    let refused = || D::Error::custom(format!("{count} {of} are more than the {max} that a job can have"));
    (count <= max).then_some(count).ok_or_else(refused)
}

impl Time {
    /// Start of the master.
    pub const ZERO: Time = Time(0);

    /// Returns the time passed since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Returns the seconds since the start of the master.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Span {
    /// Creates a span of whole milliseconds.
    #[must_use]
    pub const fn milliseconds(ms: u64) -> Span {
        Span(ms * 1_000_000)
    }

    /// Creates a span of whole seconds.
    #[must_use]
    pub const fn whole_seconds(s: u64) -> Span {
        Span(s * 1_000_000_000)
    }

    /// Returns the span in seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// Error of parsing a text that is not a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a length of time such as 1s, 0.5s, 100ms or 10us")]
pub struct SpanError;

impl FromStr for Span {
    type Err = SpanError;

    /// Parses a number of `s`, `ms`, `us` or `min`, at least 0; to the nanosecond.
    fn from_str(text: &str) -> Result<Span, SpanError> {
        let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor = match unit {
            "s" => 1e9,
            "ms" => 1e6,
            "us" => 1e3,
            "min" => 60e9,
            _ => return Err(SpanError),
        };
        let ns = number.trim().parse::<f64>().map_err(|_| SpanError)? * factor;
        if ns.is_finite() && 0.0 <= ns { Ok(Span(ns.round() as u64)) } else { Err(SpanError) }
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// Creates a number of whole kibibytes (1,024 bytes).
    #[must_use]
    pub const fn kib(n: u64) -> Bytes {
        Bytes(n << 10)
    }

    /// Creates a number of whole mebibytes (1,048,576 bytes).
    #[must_use]
    pub const fn mib(n: u64) -> Bytes {
        Bytes(n << 20)
    }

    /// Creates a number of whole gibibytes (1,073,741,824 bytes).
    #[must_use]
    pub const fn gib(n: u64) -> Bytes {
        Bytes(n << 30)
    }

    /// Returns the number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(all: I) -> Bytes {
        all.fold(Bytes::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", self.seconds())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns if ns < 1_000 => write!(f, "{ns} ns"),
            ns if ns < 1_000_000 => write!(f, "{:.1} µs", ns as f64 / 1e3),
            ns if ns < 1_000_000_000 => write!(f, "{:.1} ms", ns as f64 / 1e6),
            ns => write!(f, "{:.2} s", ns as f64 / 1e9),
        }
    }
}

impl fmt::Display for Bytes {
    /// Formats in binary units with one decimal, `1.5 MiB`; in whole bytes below 1 KiB.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1023.95 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_print_with_the_unit_a_person_would_choose() {
        assert_eq!(Bytes(999).to_string(), "999 B");
        assert_eq!(Bytes::mib(64).to_string(), "64.0 MiB");
        assert_eq!(Bytes((1 << 20) - 1).to_string(), "1.0 MiB");
        assert_eq!(Span::milliseconds(1500).to_string(), "1.50 s");
        assert_eq!(Span(42_000).to_string(), "42.0 µs");
    }

    #[test]
    fn spans_are_read_with_their_unit_alone() {
        for (text, ns) in
            [("1s", 1_000_000_000), ("0.5s", 500_000_000), ("100ms", 100_000_000), ("2min", 120_000_000_000)]
        {
            assert_eq!(text.parse(), Ok(Span(ns)), "{text}");
        }
        for text in ["", "s", "5", "-1s", "1h", "inf", "nan", "1 s s"] {
            assert_eq!(text.parse::<Span>(), Err(SpanError), "{text}");
        }
    }
}
