//! Rates at map and shuffle, their effect on jobs, and the time of their next change.
//!
//! Plans of the fluid model are executed here. The cost per event is a few steps for each job that is served.

mod grants;

use crate::station::PerStation;
use crate::view::{Handle, Row, Station};

/// Capacity below this is a rounding error.
const NOTHING: f64 = 1e-12;

/// State of one job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fluid {
    pub(super) arrival: f64,
    pub(super) work: PerStation<f64>,
    map_left: f64,
    /// Work mapped and not shuffled. A separate variable, so that it can become exactly 0.
    buffer: f64,
    /// Shuffle work per unit of map work.
    feed: f64,
    /// Rates at map and shuffle.
    rates: [f64; 2],
    is_served: bool,
    /// Time when it was first served; NaN before.
    pub(super) started: f64,
    pub(super) maps_done: f64,
}

impl Fluid {
    /// Maximum rate at this station: unlimited while work is available, or with an empty buffer the rate of its input.
    fn limit(&self, station: usize) -> f64 {
        match station {
            MAP if 0.0 < self.map_left => f64::INFINITY,
            SHUFFLE if 0.0 < self.buffer => f64::INFINITY,
            SHUFFLE => self.rates[MAP] * self.feed,
            _ => 0.0,
        }
    }

    /// Rate at which its buffer empties; negative if it grows.
    fn drain(&self) -> f64 {
        self.rates[SHUFFLE] - self.rates[MAP] * self.feed
    }
}

const MAP: usize = Station::Map as usize;
const SHUFFLE: usize = Station::Shuffle as usize;

/// Work left of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct FluidProgress {
    map_left: f64,
    buffer: f64,
    feed: f64,
}

impl FluidProgress {
    /// Copies it into the row that policies see.
    pub(super) fn show(self, row: &mut Row) {
        let can = |left: f64| if 0.0 < left { f64::INFINITY } else { 0.0 };
        row.started = true;
        row.left = PerStation::new(self.map_left, self.buffer + self.map_left * self.feed, 0.0);
        row.can = PerStation::new(can(self.map_left), can(self.buffer), 0.0);
    }
}

/// Event that ends a time interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Happening {
    MapsEnd(Handle),
    BufferEmpty(Handle),
}

/// Jobs and their rates.
#[derive(Debug, Default)]
pub(super) struct FluidFloor {
    now: f64,
    /// Jobs by handle.
    jobs: Vec<Fluid>,
    /// Jobs with a rate above 0.
    served: Vec<Handle>,
    /// Unused capacity at map and shuffle.
    left: [f64; 2],
    /// Unused capacity of each line.
    lines: [Vec<f64>; 2],
    /// Open tiers: job and weight.
    tiers: [Vec<(Handle, f64)>; 2],
    /// Members of a tier with a limit: limit per weight, and weight. Kept only to reuse its memory.
    limited: Vec<(f64, f64)>,
}

impl FluidFloor {
    /// Adds a job. Returns its work left.
    pub(super) fn enter(&mut self, job: Handle, arrival: f64, work: PerStation<f64>) -> FluidProgress {
        if self.jobs.len() <= job.index() {
            self.jobs.resize(job.index() + 1, Fluid::default());
        }
        let PerStation([map, shuffle, _]) = work;
        let (feed, buffer) = if 0.0 < map { (shuffle / map, 0.0) } else { (0.0, shuffle) };
        let progress = FluidProgress { map_left: map, buffer, feed };
        let (started, maps_done) = (f64::NAN, arrival);
        self.jobs[job.index()] =
            Fluid { arrival, work, map_left: map, buffer, feed, started, maps_done, ..Fluid::default() };
        progress
    }

    pub(super) fn job(&self, job: Handle) -> &Fluid {
        &self.jobs[job.index()]
    }

    /// Returns the rates of all served jobs, in the order of their seq.
    pub(super) fn rates(&self, seq: impl Fn(Handle) -> u64) -> Vec<(u64, [f64; 2])> {
        let mut rates: Vec<_> =
            self.served.iter().map(|&job| (seq(job), self.jobs[job.index()].rates)).collect();
        rates.sort_unstable_by_key(|&(seq, _)| seq);
        rates
    }

    /// Returns the time for which the rates hold and the event that ends it; infinite and `None` if no job is served.
    pub(super) fn next_event(&self) -> (f64, Option<Happening>) {
        let mut first = (f64::INFINITY, None);
        for &handle in &self.served {
            let job = &self.jobs[handle.index()];
            if 0.0 < job.rates[MAP] {
                let span = job.map_left / job.rates[MAP];
                if span < first.0 {
                    first = (span, Some(Happening::MapsEnd(handle)));
                }
            }
            let drain = job.drain();
            if 0.0 < job.buffer && 0.0 < drain {
                let span = job.buffer / drain;
                if span < first.0 {
                    first = (span, Some(Happening::BufferEmpty(handle)));
                }
            }
        }
        first
    }

    /// Advances to the time `to` with constant rates, and reports the work left of every served job.
    pub(super) fn pass(
        &mut self,
        span: f64,
        to: f64,
        happening: Option<Happening>,
        mut tell: impl FnMut(Handle, FluidProgress),
    ) {
        for &handle in &self.served {
            let job = &mut self.jobs[handle.index()];
            // A buffer that is emptied as fast as it is filled stays exactly empty.
            let drain = job.drain();
            if drain != 0.0 {
                job.buffer = (job.buffer - drain * span).max(0.0);
            }
            if happening == Some(Happening::BufferEmpty(handle)) {
                job.buffer = 0.0;
            }
            if 0.0 < job.rates[MAP] {
                job.map_left -= job.rates[MAP] * span;
                // A little less than 0 is a rounding error: an arrival at the moment when the maps end.
                if job.map_left <= 0.0 || happening == Some(Happening::MapsEnd(handle)) {
                    job.map_left = 0.0;
                    job.maps_done = to;
                }
            }
            tell(handle, FluidProgress { map_left: job.map_left, buffer: job.buffer, feed: job.feed });
        }
    }

    /// Resets all rates before a new plan.
    pub(super) fn clear(&mut self, now: f64) {
        self.now = now;
        self.left = [1.0; 2];
        for handle in self.served.drain(..) {
            let job = &mut self.jobs[handle.index()];
            job.rates = [0.0; 2];
            job.is_served = false;
        }
        for lines in &mut self.lines {
            lines.clear();
        }
    }

    fn set_rate(&mut self, handle: Handle, station: usize, rate: f64) {
        let job = &mut self.jobs[handle.index()];
        job.rates[station] = rate;
        if !job.is_served {
            job.is_served = true;
            self.served.push(handle);
            if job.started.is_nan() {
                job.started = self.now;
            }
        }
    }
}
