//! The fault simulator: the master's state as it is, with its core, between simulated workers, in virtual time, on one
//! thread, from a seed.
//!
//! The workers follow the rules of the agent and use its frames, fetch plan, store and segments; the ways between them
//! behave like TCP connections: what is sent on one arrives in order or is lost with it. A run draws a cluster, jobs,
//! who decides, and a list of faults. In liveness mode the faults stop, and then every job ends within a bound with
//! nothing left behind; in safety mode they never do. In both an oracle that knows what the jobs were meant to do
//! judges parts, counters and reasons of failure. One seed of five is about one thing (`Theme`), which hardly ever comes
//! about by chance.
//!
//! `FAULT_SEED=N` repeats one run and says what was drawn, with `FAULT_TRACE=1` also what arrives where;
//! `FAULT_SEEDS=FROM..TO` tries many. A run that fails is
//! shrunk: faults are left out one after the other as long as it still fails.
//!
//! In a third of the runs the master writes down what it does, is killed, and another goes on.
//!
//! Not here: threads and disks of workers, and what submitters do with an output.

mod deeds;
mod exchange;
mod fault;
mod gather;
mod holds;
mod judge;
mod oracle;
mod process;
mod recovery;
mod scenario;
mod shrink;
mod slots;
mod strikes;
mod tests;
mod transport;
mod world;
