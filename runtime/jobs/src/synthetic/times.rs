//! Distributions of times, as users type them.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Longest time that is drawn: the tails of some distributions are unbounded.
const SECONDS_MAX: f64 = 24.0 * 3600.0;

/// Distribution of the durations of tasks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeLaw {
    /// Text as typed.
    text: String,
    law: TimeDistribution,
}

/// Distribution, with times in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
enum TimeDistribution {
    Fixed { time: f64 },
    Exponential { mean: f64 },
    Delayed { least: f64, mean: f64 },
    Uniform { least: f64, most: f64 },
    LogNormal { median: f64, sigma: f64 },
}

/// A text that is not a distribution of times.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a law of times: write 50ms, exp:50ms, delayed:10ms,40ms, uniform:10ms..90ms or \
     lognormal:50ms,1.2, with times of up to 24h in us, ms, s, m or h"
)]
pub struct TimeLawError {
    text: String,
}

impl TimeLaw {
    /// Mean of the distribution.
    pub(super) fn mean(&self) -> Duration {
        let seconds = match self.law {
            TimeDistribution::Fixed { time } => time,
            TimeDistribution::Exponential { mean } => mean,
            TimeDistribution::Delayed { least, mean } => least + mean,
            TimeDistribution::Uniform { least, most } => (least + most) / 2.0,
            TimeDistribution::LogNormal { median, sigma } => median * (sigma * sigma / 2.0).exp(),
        };
        Duration::from_secs_f64(seconds.clamp(0.0, SECONDS_MAX))
    }

    /// Draws a time.
    pub(super) fn draw(&self, draws: &mut ChaCha8Rng) -> Duration {
        let seconds = match self.law {
            TimeDistribution::Fixed { time } => time,
            TimeDistribution::Exponential { mean } => {
                let unit: f64 = Exp1.sample(draws);
                mean * unit
            }
            TimeDistribution::Delayed { least, mean } => {
                let unit: f64 = Exp1.sample(draws);
                least + mean * unit
            }
            TimeDistribution::Uniform { least, most } => least + (most - least) * draws.random::<f64>(),
            TimeDistribution::LogNormal { median, sigma } => {
                let normal: f64 = StandardNormal.sample(draws);
                median * (sigma * normal).exp()
            }
        };
        Duration::from_secs_f64(seconds.clamp(0.0, SECONDS_MAX))
    }
}

impl TimeDistribution {
    fn parse(text: &str) -> Option<Self> {
        Some(match text.split_once(':') {
            None => TimeDistribution::Fixed { time: seconds(text)? },
            Some(("exp", mean)) => TimeDistribution::Exponential { mean: seconds(mean)? },
            Some(("delayed", parameters)) => {
                let (least, mean) = parameters.split_once(',')?;
                TimeDistribution::Delayed { least: seconds(least)?, mean: seconds(mean)? }
            }
            Some(("uniform", range)) => {
                let (least, most) = range.split_once("..")?;
                let (least, most) = (seconds(least)?, seconds(most)?);
                (least <= most).then_some(TimeDistribution::Uniform { least, most })?
            }
            Some(("lognormal", parameters)) => {
                let (median, sigma) = parameters.split_once(',')?;
                let sigma = decimal(sigma)?;
                (sigma <= 10.0).then_some(TimeDistribution::LogNormal { median: seconds(median)?, sigma })?
            }
            Some(_) => return None,
        })
    }
}

/// A time with its unit, in seconds.
fn seconds(text: &str) -> Option<f64> {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    decimal(number).map(|number| number * unit).filter(|seconds| *seconds <= SECONDS_MAX)
}

/// Digits, with an optional point; the standard parser also accepts signs, exponents and `inf`.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| plain)
}

impl FromStr for TimeLaw {
    type Err = TimeLawError;

    fn from_str(text: &str) -> Result<Self, TimeLawError> {
        let law = TimeDistribution::parse(text).ok_or_else(|| TimeLawError { text: text.to_owned() })?;
        Ok(Self { text: text.to_owned(), law })
    }
}

impl TryFrom<String> for TimeLaw {
    type Error = TimeLawError;

    fn try_from(text: String) -> Result<Self, TimeLawError> {
        text.parse()
    }
}

impl From<TimeLaw> for String {
    fn from(law: TimeLaw) -> String {
        law.text
    }
}

impl fmt::Display for TimeLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    /// Mean and median of 20,000 draws, in milliseconds.
    fn mean_and_median(text: &str) -> (f64, f64) {
        let law: TimeLaw = text.parse().unwrap();
        let mut draws = ChaCha8Rng::seed_from_u64(7);
        let mut times: Vec<f64> = (0..20_000).map(|_| law.draw(&mut draws).as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        (times.iter().sum::<f64>() / 20_000.0, times[10_000])
    }

    fn check(text: &str, mean: f64, median: f64) {
        let (found_mean, found_median) = mean_and_median(text);
        assert!((found_mean / mean - 1.0).abs() < 0.05, "{text}: mean {found_mean} ms, not {mean}");
        assert!((found_median / median - 1.0).abs() < 0.05, "{text}: median {found_median} ms, not {median}");
        let stated = text.parse::<TimeLaw>().unwrap().mean().as_secs_f64() * 1e3;
        assert!((found_mean / stated - 1.0).abs() < 0.05, "{text}: mean {found_mean} ms, stated {stated}");
    }

    #[test]
    fn times_follow_their_law() {
        check("50ms", 50.0, 50.0);
        check("exp:50ms", 50.0, 50.0 * std::f64::consts::LN_2);
        check("delayed:30ms,20ms", 50.0, 30.0 + 20.0 * std::f64::consts::LN_2);
        check("uniform:10ms..90ms", 50.0, 50.0);
        check("lognormal:50ms,0.8", 50.0 * (0.32_f64).exp(), 50.0);
    }

    #[test]
    fn units_are_from_microseconds_to_hours() {
        for (text, milliseconds) in
            [("250us", 0.25), ("1.5s", 1500.0), ("2m", 120_000.0), ("1h", 3_600_000.0), ("0ms", 0.0)]
        {
            let law: TimeLaw = text.parse().unwrap();
            let drawn = law.draw(&mut ChaCha8Rng::seed_from_u64(7)).as_secs_f64() * 1e3;
            assert!((drawn - milliseconds).abs() < 1e-6, "{text}: {drawn} ms");
        }
    }

    #[test]
    fn texts_that_are_no_law_are_refused() {
        for text in [
            "",
            "50",
            "ms",
            "-1ms",
            "1e3ms",
            "25h",
            "exp:",
            "exp:50",
            "gauss:50ms",
            "delayed:10ms",
            "delayed:10ms,",
            "uniform:10ms",
            "uniform:90ms..10ms",
            "lognormal:50ms",
            "lognormal:50ms,",
            "lognormal:50ms,-1",
            "lognormal:50ms,11",
            "1.2.3ms",
            "infs",
        ] {
            assert_eq!(text.parse::<TimeLaw>(), Err(TimeLawError { text: text.to_owned() }), "{text}");
        }
    }
}
