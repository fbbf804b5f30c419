//! Bounds that no schedule can beat, and optima of small instances: what policies are judged against.
//!
//! Not here: policies; nothing here decides anything.

pub mod optimum;
pub mod overlap;
pub mod srpt;
