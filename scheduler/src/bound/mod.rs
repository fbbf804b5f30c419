//! Bounds that no schedule can beat, and optima of small instances: what policies are judged against.

pub mod optimum;
pub mod overlap;
