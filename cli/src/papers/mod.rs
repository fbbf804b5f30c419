//! `gristmill lab paper` and `gristmill lab verify`: the experiments of papers and their worked cases, in a program with the
//! feature `papers`.

#[cfg(not(feature = "papers"))]
mod absent;
#[cfg(feature = "papers")]
pub mod paper;
#[cfg(feature = "papers")]
pub mod verify;

#[cfg(not(feature = "papers"))]
pub use absent::{paper, verify};
