//! Tests of the sizes and running maps that policies see, and of the facts that estimators receive.

use super::driver::{JOB, Table, map_finished, plain};
use crate::command::Command;
use crate::core::{Core, CoreConfig};
use crate::estimate::{Estimator, Facts, Sizes};
use crate::event::{Event, Failure, FetchRate, Slots};
use crate::ids::{AttemptId, HostId, JobId, TaskId, TaskKind, WorkerId};
use crate::job::{Exact, JobSpec, MapSpec};
use crate::placement::Pull;
use crate::plan::{Plan, Reason, Share};
use crate::policy::{Fifo, Policy};
use crate::station::{PerStation, Station};
use crate::units::{Bytes, Span, Time};
use crate::view::{Change, Handle, View};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Policy that records which jobs left without a result.
struct Watching(Sender<(u64, bool)>);

impl Policy for Watching {
    fn name(&self) -> &'static str {
        "watching"
    }
    fn observe(&mut self, view: View<'_>, change: Change) {
        if let Change::Left(job) = change {
            self.0.send((view.row(job).seq, view.row(job).abandoned)).unwrap();
        }
    }
    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        for job in (0..view.rows.len()).filter(|&job| view.rows[job].live) {
            plan.grant(Handle(job as u32), Station::Map, Share::All, Reason::Own("watching"));
        }
    }
}

#[test]
fn policies_see_which_jobs_left_without_a_result() {
    let (sender, seen) = channel();
    let mut table = Table::new(Watching(sender));
    table.join(3);
    for _ in 0..3 {
        table.submit(plain(1, 0));
    }
    table.handle(&[Event::JobCancelled { job: JobId(1) }]);
    table.ask_commit(TaskId::map(JobId(2), 0).attempt(0));
    table.map_done(TaskId::map(JobId(2), 0).attempt(0));
    for _ in 0..4 {
        let attempt = table.core.attempts_at(WorkerId(1)).map(|(attempt, _)| attempt).last();
        table.fail(attempt.unwrap(), Failure::User);
    }
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [(0, true), (1, false), (2, true)]);
}

/// Estimator that forwards the facts it receives, and accepts exact sizes.
struct Telling(Sender<Told>);

/// Facts as an estimator received them, and if they were the last of their job.
#[derive(Clone, PartialEq, Debug)]
struct Told {
    maps_done: u32,
    input: (f64, f64),
    map_time: f64,
    reduce_time: f64,
    output: (f64, f64),
    reduces_done: u32,
    network: f64,
    exact: Sizes,
    last: bool,
}

fn told(facts: &Facts<'_>, last: bool) -> Told {
    Told {
        maps_done: facts.maps_done,
        input: (facts.input_bytes, facts.input_bytes_done),
        map_time: facts.map_time,
        reduce_time: facts.reduces.time,
        output: (facts.output_bytes, facts.fetched_bytes),
        reduces_done: facts.reduces.done,
        network: facts.network,
        exact: facts.exact.unwrap(),
        last,
    }
}

impl Estimator for Telling {
    fn name(&self) -> &'static str {
        "telling"
    }
    fn sizes(&mut self, facts: &Facts<'_>) -> Sizes {
        assert_eq!(facts.name, Some("words"));
        self.0.send(told(facts, false)).unwrap();
        facts.exact.unwrap()
    }
    fn learn(&mut self, facts: &Facts<'_>) {
        self.0.send(told(facts, true)).unwrap();
    }
}

/// One job of three maps and one reduce, on one worker with two slots.
struct Scene {
    core: Core,
    facts: Receiver<Told>,
    running: Vec<AttemptId>,
    now: Time,
}

impl Scene {
    fn new() -> Self {
        let (sender, facts) = channel();
        let config = CoreConfig { network: Some(Bytes(10)), ..CoreConfig::default() };
        let core = Core::new(config, Box::new(Fifo::new()), Box::new(Pull::new()));
        let mut scene = Scene {
            core: core.with_estimator(Box::new(Telling(sender))),
            facts,
            running: Vec::new(),
            now: Time::ZERO,
        };
        let exact = Exact { maps: [1.0, 2.0, 4.0].into(), shuffle_bytes: 60.0, reduces: [8.0].into() };
        let maps = vec![MapSpec::anywhere(Bytes(7)); 3];
        let spec = JobSpec { name: Some("words".into()), exact: Some(exact), ..JobSpec::new(maps, 1) };
        let joined = Event::WorkerJoined { worker: WorkerId(1), host: HostId(1), slots: Slots::Unified(2) };
        scene.handle(1, &[joined, Event::JobArrived { job: JOB, spec: spec.into() }]);
        scene
    }

    /// Enters events at this second. Returns the last facts that the estimator received, if any.
    fn handle(&mut self, second: u64, events: &[Event]) -> Option<Told> {
        self.now = Time(second * 1_000_000_000);
        let mut commands = Vec::new();
        self.core.handle(self.now, events, &mut commands);
        assert_eq!(self.core.audit(), Ok(()));
        for command in commands {
            if let Command::Launch { attempt, .. } = command {
                self.running.push(attempt);
            }
        }
        self.facts.try_iter().last()
    }

    /// The rows are counted with the facts of an instant before its plan. A second look sees the plan's launches.
    fn tick(&mut self, second: u64) -> Option<Told> {
        self.handle(second, &[])
    }

    fn end_map(&mut self, second: u64, took: u64) -> Option<Told> {
        let attempt = self.running.remove(0);
        assert_eq!(attempt.task.kind, TaskKind::Map);
        self.handle(second, &[map_finished(attempt, Span::whole_seconds(took))])
    }
}

#[test]
fn an_estimator_is_told_how_far_a_job_has_come_and_what_it_says_are_the_rows() {
    let mut scene = Scene::new();
    let begun = scene.tick(2).unwrap();
    let seconds = |seconds: u64| Time(seconds * 1_000_000_000);
    assert_eq!((begun.input, begun.network), ((21.0, 0.0), 10.0));
    assert_eq!(
        begun.exact,
        Sizes { whole: PerStation::new(7.0, 6.0, 8.0), left: PerStation::new(7.0, 6.0, 8.0) }
    );
    let one = scene.end_map(3, 2).unwrap();
    assert_eq!((one.maps_done, one.map_time, one.input), (1, 2.0, (21.0, 7.0)));
    assert_eq!((one.exact.left.0, one.output), ([6.0, 6.0, 8.0], (10.0, 0.0)));
    let row = scene.core.rows[0].clone();
    assert_eq!((row.whole.0, row.left.0, row.feed), ([7.0, 6.0, 8.0], [6.0, 6.0, 8.0], 6.0 / 7.0));
    scene.tick(4).unwrap();
    let mut running_since = scene.core.runs[0].clone();
    running_since.sort_unstable();
    assert_eq!(running_since, [seconds(1), seconds(3)]);
    let first = AttemptId { task: crate::ids::TaskId::map(JOB, 0), epoch: 0 };
    let fetched = |map: AttemptId| Event::Fetched { job: JOB, home: WorkerId(1), map, partitions: vec![0] };
    let some = scene.handle(5, &[fetched(first)]).unwrap();
    assert_eq!((some.output, some.exact.left.0), ((10.0, 10.0), [6.0, 4.0, 8.0]));
    let (second, third) = (scene.running[0], scene.running[1]);
    scene.end_map(6, 3);
    let maps = scene.end_map(7, 4).unwrap();
    assert_eq!(maps.exact.left[Station::Map], 0.0);
    scene.handle(8, &[fetched(second), fetched(third)]);
    let attempt = scene.running.pop().unwrap();
    let done = Event::ReduceFinished { attempt, output_bytes: Bytes(1), took: Span::whole_seconds(2) };
    let last = scene.handle(10, &[Event::CommitRequested { attempt }, done]).unwrap();
    assert!(last.last);
    assert_eq!((last.reduces_done, last.reduce_time, last.exact.left.0), (1, 2.0, [0.0, 0.0, 0.0]));
}

#[test]
fn a_rate_of_the_network_that_is_learned_later_counts_for_jobs_that_are_there() {
    let mut scene = Scene::new();
    let told = scene.handle(2, &[Event::NetworkRate { per_worker: Some(Bytes(20)) }]).unwrap();
    assert_eq!((told.network, told.exact.whole[Station::Shuffle]), (20.0, 3.0));
    let told = scene.handle(3, &[Event::NetworkRate { per_worker: None }]).unwrap();
    assert_eq!((told.network, told.exact.whole[Station::Shuffle]), (f64::INFINITY, 0.0));
}

#[test]
fn without_an_estimator_rows_count_tasks_and_segments() {
    let mut core = Core::new(CoreConfig::default(), Box::new(Fifo::new()), Box::new(Pull::new()));
    let spec = JobSpec::new(vec![MapSpec::anywhere(Bytes(7)); 3], 2);
    core.handle(Time(1), &[Event::JobArrived { job: JOB, spec: spec.into() }], &mut Vec::new());
    assert_eq!((core.rows[0].whole.0, core.rows[0].left.0), ([3.0, 6.0, 2.0], [3.0, 6.0, 2.0]));
}

#[test]
fn maps_that_run_again_count_once_in_the_facts_of_estimators() {
    let mut scene = Scene::new();
    scene.end_map(2, 2);
    scene.end_map(3, 3);
    let before = scene.end_map(4, 4).unwrap();
    assert_eq!((before.maps_done, before.map_time, before.output.0), (3, 9.0, 30.0));
    // All outputs are lost, and all maps run again, as long as before.
    let lost = Event::WorkerLost { worker: WorkerId(1), culprit: Vec::new() };
    let joined = Event::WorkerJoined { worker: WorkerId(2), host: HostId(2), slots: Slots::Unified(3) };
    scene.running.clear();
    let without = scene.handle(5, &[lost, joined]).unwrap();
    assert_eq!((without.maps_done, without.map_time, without.output.0), (0, 0.0, 0.0));
    assert_eq!(scene.running.len(), 3);
    for (second, took) in [(6, 2), (7, 3)] {
        scene.end_map(second, took);
    }
    let again = scene.end_map(8, 4).unwrap();
    assert_eq!((again.maps_done, again.map_time, again.output.0), (3, 9.0, 30.0));
}

/// Two workers on two hosts, without a limit of their network, and a policy that records the shuffle of its jobs.
#[test]
fn rate_of_the_network_is_learned_from_transfers_between_hosts() {
    let mut table = Table::new(Fifo::new());
    table.core = Core::new(CoreConfig::default(), Box::new(Fifo::new()), Box::new(Pull::new()))
        .with_estimator(Box::new(crate::estimate::Oracle));
    table.join(1);
    table.join(1);
    let exact = Exact { maps: [1.0].into(), shuffle_bytes: 400e6, reduces: [1.0].into() };
    table.submit(JobSpec { exact: Some(exact), ..plain(1, 1) });
    let shuffle = |table: &Table| table.core.sizes(JOB).unwrap().whole[Station::Shuffle];
    assert_eq!(shuffle(&table), 0.0, "no transfer has shown a rate");
    let rates = |bytes: u64, from| {
        let rate = FetchRate { from: WorkerId(from), bytes: Bytes(bytes), busy: Span::whole_seconds(2) };
        Event::FetchRates { home: WorkerId(1), routes: vec![rate] }
    };
    table.handle(&[rates(1000, 2)]);
    assert_eq!(shuffle(&table), 0.0, "a thousand bytes show the latency of requests");
    table.handle(&[rates(100_000_000, 1)]);
    assert_eq!(shuffle(&table), 0.0, "a transfer within a worker uses no network");
    table.handle(&[rates(100_000_000, 2)]);
    assert_eq!(shuffle(&table), 4.0, "two workers receive 50 MB/s each");
    table.handle(&[rates(110_000_000, 2)]);
    assert_eq!(shuffle(&table), 4.0, "small changes do not count all jobs again");
    table.handle(&[rates(200_000_000, 2)]);
    assert_eq!(shuffle(&table), 2.0);
    table.core.restore_memory(&serde_json::Value::Null).unwrap();
    table.handle(&[Event::CommitRequested { attempt: TaskId::map(JOB, 0).attempt(0) }]);
    table.map_done(TaskId::map(JOB, 0).attempt(0));
    assert_eq!(shuffle(&table), 0.0, "one experiment teaches the next one nothing");
}

#[test]
fn maps_of_a_new_job_are_guessed_by_those_of_other_jobs() {
    let mut table = Table::new(Fifo::new());
    table.core = Core::new(CoreConfig::default(), Box::new(Fifo::new()), Box::new(Pull::new()))
        .with_estimator(Box::new(crate::estimate::Linear));
    table.join(1);
    table.submit(plain(4, 0));
    table.submit(plain(3, 0));
    let maps = |table: &Table, job| table.core.sizes(JobId(job)).unwrap().whole[Station::Map];
    assert_eq!((maps(&table, 1), maps(&table, 2)), (4.0, 3.0), "a second each, without any map");
    table.ask_commit(TaskId::map(JOB, 0).attempt(0));
    table.map_done_in(TaskId::map(JOB, 0).attempt(0), Span::milliseconds(20));
    let near = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
    assert!(near(maps(&table, 2), 0.06), "{}", maps(&table, 2));
    table.core.restore_memory(&serde_json::Value::Null).unwrap();
    table.submit(plain(3, 0));
    assert_eq!(maps(&table, 3), 3.0, "one experiment teaches the next one nothing");
}
