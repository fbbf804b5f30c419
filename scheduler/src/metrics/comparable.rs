//! Limits from which on a run is not comparable with others because its slots held each other up, or deserves a remark.
//!
//! `lab compare` has the curves of a run and judges each moment.

/// Fraction of a run's time with more working slots than cores from which on it is not comparable, percent.
pub const OVERCOMMITTED_MAX: f64 = 5.0;

/// Fraction of its time on a processor from which on an attempt counts as working and not as sleeping. It is low
/// because attempts that compete for processors get less than they want.
pub const WORKING_MIN: f64 = 0.25;

/// Fraction of all cores from which on they count as saturated at a moment.
pub const SATURATED_MIN: f64 = 0.9;

/// Fraction of the cores' time used by other processes that deserves a remark, percent.
pub const OTHERS_BUSY_MAX: f64 = 50.0;

/// Lateness of an arrival that deserves a remark, milliseconds.
pub const LATENESS_MAX_MS: f64 = 100.0;
