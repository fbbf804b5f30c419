//! The processors of a host: work that its workers do besides the time that tasks are long waits for one of them.
//!
//! Whoever comes first is served first, in one go, by the processor that is free first. For pieces of a millisecond and
//! less this takes as long as sharing does, and no end has to be foreseen anew.
//!
//! A message goes through threads of several processes, and waits for a processor at each stop: each wait is taken to be
//! as long as the first one is, and the work to be done in one go at the first. Not here: tasks that compute for all of
//! their time, whose lengths must have their contention in them.

use crate::sim::cluster::Config;
use crate::units::{Span, Time};
use std::collections::BTreeMap;

/// Stops of a report of a task's end and of what is ordered next: the worker's control, the master, the control of the
/// worker that gets an order, its slot.
const REPORT_STOPS: u32 = 4;

/// Stops of a request: the home's control, a lane, the worker that is asked, the lane again.
const REQUEST_STOPS: u32 = 4;

/// Stops of the report that an output is there: the home's control, the master.
const ARRIVAL_STOPS: u32 = 2;

/// What the system itself asks of the processors of a host, in seconds of one processor.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SystemWork {
    /// Processors of each host; at least 1.
    pub cores: u32,
    /// For a map and for a reduce: to order, begin, publish and report it.
    pub task: [f64; 2],
    /// For a request of a home, which takes all outputs along that wait at one worker.
    pub request: f64,
    /// For an output of a map that comes to a home: to announce, send and report it.
    pub fetch: f64,
    /// For a segment of such an output, which is listed wherever the output is.
    pub segment: f64,
    /// For a byte that a map puts out, and for one that a reduce takes in.
    pub byte: [f64; 2],
    /// For a byte that comes from another worker.
    pub fetch_byte: f64,
}

/// An output of a map at one of its homes.
pub(super) struct Arriving {
    /// From another worker.
    pub(super) fetched: bool,
    /// Of this home.
    pub(super) segments: usize,
}

/// All hosts at their present moment.
pub(super) struct Processors {
    work: SystemWork,
    /// The host of each worker.
    hosts: Vec<u32>,
    /// By host, when each of its processors is free.
    free: BTreeMap<u32, Vec<Time>>,
}

impl Processors {
    /// None, if the system itself takes no time.
    pub(super) fn of(config: &Config) -> Option<Self> {
        let work = config.system?;
        let free = |host| (host, vec![Time::ZERO; work.cores as usize]);
        let hosts: Vec<u32> = config.workers.iter().map(|worker| worker.host).collect();
        Some(Self { work, free: hosts.iter().copied().map(free).collect(), hosts })
    }

    /// When the work for a task is done that takes in or puts out so many bytes and asks for a processor now.
    pub(super) fn task(&mut self, worker: usize, now: Time, kind: usize, bytes: f64) -> Time {
        self.serve(worker, now, 1, self.work.task[kind] + bytes * self.work.byte[kind])
    }

    /// What a report of the end of a task waits for processors if it is sent now.
    pub(super) fn report(&self, worker: usize, now: Time) -> Span {
        Span(self.wait(worker, now).0 * u64::from(REPORT_STOPS))
    }

    /// When what a request of this home asks for has been copied, but for what the network takes.
    pub(super) fn request(&mut self, home: usize, now: Time, bytes: f64) -> Time {
        self.serve(home, now, REQUEST_STOPS, self.work.request + bytes * self.work.fetch_byte)
    }

    /// When this home has an output that arrives now.
    pub(super) fn arrival(&mut self, home: usize, now: Time, output: &Arriving) -> Time {
        let fetch = if output.fetched { self.work.fetch } else { 0.0 };
        let seconds = fetch + output.segments as f64 * self.work.segment;
        self.serve(home, now, ARRIVAL_STOPS, seconds)
    }

    /// How long work of this worker waits for a processor that asks for one now.
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
        Processors::of(&Config { system: Some(work), ..Config::uniform(1, Slots::Unified(4)) }).unwrap()
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
