//! Rates at map and shuffle, what they do to jobs, and when they change next.
//!
//! The floor on which plans of the fluid model are executed. Cost: per event a few steps for each job that is served.

use crate::plan::{self, Line, Member, Reason, Share};
use crate::station::PerStation;
use crate::view::{Handle, Row, Station};

/// Capacity below this is rounding, not capacity.
const NOTHING: f64 = 1e-12;

/// One job.
#[derive(Clone, Copy, Debug, Default)]
struct Fluid {
    map_left: f64,
    /// Mapped and not shuffled. Its own variable, never derived, so that it can become exactly 0.
    buffer: f64,
    /// Shuffle work that a unit of map work brings.
    feed: f64,
    /// Rates at map and shuffle.
    rates: [f64; 2],
    is_served: bool,
    /// When it was first served; not a number before.
    started: f64,
    maps_done: f64,
}

impl Fluid {
    /// How fast it could go at this station: whatever is there, or with an empty buffer as fast as it is fed.
    fn limit(&self, station: usize) -> f64 {
        match station {
            MAP if 0.0 < self.map_left => f64::INFINITY,
            SHUFFLE if 0.0 < self.buffer => f64::INFINITY,
            SHUFFLE => self.rates[MAP] * self.feed,
            _ => 0.0,
        }
    }

    /// How fast its buffer runs empty; negative if it grows.
    fn drain(&self) -> f64 {
        self.rates[SHUFFLE] - self.rates[MAP] * self.feed
    }
}

const MAP: usize = Station::Map as usize;
const SHUFFLE: usize = Station::Shuffle as usize;

/// What is left of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    map_left: f64,
    buffer: f64,
    feed: f64,
}

impl Progress {
    /// Enters it into what policies see.
    pub(super) fn show(self, row: &mut Row) {
        let can = |left: f64| if 0.0 < left { f64::INFINITY } else { 0.0 };
        row.started = true;
        row.left = PerStation::new(self.map_left, self.buffer + self.map_left * self.feed, 0.0);
        row.can = PerStation::new(can(self.map_left), can(self.buffer), 0.0);
    }
}

/// The end of a piece of time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Happening {
    MapsEnd(Handle),
    BufferEmpty(Handle),
}

/// Who is served how fast.
#[derive(Debug, Default)]
pub(super) struct Floor {
    now: f64,
    /// By handle.
    jobs: Vec<Fluid>,
    /// Jobs with a rate above 0.
    served: Vec<Handle>,
    /// Capacity that nobody uses, at map and shuffle.
    left: [f64; 2],
    /// What is left of each line.
    lines: [Vec<f64>; 2],
    /// Open tiers: job and weight.
    tiers: [Vec<(Handle, f64)>; 2],
    /// Members of a tier who cannot use everything: limit for their weight, and weight. Kept only for its memory.
    limited: Vec<(f64, f64)>,
}

impl Floor {
    /// A new job; says what is left of it.
    pub(super) fn enter(&mut self, job: Handle, arrival: f64, [map, shuffle]: [f64; 2]) -> Progress {
        if self.jobs.len() <= job.index() {
            self.jobs.resize(job.index() + 1, Fluid::default());
        }
        let (feed, buffer) = if 0.0 < map { (shuffle / map, 0.0) } else { (0.0, shuffle) };
        let (started, maps_done) = (f64::NAN, arrival);
        self.jobs[job.index()] =
            Fluid { map_left: map, buffer, feed, started, maps_done, ..Fluid::default() };
        Progress { map_left: map, buffer, feed }
    }

    pub(super) fn started(&self, job: Handle) -> f64 {
        self.jobs[job.index()].started
    }

    pub(super) fn maps_done(&self, job: Handle) -> f64 {
        self.jobs[job.index()].maps_done
    }

    /// How much of each station is used.
    pub(super) fn busy(&self) -> [f64; 2] {
        if self.served.is_empty() { [0.0; 2] } else { self.left.map(|left| 1.0 - left) }
    }

    /// The rates of all jobs that are served, in the order of their seq.
    pub(super) fn rates(&self, seq: impl Fn(Handle) -> u64) -> Vec<(u64, [f64; 2])> {
        let mut rates: Vec<_> =
            self.served.iter().map(|&job| (seq(job), self.jobs[job.index()].rates)).collect();
        rates.sort_unstable_by_key(|&(seq, _)| seq);
        rates
    }

    /// How long the rates hold, and what ends them; infinite and nothing if nobody is served.
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

    /// Lets a span pass that the rates hold for, up to the time `to`, and tells what it left of every job served.
    pub(super) fn pass(
        &mut self,
        span: f64,
        to: f64,
        happening: Option<Happening>,
        mut tell: impl FnMut(Handle, Progress),
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
                // A little less than 0 is rounding: an arrival at the moment in which the maps end.
                if job.map_left <= 0.0 || happening == Some(Happening::MapsEnd(handle)) {
                    job.map_left = 0.0;
                    job.maps_done = to;
                }
            }
            tell(handle, Progress { map_left: job.map_left, buffer: job.buffer, feed: job.feed });
        }
    }

    /// Takes all rates back: a new plan begins.
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

    fn take(&mut self, station: usize, used: f64) {
        let left = self.left[station] - used;
        self.left[station] = if left < NOTHING { 0.0 } else { left };
    }

    /// Closes open tiers, the map first since it feeds the shuffle.
    pub(super) fn close(&mut self) {
        for station in [MAP, SHUFFLE] {
            self.close_at(station);
        }
    }

    fn close_at(&mut self, station: usize) {
        if !self.tiers[station].is_empty() {
            let mut tier = std::mem::take(&mut self.tiers[station]);
            self.fill_tier(station, &tier);
            tier.clear();
            self.tiers[station] = tier;
        }
    }

    /// Max-min: everybody gets the same for its weight, or all it can use.
    fn fill_tier(&mut self, station: usize, tier: &[(Handle, f64)]) {
        let level = self.level(station, tier);
        for &(handle, weight) in tier {
            let limit = self.jobs[handle.index()].limit(station);
            let share = level * weight;
            // Who wants no more than its share gets exactly what it wants, so that its buffer stays exactly empty.
            let rate = if limit <= share * (1.0 + NOTHING) { limit } else { share };
            if 0.0 < rate {
                self.set_rate(handle, station, rate);
                self.take(station, rate);
            }
        }
    }

    /// What those get for their weight who can use more; infinite if everybody gets all it can use.
    fn level(&mut self, station: usize, tier: &[(Handle, f64)]) -> f64 {
        let mut left = self.left[station];
        let (mut open, mut open_weight) = (0_usize, 0.0);
        self.limited.clear();
        for &(handle, weight) in tier {
            let limit = self.jobs[handle.index()].limit(station);
            if 0.0 < limit {
                open += 1;
                open_weight += weight;
                if limit.is_finite() {
                    self.limited.push((limit / weight, weight));
                }
            }
        }
        self.limited.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        for &(limit, weight) in &self.limited {
            if left < limit * open_weight {
                break;
            }
            left -= limit * weight;
            open -= 1;
            open_weight -= weight;
        }
        if open == 0 { f64::INFINITY } else { left.max(0.0) / open_weight }
    }
}

/// The stations of the model have lines and tiers; there are no reduces.
fn place_of(station: Station) -> Option<usize> {
    match station {
        Station::Map => Some(MAP),
        Station::Shuffle => Some(SHUFFLE),
        Station::Reduce => None,
    }
}

impl plan::Floor for Floor {
    fn unified(&self) -> bool {
        false
    }

    fn left(&self, station: Station) -> f64 {
        place_of(station).map_or(0.0, |place| self.left[place])
    }

    fn held(&self, job: Handle, station: Station) -> f64 {
        place_of(station).map_or(0.0, |place| self.jobs[job.index()].rates[place])
    }

    fn raise(&mut self, job: Handle, station: Station, target: f64, line: Option<Line>, _: Reason) {
        let Some(place) = place_of(station) else { return };
        self.close_at(MAP);
        if place == SHUFFLE {
            self.close_at(SHUFFLE);
        }
        let state = &self.jobs[job.index()];
        let held = state.rates[place];
        let deadline = state.limit(place).min(target);
        let wanted = deadline - held;
        let line = line.map(|Line(line)| line as usize);
        let of_line = line.map_or(f64::INFINITY, |line| self.lines[place].get(line).copied().unwrap_or(0.0));
        let room = self.left[place].min(of_line);
        if wanted <= 0.0 || room <= 0.0 {
            return;
        }
        // As in a tier: exactly what it wants, if there is as much.
        let (rate, used) =
            if wanted <= room + NOTHING { (deadline, wanted.min(room)) } else { (held + room, room) };
        self.set_rate(job, place, rate);
        self.take(place, used);
        if let Some(line) = line {
            let left = self.lines[place][line] - used;
            self.lines[place][line] = if left < NOTHING { 0.0 } else { left };
        }
    }

    fn fill(&mut self, _: &[Member]) {
        unreachable!("this floor takes all members of tiers itself");
    }

    fn lines(&mut self, station: Station, fractions: &[f64]) {
        if let Some(place) = place_of(station) {
            self.close();
            self.lines[place].clear();
            self.lines[place].extend_from_slice(fractions);
        }
    }

    fn line_open(&self, station: Station, line: Line) -> bool {
        let lines = place_of(station).map(|place| &self.lines[place]);
        lines.and_then(|lines| lines.get(line.0 as usize)).is_some_and(|&left| 0.0 < left)
    }

    fn lane(&mut self, _: Handle, _: Share) -> Option<bool> {
        None
    }

    fn join(&mut self, job: Handle, station: Station, weight: f64) -> bool {
        assert!(weight.is_finite() && 0.0 < weight, "weight {weight} granted");
        if let Some(place) = place_of(station) {
            self.tiers[place].push((job, weight));
        }
        true
    }

    fn feeds(&self) -> bool {
        true
    }
}
