//! End-to-end tests of the `gristmill` program: real processes, real sockets, real kills.
//!
//! - Jobs: `jobs` compares the standard ones with plain programs. `formats` and `tables` read files of many
//!   forms. `input` and `output` refuse unusable ones, and `bad_records` skips bad records. `claims` covers
//!   output directories whose job or disk fails.
//! - Engine: `shuffle` measures its overlap with the maps, `lanes` covers priorities on a paced network,
//!   `suspend` preempted reduces, and `live_policy` changes of the policy.
//! - Faults: `crash` kills processes, `restart` masters, and `comeback` masters whose jobs continue. `cuts`
//!   cuts routes between hosts, `drain` lets workers leave, and `backups` is about slow workers. `limits`
//!   lowers limits of the operating system, `disk` fills disks, `user_code` misbehaves, and `words` checks
//!   the messages. `faults` is a table of faults and the phases at which they are injected, each judged by the same
//!   ten invariants.
//! - Command line: `cli`, `first_hour` (mistakes of new users), `cluster` (a
//!   master and workers that a user starts), `cluster_flags` (their settings), `tokens`. `narrate` shows a
//!   job pair by pair, and `history` is about ended jobs. `sim` and `verify` need no cluster. Also `compare`,
//!   `paper` and `replay`.
//! - `places`: clusters that `up` and `down` start and stop on hosts of ssh.
//! - `stores`: inputs and outputs on object stores, against a server within the test.
//! - `streaming`: commands of Hadoop Streaming, and the program under Hadoop's names.
//! - `full_journal`: a master that lacks space for what it must record.
//! - Security: `security` tries every endpoint, and `floods` thousands of times. `lies` sends false frames to
//!   workers and masters. `paths` submits paths outside the submitter's files, `trust` is about files whose
//!   content is trusted, and `network` puts hosts into network namespaces.
//! - `walls` checks the imports in the sources. Code shared by the tests is in `support`.
//!
//! Single functions are tested next to their code.
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
mod divide;
mod doctor;
mod doors;
mod drain;
mod faults;
mod first_hour;
mod floods;
mod forecast;
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
mod shuffle;
mod sim;
#[cfg(feature = "stores")]
mod stores;
mod streaming;
mod support;
mod suspend;
#[cfg(all(feature = "formats", feature = "stores"))]
mod tables;
mod tokens;
mod trust;
mod user_code;
#[cfg(feature = "papers")]
mod verify;
mod walls;
mod words;
mod written;
