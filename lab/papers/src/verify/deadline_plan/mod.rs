//! Kind `deadline-plan`: evaluation of jobs by the min- and the max-scheduler at one instant, and their grants of the
//! free slots.

use crate::verify::{Checker, Input};
use gristmill_scheduler::plan::{Floor, Line, Plan, Reason, Share};
use gristmill_scheduler::policy::Policy;
use gristmill_scheduler::policy::deadlines::{DeadlineState, Deadlines, Excess, Standing};
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::units::{Span, Time};
use gristmill_scheduler::view::{Change, Handle, Row, Station, View};
use serde_json::{Map, Value, json};

/// Maximum jobs of a case.
const JOBS_MAX: u64 = 10_000;
/// Maximum tasks of a case, and maximum free slots.
pub(super) const TASKS_MAX: u64 = 1_000_000;
/// Latest time, in seconds: a century.
pub(super) const SECONDS_MAX: f64 = 3.2e9;

/// Computes and compares.
pub(super) fn check(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String> {
    let case = PlanCase::read(input)?;
    let (idle, standings) = case.plan(Excess::Idle);
    let (given, _) = case.plan(Excess::Given);
    let mut states = Map::new();
    let mut means = Map::new();
    let mut required = Map::new();
    for standing in &standings {
        let key = standing.job.0.to_string();
        let state = match standing.state {
            DeadlineState::Undead => "UNDEAD",
            DeadlineState::NoData => "NODATA",
            DeadlineState::Adjust => "ADJUST",
        };
        states.insert(key.clone(), state.into());
        means.insert(key.clone(), standing.mean.map_or(Value::Null, Value::from));
        if let Some(slots) = standing.required {
            required.insert(key, slots.into());
        }
    }
    let by_job = |slots: &[u32]| -> Map<String, Value> {
        slots.iter().enumerate().map(|(job, &slots)| (job.to_string(), slots.into())).collect()
    };
    let priority: Vec<u32> = standings.iter().map(|standing| standing.job.0).collect();
    let computed = json!({
        "state": states, "mu": means, "s_req": required, "priority": priority,
        "min": by_job(&idle), "max": by_job(&given),
    });
    checker.value("", expect, &computed);
    Ok(())
}

struct PlanCase {
    now: Time,
    free: u32,
    rows: Vec<Row>,
    runs: Vec<Vec<Time>>,
}

impl PlanCase {
    fn read(input: &Input<'_>) -> Result<Self, String> {
        let now = input.field("now")?.number_in(0.0, SECONDS_MAX)?;
        let free = input.field("free_slots")?.whole(0, TASKS_MAX)? as u32;
        let mut case = PlanCase { now: time(now), free, rows: Vec::new(), runs: Vec::new() };
        for job in input.field("jobs")?.items(JOBS_MAX)? {
            case.read_job(now, &job)?;
        }
        Ok(case)
    }

    fn read_job(&mut self, now: f64, job: &Input<'_>) -> Result<(), String> {
        let done = job.field("done")?.numbers_in(TASKS_MAX, 0.0, SECONDS_MAX)?;
        // No task started before time 0.
        let running = job.field("running_elapsed")?.numbers_in(TASKS_MAX, 0.0, now)?;
        let pending = job.field("pending")?.whole(0, TASKS_MAX)? as u32;
        self.rows.push(Row {
            seq: self.rows.len() as u64,
            arrival: time(job.field("submit")?.number_in(0.0, SECONDS_MAX)?),
            deadline: Some(time(job.field("goal")?.number_in(0.0, SECONDS_MAX)?)),
            weight: 1.0,
            live: true,
            // One more than the pending maps, so that jobs without pending maps are evaluated too.
            can: PerStation::new(f64::from(pending) + 1.0, 0.0, 0.0),
            held: PerStation::new(running.len() as f64, 0.0, 0.0),
            pend: PerStation::new(pending, 0, 0),
            done: done.len() as u32,
            done_time: done.iter().sum(),
            ..Row::default()
        });
        self.runs.push(running.iter().map(|&elapsed| time(now - elapsed)).collect());
        Ok(())
    }

    /// Returns the tasks started for each job, and the policy's evaluation before.
    fn plan(&self, excess: Excess) -> (Vec<u32>, Vec<Standing>) {
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

fn time(seconds: f64) -> Time {
    Time((seconds * 1e9).round() as u64)
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

    fn left(&self, station: Station) -> f64 {
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
