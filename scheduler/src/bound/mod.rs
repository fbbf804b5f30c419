//! Lower bounds of all schedules, and optima of small instances, as references for policies.

pub mod optimum;
pub mod overlap;
