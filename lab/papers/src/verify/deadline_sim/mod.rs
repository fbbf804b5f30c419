//! Kind `deadline-sim`: ends of jobs on a small cluster under fifo, fair, weighted fair and the two schedulers of the
//! deadlines paper.
//!
//! The cluster is one worker with a number of slots for maps and the same number for reduces, and an unlimited network.
//! The policies are those of the live master. `expect.finish` names the policies: `fifo`, `fair`, `fair_w1_1.4`
//! (weights of the jobs in their order), `min`, `max`.

use super::deadline_plan::{SECONDS_MAX, TASKS_MAX};
use crate::verify::{Checker, Input};
use gristmill_scheduler::core::CoreConfig;
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::ledger::AheadConfig;
use gristmill_scheduler::policy::deadlines::{Deadlines, Excess};
use gristmill_scheduler::policy::{Fair, Fifo, Policy};
use gristmill_scheduler::sim::cluster::{self, Config};
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::units::Span;
use gristmill_scheduler::workload::Job;
use serde_json::{Map, Value, json};

/// Maximum jobs of a case.
const JOBS_MAX: u64 = 1_000;
/// Maximum ticks of a case: the latest deadline divided by the tick.
const TICKS_MAX: f64 = 1e6;

/// Computes and compares.
pub(super) fn check(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let case = SimCase::read(input)?;
    let expected =
        expect.get("finish").map(|finish| finish.as_object().ok_or("`expect.finish` is not an object"));
    let mut finish = Map::new();
    for scheduler in expected.transpose()?.into_iter().flat_map(Map::keys) {
        finish.insert(scheduler.clone(), case.finish(scheduler)?.into());
    }
    checker.value("", expect, &json!({ "finish": finish }));
    Ok(())
}

struct SimCase {
    slots: u32,
    tick: Span,
    jobs: Vec<Job>,
}

impl SimCase {
    fn read(input: &Input<'_>) -> Result<Self, String> {
        let slots = input.field("slots")?.whole(1, TASKS_MAX)? as u32;
        let tick = input.optional("tick").map_or(Ok(1.0), |tick| tick.number_in(0.0, SECONDS_MAX))?;
        let jobs = input.field("jobs")?.items(JOBS_MAX)?;
        let jobs = jobs.iter().map(read_job).collect::<Result<Vec<Job>, String>>()?;
        let tasks: usize = jobs.iter().map(|job| job.maps.len() + job.reduces.len()).sum();
        if TASKS_MAX < tasks as u64 {
            return Err(format!("`jobs` has {tasks} tasks, more than {TASKS_MAX}"));
        }
        let last = jobs.iter().filter_map(|job| job.deadline).fold(0.0, f64::max);
        if tick * TICKS_MAX < last || tick < 1e-3 {
            return Err(format!(
                "`tick` of {tick} s is below a thousandth of a second or a millionth of {last} s"
            ));
        }
        Ok(Self { slots, tick: Span((tick * 1e9).round() as u64), jobs })
    }

    /// Returns the end of each job.
    fn finish(&self, scheduler: &str) -> Result<Vec<f64>, String> {
        let mut weights = vec![1.0; self.jobs.len()];
        let policy: Box<dyn Policy> = match scheduler {
            "fifo" => Box::new(Fifo::new()),
            "fair" => Box::new(Fair::new()),
            "min" => Box::new(Deadlines::new(Excess::Idle, self.tick, 1.0)),
            "max" => Box::new(Deadlines::new(Excess::Given, self.tick, 1.0)),
            other => {
                let wanted = "is not fifo, fair, fair_wWEIGHT_WEIGHT..., min or max";
                let text = other.strip_prefix("fair_w").ok_or_else(|| format!("`{scheduler}` {wanted}"))?;
                read_weights(text, &mut weights)?;
                Box::new(Fair::new())
            }
        };
        self.run(policy, &weights).map_err(|error| format!("{scheduler}: {error}"))
    }

    fn run(
        &self,
        policy: Box<dyn Policy>,
        weights: &[f64],
    ) -> Result<Vec<f64>, gristmill_scheduler::sim::SimError> {
        // The jobs of a case are in any order; the simulator takes them as they arrive.
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        order.sort_by(|&a, &b| self.jobs[a].arrival.total_cmp(&self.jobs[b].arrival));
        let jobs = order.iter().map(|&index| Job { weight: weights[index], ..self.jobs[index].clone() });
        let mut config = Config::uniform(1, Slots::Pools { map: self.slots, reduce: self.slots });
        // Short maps would be queued behind running ones, which the paper's cluster does not do.
        config.core =
            CoreConfig { ahead: AheadConfig { maps_max: 0, ..AheadConfig::default() }, ..config.core };
        let mut finish = vec![0.0; self.jobs.len()];
        let mut sink = |record: &gristmill_scheduler::metrics::JobRecord| {
            finish[order[record.seq as usize]] = record.completion;
        };
        cluster::run(&config, cluster::Deciders::of(policy), jobs, &mut (), &mut sink)?;
        Ok(finish)
    }
}

fn read_job(job: &Input<'_>) -> Result<Job, String> {
    let [maps, reduces] =
        ["maps", "reduces"].map(|field| job.field(field)?.numbers_in(TASKS_MAX, 0.0, SECONDS_MAX));
    let (maps, reduces) = (maps?, reduces?);
    Ok(Job {
        arrival: job.field("submit")?.number_in(0.0, SECONDS_MAX)?,
        work: PerStation::new(maps.iter().sum(), 0.0, reduces.iter().sum()),
        maps,
        reduces,
        deadline: Some(job.field("goal")?.number_in(0.0, SECONDS_MAX)?),
        ..Job::default()
    })
}

/// Parses `1_1.4_122`, one weight for each job.
fn read_weights(text: &str, weights: &mut [f64]) -> Result<(), String> {
    let given: Vec<&str> = text.split('_').collect();
    if given.len() != weights.len() {
        return Err(format!("fair_w{text}: {} weights for {} jobs", given.len(), weights.len()));
    }
    for (weight, given) in weights.iter_mut().zip(given) {
        let read = given.parse().ok().filter(|read: &f64| (1e-9..=1e9).contains(read));
        *weight =
            read.ok_or_else(|| format!("fair_w{text}: weight `{given}` is no number from 1e-9 to 1e9"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
