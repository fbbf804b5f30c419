//! Machines of the slotted model: they execute the plan of one slot and keep the work left.

use super::config::{Config, SlotService};
use crate::ledger::lines::LineCredits;
use crate::metrics::JobRecord;
use crate::plan::{Floor, Line, Reason, Share};
use crate::units::Span;
use crate::view::{Handle, PerStation, Row, Station};
use crate::workload::Job;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Current work of a job.
#[derive(Clone, Debug)]
pub(super) struct MachineWork<'a> {
    /// Index in the workload.
    pub(super) index: usize,
    maps_left: u64,
    /// Units left, including those of running reduces.
    reduces_left: u64,
    /// Lengths of the reduces.
    reduces: &'a [f64],
    /// If reduces keep their machines: the first one that has not started.
    next_reduce: usize,
    /// If reduces keep their machines: the number of those that have not started.
    waiting: u64,
    /// If reduces keep their machines: the number of those that run beyond the end of the slot.
    running: u32,
    /// True if reduces may start.
    open: bool,
    /// Machines used in this slot, by maps and by reduces.
    maps_given: u32,
    reduces_given: u32,
    start: Option<f64>,
    maps_done: f64,
}

impl<'a> MachineWork<'a> {
    pub(super) fn new(index: usize, job: &'a Job) -> Self {
        let reduces = Self::reduces_of(job);
        let mut work = MachineWork {
            index,
            maps_left: job.work[Station::Map] as u64,
            reduces_left: reduces.iter().sum::<f64>() as u64,
            reduces,
            next_reduce: 0,
            waiting: reduces.iter().filter(|&&length| 0.0 < length).count() as u64,
            running: 0,
            open: false,
            maps_given: 0,
            reduces_given: 0,
            start: None,
            maps_done: job.arrival,
        };
        work.pass_empty_reduces();
        work
    }

    /// Returns the lengths of a job's reduces, in units.
    pub(super) fn reduces_of(job: &'a Job) -> &'a [f64] {
        if job.reduces.is_empty() { std::slice::from_ref(&job.work[Station::Reduce]) } else { &job.reduces }
    }

    fn pass_empty_reduces(&mut self) {
        while self.reduces.get(self.next_reduce).is_some_and(|&length| length == 0.0) {
            self.next_reduce += 1;
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.maps_left == 0 && self.reduces_left == 0
    }

    /// Returns the units left, as in rows.
    pub(super) fn remaining(&self) -> PerStation<f64> {
        PerStation::new(self.maps_left as f64, 0.0, self.reduces_left as f64)
    }

    /// Returns the record of the job when it ends at `completion`.
    pub(super) fn record(&self, job: &Job, completion: f64) -> JobRecord {
        JobRecord {
            seq: self.index as u64,
            arrival: job.arrival,
            start: self.start.unwrap_or(completion),
            maps_done: self.maps_done,
            completion,
            work: PerStation::new(job.work[Station::Map], 0.0, self.reduces.iter().sum()),
            deadline: job.deadline.map(super::config::time_of),
            weight: if job.weight == 0.0 { 1.0 } else { job.weight },
        }
    }
}

/// All machines, and the jobs by handle.
#[derive(Debug)]
pub(super) struct Machines<'a> {
    pub(super) config: Config,
    slot: u64,
    free: u32,
    jobs: Vec<MachineWork<'a>>,
    /// Jobs that hold a machine in this slot, in the order of their first grant.
    served: Vec<Handle>,
    /// Reduces that keep their machine: last slot, job and line.
    running: BinaryHeap<Reverse<(u64, Handle, Option<Line>)>>,
    lines: PerStation<LineCredits>,
    lines_drawn: PerStation<bool>,
    /// Lines used by units of this slot.
    drawn: Vec<(Station, Line)>,
}

impl<'a> Machines<'a> {
    pub(super) fn new(config: Config) -> Self {
        Machines {
            config,
            slot: 0,
            free: 0,
            jobs: Vec::new(),
            served: Vec::new(),
            running: BinaryHeap::new(),
            lines: Default::default(),
            lines_drawn: PerStation::default(),
            drawn: Vec::new(),
        }
    }

    pub(super) fn job(&self, handle: Handle) -> &MachineWork<'a> {
        &self.jobs[handle.index()]
    }

    /// Adds a job under a free handle.
    pub(super) fn enter(&mut self, handle: Handle, mut work: MachineWork<'a>, row: &mut Row) {
        work.open = work.maps_left == 0 || !self.config.precedence;
        show(&work, self.config, row);
        if handle.index() == self.jobs.len() {
            self.jobs.push(work);
        } else {
            self.jobs[handle.index()] = work;
        }
    }

    /// Starts a slot in which only machines of running reduces are taken.
    pub(super) fn start_slot(&mut self, slot: u64) {
        self.slot = slot;
        self.free = self.config.machines - self.running.len() as u32;
        self.lines_drawn = PerStation::default();
        let jobs = &mut self.jobs;
        self.served.retain(|handle| {
            let work = &mut jobs[handle.index()];
            work.maps_given = 0;
            work.reduces_given = work.running;
            0 < work.running
        });
    }

    /// Lines are in force only for the plan that sets them.
    pub(super) fn end_plan(&mut self) {
        for (lines, drawn) in self.lines.iter_mut().zip(self.lines_drawn) {
            if !drawn {
                lines.split(&[]);
            }
        }
    }

    /// Does one slot of work. Appends the service of each job, changed rows, and jobs without work left, by age.
    pub(super) fn work(
        &mut self,
        rows: &mut [Row],
        served: &mut Vec<SlotService>,
        touched: &mut Vec<Handle>,
        left: &mut Vec<Handle>,
    ) {
        self.give_lines_back();
        for &handle in &self.served {
            let work = &mut self.jobs[handle.index()];
            served.push(SlotService {
                seq: work.index as u64,
                maps: work.maps_given,
                reduces: work.reduces_given,
            });
            if 0 < work.maps_given {
                work.maps_left -= u64::from(work.maps_given);
                work.maps_done = self.slot as f64;
            }
            work.open |= work.maps_left == 0;
            work.reduces_left -= u64::from(work.reduces_given);
            work.start.get_or_insert((self.slot - 1) as f64);
            let row = &mut rows[handle.index()];
            row.started = true;
            show(work, self.config, row);
            row.live = !work.is_over();
            if row.live { touched.push(handle) } else { left.push(handle) }
        }
        self.served.retain(|handle| !self.jobs[handle.index()].is_over());
        left.sort_unstable_by_key(|handle| self.jobs[handle.index()].index);
    }

    /// Ends the use of lines by reduces that ended and by units of this slot.
    fn give_lines_back(&mut self) {
        for lines in self.lines.iter_mut() {
            lines.pass(Span::whole_seconds(1), f64::from(self.config.machines));
        }
        while let Some(&Reverse((end, handle, line))) = self.running.peek()
            && end <= self.slot
        {
            self.running.pop();
            self.jobs[handle.index()].running -= 1;
            self.drawn.extend(line.map(|line| (Station::Reduce, line)));
        }
        for (station, line) in self.drawn.drain(..) {
            self.lines[station].give_back(line);
        }
    }

    /// Starts one unit or, in the non-preemptive model, one reduce with all its units.
    fn start_unit(&mut self, handle: Handle, station: Station, line: Option<Line>) -> bool {
        let work = &mut self.jobs[handle.index()];
        let mut keeps = false;
        match station {
            Station::Map if u64::from(work.maps_given) < work.maps_left => work.maps_given += 1,
            Station::Reduce if !work.open => return false,
            Station::Reduce if self.config.preemptive => {
                if work.reduces_left <= u64::from(work.reduces_given) {
                    return false;
                }
                work.reduces_given += 1;
            }
            Station::Reduce => {
                let Some(&length) = work.reduces.get(work.next_reduce) else { return false };
                work.next_reduce += 1;
                work.pass_empty_reduces();
                work.waiting -= 1;
                work.reduces_given += 1;
                work.running += 1;
                keeps = true;
                self.running.push(Reverse((self.slot + length as u64 - 1, handle, line)));
            }
            Station::Map | Station::Shuffle => return false,
        }
        if work.maps_given + work.reduces_given == 1 {
            self.served.push(handle);
        }
        if let Some(line) = line {
            self.lines[station].use_credit(line);
            if !keeps {
                self.drawn.push((station, line));
            }
        }
        true
    }
}

/// Updates a row with a job's work between slots.
fn show(work: &MachineWork<'_>, config: Config, row: &mut Row) {
    row.left = work.remaining();
    let waiting = if config.preemptive { work.reduces_left } else { work.waiting };
    row.can = PerStation::new(work.maps_left as f64, 0.0, if work.open { waiting as f64 } else { 0.0 });
    row.held = PerStation::new(0.0, 0.0, f64::from(work.running));
    row.pend = PerStation::new(work.maps_left as u32, 0, waiting as u32);
    row.done = row.whole[Station::Map] as u32 - work.maps_left as u32;
    row.done_time = f64::from(row.done);
}

impl Floor for Machines<'_> {
    fn unified(&self) -> bool {
        true
    }

    fn remaining(&self, station: Station) -> f64 {
        if station == Station::Shuffle { 0.0 } else { f64::from(self.free) }
    }

    fn held(&self, job: Handle, station: Station) -> f64 {
        let work = self.job(job);
        f64::from(match station {
            Station::Map => work.maps_given,
            Station::Shuffle => 0,
            Station::Reduce => work.reduces_given,
        })
    }

    fn start(&mut self, job: Handle, station: Station, line: Option<Line>, _: Reason) -> bool {
        let starts = 0 < self.free && self.start_unit(job, station, line);
        self.free -= u32::from(starts);
        starts
    }

    fn lines(&mut self, station: Station, fractions: &[f64]) {
        self.lines_drawn[station] = true;
        self.lines[station].split(fractions);
    }

    fn line_open(&self, station: Station, line: Line) -> bool {
        self.lines[station].open(line, f64::from(self.config.machines))
    }

    /// The model has no shuffle, so there is never room for more of it.
    fn lane(&mut self, _: Handle, _: Share) -> Option<bool> {
        Some(false)
    }
}
