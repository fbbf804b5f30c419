//! Executes the grants of a policy in the fluid model, where a grant is a rate of map or shuffle work and not a number
//! of slots. Jobs granted by weight share a station by max-min fairness.

use super::{FluidFloor, MAP, NOTHING, SHUFFLE};
use crate::plan::{Floor, Line, Reason, Share};
use crate::view::{Handle, Station};

impl FluidFloor {
    fn take(&mut self, station: usize, used: f64) {
        let left = self.left[station] - used;
        self.left[station] = if left < NOTHING { 0.0 } else { left };
    }

    /// Closes open tiers; the map station first, since it feeds the shuffle.
    pub(in crate::sim::fluid) fn close(&mut self) {
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

    /// Max-min fair sharing: each job gets the same per weight, or all it can use.
    fn fill_tier(&mut self, station: usize, tier: &[(Handle, f64)]) {
        let level = self.level(station, tier);
        for &(handle, weight) in tier {
            let limit = self.jobs[handle.index()].limit(station);
            let share = level * weight;
            // A job that wants no more than its share gets exactly what it wants, so that its buffer stays exactly
            // empty.
            let rate = if limit <= share * (1.0 + NOTHING) { limit } else { share };
            if 0.0 < rate {
                self.set_rate(handle, station, rate);
                self.take(station, rate);
            }
        }
    }

    /// Returns the rate per weight of jobs that can use more; infinite if each job gets all it can use.
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

/// Stations of the model have lines and tiers. The model has no reduces.
fn place_of(station: Station) -> Option<usize> {
    match station {
        Station::Map => Some(MAP),
        Station::Shuffle => Some(SHUFFLE),
        Station::Reduce => None,
    }
}

impl Floor for FluidFloor {
    fn unified(&self) -> bool {
        false
    }

    fn remaining(&self, station: Station) -> f64 {
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
        // As in a tier: exactly what it wants, if available.
        let (rate, used) =
            if wanted <= room + NOTHING { (deadline, wanted.min(room)) } else { (held + room, room) };
        self.set_rate(job, place, rate);
        self.take(place, used);
        if let Some(line) = line {
            let left = self.lines[place][line] - used;
            self.lines[place][line] = if left < NOTHING { 0.0 } else { left };
        }
    }

    /// Rates have no single tasks: [`FluidFloor::raise`] and [`FluidFloor::join`] take all grants.
    fn start(&mut self, _: Handle, _: Station, _: Option<Line>, _: Reason) -> bool {
        false
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
