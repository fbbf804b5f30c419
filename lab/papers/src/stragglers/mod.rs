//! The stragglers thesis: time of the slowest of many workers, and its consequences for splitting work
//! and buying workers.
//!
//! Not here: the mathematics and the splits (`gristmill_scheduler::queueing`, `gristmill_scheduler::placement`).

mod common;
mod equal;
mod equations;
mod fitted;
mod lemmas;
mod numbers;
mod simulated;
mod sojourn;
mod splits;
#[cfg(test)]
pub(super) mod tests;

use crate::prelude::*;

/// Text of the page: titles, captions and claims. Its holes, `{name}`, are filled with results by the sections.
pub(crate) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));

/// Runs all experiments.
///
/// # Errors
/// A computation that fails, which is a bug.
pub fn run(context: &Context<'_>) -> anyhow::Result<Paper> {
    (context.progress)("distributions fitted to task times");
    let mut sections = vec![fitted::generated(context)?, fitted::measured()?];
    (context.progress)("the largest of many times");
    sections.push(equal::figure_4_1()?);
    sections.extend(sojourn::figures_6()?);
    (context.progress)("queues simulated task by task");
    sections.push(simulated::section(context)?);
    (context.progress)("splits against the optimum");
    sections.extend(splits::sections(context)?);
    (context.progress)("numbers and mixes of workers");
    sections.push(numbers::figure_7_1()?);
    for (figure, traffic, lambda) in [(2, "high", 25.0), (3, "medium", 5.0), (4, "low", 1.0)] {
        sections.push(numbers::section(figure, traffic, lambda)?);
    }
    (context.progress)("a stream of jobs on a simulated cluster");
    sections.push(simulated::stream(context)?);
    sections.push(lemmas::section());
    sections.push(equations::section()?);
    Ok(WORDS.paper("stragglers", holes![], sections))
}
