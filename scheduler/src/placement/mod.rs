//! Placements: the worker of a task, and the homes of partitions.
//!
//! The policy chooses the job (`policy`). A placement reads the ledger and cannot change it; the core checks every
//! choice.

pub mod catalogue;
mod dm_ep;
mod fair_split;
pub mod g_m_1;
mod interface;
mod m_ep;
mod optimal;
pub mod pull;
mod pure_deterministic;
mod pure_stochastic;
pub mod split;

pub use catalogue::{PlaceError, Placed, by_name, catalogue, place};
pub use interface::{AssignmentRequest, Choice, HomeRequest, Offer, Placement};
pub use pull::Pull;
