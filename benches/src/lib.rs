//! Measurements of Gristmill.
//!
//! Whole processes are measured by the program `gristmill-bench`, which `scripts/bench.sh` sets up and starts; single
//! parts by micro benchmarks (`cargo bench`). Results are archived below `results`. This crate is not for use by
//! others.
