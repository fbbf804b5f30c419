//! Kind `deadline-sim`: ends of jobs on a small cluster under fifo, fair, weighted fair and the two schedulers of the
//! deadlines paper.
//!
//! The cluster is one worker with a number of slots for maps and the same number for reduces, and an unlimited network.
//! The policies are those of the live master. `expect.finish` names the policies: `fifo`, `fair`, `fair_w1_1.4`
//! (weights of the jobs in their order), `min`, `max`.

use super::compare::list;
use super::deadline_plan::SECONDS_MAX;
use super::input::{field, within};
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
use std::num::NonZeroU32;

/// Maximum ticks of a case: the latest deadline divided by the tick.
const TICKS_MAX: f64 = 1e6;

/// Computes the ends under the expected schedulers.
pub(super) fn compute(input: &Value, expect: &Map<String, Value>) -> Result<Value, String> {
    let case = SimCase::new(input)?;
    let schedulers = expect.get("finish").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let finish = schedulers.map(|name| Ok((name.clone(), list(case.finish(name)?))));
    Ok(json!({ "finish": finish.collect::<Result<Map<_, _>, String>>()? }))
}

struct SimCase {
    slots: u32,
    tick: Span,
    jobs: Vec<Job>,
}

impl SimCase {
    fn new(input: &Value) -> Result<Self, String> {
        let slots = field::<NonZeroU32>(input, "slots")?.get();
        let tick = field::<Option<f64>>(input, "tick")?.unwrap_or(1.0);
        let tick = within("tick", tick, [1e-3, SECONDS_MAX])?;
        let jobs = field::<Vec<Value>>(input, "jobs")?.iter().map(job_of).collect::<Result<Vec<Job>, _>>()?;
        let last = jobs.iter().filter_map(|job| job.deadline).fold(0.0, f64::max);
        if tick * TICKS_MAX < last {
            return Err(format!("`tick` of {tick} s is below a millionth of {last} s"));
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
        cluster::run(&config, cluster::Deciders::with_policy(policy), jobs, &mut (), &mut sink)?;
        Ok(finish)
    }
}

fn job_of(job: &Value) -> Result<Job, String> {
    let (maps, reduces): (Vec<f64>, Vec<f64>) = (field(job, "maps")?, field(job, "reduces")?);
    let (arrival, goal) = (field(job, "submit")?, field(job, "goal")?);
    for &seconds in maps.iter().chain(&reduces).chain([&arrival, &goal]) {
        within("jobs", seconds, [0.0, SECONDS_MAX])?;
    }
    let work = PerStation::new(maps.iter().sum(), 0.0, reduces.iter().sum());
    Ok(Job { arrival, work, maps, reduces, deadline: Some(goal), ..Job::default() })
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
