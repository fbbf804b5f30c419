//! The processors of a host: work that its workers do besides the time that tasks are long waits for one of them.
//!
//! Whoever comes first is served first, in one go, by the processor that is free first. For pieces of a millisecond and
//! less this takes as long as sharing does, and no end has to be foreseen anew. Not here: tasks that compute for all of
//! their time, whose lengths must have their contention in them.

use crate::sim::cluster::Config;
use crate::units::{Span, Time};
use std::collections::BTreeMap;

/// What the system itself asks of the processors of a host, in seconds of one processor.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct SystemWork {
    /// Processors of each host; at least 1.
    pub cores: u32,
    /// For a map and for a reduce: to order, begin, publish and report it.
    pub task: [f64; 2],
    /// For an output of a map that goes to a home: to announce, ask for, send and report it.
    pub fetch: f64,
    /// For a segment of such an output, which is listed wherever the output is.
    pub segment: f64,
    /// For a byte that a map puts out, and for one that a reduce takes in.
    pub byte: [f64; 2],
    /// Bytes of a pair: an output of few pairs has nothing for some of the homes. 0 if every output goes to all.
    pub pair_bytes: f64,
}

impl SystemWork {
    /// Part of the homes that an output of so many bytes has something for, if each pair is as likely to go to any.
    fn reached(&self, bytes: f64, homes: usize) -> f64 {
        if self.pair_bytes == 0.0 || homes == 0 {
            return 1.0;
        }
        let pairs = (bytes / self.pair_bytes).ceil();
        1.0 - (1.0 - 1.0 / homes as f64).powf(pairs)
    }
}

/// An output of a map at one of its homes.
pub(super) struct Arriving {
    /// From another worker.
    pub(super) fetched: bool,
    /// Of this home.
    pub(super) segments: usize,
    /// Of all homes.
    pub(super) bytes: f64,
    pub(super) homes: usize,
}

/// All hosts at their present moment.
pub(super) struct Processors {
    work: SystemWork,
    /// By host, when each of its processors is free.
    free: BTreeMap<u32, Vec<Time>>,
}

impl Processors {
    /// None, if the system itself takes no time.
    pub(super) fn of(config: &Config) -> Option<Self> {
        let work = config.system?;
        let free = |host| (host, vec![Time::ZERO; work.cores as usize]);
        Some(Self { work, free: config.workers.iter().map(|worker| free(worker.host)).collect() })
    }

    /// When the work for a task is done that takes in or puts out so many bytes and asks for a processor now.
    pub(super) fn task(&mut self, host: u32, now: Time, kind: usize, bytes: f64) -> Time {
        self.serve(host, now, self.work.task[kind] + bytes * self.work.byte[kind])
    }

    /// When a home on this host has an output, if it is asked for now.
    pub(super) fn arrival(&mut self, host: u32, now: Time, output: &Arriving) -> Time {
        let fetch = if output.fetched { self.work.fetch } else { 0.0 };
        let seconds = fetch + output.segments as f64 * self.work.segment;
        self.serve(host, now, seconds * self.work.reached(output.bytes, output.homes))
    }

    fn serve(&mut self, host: u32, now: Time, seconds: f64) -> Time {
        let processors = self.free.get_mut(&host).expect("every worker's host has processors");
        let first = processors.iter_mut().min().expect("at least one: checked");
        *first = (*first).max(now) + Span((seconds * 1e9).round() as u64);
        *first
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

    #[test]
    fn output_of_one_pair_reaches_one_home_and_a_large_one_all() {
        let work = SystemWork { pair_bytes: 100.0, ..SystemWork::default() };
        assert!((work.reached(80.0, 4) - 0.25).abs() < 1e-12);
        assert!(0.999 < work.reached(10_000.0, 4));
        assert_eq!(work.reached(0.0, 4), 0.0);
        assert_eq!(SystemWork::default().reached(80.0, 4), 1.0);
    }
}
