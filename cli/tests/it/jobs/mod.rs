//! The standard jobs against plain programs: always on generated data, and on real data if it exists.

mod grep;
mod join;
mod sort;
mod wordcount;
