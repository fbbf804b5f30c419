//! Kind `deadline-plan`: evaluation of jobs by the min- and the max-scheduler at one instant, and their grants of the
//! free slots.

use crate::verify::Checker;
use gristmill_scheduler::plan::{Line, Plan, Reason, Share, SlotFloor};
use gristmill_scheduler::policy::Policy;
use gristmill_scheduler::policy::deadlines::{DeadlineState, Deadlines, Excess, Standing};
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::units::{Span, Time};
use gristmill_scheduler::view::{Change, Handle, Row, Station, View};
use serde_json::{Map, Value, json};

/// Maximum jobs of a case.
const JOBS_MAX: usize = 10_000;
/// Maximum tasks of a case, and maximum free slots.
pub(super) const TASKS_MAX: u64 = 1_000_000;
/// Latest time, in seconds: a century.
const SECONDS_MAX: f64 = 3.2e9;

/// Computes and compares.
pub(super) fn check(input: &Value, expect: &Value, checker: &mut Checker) -> Result<(), String> {
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
    fn read(input: &Value) -> Result<Self, String> {
        let now = seconds(input, "now")?;
        let free = input.get("free_slots").and_then(Value::as_u64).filter(|&free| free <= TASKS_MAX);
        let free = free.ok_or_else(|| format!("`free_slots` is no whole number up to {TASKS_MAX}"))? as u32;
        let jobs = input.get("jobs").and_then(Value::as_array).ok_or("`jobs` is no list")?;
        if JOBS_MAX < jobs.len() {
            return Err(format!("`jobs` has more than {JOBS_MAX} jobs"));
        }
        let mut case = PlanCase { now: Time::ZERO, free, rows: Vec::new(), runs: Vec::new() };
        for (index, job) in jobs.iter().enumerate() {
            case.read_job(now, job).map_err(|reason| format!("job {index}: {reason}"))?;
        }
        case.now = time(now);
        Ok(case)
    }

    fn read_job(&mut self, now: f64, job: &Value) -> Result<(), String> {
        let done = lengths(job, "done")?;
        let running = lengths(job, "running_elapsed")?;
        if running.iter().any(|&elapsed| now < elapsed) {
            return Err(format!("`running_elapsed` has a task that began before time 0; it is {now} now"));
        }
        let pending = job.get("pending").and_then(Value::as_u64).filter(|&pending| pending <= TASKS_MAX);
        let pending =
            pending.ok_or_else(|| format!("`pending` is no whole number up to {TASKS_MAX}"))? as u32;
        self.rows.push(Row {
            seq: self.rows.len() as u64,
            arrival: time(seconds(job, "submit")?),
            deadline: Some(time(seconds(job, "goal")?)),
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
        let mut plan = Plan::on_slots(&mut floor);
        policy.plan(view, &mut plan);
        plan.finish();
        (floor.started, standings)
    }
}

pub(super) fn seconds(value: &Value, field: &str) -> Result<f64, String> {
    let number = value.get(field).and_then(Value::as_f64);
    number
        .filter(|number| (0.0..=SECONDS_MAX).contains(number))
        .ok_or_else(|| format!("`{field}` is no number of seconds from 0 to {SECONDS_MAX}"))
}

pub(super) fn lengths(value: &Value, field: &str) -> Result<Vec<f64>, String> {
    let list = value.get(field).and_then(Value::as_array).filter(|list| list.len() as u64 <= TASKS_MAX);
    let list = list.ok_or_else(|| format!("`{field}` is no list of at most {TASKS_MAX} lengths"))?;
    let length = |item: &Value| item.as_f64().filter(|length| (0.0..=SECONDS_MAX).contains(length));
    list.iter()
        .map(|item| length(item).ok_or_else(|| format!("`{field}` has {item}, no length in seconds")))
        .collect()
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

impl SlotFloor for CountedSlots<'_> {
    fn unified(&self) -> bool {
        false
    }

    fn left(&self, station: Station) -> f64 {
        if station == Station::Map { f64::from(self.free) } else { 0.0 }
    }

    fn held(&self, job: Handle, station: Station) -> u32 {
        match station {
            Station::Map => self.rows[job.index()].held[Station::Map] as u32 + self.started[job.index()],
            Station::Shuffle | Station::Reduce => 0,
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

    fn lines(&mut self, _: Station, _: &[f64]) {}

    fn line_open(&self, _: Station, _: Line) -> bool {
        false
    }

    fn lane(&mut self, _: Handle, _: Share) -> Option<bool> {
        Some(false)
    }
}

#[cfg(test)]
mod tests;
