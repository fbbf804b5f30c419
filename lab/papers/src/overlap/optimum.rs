//! Decides if any schedule of a small instance has a smaller total response time than a given one.
//!
//! For a fixed order of arrivals and completions the best schedule of the overlapping tandem queue is a linear program:
//! between two events rates may be constant, since averages over an interval keep all constraints. So the optimum is the
//! least of these programs over all orders. Most orders are excluded by bounds of single stations.

use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};

/// Number of programs after which a question stays open.
const PROGRAMS_MAX: u32 = 3000;

/// Relative precision of a program's solution.
const PRECISION: f64 = 1e-7;

/// Event of a schedule: the arrival or the completion of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Arrival(usize),
    Completion(usize),
}

/// Search over all orders of events for a total below a limit.
struct Search<'a> {
    /// `[arrival, map, shuffle]`, by arrival.
    jobs: &'a [[f64; 3]],
    limit: f64,
    programs: u32,
}

/// Returns true if every schedule of these jobs (`[arrival, map, shuffle]`, by arrival) has at least this total response
/// time, false if one has less, `None` if the search was given up.
pub(super) fn is_at_least(jobs: &[[f64; 3]], total: f64) -> Option<bool> {
    let arrivals: f64 = jobs.iter().map(|job| job[0]).sum();
    let limit = (total + arrivals) * (1.0 - PRECISION);
    let mut search = Search { jobs, limit, programs: 0 };
    search.complete(&mut Vec::new(), &mut Vec::new()).map(|found| !found)
}

impl Search<'_> {
    /// Extends an order of completions, with a lower bound of each. Returns true if one has a schedule below the limit.
    fn complete(&mut self, order: &mut Vec<usize>, least: &mut Vec<f64>) -> Option<bool> {
        if self.bound(order, least) >= self.limit {
            return Some(false);
        }
        if order.len() == self.jobs.len() {
            return self.interleave(order, least, &mut Vec::new(), [0, 0]);
        }
        let mut found = Some(false);
        for job in (0..self.jobs.len()).filter(|job| !order.contains(job)).collect::<Vec<usize>>() {
            // Equal jobs are interchangeable: only their first order is tried.
            if (0..job).any(|other| self.jobs[other] == self.jobs[job] && !order.contains(&other)) {
                continue;
            }
            order.push(job);
            least.push(self.least(order, least.last().copied().unwrap_or(0.0)));
            let below = self.complete(order, least);
            order.pop();
            least.pop();
            match below {
                Some(true) => return Some(true),
                Some(false) => {}
                None => found = None,
            }
        }
        found
    }

    /// Lower bound of the last completion of this order: no station is faster than 1, and no work precedes its arrival.
    fn least(&self, order: &[usize], before: f64) -> f64 {
        let work = |station: usize, from: f64| -> f64 {
            let later = order.iter().map(|&job| self.jobs[job]).filter(|job| job[0] >= from);
            from + later.map(|job| job[station]).sum::<f64>()
        };
        let starts = order.iter().map(|&job| self.jobs[job][0]);
        let stations = starts.map(|from| work(1, from).max(work(2, from))).fold(before, f64::max);
        let [arrival, map, shuffle] = self.jobs[order[order.len() - 1]];
        stations.max(arrival + map.max(shuffle))
    }

    /// Lower bound of the sum of completions of all orders that begin with this one.
    fn bound(&self, order: &[usize], least: &[f64]) -> f64 {
        let rest = (0..self.jobs.len()).filter(|job| !order.contains(job));
        let rest: Vec<[f64; 3]> = rest.map(|job| self.jobs[job]).collect();
        let before = least.last().copied().unwrap_or(0.0);
        let by_station = |station: usize| -> f64 {
            let mut works: Vec<f64> = rest.iter().map(|job| job[station]).collect();
            works.sort_unstable_by(f64::total_cmp);
            let mut done: f64 = order.iter().map(|&job| self.jobs[job][station]).sum();
            works
                .iter()
                .map(|work| {
                    done += work;
                    done.max(before)
                })
                .sum()
        };
        let alone: f64 = rest.iter().map(|job| before.max(job[0] + job[1].max(job[2]))).sum();
        least.iter().sum::<f64>() + alone.max(by_station(1)).max(by_station(2))
    }

    /// Puts the arrivals among the completions in every way that the bounds allow, and solves the programs. `next` counts
    /// the arrivals and completions so far.
    fn interleave(
        &mut self,
        order: &[usize],
        least: &[f64],
        events: &mut Vec<Event>,
        next: [usize; 2],
    ) -> Option<bool> {
        let [arrivals, completions] = next;
        if completions == order.len() {
            self.programs += 1;
            return if self.programs > PROGRAMS_MAX { None } else { self.solve(events) };
        }
        let mut found = Some(false);
        let mut with = |search: &mut Self, event: Event, next: [usize; 2]| {
            events.push(event);
            let below = search.interleave(order, least, events, next);
            events.pop();
            below
        };
        if let Some(job) = self.jobs.get(arrivals) {
            found = with(self, Event::Arrival(arrivals), [arrivals + 1, completions]);
            if found == Some(true) || least[completions] > job[0] {
                return found;
            }
        }
        if order[completions] < arrivals {
            match with(self, Event::Completion(order[completions]), [arrivals, completions + 1]) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => found = None,
            }
        }
        found
    }

    /// Solves the program of an order of events. Returns true if its total is below the limit, `None` if the solver
    /// fails.
    fn solve(&self, events: &[Event]) -> Option<bool> {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let ends = |job: usize| events.iter().position(|&event| event == Event::Completion(job));
        // An interval counts once for every job that completes at its end or later.
        let weight = |interval: usize| {
            events[interval..].iter().filter(|event| matches!(event, Event::Completion(_))).count() as f64
        };
        let lengths: Vec<Variable> = (0..events.len())
            .map(|interval| problem.add_var(weight(interval), (0.0, f64::INFINITY)))
            .collect();
        // For each interval and station, the parts of jobs served there with their work.
        let mut served: Vec<[Vec<(Variable, f64)>; 2]> =
            lengths.iter().map(|&length| [(); 2].map(|()| vec![(length, -1.0)])).collect();
        for (job, &[arrival, map, shuffle]) in self.jobs.iter().enumerate() {
            let start = events.iter().position(|&event| event == Event::Arrival(job))?;
            let until: Vec<(Variable, f64)> = lengths[..=start].iter().map(|&length| (length, 1.0)).collect();
            problem.add_constraint(&until[..], ComparisonOp::Eq, arrival);
            // The part of the map minus that of the shuffle, which never leads.
            let (mut ahead, mut done) = (Vec::new(), [Vec::new(), Vec::new()]);
            for stations in &mut served[start + 1..=ends(job)?] {
                for (station, work) in [map, shuffle].into_iter().enumerate() {
                    let part = problem.add_var(0.0, (0.0, 1.0));
                    stations[station].push((part, work));
                    done[station].push((part, 1.0));
                    ahead.push((part, if station == 0 { 1.0 } else { -1.0 }));
                }
                problem.add_constraint(&ahead[..], ComparisonOp::Ge, 0.0);
            }
            for parts in &done {
                problem.add_constraint(&parts[..], ComparisonOp::Eq, 1.0);
            }
        }
        for parts in served.iter().flatten() {
            problem.add_constraint(&parts[..], ComparisonOp::Le, 0.0);
        }
        match problem.solve() {
            Ok(solution) => Some(solution.objective() < self.limit),
            Err(microlp::Error::Infeasible) => Some(false),
            Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlap::common::total;
    use gristmill_scheduler::sim::fluid::lower_bound::lower_bound;
    use proptest::prelude::*;

    #[test]
    fn optimum_of_one_job_is_its_longer_station() {
        assert_eq!(is_at_least(&[[1.0, 2.0, 3.0]], 3.0), Some(true));
        assert_eq!(is_at_least(&[[1.0, 2.0, 3.0]], 3.01), Some(false));
    }

    #[test]
    fn two_mirrored_jobs_need_both_stations_one_after_the_other() {
        // (1, 3) and (3, 1): the first ends at 3, and the second at 4, when both stations have done 4.
        let jobs = [[0.0, 1.0, 3.0], [0.0, 3.0, 1.0]];
        assert_eq!(is_at_least(&jobs, 7.0), Some(true));
        assert_eq!(is_at_least(&jobs, 7.01), Some(false));
    }

    #[test]
    fn job_that_arrives_later_cannot_be_served_before() {
        // Two equal jobs, the second after half of the first: 2 and 4 - 1.
        let jobs = [[0.0, 2.0, 2.0], [1.0, 2.0, 2.0]];
        assert_eq!(is_at_least(&jobs, 5.0), Some(true));
        assert_eq!(is_at_least(&jobs, 5.01), Some(false));
    }

    fn instances() -> impl Strategy<Value = Vec<[f64; 3]>> {
        let quarter = |most: u32| (1..=most).prop_map(|quarters| f64::from(quarters) / 4.0);
        prop::collection::vec((quarter(8), quarter(16), quarter(16)), 1..=4).prop_map(|jobs| {
            let mut at = 0.0;
            let placed = jobs.into_iter().enumerate().map(|(place, (gap, map, shuffle))| {
                at += if place == 0 { 0.0 } else { gap };
                [at, map, shuffle]
            });
            placed.collect()
        })
    }

    proptest! {
        #[test]
        fn optimum_is_between_the_bound_and_every_policy(jobs in instances()) {
            let bound = lower_bound(jobs.iter().copied());
            prop_assert_eq!(is_at_least(&jobs, bound), Some(true));
            for policy in ["max-srpt", "fcfs", "ps", "split-srpt", "makespan"] {
                let reached = total(policy, &jobs).unwrap();
                prop_assert_eq!(is_at_least(&jobs, 1.001 * reached), Some(false), "{}: {}", policy, reached);
            }
        }
    }
}
