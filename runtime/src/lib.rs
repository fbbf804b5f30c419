//! The assembled system around the scheduler (`gristmill-scheduler`) and the worker (`gristmill-worker`).
//!
//! It contains the live [`master`], the embedded [`cluster`], the [`client`] and its [`submit`], the standard [`jobs`],
//! journals and their [`replay`]. Programs use it through the package `gristmill`.

pub mod api;
pub mod client;
pub mod cluster;
mod cluster_view;
pub mod critical_path;
pub mod deciders;
pub mod journal;
pub mod master;
pub mod out_of_memory;
pub mod output_dir;
mod owner;
pub mod plural;
pub mod prepared;
pub mod rate;
pub mod registry;
mod removal;
pub mod replay;
mod role;
mod sample;
pub mod scratch;
mod standard_input;
pub mod submit;
mod submitter;
pub mod testing;
pub mod wall_time;

/// Everything a job needs, for `use gristmill::prelude::*`.
///
/// The crates `clap`, `serde` and `anyhow` are included, so that `#[derive(clap::Args)]` and `anyhow::Result` work
/// without listing them in `Cargo.toml`. Serde's derives need `serde` there, though; see the first example of the
/// package `gristmill`.
pub mod prelude {
    pub use crate::client::{Client, JobReport};
    pub use crate::registry::{Registry, Rounds};
    pub use crate::submit::JobOptions;
    pub use anyhow;
    pub use clap;
    pub use gristmill_worker::prelude::*;
    pub use serde;
    pub use serde::{Deserialize, Serialize};
}

/// Colours of all pages, as CSS custom properties for light and dark.
pub const PAGE_TOKENS: &str = include_str!("master/page/tokens.css");

pub use gristmill_jobs::{self as jobs, generate, size, verify_sort};
pub use gristmill_worker::error_text::chain;
pub use gristmill_worker::exit;
