//! The standard jobs against plain programs: on real data where it is there, on generated data always.
//!
//! Deliberately not here: odd inputs (`formats`), faults (`crash`).

mod grep;
mod join;
mod sort;
mod wordcount;
