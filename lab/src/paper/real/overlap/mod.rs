//! The overlap paper on real execution: how three jobs go through map and shuffle beside both of its models, and its
//! policies on slots and a network that are both scarce.
//!
//! Not here: the models themselves and the same policies in them (`paper::overlap`).

pub(super) mod beside_models;
mod figure_4;
pub(super) mod policies;

use super::RealContext;
use crate::paper::Paper;

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    let mut sections = vec![figure_4::section(context)?];
    for load in context.scaled(vec![0.8], vec![0.6, 0.85], vec![0.5, 0.7, 0.85]) {
        sections.push(policies::at(context, load)?);
    }
    Ok(Paper {
        name: "overlap",
        title: "M. Lin, L. Zhang, A. Wierman, J. Tan: Joint Optimization of Overlapping Phases in MapReduce \
                (Performance Evaluation 2013)",
        about: vec![
            "The paper models map and shuffle as two stations that a job passes at once: what is mapped can \
             be shuffled. It shows three jobs on a Hadoop cluster beside that model and beside a \
             traditional tandem, and then policies in the model. Here both run on real processes: master, \
             workers, HTTP shuffle whose rate is held down at each worker, so that the network is scarce."
                .to_owned(),
        ],
        sections,
    })
}
