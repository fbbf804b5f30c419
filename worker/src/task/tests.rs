//! Whole jobs in one thread: all maps, then all reduces, against a plain map as oracle.

mod cases;
mod jobs;
mod runner;
