//! The master's core through a whole job, in facts/s (1 Melem/s is 1 µs a fact): each fact is told in a call of its
//! own, so that each is entered, observed and planned for.
//!
//! Watches that the cost of a fact is flat: the figures of all nine settings should lie close together, whether there
//! are 100 or 100,000 tasks, 2 or 200 workers. A task is three facts here, with its fetches, so 20,000 tasks/s through
//! the whole master leave 16 µs for a fact, of which this should be a small part. The scheduler's own benchmark has
//! more settings, such as other policies and waiting jobs (`cargo bench -p gristmill-scheduler`).

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
/// Reduces of the job, each with a home of its own, so that every map is announced to two workers.
const REDUCES: u32 = 2;
/// Time between two facts.
const STEP: Span = Span(1_000);
/// How long a map says that it ran.
const MAP_TOOK: Span = Span(200_000);

/// All of them.
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

/// Facts of a whole job: its arrival; of each map, its end and one fetch for each home; of each reduce, its wish to
/// commit and its end.
fn facts(maps: u32) -> u64 {
    1 + u64::from(maps) * (1 + u64::from(REDUCES)) + 2 * u64::from(REDUCES)
}

/// Workers that answer every order at once, in the order of the orders.
struct SimulatedCluster {
    core: Core,
    now: Time,
    facts: VecDeque<Event>,
    maps: u32,
}

impl SimulatedCluster {
    /// Workers have joined, and a job is about to arrive.
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

    /// Runs the job to its end. Answers the core, so that it is not dropped under the clock.
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
