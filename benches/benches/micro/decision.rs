//! The master's core through a whole job, in events/s (1 Melem/s is 1 µs an event): each event is sent in its own call,
//! so that each is entered, observed and planned for.
//!
//! Checks that the cost of an event is constant: the results of all nine settings should be close together, with 100 or
//! 100,000 tasks, 2 or 200 workers. A task is three events here, with its fetches, so 20,000 tasks/s through the whole
//! master leave 16 µs for an event, of which this should be a small part. The scheduler's own benchmark has more
//! settings, such as other policies and waiting jobs (`cargo bench -p gristmill-scheduler`).

use crate::data::SHRINK;
use crate::slow_group;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use gristmill::scheduler::command::{Command, Outcome};
use gristmill::scheduler::core::{Core, CoreConfig};
use gristmill::scheduler::event::{Event, Slots};
use gristmill::scheduler::ids::{HostId, JobId, TaskKind, WorkerId};
use gristmill::scheduler::job::{JobSpec, MapSpec};
use gristmill::scheduler::placement::Pull;
use gristmill::scheduler::policy::Fifo;
use gristmill::scheduler::units::{Bytes, Span, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const JOB: JobId = JobId(1);
/// Number of reduces of the job, each with a different keep, so that every map is announced to two workers.
const REDUCES: u32 = 2;
/// Time between two events.
const STEP: Span = Span(1_000);
/// Reported run time of a map.
const MAP_TOOK: Span = Span(200_000);

/// Runs all benchmarks of this file.
pub fn benches(criterion: &mut Criterion) {
    let mut group = slow_group(criterion, "decision");
    for workers in [2, 20, 200] {
        for tasks in [100, 10_000, 100_000] {
            let id = BenchmarkId::new(format!("{workers} workers"), format!("{tasks} tasks"));
            let maps = (tasks / SHRINK as u32).max(1);
            group.throughput(Throughput::Elements(facts(maps)));
            group.bench_function(id, |bencher| {
                let cluster = || SimulatedCluster::new(workers, maps);
                bencher.iter_batched(cluster, SimulatedCluster::run, BatchSize::PerIteration);
            });
        }
    }
    group.finish();
}

/// Returns the number of events of a whole job: its arrival; for each map, its end and one fetch for each
/// keep; for each reduce, its commit request and its end.
fn facts(maps: u32) -> u64 {
    1 + u64::from(maps) * (1 + u64::from(REDUCES)) + 2 * u64::from(REDUCES)
}

/// Workers that execute every command at once, in order.
struct SimulatedCluster {
    core: Core,
    now: Time,
    facts: VecDeque<Event>,
    maps: u32,
}

impl SimulatedCluster {
    /// Creates a cluster whose workers have joined, with a job that is about to arrive.
    fn new(workers: u32, maps: u32) -> Self {
        let core = Core::new(CoreConfig::default(), Box::new(Fifo::new()), Box::new(Pull::new()));
        let mut cluster = Self { core, now: Time::ZERO, facts: VecDeque::new(), maps };
        for worker in 1..=workers {
            let joined = Event::WorkerJoined {
                worker: WorkerId(worker),
                host: HostId(worker),
                slots: Slots::Unified(1),
            };
            cluster.core.handle(cluster.now, &[joined], &mut Vec::new());
        }
        let spec = JobSpec::new(vec![MapSpec::anywhere(Bytes::mib(1)); maps as usize], REDUCES);
        cluster.facts.push_back(Event::JobArrived { job: JOB, spec: spec.into() });
        cluster
    }

    /// Runs the job to its end. Returns the core, so that it is not dropped while the time is measured.
    fn run(mut self) -> Core {
        let mut homes = BTreeMap::new();
        let mut commands = Vec::new();
        let (mut told, expected) = (0, facts(self.maps));
        let mut outcome = None;
        while let Some(fact) = self.facts.pop_front() {
            self.now = self.now + STEP;
            told += 1;
            self.core.handle(self.now, &[fact], &mut commands);
            for command in commands.drain(..) {
                outcome = outcome.or(self.carry_out(&command, &mut homes));
            }
        }
        assert_eq!(outcome, Some(Outcome::Succeeded), "the job stands still");
        assert_eq!(told, expected, "throughput is reckoned from another number of facts");
        self.core
    }

    fn carry_out(
        &mut self,
        command: &Command,
        homes: &mut BTreeMap<WorkerId, BTreeSet<u32>>,
    ) -> Option<Outcome> {
        let output_bytes = Bytes(100);
        let fact = match *command {
            Command::Home { partition, worker, .. } => {
                homes.entry(worker).or_default().insert(partition);
                return None;
            }
            Command::Launch { attempt, .. } if attempt.task.kind == TaskKind::Map => {
                Event::MapFinished { attempt, output_bytes, took: MAP_TOOK, print: None }
            }
            Command::Launch { attempt, .. } => Event::CommitRequested { attempt },
            Command::GrantCommit { attempt, .. } => {
                Event::ReduceFinished { attempt, output_bytes, took: Span::milliseconds(1) }
            }
            Command::Announce { job, map, to, .. } => {
                let partitions = homes[&to].iter().copied().collect();
                Event::Fetched { job, home: to, map, partitions }
            }
            Command::JobEnded { outcome, .. } => return Some(outcome),
            _ => return None,
        };
        self.facts.push_back(fact);
        None
    }
}
