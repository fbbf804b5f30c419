//! From when on a run is not comparable with others, because its slots held each other up, or worth a word.
//!
//! `compare` has the curves of a run and judges each moment; `run` has the sums over a job alone and judges its mean.

/// The part of a run's time with more working slots than cores from which on it is not comparable, percent.
pub const OVERCOMMITTED_MAX: f64 = 5.0;

/// A part of its time on a processor from which on an attempt counts as working and not as sleeping. Attempts that fight
/// for processors get less than they want, so it is low.
pub const WORKING_MIN: f64 = 0.25;

/// The part of all cores from which on they count as used up at a moment.
pub const SATURATED_MIN: f64 = 0.9;

/// The same in the mean over a job, whose beginning and end use less.
pub const SATURATED_MEAN_MIN: f64 = 0.7;

/// Busy slots for each core, in the mean over a job, from which on they count as too many; a little more than 1 is within
/// the measurement.
pub const CROWD_MIN: f64 = 1.1;

/// The part of the cores' time used by others than slots that is worth a word, percent.
pub const OTHERS_BUSY_MAX: f64 = 50.0;

/// Lateness of an arrival that is worth a word, milliseconds.
pub const LATENESS_MAX_MS: f64 = 100.0;
