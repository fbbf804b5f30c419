//! Fault injection on real processes. A cluster has a proxy for every link, a table lists faults and the
//! phases at which they are injected, and one function judges the result.
//!
//! - `proxy` is a link, and `cluster` puts one in front of every process.
//! - `phase` and `row` are the axes of the table. Its rows are in `masters`, `processes`, `network`, `memory`
//!   and `disks` (with `shim`).
//! - `cell` runs one cell, `facts` collects the results in a `run`, and `invariants` judges them.
//! - `soak` draws faults at random for some time.
//! - `menu` reads which faults are tested elsewhere, and which are not tested.

mod cell;
mod cluster;
mod disks;
mod facts;
mod invariants;
mod masters;
mod memory;
mod menu;
mod network;
mod phase;
mod processes;
pub mod proxy;
mod row;
mod run;
pub mod shim;
mod soak;
