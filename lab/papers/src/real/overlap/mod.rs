//! The overlap paper on real execution: progress of three jobs through map and shuffle compared with both
//! of its models, and its policies where both slots and network are scarce.
//!
//! Not here: the models themselves and the same policies in them (`crate::overlap`).

pub(super) mod beside_models;
mod figure_4;
pub(super) mod policies;

use super::RealContext;
use crate::Paper;
use crate::words::{Words, holes};

pub(super) static WORDS: Words = Words::new(include_str!("../overlap.toml"));

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    let mut sections = vec![figure_4::section(context)?];
    for load in context.scaled(vec![0.8], vec![0.6, 0.85], vec![0.5, 0.7, 0.85]) {
        sections.push(policies::at(context, load)?);
    }
    Ok(WORDS.paper("overlap", holes![], sections))
}
