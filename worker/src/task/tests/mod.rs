//! Tests of whole jobs in one thread: all maps, then all reduces, with a plain map as oracle.

mod cases;
mod divided;
mod in_file;
mod in_file_order;
mod jobs;
mod runner;
mod suspended;
