//! Kind `deadline-plan`: evaluation of jobs by the min- and the max-scheduler at one instant, and their grants of the
//! free slots.

use super::input::{field, within};
use gristmill_scheduler::plan::{Floor, Line, Plan, Reason, Share};
use gristmill_scheduler::policy::Policy;
use gristmill_scheduler::policy::deadlines::{DeadlineState, Deadlines, Excess, JobStanding};
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::units::{Span, Time};
use gristmill_scheduler::view::{Change, Handle, Row, Station, View};
use serde_json::{Map, Value, json};

/// Latest time, in seconds: a century.
pub(super) const SECONDS_MAX: f64 = 3.2e9;

/// Computes the evaluations and the grants of both schedulers.
pub(super) fn compute(input: &Value, _: &Map<String, Value>) -> Result<Value, String> {
    let case = PlanCase::new(input)?;
    let (idle, standings) = case.plan(Excess::Idle);
    let (given, _) = case.plan(Excess::Given);
    let by_job = |slots: &[u32]| -> Map<String, Value> {
        slots.iter().enumerate().map(|(job, &slots)| (job.to_string(), slots.into())).collect()
    };
    let of_each = |value: &dyn Fn(&JobStanding) -> Option<Value>| -> Map<String, Value> {
        standings.iter().filter_map(|one| Some((one.job.0.to_string(), value(one)?))).collect()
    };
    let state = |standing: &JobStanding| match standing.state {
        DeadlineState::Undead => "UNDEAD",
        DeadlineState::NoData => "NODATA",
        DeadlineState::Adjust => "ADJUST",
    };
    let priority: Vec<u32> = standings.iter().map(|standing| standing.job.0).collect();
    Ok(json!({
        "state": of_each(&|one| Some(state(one).into())),
        "mu": of_each(&|one| Some(one.mean.into())),
        "s_req": of_each(&|one| one.required.map(Value::from)),
        "priority": priority,
        "min": by_job(&idle),
        "max": by_job(&given),
    }))
}

struct PlanCase {
    now: Time,
    free: u32,
    rows: Vec<Row>,
    runs: Vec<Vec<Time>>,
}

impl PlanCase {
    fn new(input: &Value) -> Result<Self, String> {
        let (now, free) = (field(input, "now")?, field(input, "free_slots")?);
        let mut case = PlanCase { now: time("now", now)?, free, rows: Vec::new(), runs: Vec::new() };
        for job in field::<Vec<Value>>(input, "jobs")? {
            case.add_job(now, &job)?;
        }
        Ok(case)
    }

    fn add_job(&mut self, now: f64, job: &Value) -> Result<(), String> {
        let (done, running): (Vec<f64>, Vec<f64>) = (field(job, "done")?, field(job, "running_elapsed")?);
        let pending: u32 = field(job, "pending")?;
        let seconds = done.iter().map(|&done| within("done", done, [0.0, SECONDS_MAX]));
        self.rows.push(Row {
            seq: self.rows.len() as u64,
            arrival: time("submit", field(job, "submit")?)?,
            deadline: Some(time("goal", field(job, "goal")?)?),
            weight: 1.0,
            live: true,
            // One more than the pending maps, so that jobs without pending maps are evaluated too.
            can: PerStation::new(f64::from(pending) + 1.0, 0.0, 0.0),
            held: PerStation::new(running.len() as f64, 0.0, 0.0),
            pend: PerStation::new(pending, 0, 0),
            done: done.len() as u32,
            done_time: seconds.sum::<Result<f64, String>>()?,
            ..Row::default()
        });
        // No task started before time 0.
        let started = running
            .iter()
            .map(|&elapsed| time("running_elapsed", now - within("running_elapsed", elapsed, [0.0, now])?));
        self.runs.push(started.collect::<Result<_, String>>()?);
        Ok(())
    }

    /// Returns the tasks started for each job, and the policy's evaluation before.
    fn plan(&self, excess: Excess) -> (Vec<u32>, Vec<JobStanding>) {
        let mut policy = Deadlines::new(excess, Span::whole_seconds(1), 1.0);
        let view = View {
            now: self.now,
            rows: &self.rows,
            touched: &[],
            cap: PerStation::new(f64::from(self.free), 0.0, 0.0),
            unified: false,
            runs: &self.runs,
        };
        for job in (0..self.rows.len() as u32).map(Handle) {
            policy.observe(View { touched: &[job], ..view }, Change::Arrived(job));
        }
        let mut floor = CountedSlots { free: self.free, rows: &self.rows, started: vec![0; self.rows.len()] };
        let standings = policy.standings(view);
        let mut plan = Plan::new(&mut floor);
        policy.plan(view, &mut plan);
        plan.finish();
        (floor.started, standings)
    }
}

fn time(name: &str, seconds: f64) -> Result<Time, String> {
    Ok(Time((within(name, seconds, [0.0, SECONDS_MAX])? * 1e9).round() as u64))
}

/// Map slots as plain counts.
struct CountedSlots<'a> {
    free: u32,
    rows: &'a [Row],
    started: Vec<u32>,
}

impl Floor for CountedSlots<'_> {
    fn unified(&self) -> bool {
        false
    }

    fn remaining(&self, station: Station) -> f64 {
        if station == Station::Map { f64::from(self.free) } else { 0.0 }
    }

    fn held(&self, job: Handle, station: Station) -> f64 {
        match station {
            Station::Map => self.rows[job.index()].held[Station::Map] + f64::from(self.started[job.index()]),
            Station::Shuffle | Station::Reduce => 0.0,
        }
    }

    fn start(&mut self, job: Handle, station: Station, _: Option<Line>, _: Reason) -> bool {
        let waits = self.started[job.index()] < self.rows[job.index()].pend[Station::Map];
        let starts = station == Station::Map && 0 < self.free && waits;
        if starts {
            self.free -= 1;
            self.started[job.index()] += 1;
        }
        starts
    }

    fn line_open(&self, _: Station, _: Line) -> bool {
        false
    }

    fn lane(&mut self, _: Handle, _: Share) -> Option<bool> {
        Some(false)
    }
}

#[cfg(test)]
mod tests;
