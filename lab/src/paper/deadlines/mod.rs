//! The deadlines paper: completion times estimated from the tasks already done, and slots given by goals.
//!
//! Not here: the policies (`scheduler::policy::deadlines`), the estimate (`scheduler::estimate::completion`) and the
//! stand-in for the paper's jobs (`scheduler::workload::deadlines`).

mod estimates;
mod goals;
mod isolated;
#[cfg(test)]
pub(super) mod made_up;
mod reference;
mod sensitivity;
mod trial;

use super::{Block, Context, Paper, Section, each};
use gristmill_scheduler::workload::deadlines::Joins;
use trial::{Scheduler, Trial, simulate};

/// Runs everything.
///
/// # Errors
/// A simulation that fails, which is a bug.
pub fn run(context: &Context<'_>) -> anyhow::Result<Paper> {
    page(context, &context.seeds(context.scaled(5, 10, 30)))
}

fn page(context: &Context<'_>, seeds: &[u64]) -> anyhow::Result<Paper> {
    let mut sections = estimates::sections(context, seeds)?;
    (context.progress)("deadlines: four jobs under five schedulers, three kinds of Joins");
    let trials = trials(seeds)?;
    sections.extend(goals::sections(&trials));
    sections.push(sensitivity::whole(&trials));
    let about = [
        "Each job has a goal, the time at which it should have ended. The scheduler looks at the tasks that \
         a job has finished, takes the mean of their lengths for all that are to come, and counts how many \
         slots the job needs to end at its goal (equation 3). The min-scheduler gives each job that many \
         and leaves the other slots idle; the max-scheduler gives the others away too, in the same order.",
        "The policies here are those that a live master runs; they drive a simulated cluster of 60 workers, \
         each with a slot for maps and one for reduces, task by task, with a look at the needs every \
         second. The network has no limits, since the paper's jobs are bound by their maps.",
        "The paper's jobs are not public. It prints how many tasks they have, how long each takes by \
         itself, and the goals; it shows the lengths of tasks in figures without numbers, and does not say \
         when jobs were submitted. So this is a stand-in: lengths are drawn such that each job by itself \
         takes about as long as printed, and jobs arrive at 0, 1000, 2000 and 3000 s. References are means \
         of another program over ten draws of its own from a stand-in of the same kind, whose jobs take other times \
         alone; how far that explains a difference is taken from what is put in, and from nothing that was run.",
    ];
    Ok(Paper {
        name: "deadlines",
        title: "Performance-Driven Task Co-Scheduling for MapReduce Environments (J. Polo, D. Carrera, Y. \
                Becerra, J. Torres, E. Ayguadé, M. Steinder, I. Whalley, 2010)",
        about: about.map(str::to_owned).to_vec(),
        sections,
    })
}

/// All schedulers on all kinds of Joins with all seeds.
struct Trials {
    seeds: Vec<u64>,
    /// In the order of [`Joins::ALL`], [`Scheduler::ALL`] and the seeds.
    all: Vec<Trial>,
}

impl Trials {
    fn of(&self, joins: Joins, scheduler: Scheduler) -> &[Trial] {
        let seeds = self.seeds.len();
        let first = (joins as usize * Scheduler::ALL.len() + scheduler as usize) * seeds;
        &self.all[first..first + seeds]
    }
}

fn trials(seeds: &[u64]) -> anyhow::Result<Trials> {
    let schedulers = |joins| Scheduler::ALL.into_iter().map(move |scheduler| (joins, scheduler));
    let cells = Joins::ALL.into_iter().flat_map(schedulers);
    let items: Vec<(Joins, Scheduler, u64)> = cells
        .flat_map(|(joins, scheduler)| seeds.iter().map(move |&seed| (joins, scheduler, seed)))
        .collect();
    let all = each(&items, |&(joins, scheduler, seed)| simulate(joins, scheduler, seed));
    Ok(Trials { seeds: seeds.to_vec(), all: all.into_iter().collect::<anyhow::Result<_>>()? })
}

fn section(id: &str, title: &str, text: &[String], blocks: Vec<Block>) -> Section {
    Section::new(id, title, text.iter().cloned(), blocks)
}

#[cfg(test)]
mod tests;
