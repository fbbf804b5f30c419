//! Processors of a host: work of its workers apart from the tasks themselves waits for one of them.
//!
//! Requests are served first come, first served, without interruption, by the processor that is free first. For pieces
//! of at most a millisecond this takes as long as sharing does, and no end has to be predicted again.
//!
//! A message passes through threads of several processes and waits for a processor at each stop. Each wait is assumed
//! to be as long as the first one, and all work is assumed to be done at the first stop. Computation of tasks is not
//! modelled here: their lengths must include contention.

use crate::sim::cluster::Config;
use crate::units::{Span, Time};
use std::collections::BTreeMap;

/// Stops of a report of a task's end and of the next command: the worker's control, the master, the control of the next
/// worker, its slot.
const REPORT_STOPS: u32 = 4;

/// Stops of a request: the home's control, a lane, the serving worker, the lane again.
const REQUEST_STOPS: u32 = 4;

/// Stops of the report that an output has arrived: the home's control, the master.
const ARRIVAL_STOPS: u32 = 2;

/// System's own use of the processors of a host, in seconds of one processor.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SystemWork {
    /// Processors of each host; at least 1.
    pub cores: u32,
    /// Per map and per reduce: to order, start, publish and report it.
    pub task: [f64; 2],
    /// Per request of a home, which fetches all outputs that wait at one worker.
    pub request: f64,
    /// Per map output that arrives at a home: to announce, send and report it.
    pub fetch: f64,
    /// Per segment of such an output, which is listed in every message about the output.
    pub segment: f64,
    /// Per output byte of a map, and per input byte of a reduce.
    pub byte: [f64; 2],
    /// Per byte from another worker.
    pub fetch_byte: f64,
}

/// Map output that arrives at one of its homes.
pub(super) struct Arriving {
    /// True if it comes from another worker.
    pub(super) fetched: bool,
    /// Number of segments for this home.
    pub(super) segments: usize,
}

/// State of all hosts.
pub(super) struct Processors {
    work: SystemWork,
    /// Host of each worker.
    hosts: Vec<u32>,
    /// Times when each processor is free, by host.
    free: BTreeMap<u32, Vec<Time>>,
}

impl Processors {
    /// Returns `None` if the system itself takes no time.
    pub(super) fn from_config(config: &Config) -> Option<Self> {
        let work = config.system?;
        let free = |host| (host, vec![Time::ZERO; work.cores as usize]);
        let hosts: Vec<u32> = config.workers.iter().map(|worker| worker.host).collect();
        Some(Self { work, free: hosts.iter().copied().map(free).collect(), hosts })
    }

    /// Returns the time when the work for a task with this many input or output bytes is done, if requested now.
    pub(super) fn task(&mut self, worker: usize, now: Time, kind: usize, bytes: f64) -> Time {
        self.serve(worker, now, 1, self.work.task[kind] + bytes * self.work.byte[kind])
    }

    /// Returns the total wait for processors of a report of a task's end sent now.
    pub(super) fn report(&self, worker: usize, now: Time) -> Span {
        Span(self.wait(worker, now).0 * u64::from(REPORT_STOPS))
    }

    /// Returns the time when the data of a request of this home has been copied, without the time of the network.
    pub(super) fn request(&mut self, home: usize, now: Time, bytes: f64) -> Time {
        self.serve(home, now, REQUEST_STOPS, self.work.request + bytes * self.work.fetch_byte)
    }

    /// Returns the time when this home has processed an output that arrives now.
    pub(super) fn arrival(&mut self, home: usize, now: Time, output: &Arriving) -> Time {
        let fetch = if output.fetched { self.work.fetch } else { 0.0 };
        let seconds = fetch + output.segments as f64 * self.work.segment;
        self.serve(home, now, ARRIVAL_STOPS, seconds)
    }

    /// Returns the wait for a processor of work of this worker that starts now.
    fn wait(&self, worker: usize, now: Time) -> Span {
        let first = self.free.get(&self.hosts[worker]).and_then(|processors| processors.iter().min());
        first.map_or(Span(0), |&first| first.max(now).since(now))
    }

    fn serve(&mut self, worker: usize, now: Time, stops: u32, seconds: f64) -> Time {
        let wait = self.wait(worker, now);
        let processors = self.free.get_mut(&self.hosts[worker]).expect("every worker's host has processors");
        let first = processors.iter_mut().min().expect("at least one: checked");
        *first = now + wait + Span((seconds * 1e9).round() as u64);
        *first + Span(wait.0 * u64::from(stops - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Slots;

    fn processors(work: SystemWork) -> Processors {
        Processors::from_config(&Config { system: Some(work), ..Config::uniform(1, Slots::Unified(4)) })
            .unwrap()
    }

    #[test]
    fn work_waits_for_the_processor_that_is_free_first() {
        let mut two = processors(SystemWork { cores: 2, task: [1.0, 3.0], ..SystemWork::default() });
        let second = |seconds: u64| Time(seconds * 1_000_000_000);
        assert_eq!(two.task(0, second(0), 0, 0.0), second(1));
        assert_eq!(two.task(0, second(0), 1, 0.0), second(3));
        assert_eq!(two.task(0, second(0), 0, 0.0), second(2), "behind the shorter one");
        assert_eq!(two.task(0, second(9), 0, 0.0), second(10), "nothing is left to wait for");
    }
}
