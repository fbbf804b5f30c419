//! End-to-end tests of the `gristmill` program: real processes, real sockets, real kills.
//!
//! A guided tour: `jobs` compares the standard jobs with plain programs; `formats` reads what files can look like;
//! `input` and `output` refuse what cannot be used; `claims` is about outputs whose job or disk fails them; `shuffle` measures how far it overlaps with the maps;
//! `lanes` whose bytes come first on a network that is paced; `suspend` which reduces make way; `crash` kills processes wherever it hurts, `restart` masters, `limits` takes means of the operating system away, `disk` fills
//! disks, `user_code` lets user code misbehave; `cli` is the command line, `cluster` a master and workers that a person starts, `cluster_flags` what those are made to be; `sim` and
//! `verify` need neither; `security` knocks at every door, `floods` do so thousands of times, `lies` tells workers and masters what is not so, `paths` submits what
//! reaches beyond its own files, `trust` is about files whose word is taken, and `network` puts hosts into network namespaces. `walls`
//! reads the sources: who may import whom. What the others share is in `support`.
//!
//! Deliberately not here: single functions, which are tested beside their code.
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail like the tests themselves")]

mod claims;
mod cli;
mod cluster;
mod cluster_flags;
mod compare;
mod crash;
mod disk;
mod floods;
mod formats;
mod input;
mod jobs;
mod lanes;
mod lies;
mod limits;
mod live_policy;
mod network;
mod output;
mod paper;
mod paths;
mod replay;
mod restart;
mod security;
mod shuffle;
mod sim;
mod support;
mod suspend;
mod tokens;
mod trust;
mod user_code;
mod verify;
mod walls;
mod words;
