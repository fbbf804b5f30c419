//! Rules that judge everything on the papers' pages. Numbers are judged by the interval of a difference
//! (`number`), statements by conditions that data answer with yes, no or unclear (`seen`).
//!
//! Every rule can result in "fails"; `crate::tests` checks this for all of them. Not here: the measurements.

mod claimed;
mod number;
mod seen;

#[cfg(test)]
pub(crate) use claimed::Claimed;
pub(crate) use claimed::Rivals;
pub(crate) use number::{Known, KnownNumber, Model};
#[cfg(test)]
pub(crate) use seen::RUNS_MIN;
pub(crate) use seen::{
    Less, Seen, by_case, every, in_runs, keeps, log_ratio, mean_by, mean_of, paired, percent,
};
