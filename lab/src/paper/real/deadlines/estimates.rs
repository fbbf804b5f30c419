//! Experiment one: how well the sizes of the paper's applications are estimated while they run alone.

use super::super::RealContext;
use super::super::common::{blocks, policies, sleeping};
use super::twins::twins;
use super::{WORKERS, pooled};
use crate::compare::JobRun;
use crate::compare::statistics::mean;
use crate::paper::{Block, Claim, Section, Verdict};
use gristmill_scheduler::workload::Job;
use gristmill_scheduler::workload::deadlines::NAMES;

/// The mean error of an application's estimates over the second half of its maps; `None` if it has none.
type Errors = Vec<(String, Option<f64>)>;

/// Completion estimates of each application alone.
pub(super) fn section(context: &RealContext<'_>, second: f64) -> anyhow::Result<Section> {
    let text = "Each application alone. The estimate is the paper's: what the finished maps took, in the mean, holds for \
                the rest. Its error falls as maps finish; how fast depends on whether the first maps are like the last.";
    let title = "Figures 1 to 3: how well sizes are estimated (experiment one)";
    let mut section = Section::new("figures-1-to-3", title, [text], Vec::new());
    let mut errors = Errors::new();
    for job in twins([1.0; 4], context.seed).into_iter().take(3) {
        let name = job.name.clone().unwrap_or_default();
        let alone = Job { arrival: 0.0, deadline: None, ..job };
        let workload = sleeping(&name, context.seed, &[alone], second);
        let folder = format!("deadlines-{}", name.to_lowercase());
        let fifo = policies(&[(&name, "fifo")]);
        let comparison = context.compare(&folder, &workload, &pooled(WORKERS), fifo, 1)?;
        section.blocks.extend(blocks(&name.to_lowercase(), &comparison, &["estimation"]));
        if let Some(job) = comparison.runs.first().and_then(|run| run.jobs.first()) {
            errors.push((name, error_after(job, 0.5)));
        }
    }
    section.blocks.push(Block::Claims(claims(&errors)));
    Ok(section)
}

fn claims(errors: &Errors) -> Vec<Claim> {
    let error = |wanted: &str| errors.iter().find(|(name, _)| name == wanted).and_then(|(_, error)| *error);
    let words: Vec<String> = errors
        .iter()
        .filter_map(|(name, error)| Some(format!("{name} {:.1} %", 100.0 * (*error)?)))
        .collect();
    let evidence = format!("Mean error over the second half of the maps: {}.", words.join(", "));
    vec![
        Claim::new(
            "Section V-B",
            "WordCount, whose tasks are alike, is estimated within 5 % for most of its time.",
            judged(error(NAMES[1]).map(|error| error < 0.05)),
            evidence.clone(),
        ),
        Claim::new(
            "Section V-B",
            "Simulator, whose tasks grow longer, is estimated worse than WordCount.",
            judged(error(NAMES[0]).zip(error(NAMES[1])).map(|(one, other)| other < one)),
            evidence,
        ),
    ]
}

fn judged(holds: Option<bool>) -> Verdict {
    holds.map_or(Verdict::Open, Verdict::from)
}

/// Mean error of the estimated work of maps and reduces, relative to what they took, once this share of the maps is
/// done.
fn error_after(job: &JobRun, share: f64) -> Option<f64> {
    let truth: f64 = job.usage.slot_seconds.iter().sum();
    let last = job.estimates.iter().map(|one| one.1).max().filter(|last| 0 < *last)?;
    let late = job.estimates.iter().filter(|one| share * f64::from(last) <= f64::from(one.1));
    mean(late.map(|(_, _, whole)| ((whole[0] + whole[2]) / truth - 1.0).abs()))
}
