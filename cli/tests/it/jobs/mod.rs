//! The standard jobs against plain programs: on real data where it is there, on generated data always.

mod grep;
mod join;
mod sort;
mod wordcount;
