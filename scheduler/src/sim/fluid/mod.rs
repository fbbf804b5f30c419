//! Overlapping tandem queue: maps and shuffle as two fluids, computed exactly.
//!
//! Paper: Lin, Zhang, Wierman and Tan, *Joint Optimization of Overlapping Phases in MapReduce*, section 2.1.
//! Both stations serve 1 unit of work in a unit of time. A job of map work x and shuffle work y can be
//! shuffled as far as it is mapped. A unit of its map work adds y/x of shuffle work to its buffer. It ends
//! when all is shuffled. A job without shuffle work ends with its maps; one without map work can be shuffled
//! at once.
//!
//! Rates change only when a job arrives, when its maps end and when its buffer becomes empty; between these events
//! everything is linear. No event is needed when one job passes another in a policy's order: the job that becomes first
//! is the one that is being served. The model has no tasks and ignores the work of reduces. Its time is virtual.

mod floor;
pub mod lower_bound;
pub mod orders;

use crate::metrics::JobRecord;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::sim::{SimError, check_job, check_number};
use crate::station::PerStation;
use crate::units::Time;
use crate::view::{Change, Handle, Row, Station, View};
use crate::workload::Job;
use floor::{Fluid, FluidFloor, Happening};

/// Maximum number of jobs present at once; each takes about half a kilobyte.
pub const JOBS_MAX: usize = 1_000_000;

/// Largest size of a job, in units of work.
pub(crate) const WORK_MAX: f64 = 1e15;

/// Intervals shorter than this fraction of the time passed so far are rounding errors and not reported.
const SLIVER: f64 = 1e-12;

/// Summary of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FluidSummary {
    /// Number of jobs; all have ended.
    pub jobs: u64,
    /// Maximum number of jobs present at once.
    pub jobs_max: usize,
    /// End of the last job.
    pub end: f64,
}

/// Interval of constant rates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateInterval<'a> {
    /// Start of the interval.
    pub from: f64,
    /// End of the interval, after `from`.
    pub to: f64,
    /// Served jobs: their seq and their rates at map and shuffle.
    pub rates: &'a [(u64, [f64; 2])],
}

/// Runs these jobs, in the order of their arrival, under a policy that knows no job yet. The sink receives each job at
/// its end. Memory grows with the jobs present at once, not with all of them.
///
/// # Errors
/// A job out of range, [`JOBS_MAX`] exceeded, or a policy that leaves jobs waiting forever.
pub fn run(
    policy: &mut dyn Policy,
    jobs: impl IntoIterator<Item = Job>,
    sink: &mut dyn FnMut(&JobRecord),
) -> Result<FluidSummary, SimError> {
    Simulation::new(policy, sink, None).run(jobs.into_iter())
}

/// Runs jobs as [`run`], and reports the rates of every interval in which a job is served, in order.
///
/// # Errors
/// As [`run`].
pub fn trace(
    policy: &mut dyn Policy,
    jobs: impl IntoIterator<Item = Job>,
    sink: &mut dyn FnMut(&JobRecord),
    rates: &mut dyn FnMut(&RateInterval<'_>),
) -> Result<FluidSummary, SimError> {
    Simulation::new(policy, sink, Some(rates)).run(jobs.into_iter())
}

struct Simulation<'a> {
    policy: &'a mut dyn Policy,
    sink: &'a mut dyn FnMut(&JobRecord),
    rates: Option<&'a mut dyn FnMut(&RateInterval<'_>)>,
    /// Rows by handle, as the jobs of the floor.
    rows: Vec<Row>,
    floor: FluidFloor,
    /// Free handles.
    spare: Vec<Handle>,
    now: f64,
    next_seq: u64,
    wake: Option<f64>,
    summary: FluidSummary,
    /// Jobs whose rows changed, and jobs that ended, in this event. Kept only to reuse their memory.
    touched: Vec<Handle>,
    ended: Vec<Handle>,
}

fn time_of(seconds: f64) -> Time {
    Time((seconds * 1e9) as u64)
}

fn view<'a>(now: f64, rows: &'a [Row], touched: &'a [Handle]) -> View<'a> {
    View { now: time_of(now), rows, touched, cap: PerStation::all(1.0), unified: false, runs: &[] }
}

impl<'a> Simulation<'a> {
    fn new(
        policy: &'a mut dyn Policy,
        sink: &'a mut dyn FnMut(&JobRecord),
        rates: Option<&'a mut dyn FnMut(&RateInterval<'_>)>,
    ) -> Self {
        Self {
            policy,
            sink,
            rates,
            rows: Vec::new(),
            floor: FluidFloor::default(),
            spare: Vec::new(),
            now: 0.0,
            next_seq: 0,
            wake: None,
            summary: FluidSummary::default(),
            touched: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn run(mut self, mut jobs: impl Iterator<Item = Job>) -> Result<FluidSummary, SimError> {
        let mut next = jobs.next();
        let mut last_arrival = 0.0;
        if let Some(job) = &next {
            last_arrival = job.arrival;
            check(job, self.next_seq, f64::NEG_INFINITY)?;
            self.now = job.arrival;
        }
        loop {
            let (span, happening) = self.floor.next_event();
            let event = self.now + span;
            let arrival = next.as_ref().map_or(f64::INFINITY, |job| job.arrival);
            let wake = self.wake.unwrap_or(f64::INFINITY);
            if arrival.min(wake) < event {
                let to = arrival.min(wake);
                self.pass(to - self.now, to, None);
            } else if let Some(happening) = happening {
                self.pass(span, event, Some(happening));
            } else if self.present() == 0 {
                return Ok(self.summary);
            } else {
                return Err(SimError::Stuck { at: self.now, jobs: self.present() });
            }
            if wake <= self.now {
                self.wake = None;
                self.policy.observe(view(self.now, &self.rows, &[]), Change::Tick);
            }
            while let Some(job) = next.take_if(|job| job.arrival <= self.now) {
                self.admit(&job, last_arrival)?;
                last_arrival = job.arrival;
                next = jobs.next();
            }
            self.plan();
        }
    }

    fn present(&self) -> usize {
        self.rows.len() - self.spare.len()
    }

    /// Advances time and enters the effects.
    fn pass(&mut self, span: f64, to: f64, happening: Option<Happening>) {
        if let Some(rates) = &mut self.rates
            && SLIVER * (1.0 + to) < span
        {
            let served: Vec<(u64, [f64; 2])> = self.floor.rates(|job| self.rows[job.index()].seq);
            if !served.is_empty() {
                rates(&RateInterval { from: self.now, to, rates: &served });
            }
        }
        self.now = to;
        self.touched.clear();
        self.ended.clear();
        let (rows, touched, ended) = (&mut self.rows, &mut self.touched, &mut self.ended);
        self.floor.pass(span, to, happening, |job, progress| {
            let row = &mut rows[job.index()];
            progress.show(row);
            if row.left[Station::Map] <= 0.0 && row.left[Station::Shuffle] <= 0.0 {
                ended.push(job);
            } else {
                touched.push(job);
            }
        });
        for at in 0..self.ended.len() {
            self.end(self.ended[at]);
        }
        if !self.touched.is_empty() {
            self.policy.observe(view(self.now, &self.rows, &self.touched), Change::Progress);
        }
    }

    fn end(&mut self, job: Handle) {
        let &Fluid { arrival, work, started, maps_done, .. } = self.floor.job(job);
        let row = &mut self.rows[job.index()];
        row.live = false;
        let record = JobRecord {
            seq: row.seq,
            arrival,
            start: started,
            maps_done,
            completion: self.now,
            work,
            deadline: row.deadline,
            weight: row.weight,
        };
        (self.sink)(&record);
        self.summary.jobs += 1;
        self.summary.end = self.now;
        self.policy.observe(view(self.now, &self.rows, &[]), Change::Left(job));
        self.spare.push(job);
    }

    fn admit(&mut self, job: &Job, last_arrival: f64) -> Result<(), SimError> {
        check(job, self.next_seq, last_arrival)?;
        let seq = self.next_seq;
        self.next_seq += 1;
        let deadline = job.deadline.map(time_of);
        let weight = if 0.0 < job.weight { job.weight } else { 1.0 };
        let PerStation([map, shuffle, _]) = job.work;
        if map <= 0.0 && shuffle <= 0.0 {
            let (arrival, work) = (job.arrival, job.work);
            let (start, maps_done, completion) = (arrival, arrival, arrival);
            (self.sink)(&JobRecord { seq, arrival, start, maps_done, completion, work, deadline, weight });
            self.summary.jobs += 1;
            self.summary.end = self.now;
            return Ok(());
        }
        let handle = match self.spare.pop() {
            Some(handle) => handle,
            None if self.rows.len() == JOBS_MAX => {
                return Err(SimError::Overflow { at: self.now, jobs: JOBS_MAX });
            }
            None => {
                self.rows.push(Row::default());
                Handle((self.rows.len() - 1) as u32)
            }
        };
        self.summary.jobs_max = self.summary.jobs_max.max(self.present());
        let row = &mut self.rows[handle.index()];
        *row = Row {
            seq,
            arrival: time_of(job.arrival),
            deadline,
            weight,
            pool: job.pool,
            live: true,
            whole: PerStation::new(map, shuffle, 0.0),
            feed: if 0.0 < map { shuffle / map } else { 0.0 },
            ..Row::default()
        };
        self.floor.enter(handle, job.arrival, job.work).show(row);
        // The given value, since the later product is rounded.
        row.left = row.whole;
        row.started = false;
        self.policy.observe(view(self.now, &self.rows, &[handle]), Change::Arrived(handle));
        Ok(())
    }

    fn plan(&mut self) {
        self.floor.clear(self.now);
        let mut plan = Plan::new(&mut self.floor);
        self.policy.plan(view(self.now, &self.rows, &[]), &mut plan);
        plan.finish();
        let wish = plan.wished_wake().map(Time::seconds);
        self.floor.close();
        self.wake = wish.filter(|&wish| self.now < wish);
    }
}

/// Refuses a job that the model cannot take.
///
/// # Errors
/// The field of the job that makes no sense.
pub fn check(job: &Job, index: u64, last_arrival: f64) -> Result<(), SimError> {
    check_job(index, job, last_arrival, f64::MAX, "a finite time from 0 on")?;
    let PerStation([map, shuffle, _]) = job.work;
    for (field, work) in [("map work", map), ("shuffle work", shuffle)] {
        check_number(index, field, work, WORK_MAX, "a number from 0 to 1e15")?;
    }
    if 0.0 < map && !(shuffle / map).is_finite() {
        let wanted = "0 or large enough to divide the shuffle work by it";
        return Err(SimError::Job { index, field: "map work", value: map, wanted });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
