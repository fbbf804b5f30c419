//! How everything on the papers' pages is judged: numbers by the interval of a difference (`number`), statements by
//! conditions that data answer with yes, no or nothing (`seen`).
//!
//! Every rule can come out as "fails", which `crate::tests` checks of all of them. Not here: what is measured.

mod claimed;
mod number;
mod seen;

#[cfg(test)]
pub(crate) use claimed::Claimed;
pub(crate) use claimed::Rivals;
pub(crate) use number::{Beside, Known, Model};
#[cfg(test)]
pub(crate) use seen::RUNS_MIN;
pub(crate) use seen::{Less, Seen, by_case, every, in_runs, keeps, log_ratio, mean_of, paired, percent};
