//! How everything on the papers' pages is judged: numbers by the interval of a difference (`number`), statements by
//! conditions that data answer with yes, no or nothing (`seen`).
//!
//! Every rule can come out as "fails", which `refuted` asks of all of them. Not here: what is measured.

mod number;
#[cfg(test)]
pub(in crate::paper) mod refuted;
mod seen;

pub(in crate::paper) use number::{Beside, Known, Model};
#[cfg(test)]
pub(in crate::paper) use seen::RUNS_MIN;
pub(in crate::paper) use seen::{Seen, by_case, every, in_runs, log_ratio, mean_of, paired, percent};
