//! Faults on purpose, on real processes: a cluster whose every link is a proxy, a table of faults and the phases at which
//! they strike, and one function that judges what is left.
//!
//! `proxy` is a link and `cluster` puts one before everybody; `phase` and `row` are the axes of the table, whose rows stand
//! in `masters`, `processes`, `network`, `memory` and `disks` (with `shim`); `cell` runs one, `facts` gathers what is left of it in a `run`,
//! `invariants` judges. `soak` draws faults at random for a while. `menu` reads what is tried elsewhere, and what is not.

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
