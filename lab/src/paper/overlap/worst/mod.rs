//! Sections 3 and 4: makespan, the bounds of Corollaries 4 and 6 and of Theorems 3 and 5, and the examples that show
//! that they are tight.
//!
//! Not here: proofs. Random instances can only refute.

pub(super) mod random;
pub(super) mod tight;

use super::super::{Context, Section};

/// Largest relative excess that is rounding.
const ROUNDING: f64 = 1e-9;

pub(super) fn sections(context: &Context<'_>) -> anyhow::Result<Vec<Section>> {
    (context.progress)("overlap: tight examples and random instances");
    Ok(vec![random::section(context)?, tight::corollary_4(context)?, tight::corollary_6(context)?])
}
