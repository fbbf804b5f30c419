//! Tests of the cluster simulator: small cases by arithmetic, and random ones under every policy.

use super::*;
use crate::command::Command;
use crate::core::Core;
use crate::estimate;
use crate::ids::{TaskId, TaskKind};
use crate::placement::{self, Pull};
use crate::policy::{self, Fair, Fifo};
use crate::station::PerStation;
use crate::units::Bytes;
use crate::view::Station;
use proptest::prelude::*;

mod alone;
mod dividing;
mod forecasting;
mod preempting;
mod rivals;
mod same_core;
mod scale;
mod speculating;
mod system;

/// Observations of a simulation.
#[derive(Clone, PartialEq, Debug, Default)]
struct Seen {
    tasks: Vec<TaskRun>,
    suspended: Vec<TaskRun>,
    transfers: Vec<TransferRun>,
    held: Vec<(f64, u64, [u32; 2])>,
    records: Vec<JobRecord>,
    summary: ClusterSummary,
}

impl Observer for Seen {
    fn task(&mut self, run: &TaskRun) {
        self.tasks.push(*run);
    }
    fn suspended(&mut self, run: &TaskRun) {
        self.suspended.push(*run);
    }
    fn transfer(&mut self, run: &TransferRun) {
        self.transfers.push(*run);
    }
    fn held(&mut self, at: f64, seq: u64, slots: [u32; 2]) {
        self.held.push((at, seq, slots));
    }
}

/// Policy, placement and estimator of a test.
struct TestDeciders(Deciders);

impl TestDeciders {
    fn new(policy: impl Policy + 'static) -> Self {
        Self(Deciders::with_policy(Box::new(policy)))
    }

    fn named(policy: &str, placement: &str, estimator: Option<&str>) -> Self {
        Self(Deciders {
            policy: policy::by_name(policy).unwrap(),
            placement: placement::by_name(placement).unwrap(),
            estimator: estimator.map(|name| estimate::by_name(name).unwrap()),
        })
    }
}

/// Runs with an audit after each call of the core.
fn watch(config: &Config, deciders: TestDeciders, jobs: &[Job]) -> Result<Seen, SimError> {
    let mut seen = Seen::default();
    let mut records = Vec::new();
    let audit = |core: &Core| {
        if let Err(violations) = core.audit() {
            panic!("at {}:\n{}", core.now(), violations.iter().map(|v| format!("{v}\n")).collect::<String>());
        }
    };
    let core = check::core_of(config, deciders.0)?;
    let mut sink = |record: &JobRecord| records.push(*record);
    let summary = engine::Engine::new(config, core, &mut seen, &mut sink)
        .run(&mut jobs.iter().cloned(), &mut |core| audit(core))?;
    Ok(Seen { records, summary, ..seen })
}

fn job(arrival: f64, maps: &[f64], reduces: &[f64]) -> Job {
    Job { arrival, maps: maps.to_vec(), reduces: reduces.to_vec(), ..Job::default() }
}

/// Returns the completion times in the order of arrival.
fn ends(seen: &Seen) -> Vec<f64> {
    let mut records = seen.records.clone();
    records.sort_by_key(|record| record.seq);
    records.iter().map(|record| record.completion).collect()
}

fn unified(workers: u32, slots: u32) -> Config {
    Config::uniform(workers, Slots::Unified(slots))
}

#[test]
fn a_job_alone_takes_its_waves_of_maps_and_then_its_reduces() {
    let seen =
        watch(&unified(1, 2), TestDeciders::new(Fifo::new()), &[job(1.0, &[3.0, 2.0, 4.0], &[5.0])]).unwrap();
    // Slot 0: 3; slot 1: 2, then 4; the reduce from 1 + 6 on.
    assert_eq!(ends(&seen), [12.0]);
    let record = seen.records[0];
    assert_eq!((record.arrival, record.start, record.maps_done), (1.0, 1.0, 7.0));
    assert_eq!(record.work, [9.0, 0.0, 5.0]);
    assert_eq!(seen.summary.tasks, 4);
    assert_eq!(seen.summary.utilisation, [9.0 / 22.0, 0.0, 5.0 / 22.0]);
    assert_eq!(seen.held.first(), Some(&(1.0, 0, [1, 0])));
    assert_eq!(seen.held.last(), Some(&(12.0, 0, [0, 0])));
}

#[test]
fn policy_that_takes_over_decides_from_the_first_instant_not_before_its_time() {
    let jobs = [job(0.0, &[2.0; 4], &[]), job(1.0, &[1.0; 2], &[])];
    let config = unified(1, 1);
    for at in [2.1, 4.0] {
        let deciders = TestDeciders::named("fifo", "pull", Some("oracle")).0;
        let takeover = Takeover { at, policy: policy::by_name("psjf").unwrap() };
        let (mut seen, mut records) = (Seen::default(), Vec::new());
        let mut sink = |record: &JobRecord| records.push(*record);
        run_taken_over(&config, deciders, Some(takeover), jobs.clone(), &mut seen, &mut sink).unwrap();
        // The older job's maps until 4, then the two of the shorter job.
        assert_eq!(ends(&Seen { records, ..seen }), [10.0, 6.0], "at {at}");
    }
    let alone = watch(&config, TestDeciders::named("fifo", "pull", Some("oracle")), &jobs).unwrap();
    assert_eq!(ends(&alone), [8.0, 10.0]);
}

#[test]
fn pools_keep_slots_for_reduces_that_maps_cannot_take() {
    let jobs = [job(0.0, &[2.0], &[3.0]), job(0.0, &[2.0; 6], &[])];
    let pools = Config::uniform(1, Slots::Pools { map: 1, reduce: 1 });
    assert_eq!(ends(&watch(&pools, TestDeciders::new(Fifo::new()), &jobs).unwrap()), [5.0, 14.0]);
    let one = watch(&unified(1, 1), TestDeciders::new(Fifo::new()), &jobs).unwrap();
    assert_eq!(ends(&one), [5.0, 17.0], "unified slots make the maps wait for the reduce");
}

#[test]
fn two_jobs_share_pools_fairly_by_kind() {
    let jobs = [job(0.0, &[1.0; 8], &[]), job(0.0, &[1.0; 4], &[])];
    let pools = Config::uniform(2, Slots::Pools { map: 2, reduce: 1 });
    assert_eq!(ends(&watch(&pools, TestDeciders::new(Fair::new()), &jobs).unwrap()), [3.0, 2.0]);
}

#[test]
fn policies_compare_bytes_with_seconds_by_the_rate_that_they_know() {
    let mut config = unified(2, 1);
    config.network = NetworkConfig { in_rate: 50.0, out_rate: 50.0, ..NetworkConfig::default() };
    // 3 s of maps, and a shuffle of 4 s at the rate of the network.
    let shuffling = Job { shuffle_bytes: 400.0, ..job(0.0, &[0.1; 2], &[0.0; 2]) };
    let jobs = [job(0.0, &[3.0; 2], &[]), shuffling];
    let first = |config: &Config| {
        let seen = watch(config, TestDeciders::named("max-srpt", "pull", Some("oracle")), &jobs).unwrap();
        seen.held[0].1
    };
    assert_eq!(first(&config), 0);
    config.core.network = Some(Bytes(100));
    assert_eq!(first(&config), 1, "they know twice the rate that is reached");
}

#[test]
fn a_slow_worker_takes_longer_by_its_speed_and_service_is_drawn_per_task() {
    let mut config = unified(1, 1);
    config.workers[0].speed = 0.5;
    let jobs = [job(0.0, &[1.0, 2.0], &[])];
    assert_eq!(ends(&watch(&config, TestDeciders::new(Fifo::new()), &jobs).unwrap()), [6.0]);
    config.workers[0].speed = 1.0;
    config.workers[0].service = Some(Dtd::new(1.0, 0.0, 2.0).unwrap());
    let many = [job(0.0, &vec![1.0; 4_000], &[])];
    let seen = watch_without_audit(&config, &many);
    let lengths: Vec<f64> = seen.tasks.iter().map(|run| run.end - run.start).collect();
    assert!(lengths.iter().all(|&length| 2.0 - 1e-6 <= length));
    let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
    assert!((mean - 3.0).abs() < 0.06, "mean {mean} of 2 s and an exponential of 1 s");
    // Tasks take the same time on two workers as on one.
    config.workers.push(config.workers[0].clone());
    let by_index = |seen: &Seen| {
        let mut runs: Vec<(u32, f64)> =
            seen.tasks.iter().map(|run| (run.task.index, run.end - run.start)).collect();
        runs.sort_by_key(|run| run.0);
        runs
    };
    for ((_, one), (_, two)) in by_index(&seen).iter().zip(by_index(&watch_without_audit(&config, &many))) {
        assert!((one - two).abs() < 1e-6);
    }
}

fn watch_without_audit(config: &Config, jobs: &[Job]) -> Seen {
    let mut seen = Seen::default();
    let jobs = jobs.iter().cloned();
    run(config, Deciders::with_policy(Box::new(Fifo::new())), jobs, &mut seen, &mut |_| {}).unwrap();
    seen
}

#[test]
fn segments_flow_at_the_fair_part_of_the_narrower_end() {
    let mut config = unified(3, 1);
    config.network = NetworkConfig { in_rate: 100.0, out_rate: 100.0, latency: 0.5, lanes: 8, own: false };
    // Three maps on three workers, one home: the two outputs on other workers share its 100 bytes per second.
    let mut shuffled = job(0.0, &[1.0; 3], &[2.0]);
    shuffled.shuffle_bytes = 300.0;
    let seen = watch(&config, TestDeciders::new(Fifo::new()), &[shuffled]).unwrap();
    assert_eq!(seen.transfers.len(), 2);
    for transfer in &seen.transfers {
        assert_eq!((transfer.start, transfer.bytes, transfer.maps), (1.0, 100.0, 1));
        assert!((transfer.end - 3.5).abs() < 1e-6, "{transfer:?}");
    }
    assert!((ends(&seen)[0] - 5.5).abs() < 1e-6);
    assert_eq!(seen.summary.segments, 2);
    let used = seen.summary.utilisation[Station::Shuffle];
    assert!((used - 200.0 / (300.0 * 5.5)).abs() < 1e-6, "{used}");
}

#[test]
fn a_transfer_speeds_up_when_another_at_its_end_is_over() {
    let mut config = unified(3, 1);
    config.network = NetworkConfig { in_rate: 100.0, out_rate: 100.0, ..NetworkConfig::default() };
    // 200 bytes from each map; from 3 s on the last transfer shares the inbound rate with the rest of the one before
    // it.
    let mut shuffled = job(0.0, &[1.0, 2.0, 3.0], &[0.0]);
    shuffled.shuffle_bytes = 600.0;
    let seen = watch(&config, TestDeciders::new(Fifo::new()), &[shuffled]).unwrap();
    let away: Vec<(f64, f64)> =
        seen.transfers.iter().map(|transfer| (transfer.start, transfer.end)).collect();
    // The home is the first worker, where the first map ran.
    assert_eq!(away, [(2.0, 5.0), (3.0, 6.0)]);
}

#[test]
fn the_order_of_the_policy_decides_who_is_fetched_first() {
    let mut config = unified(2, 2);
    config.network = NetworkConfig { in_rate: 10.0, out_rate: 10.0, latency: 0.0, lanes: 1, own: false };
    let shuffled = |bytes: f64| Job { shuffle_bytes: bytes, ..job(0.0, &[1.0, 1.0], &[0.0, 0.0]) };
    let order = |policy: &str| {
        let deciders = TestDeciders::named(policy, "pull", Some("oracle"));
        let seen = watch(&config, deciders, &[shuffled(400.0), shuffled(40.0)]).unwrap();
        let mut jobs: Vec<(f64, u64)> =
            seen.transfers.iter().map(|transfer| (transfer.start, transfer.seq)).collect();
        jobs.sort_by(|a, b| a.partial_cmp(b).unwrap());
        jobs.into_iter().map(|(_, seq)| seq).collect::<Vec<_>>()
    };
    assert_eq!(order("fifo"), [0, 0, 1, 1]);
    assert_eq!(order("max-srpt"), [1, 1, 0, 0]);
}

#[test]
fn work_without_tasks_is_cut_and_a_shuffle_without_reduces_gets_homes() {
    let mut config = unified(2, 4);
    config.task_seconds = 3.0;
    config.network.in_rate = 10.0;
    let uncut = Job { work: PerStation::new(12.0, 2.0, 0.0), ..Job::default() };
    let seen = watch(&config, TestDeciders::new(Fifo::new()), &[uncut]).unwrap();
    let maps = seen.tasks.iter().filter(|run| run.task.kind == TaskKind::Map);
    assert_eq!(maps.map(|run| run.end - run.start).collect::<Vec<_>>(), [3.0; 4]);
    assert_eq!(seen.records[0].work, [12.0, 2.0, 0.0]);
    // 40 bytes in total; each worker has half and needs half of the other's.
    assert!((ends(&seen)[0] - 4.0).abs() < 1e-6, "{:?}", seen.records);
    assert_eq!(seen.summary.shuffled, [20.0, 20.0]);
}

/// A worker receives 10 bytes a second; tasks are at most 3 s long, and there are 4 workers.
#[test]
fn reduces_that_only_fetch_are_as_many_as_a_worker_needs_task_lengths_and_workers_at_most() {
    let mut config = unified(4, 1);
    config.task_seconds = 3.0;
    config.network = NetworkConfig { in_rate: 10.0, out_rate: 20.0, ..NetworkConfig::default() };
    let count = |bytes: f64, reduces: &[f64]| {
        SimulatedTasks::count(&config, &Job { shuffle_bytes: bytes, ..job(0.0, &[1.0], reduces) }).reduces
    };
    assert_eq!(count(0.0, &[]), 0.0, "nothing to fetch");
    assert_eq!(count(30.0, &[]), 1.0);
    assert_eq!(count(31.0, &[]), 2.0);
    assert_eq!(count(1e9, &[]), 4.0);
    assert_eq!(count(1e9, &[0.0, 0.0]), 2.0, "it has reduces of its own");
    let work = Job { work: PerStation::new(7.0, 0.0, 2.0), ..Job::default() };
    let counts = SimulatedTasks::count(&config, &work);
    assert_eq!((counts.maps, counts.reduces), (3.0, 1.0));
}

#[test]
fn bad_settings_and_jobs_are_named() {
    let good = job(0.0, &[1.0], &[1.0]);
    let refuse = |config: &Config, jobs: &[Job], part: &str| {
        let error = watch(config, TestDeciders::new(Fifo::new()), jobs).unwrap_err().to_string();
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    };
    let config = |change: fn(&mut Config)| {
        let mut config = unified(2, 1);
        change(&mut config);
        config
    };
    refuse(&config(|c| c.workers.clear()), &[], "workers");
    refuse(&config(|c| c.workers[1].slots = Slots::Unified(0)), &[], "slots");
    refuse(&config(|c| c.workers[1].slots = Slots::Pools { map: 1, reduce: 1 }), &[], "slots");
    refuse(&config(|c| c.workers[1].speed = 0.0), &[], "speed");
    refuse(&config(|c| c.workers[1].speed = f64::NAN), &[], "speed");
    refuse(&config(|c| c.network.in_rate = 0.0), &[], "in_rate");
    refuse(&config(|c| c.network.out_rate = f64::NAN), &[], "out_rate");
    refuse(&config(|c| c.network.latency = -1.0), &[], "latency");
    refuse(&config(|c| c.network.lanes = 0), &[], "lanes");
    refuse(&config(|c| c.task_seconds = f64::NAN), &[], "task_seconds");
    refuse(
        &config(|c| c.task_seconds = 1e-9),
        &[Job { work: PerStation::new(1.0, 0.0, 0.0), ..Job::default() }],
        "maps",
    );
    let nothing_put_out = Job { shuffle_bytes: 5.0, ..job(0.0, &[], &[1.0]) };
    refuse(
        &config(|_| {}),
        &[nothing_put_out],
        "`shuffle_bytes` is 5, which is not 0 for a job without maps",
    );
    refuse(&config(|c| c.jobs_max = 1), &[good.clone(), good.clone()], "more than 1 jobs");
    for (field, change) in [
        ("arrival", (|job| job.arrival = f64::NAN) as fn(&mut Job)),
        ("arrival", |job| job.arrival = -1.0),
        ("maps", |job| job.maps[0] = -1.0),
        ("maps", |job| job.maps[0] = f64::INFINITY),
        ("reduces", |job| job.reduces[0] = f64::NAN),
        ("work of the shuffle", |job| job.work[Station::Shuffle] = f64::INFINITY),
        ("shuffle_bytes", |job| job.shuffle_bytes = -1.0),
        ("weight", |job| job.weight = -1.0),
        ("deadline", |job| job.deadline = Some(f64::NAN)),
    ] {
        let mut bad = good.clone();
        change(&mut bad);
        refuse(&unified(1, 1), &[good.clone(), bad], &format!("job 1: `{field}`"));
    }
    refuse(&unified(1, 1), &[job(2.0, &[1.0], &[]), good], "job before it");
}

/// Policy that grants nothing, and if configured requests wakes forever.
struct Idle {
    wakes: bool,
}

impl Policy for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }
    fn observe(&mut self, _: crate::view::View<'_>, _: crate::view::Change) {}
    fn plan(&mut self, view: crate::view::View<'_>, plan: &mut crate::plan::Plan<'_>) {
        if self.wakes {
            plan.wake(view.now + crate::units::Span::whole_seconds(1));
        }
    }
}

#[test]
fn a_policy_that_never_gives_anything_is_found_stuck() {
    for wakes in [false, true] {
        let error = watch_idle(wakes);
        assert!(matches!(error, SimError::Stuck { jobs: 1, .. }), "{error}");
    }
}

fn watch_idle(wakes: bool) -> SimError {
    let jobs = [job(0.0, &[1.0], &[])];
    let policy = Box::new(Idle { wakes });
    run(&unified(1, 1), Deciders::with_policy(policy), jobs, &mut (), &mut |_| {}).unwrap_err()
}

#[test]
fn empty_jobs_end_at_once_and_reduces_without_maps_run() {
    let jobs = [job(1.0, &[], &[]), job(2.0, &[], &[3.0])];
    let seen = watch(&unified(1, 1), TestDeciders::new(Fifo::new()), &jobs).unwrap();
    assert_eq!(ends(&seen), [1.0, 5.0]);
    let nothing = watch(&unified(1, 1), TestDeciders::new(Fifo::new()), &[]).unwrap();
    assert_eq!((nothing.summary.jobs, nothing.summary.end), (0, 0.0));
}

/// Placement that assigns in round-robin order, and counts.
#[derive(Default)]
struct InTurn {
    pull: Pull,
    next: usize,
}

impl Placement for InTurn {
    fn name(&self) -> &'static str {
        "in-turn"
    }
    fn choose(&mut self, offer: crate::placement::Offer<'_>) -> Option<crate::placement::Choice> {
        self.pull.choose(offer)
    }
    fn assign(
        &mut self,
        request: crate::placement::AssignmentRequest<'_>,
    ) -> Option<Vec<crate::ids::WorkerId>> {
        let workers: Vec<_> = request.usable().map(|worker| worker.id()).collect();
        let assigned = (0..request.maps).map(|map| workers[(self.next + map) % workers.len()]).collect();
        self.next += request.maps;
        Some(assigned)
    }
    fn home(&mut self, request: crate::placement::HomeRequest<'_>) -> crate::ids::WorkerId {
        self.pull.home(request)
    }
}

#[test]
fn assigned_maps_wait_for_their_worker_while_others_are_idle() {
    let mut config = unified(2, 1);
    config.workers[1].speed = 0.25;
    let deciders =
        TestDeciders(Deciders { placement: Box::new(InTurn::default()), ..TestDeciders::new(Fifo::new()).0 });
    let jobs = [job(0.0, &[1.0; 4], &[]), job(0.5, &[1.0; 2], &[])];
    let seen = watch(&config, deciders, &jobs).unwrap();
    // The slow worker runs two tasks of the first job and one of the second.
    assert_eq!(ends(&seen), [8.0, 12.0]);
    let slow: Vec<(u64, TaskId)> =
        seen.tasks.iter().filter(|run| run.worker == 1).map(|run| (run.seq, run.task)).collect();
    assert_eq!(
        slow.iter().map(|(seq, task)| (*seq, task.index)).collect::<Vec<_>>(),
        [(0, 1), (0, 3), (1, 1)]
    );
}

#[test]
fn many_jobs_that_wait_for_the_same_workers_all_end() {
    // More jobs than the limit up to which idle changes of a worker update them one by one.
    for policy in ["fifo", "fair", "max-srpt", "lrpt"] {
        for reduces in [0, 1] {
            let jobs = (0..30).map(|_| job_of(0.0, vec![1.0; 4], vec![1.0; reduces])).collect();
            let case = Case { config: unified(2, 1), jobs };
            let placement = Box::new(InTurn::default());
            let deciders =
                TestDeciders(Deciders { placement, ..TestDeciders::named(policy, "pull", Some("oracle")).0 });
            let seen = watch(&case.config, deciders, &case.jobs).unwrap();
            check_run(&case, &seen);
            let maps_end = seen.records.iter().map(|record| record.maps_done).fold(0.0, f64::max);
            assert!(0 < reduces || maps_end == 60.0, "{policy} left a slot idle: {maps_end}");
        }
    }
}

#[test]
fn what_was_assigned_to_a_lost_worker_is_assigned_again() {
    use crate::event::Event;
    use crate::ids::{HostId, JobId, WorkerId};
    use crate::job::{JobSpec, MapSpec};
    use crate::units::Time;
    let mut core = Core::new(CoreConfig::default(), Box::new(Fifo::new()), Box::new(InTurn::default()));
    let mut launched = Vec::new();
    let mut now = 0;
    let mut tell = |core: &mut Core, events: &[Event]| {
        now += 1_000_000;
        let mut commands = Vec::new();
        core.handle(Time(now), events, &mut commands);
        assert_eq!(core.audit(), Ok(()));
        launched.extend(commands.iter().filter_map(|command| match command {
            Command::Launch { attempt, worker, .. } => Some((attempt.task.index, worker.0)),
            _ => None,
        }));
        launched.clone()
    };
    let spec = JobSpec::new(vec![MapSpec::anywhere(Bytes(1)); 6], 0);
    tell(&mut core, &[Event::JobArrived { job: JobId(1), spec: spec.into() }]);
    let join = |worker| Event::WorkerJoined {
        worker: WorkerId(worker),
        host: HostId(worker),
        slots: Slots::Unified(1),
    };
    let both = tell(&mut core, &[join(1), join(2)]);
    assert_eq!(both, [(0, 1), (1, 2)]);
    let lost = tell(&mut core, &[Event::WorkerLost { worker: WorkerId(2), culprit: Vec::new() }]);
    assert_eq!(lost, both, "the live worker is busy");
    for index in [0, 1, 2, 3, 4, 5] {
        let task = TaskId::map(JobId(1), index);
        let attempt = core.attempts().map(|(attempt, _)| attempt).next().unwrap();
        assert_eq!(attempt.task, task);
        let took = crate::units::Span::whole_seconds(1);
        let done = Event::MapFinished { attempt, output_bytes: Bytes(0), took, fingerprint: None };
        tell(&mut core, &[Event::CommitRequested { attempt }, done]);
    }
    assert_eq!(core.live_jobs().count(), 0);
}

/// Small workload on a small cluster, from a seed.
#[derive(Clone, Debug)]
struct Case {
    config: Config,
    jobs: Vec<Job>,
}

/// Time since the previous job, maps and reduces; bytes, deadline and weight; pool.
type Drawn = ((f64, Vec<f64>, Vec<f64>), (f64, Option<f64>, f64), Option<u32>);

fn case() -> impl Strategy<Value = Case> {
    let length = prop_oneof![Just(0.0), Just(1.0), 0.1..5.0_f64];
    let job = (
        (0.0..4.0_f64, prop::collection::vec(length.clone(), 0..7), prop::collection::vec(length, 0..4)),
        (prop_oneof![Just(0.0), 1.0..500.0_f64], prop::option::of(5.0..60.0_f64), 0.5..3.0_f64),
        prop::option::of(0..2_u32),
    );
    let network =
        (prop_oneof![Just(f64::INFINITY), 20.0..200.0_f64], prop_oneof![Just(0.0), 0.01..0.5_f64], 1..4_u32);
    let slots = prop_oneof![
        (1..4_u32).prop_map(Slots::Unified),
        (1..3_u32, 1..3_u32).prop_map(|(map, reduce)| Slots::Pools { map, reduce }),
    ];
    (prop::collection::vec(job, 1..7), 1..4_u32, slots, network, any::<u64>(), any::<bool>()).prop_map(
        |(jobs, workers, slots, (rate, latency, lanes), seed, drawn)| {
            let mut config = Config { seed, ..Config::uniform(workers, slots) };
            config.network = NetworkConfig { in_rate: rate, out_rate: rate, latency, lanes, own: false };
            for (place, worker) in config.workers.iter_mut().enumerate() {
                worker.speed = 1.0 / (1 + place) as f64;
                worker.service = drawn.then(|| Dtd::new(1.0, 1.0, 0.2).unwrap());
            }
            if drawn {
                config.core = CoreConfig::default();
            }
            let mut arrival = 0.0;
            let make = |((gap, maps, reduces), (bytes, deadline, weight), pool): Drawn| {
                arrival += gap;
                let deadline = deadline.map(|deadline: f64| arrival + deadline);
                let bytes = if maps.is_empty() { 0.0 } else { bytes };
                Job { shuffle_bytes: bytes, deadline, weight, pool, ..job_of(arrival, maps, reduces) }
            };
            Case { config, jobs: jobs.into_iter().map(make).collect() }
        },
    )
}

fn job_of(arrival: f64, maps: Vec<f64>, reduces: Vec<f64>) -> Job {
    let work = [maps.iter().sum(), 0.0, reduces.iter().sum()];
    Job { arrival, maps, reduces, work: work.into(), ..Job::default() }
}

/// Checks that every job ended, every task ran once, no reduce started before its job's maps had ended, and no slot
/// held two tasks.
fn check_run(case: &Case, seen: &Seen) {
    assert_eq!(seen.records.len(), case.jobs.len());
    let tasks: usize = case.jobs.iter().map(|job| job.maps.len() + job.reduces.len()).sum();
    let mut done: Vec<_> = seen.tasks.iter().map(|run| (run.seq, run.task)).collect();
    done.sort_unstable();
    done.dedup();
    assert_eq!(done.len(), seen.tasks.len());
    assert!(tasks <= done.len(), "{} of {tasks} tasks ran", done.len());
    for run in seen.tasks.iter().chain(&seen.suspended) {
        let record = seen.records.iter().find(|record| record.seq == run.seq).unwrap();
        assert!(record.arrival <= run.start && run.end <= record.completion);
        let waited = run.task.kind == TaskKind::Map || record.maps_done <= run.start;
        assert!(waited, "{run:?} began before the maps were done at {}", record.maps_done);
    }
    check_slots(seen);
}

/// Checks that no slot held two tasks at once.
fn check_slots(seen: &Seen) {
    let mut by_slot: Vec<TaskRun> = seen.tasks.iter().chain(&seen.suspended).copied().collect();
    by_slot.sort_by(|a, b| {
        (a.worker, a.slot)
            .cmp(&(b.worker, b.slot))
            .then(a.start.total_cmp(&b.start))
            .then(a.end.total_cmp(&b.end))
    });
    for pair in by_slot.windows(2) {
        let alike = (pair[0].worker, pair[0].slot) == (pair[1].worker, pair[1].slot);
        assert!(!alike || pair[0].end <= pair[1].start + 1e-9, "{pair:?} overlap");
    }
}

/// Policies that suspend reduces.
const PREEMPTING: [&str; 3] = ["asrpt:preemptive=yes", "lrpt:preemptive=yes", "gristmill"];

fn live_policies() -> Vec<&'static str> {
    let catalogue = policy::catalogue().into_iter();
    let live = catalogue.filter(|entry| entry.only_simulated.is_none()).map(|entry| entry.name);
    live.chain(["asrpt:preemptive=yes", "lrpt:preemptive=yes", "gristmill:preemptive=no"]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_brings_every_workload_to_its_end_and_does_so_twice(case in case(), oracle: bool, push: bool) {
        for name in live_policies() {
            let deciders = || {
                let placement = if push { "fair-split" } else { "pull" };
                TestDeciders::named(name, placement, oracle.then_some("oracle"))
            };
            let seen = watch(&case.config, deciders(), &case.jobs);
            prop_assert!(seen.is_ok(), "{}: {}", name, seen.unwrap_err());
            let seen = seen.unwrap();
            check_run(&case, &seen);
            prop_assert_eq!(&seen, &watch(&case.config, deciders(), &case.jobs).unwrap(), "{} again", name);
        }
    }
}

#[test]
fn a_policy_that_would_suspend_maps_is_refused() {
    let error = watch(&unified(1, 1), TestDeciders::named("dsrpt", "pull", None), &[]).unwrap_err();
    assert!(matches!(error, SimError::Setting { name: "policy", .. }), "{error}");
}
