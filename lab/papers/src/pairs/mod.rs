//! The experiments of the pairs paper: its examples and theorems, Tables 2 and 3, figures 2 to 4.
//!
//! Orders of jobs that are all present at the start are computed in the paper's closed form, streams of
//! jobs in the fluid model. Both use the scheduler's policies. Not here: the layout of the page.

mod examples;
mod offline;
mod online;
mod printed;
mod rules;
mod sweeps;
#[cfg(test)]
pub(super) mod tests;
mod theorems;

use crate::prelude::*;

/// Text of the page: titles, captions and claims. Its holes, `{name}`, are filled with results by the sections.
pub(crate) static WORDS: PaperWords = PaperWords::new(include_str!("words.toml"));

/// Runs the experiments.
///
/// # Errors
/// A simulation that fails, with its policy and seed.
pub fn run(context: &Context<'_>) -> anyhow::Result<Paper> {
    (context.progress)("pairs: examples and theorems");
    let mut sections =
        vec![examples::figure_1(), examples::weak_pairs(), examples::n_couple(), theorems::section(context)];
    (context.progress)("pairs: Table 2");
    sections.push(offline::table_2(context));
    (context.progress)("pairs: figures 2 and 3");
    sections.push(sweeps::figure_2(context));
    sections.push(sweeps::figure_3(context));
    (context.progress)("pairs: Table 3 and figure 4");
    let streams = online::Streams::run(context)?;
    sections.push(streams.figure_4());
    sections.push(streams.table_3());
    Ok(WORDS.paper("pairs", holes![], sections))
}
