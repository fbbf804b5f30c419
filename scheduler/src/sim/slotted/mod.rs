//! Slotted model of the ASRPT paper (section III): machines that each do one unit of work per slot.
//!
//! A map is one unit; a reduce is several, and a job's reduces start in the slot after its last map. In the preemptive
//! model the reduce units of a job may run on any number of machines and are planned again in every slot. In the
//! non-preemptive model a started reduce keeps its machine to its end, and reduces of a job start in their order.
//!
//! Slots count from 1 and take one second of virtual time: slot `t` is `[t - 1, t)`. In each slot, in this order: ended
//! jobs leave, the work of the previous slot is reported, jobs arrive, the policy gets a tick and plans, the machines
//! work. A job that arrives at the start of slot `a` and ends with slot `f` has the flow time `f - a + 1`.
//!
//! The model has no shuffle (sizes at that station are ignored), no placement, and no fractions of a unit.

mod alone;
mod config;
pub mod lower_bound;
mod machines;

pub use alone::alone;
use config::time_of;
pub use config::{Config, SlotService};

use crate::metrics::JobRecord;
use crate::plan::Plan;
use crate::policy::Policy;
use crate::sim::{SimError, check_job, check_number};
use crate::station::{PerStation, Station};
use crate::units::Time;
use crate::view::{Change, Handle, Row, View};
use crate::workload::Job;
use machines::{MachineWork, Machines};

/// Number of consecutive slots in which jobs wait and the policy grants no machine, after which the policy counts as
/// stuck.
pub(crate) const IDLE_SLOTS_MAX: u32 = 100_000;

/// Maximum units of a job at a station, and last slot in which it may arrive. All numbers up to here are exact.
pub const UNITS_MAX: f64 = 1e9;

/// Refuses the schedule of a policy that has stopped to decide.
fn check_policy(policy: &dyn Policy) -> Result<(), SimError> {
    policy.failure().map_or(Ok(()), |words| Err(SimError::Policy { words: words.to_owned() }))
}

/// Runs these jobs, given in the order of arrival, until all have ended. `sink` receives the record of each job at the
/// end of its last slot. After each slot `observer` receives its number, from 1, and the served jobs, in the order of
/// their first machine. Slots without any job are skipped.
///
/// Fields used of a job: `arrival` (if it is not an integer, the job waits for the next slot), `work[Station::Map]`
/// maps, `reduces` (if empty, one reduce of `work[Station::Reduce]` units), `deadline`, `weight`, `pool`. A job without
/// any work ends on arrival, and the policy does not see it.
///
/// # Errors
/// A job with a size that is not an integer number of units or out of order; no machines; a preemptive policy in the
/// non-preemptive model; a policy that leaves jobs waiting forever.
pub fn run(
    policy: &mut dyn Policy,
    config: &Config,
    jobs: &[Job],
    sink: &mut dyn FnMut(&JobRecord),
    observer: &mut dyn FnMut(u64, &[SlotService]),
) -> Result<(), SimError> {
    check_config(policy, config)?;
    check_jobs(jobs)?;
    let mut run = SlottedRun::new(*config, jobs);
    let mut idle = 0;
    loop {
        run.slot += 1;
        run.notify_of_previous_slot(policy);
        if run.present == 0 {
            let Some(next) = jobs.get(run.next) else { return check_policy(policy) };
            run.slot = run.slot.max(slot_of(next.arrival));
        }
        run.let_arrive(policy, sink);
        if run.present == 0 {
            continue;
        }
        run.observe(policy, &[], Change::Tick);
        run.plan(policy);
        run.work(sink, observer);
        idle = if run.served.is_empty() { idle + 1 } else { 0 };
        if idle == IDLE_SLOTS_MAX {
            return Err(SimError::Stuck { at: run.slot as f64, jobs: run.present });
        }
    }
}

/// Returns the first slot in which a job that arrives then can be served.
fn slot_of(arrival: f64) -> u64 {
    arrival.ceil() as u64 + 1
}

/// Returns the units of a job's maps and of its reduces.
fn units_of(job: &Job) -> [u64; 2] {
    let work = MachineWork::new(0, job).remaining();
    [work[Station::Map] as u64, work[Station::Reduce] as u64]
}

fn check_config(policy: &dyn Policy, config: &Config) -> Result<(), SimError> {
    if config.machines == 0 {
        return Err(SimError::Setting { name: "machines", value: "0".to_owned(), wanted: "at least 1" });
    }
    if policy.preempts() && !config.preemptive {
        let wanted = "`yes`, which this policy needs: it takes machines from reduces that began";
        return Err(SimError::Setting { name: "preemptive", value: "no".to_owned(), wanted });
    }
    Ok(())
}

/// Checks all fields of jobs that the slotted model uses.
fn check_jobs(jobs: &[Job]) -> Result<(), SimError> {
    let mut before = 0.0;
    for (index, job) in (0..).zip(jobs) {
        check_job(index, job, before, UNITS_MAX, "a number of slots from 0 to 1e9")?;
        before = job.arrival;
        let reduces = MachineWork::reduces_of(job);
        let maps = ("maps", job.work[Station::Map]);
        for (field, units) in reduces.iter().map(|&length| ("reduces", length)).chain([maps]) {
            let wanted = "a whole number of units from 0 to 1e9";
            check_number(index, field, units, UNITS_MAX, wanted)?;
            if units.fract() != 0.0 {
                return Err(SimError::Job { index, field, value: units, wanted });
            }
        }
        let sum = reduces.iter().sum();
        check_number(index, "reduces", sum, UNITS_MAX, "at most 1e9 units together")?;
        if let Some(deadline) = job.deadline {
            check_number(index, "deadline", deadline, f64::MAX, "a finite time, at least 0")?;
        }
    }
    Ok(())
}

/// State of a run.
struct SlottedRun<'a> {
    jobs: &'a [Job],
    /// Index of the next job to arrive.
    next: usize,
    slot: u64,
    machines: Machines<'a>,
    /// Rows by handle.
    rows: Vec<Row>,
    /// Free handles.
    spare: Vec<Handle>,
    /// Live jobs whose rows changed with the previous slot.
    touched: Vec<Handle>,
    /// Jobs that ended with the previous slot.
    left: Vec<Handle>,
    /// Number of live jobs.
    present: usize,
    /// Service in the previous slot.
    served: Vec<SlotService>,
}

/// Returns the view at the start of a slot.
fn view<'a>(slot: u64, config: Config, rows: &'a [Row], touched: &'a [Handle]) -> View<'a> {
    let machines = f64::from(config.machines);
    let now = Time((slot - 1) * 1_000_000_000);
    View { now, rows, touched, cap: PerStation::new(machines, 1.0, machines), unified: true, runs: &[] }
}

impl<'a> SlottedRun<'a> {
    fn new(config: Config, jobs: &'a [Job]) -> Self {
        SlottedRun {
            jobs,
            next: 0,
            slot: 0,
            machines: Machines::new(config),
            rows: Vec::new(),
            spare: Vec::new(),
            touched: Vec::new(),
            left: Vec::new(),
            present: 0,
            served: Vec::new(),
        }
    }

    fn observe(&self, policy: &mut dyn Policy, touched: &[Handle], change: Change) {
        policy.observe(view(self.slot, self.machines.config, &self.rows, touched), change);
    }

    /// Notifies the policy of jobs that left and of changed rows. Handles become free only after that.
    fn notify_of_previous_slot(&mut self, policy: &mut dyn Policy) {
        for &handle in &self.left {
            self.observe(policy, &[], Change::Left(handle));
        }
        self.spare.append(&mut self.left);
        if !self.touched.is_empty() {
            self.observe(policy, &self.touched, Change::Progress);
            self.touched.clear();
        }
    }

    fn let_arrive(&mut self, policy: &mut dyn Policy, sink: &mut dyn FnMut(&JobRecord)) {
        while let Some(job) = self.jobs.get(self.next).filter(|job| slot_of(job.arrival) <= self.slot) {
            let work = MachineWork::new(self.next, job);
            self.next += 1;
            if work.is_over() {
                sink(&work.record(job, job.arrival));
                continue;
            }
            let handle = self.spare.pop().unwrap_or(Handle(self.rows.len() as u32));
            if handle.index() == self.rows.len() {
                self.rows.push(Row::default());
            }
            self.rows[handle.index()] = Row {
                seq: work.index as u64,
                arrival: time_of(job.arrival),
                deadline: job.deadline.map(time_of),
                weight: if job.weight == 0.0 { 1.0 } else { job.weight },
                pool: job.pool,
                live: true,
                whole: work.remaining(),
                ..Row::default()
            };
            self.machines.enter(handle, work, &mut self.rows[handle.index()]);
            self.present += 1;
            self.observe(policy, &[handle], Change::Arrived(handle));
        }
    }

    fn plan(&mut self, policy: &mut dyn Policy) {
        let SlottedRun { machines, rows, .. } = self;
        machines.start_slot(self.slot);
        let view = view(self.slot, machines.config, rows, &[]);
        let mut plan = Plan::new(machines);
        policy.plan(view, &mut plan);
        plan.finish();
        machines.end_plan();
    }

    /// Lets the machines work. Jobs without work left end with this slot.
    fn work(&mut self, sink: &mut dyn FnMut(&JobRecord), observer: &mut dyn FnMut(u64, &[SlotService])) {
        self.served.clear();
        self.machines.work(&mut self.rows, &mut self.served, &mut self.touched, &mut self.left);
        observer(self.slot, &self.served);
        for &handle in &self.left {
            let work = self.machines.job(handle);
            sink(&work.record(&self.jobs[work.index], self.slot as f64));
        }
        self.present -= self.left.len();
    }
}

#[cfg(test)]
mod tests;
