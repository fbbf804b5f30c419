//! Fault simulator: the real state of the master and its core, with simulated workers, in virtual time, on one thread,
//! from a seed.
//!
//! The workers follow the rules of the agent and use its frames, fetch plan, store and segments. The routes between
//! them behave like TCP connections: what is sent on one arrives in order or is lost with it. A run draws a cluster,
//! jobs, deciders and a list of faults. In liveness mode the faults stop, and then every job must end within a bound
//! with nothing left behind. In safety mode they never stop. In both modes an oracle that knows the expected results of
//! the jobs checks parts, counters and reasons of failure. One seed of five has a theme (`Theme`) that hardly ever
//! arises by chance.
//!
//! `FAULT_SEED=N` repeats one run and prints its scenario; with `FAULT_TRACE=1` it also prints each arrival.
//! `FAULT_SEEDS=FROM..TO` runs many seeds. A failing run is shrunk: faults are left out one after the other as long as
//! it still fails.
//!
//! In a third of the runs the master keeps a recovery file, is killed, and another continues.
//!
//! Not simulated: threads and disks of workers, and the submitters' use of an output.

mod actions;
mod exchange;
mod fault;
mod gather;
mod holds;
mod injections;
mod judge;
mod oracle;
mod process;
mod recovery;
mod scenario;
mod shrink;
mod slots;
mod tests;
mod transport;
mod world;
