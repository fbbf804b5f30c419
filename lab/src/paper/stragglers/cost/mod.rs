//! Chapter 7: the best number of workers (figure 7-1) and the best mix for a budget (figures 7-2 to 7-4).
//!
//! Not here: the lemmas (`scheduler::queueing::sizing`).

pub(super) mod mixes;
pub(super) mod numbers;

use crate::paper::Section;

pub(super) fn sections() -> anyhow::Result<Vec<Section>> {
    Ok(vec![
        numbers::figure_7_1()?,
        mixes::section(2, "high", 25.0)?,
        mixes::section(3, "medium", 5.0)?,
        mixes::section(4, "low", 1.0)?,
    ])
}
