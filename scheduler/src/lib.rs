//! Scheduler of Gristmill. It only decides: drivers send events to it and carry out its commands.
#![doc = include_str!("../README.md")]

pub mod catalogue;
pub mod command;
pub mod core;
pub mod estimate;
pub mod event;
pub mod ids;
pub mod job;
pub mod ledger;
mod matching;
pub mod metrics;
pub mod placement;
pub mod plan;
pub mod policy;
pub mod queueing;
pub mod rules;
pub mod sim;
pub mod station;
pub mod units;
pub mod view;
pub mod workload;
