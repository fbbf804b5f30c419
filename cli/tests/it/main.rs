//! End-to-end tests of the `gristmill` program: real processes, real sockets, real kills.
//!
//! - The jobs: `jobs` compares the standard ones with plain programs; `formats` reads what files can look like, `tables` those
//!   that hold tables by columns, `input`
//!   and `output` refuse what cannot be used, `bad_records` leaves it out, `claims` is about output directories whose job or disk fails.
//! - The engine: `shuffle` measures how far it overlaps with the maps, `lanes` whose bytes come first on a paced network,
//!   `suspend` which reduces make way, `live_policy` what a policy changes.
//! - Faults: `crash` kills processes, `restart` masters, `comeback` those whose jobs go on; `cuts` takes ways between hosts
//!   away, `drain` lets workers leave, `backups` is about slow ones; `limits` takes means of the operating system away,
//!   `disk` fills disks, `user_code` misbehaves, `words` looks at what users read then. `faults` is a table of
//!   faults and the phases at which they strike, each judged by the same ten invariants.
//! - The command line: `cli`, `top` (in a pseudo-terminal), `first_hour` (what a newcomer stumbles over), `cluster` (a master and workers that a person starts), `cluster_flags` (what those are made
//!   to be), `tokens`; `narrate` tells a job pair by pair, `history` those that have ended; without a cluster `sim` and `verify`; `compare`, `paper` and `replay`.
//! - `places`: clusters that `up` and `down` bring up and down on hosts of ssh.
//! - `stores`: inputs and outputs on object stores, against a server within the test.
//! - `streaming`: commands of Hadoop Streaming, and the program under Hadoop's names.
//! - A master that lacks room for what it must write down: `full_journal`.
//! - Security: `security` tries every door, `floods` do so thousands of times, `lies` sends workers and masters false
//!   frames, `paths` submits what reaches beyond its own files, `trust` is about files whose content is believed, `network`
//!   puts hosts into network namespaces.
//! - `walls` reads the sources: who may import whom. What the others share is in `support`.
//!
//! Single functions are tested beside their code.
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like the tests themselves")]

mod backups;
mod bad_records;
mod claims;
mod cli;
mod cluster;
mod cluster_flags;
mod comeback;
mod compare;
mod crash;
mod cuts;
mod disk;
mod doctor;
mod doors;
mod drain;
mod faults;
mod first_hour;
mod floods;
mod formats;
mod full_journal;
mod fuzz;
mod history;
mod input;
mod jobs;
mod lanes;
mod lies;
mod limits;
mod live_policy;
mod narrate;
mod network;
mod output;
mod page;
#[cfg(feature = "papers")]
mod paper;
mod paths;
mod places;
mod planning;
mod quotas;
mod replay;
mod restart;
mod security;
mod ship;
mod shuffle;
mod sim;
#[cfg(feature = "stores")]
mod stores;
mod streaming;
mod support;
mod suspend;
mod tables;
mod tokens;
mod top;
mod trust;
mod user_code;
#[cfg(feature = "papers")]
mod verify;
mod walls;
mod words;
mod written;
