//! Rules that judge everything on the papers' pages. Numbers are judged by the interval of a difference
//! (`number`), statements by conditions that data answer with yes, no or unclear (`case_verdict`).
//!
//! Every rule can result in "fails"; `crate::tests` checks this for all of them. Not here: the measurements.

mod case_verdict;
mod claimed;
mod number;

#[cfg(test)]
pub(crate) use case_verdict::RUNS_MIN;
pub(crate) use case_verdict::{
    CaseVerdict, Less, by_case, every, in_runs, keeps, log_ratio, mean_by, mean_of, paired, percent,
};
#[cfg(test)]
pub(crate) use claimed::Claimed;
pub(crate) use claimed::Rivals;
pub(crate) use number::{Known, KnownNumber, Model};
