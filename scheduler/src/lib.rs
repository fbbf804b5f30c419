//! The brain of Gristmill. It decides and does nothing itself: drivers bring facts and carry out commands.
#![doc = include_str!("../README.md")]

pub mod command;
pub mod core;
pub mod event;
pub mod ids;
pub mod job;
pub mod ledger;
pub mod placement;
pub mod plan;
pub mod policy;
pub mod units;
pub mod view;
