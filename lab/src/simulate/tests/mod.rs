//! Tests of replay, measurement and simulation on journals with known contents.

mod world;

use super::*;
use gristmill_runtime::api::ExactWork;
use gristmill_runtime::journal::{JournalReader, JournalRecord};
use gristmill_runtime::replay::{ReplayError, Replayed, replay};
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::ids::{JobId, TaskId, WorkerId};
use gristmill_scheduler::units::Time;
use gristmill_worker::settings::Shuffle;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use world::{TrueJob, World};

/// Returns the journal of a world as text.
fn journal_of(world: &World) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    world.write(&path);
    fs::read_to_string(path).unwrap()
}

fn replay_text(text: &str) -> Result<Replayed, ReplayError> {
    replay(&Registry::standard(), &mut JournalReader::new(text.as_bytes()).unwrap())
}

fn measure(text: &str) -> RunMeasurements {
    RunMeasurements::from_journal(&mut JournalReader::new(text.as_bytes()).unwrap(), Shuffle::Auto).unwrap()
}

/// Random numbers from a seed, which is printed.
struct Draws(ChaCha8Rng);

impl Draws {
    fn seeded(seed: u64) -> Self {
        eprintln!("seed {seed}");
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn unit(&mut self) -> f64 {
        self.0.next_u64() as f64 / u64::MAX as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).max(1e-12).ln()
    }
}

/// Returns jobs of mixed sizes that offer this load to `slots` slots. Their tasks take about `task` seconds.
fn mix(seed: u64, count: usize, load: f64, slots: f64, task: f64) -> Vec<TrueJob> {
    let mut draws = Draws::seeded(seed);
    let mut now = 0.0;
    let shapes: Vec<(Vec<f64>, Vec<f64>)> = (0..count)
        .map(|_| {
            let maps = 2 + (draws.exponential(8.0) as usize).min(40);
            let reduces = 1 + (draws.unit() * 3.0) as usize;
            let mut lengths = |count: usize| (0..count).map(|_| task * (0.5 + draws.unit())).collect();
            (lengths(maps), lengths(reduces))
        })
        .collect();
    let work: f64 = shapes.iter().map(|(maps, reduces)| maps.iter().chain(reduces).sum::<f64>()).sum();
    let gap = work / count as f64 / slots / load;
    let job = |(maps, reduces)| {
        let job = TrueJob { arrival: now, maps, reduces, bytes: 1000 };
        now += draws.exponential(gap);
        job
    };
    shapes.into_iter().map(job).collect()
}

fn mean_flow(jobs: &[SimulatedJob]) -> f64 {
    jobs.iter().map(|job| job.ended - job.arrived).sum::<f64>() / jobs.len() as f64
}

#[test]
fn a_journal_replays_to_its_own_orders_whoever_decides() {
    for policy in ["fifo", "fair", "max-srpt", "k-lps:k=2", "asrpt", "lrpt"] {
        let world = World::new(policy, 3, 2, mix(1, 12, 0.9, 6.0, 0.05));
        let replayed = replay_text(&journal_of(&world)).unwrap();
        assert_eq!(replayed.difference, None, "{policy}");
        assert!(100 < replayed.orders && 100 < replayed.facts, "{policy}: {replayed:?}");
    }
}

#[test]
fn a_journal_with_failures_a_lost_worker_and_another_policy_replays_too() {
    let mut world = World::new("fair", 3, 2, mix(2, 10, 0.9, 6.0, 0.05));
    world.fails.insert(TaskId::map(JobId(1), 0));
    world.fails.insert(TaskId::reduce(JobId(2), 0));
    world.loses.push((0.4, WorkerId(2)));
    world.decides = Some((0.6, "max-srpt".to_owned()));
    let text = journal_of(&world);
    for fact in ["worker_lost", "attempt_failed", "decide_by"] {
        assert!(text.contains(fact), "nothing of {fact} in the journal");
    }
    let replayed = replay_text(&text).unwrap();
    assert_eq!((replayed.difference, replayed.changes), (None, 1));
}

#[test]
fn a_replay_shows_the_first_order_that_differs_with_its_line_and_time() {
    let text = journal_of(&World::new("fifo", 2, 1, mix(3, 4, 0.9, 2.0, 0.05)));
    // Pretend that the third attempt ran elsewhere.
    let at = text.match_indices("\"launch\"").nth(2).unwrap().0;
    let (before, after) = text.split_at(at);
    let after = match after.contains("\"worker\":1") {
        true => after.replacen("\"worker\":1", "\"worker\":7", 1),
        false => after.replacen("\"worker\":2", "\"worker\":7", 1),
    };
    let changed = format!("{before}{after}");
    let line = changed.lines().position(|line| line.contains("\"worker\":7")).unwrap() as u64 + 1;
    let difference = replay_text(&changed).unwrap().difference.unwrap();
    assert_eq!(difference.line, line);
    assert_eq!(difference.recorded.unwrap()["launch"]["worker"], 7);
    assert_ne!(difference.replayed.unwrap()["launch"]["worker"], 7);
}

#[test]
fn an_order_that_is_missing_or_too_many_is_a_difference() {
    let text = journal_of(&World::new("fifo", 1, 1, mix(4, 1, 0.9, 1.0, 0.05)));
    let line = text.lines().rfind(|line| line.contains("job_ended")).unwrap();
    let mut instant: Value = serde_json::from_str(line).unwrap();
    let orders = instant["instant"]["orders"].as_array_mut().unwrap();
    let (count, last) = (orders.len(), orders.pop().unwrap());
    let missing = replay_text(&text.replace(line, &instant.to_string())).unwrap().difference.unwrap();
    assert_eq!((missing.order, missing.recorded, missing.replayed), (Some(count), None, Some(last.clone())));
    let orders = instant["instant"]["orders"].as_array_mut().unwrap();
    orders.extend([last.clone(), last.clone()]);
    let extra = replay_text(&text.replace(line, &instant.to_string())).unwrap().difference.unwrap();
    assert_eq!((extra.order, extra.recorded, extra.replayed), (Some(count + 1), Some(last), None));
}

#[test]
fn another_order_of_the_shuffle_is_a_difference_even_if_all_orders_are_alike() {
    let text = journal_of(&World::new("max-srpt", 2, 2, mix(3, 6, 0.9, 2.0, 0.05)));
    let replayed = replay_text(&text).unwrap();
    assert!(replayed.difference.is_none() && 0 < replayed.shuffles && replayed.ended, "{replayed:?}");
    let other = text.replacen("\"max-srpt\"", "\"max-srpt:shuffle=head\"", 1);
    let difference = replay_text(&other).unwrap().difference.unwrap();
    assert_eq!(difference.order, None);
    assert_eq!(difference.replayed.unwrap()["only"], true);
    assert!(difference.recorded.is_none_or(|order| order["only"] == false));
}

#[test]
fn a_journal_without_its_end_says_so() {
    let text = journal_of(&World::new("fifo", 1, 1, mix(4, 1, 0.9, 1.0, 0.05)));
    let header = format!("{}\n", text.lines().next().unwrap());
    let replayed = replay_text(&header).unwrap();
    assert_eq!((replayed.instants, replayed.ended, replayed.difference), (0, false, None));
}

#[test]
fn facts_that_no_master_enters_are_an_error_with_their_line() {
    let text = journal_of(&World::new("fifo", 1, 1, mix(5, 1, 0.9, 1.0, 0.05)));
    let joined = text.lines().find(|line| line.contains("worker_joined")).unwrap();
    let place = text.lines().position(|line| line == joined).unwrap() as u64 + 1;
    let twice = text.replace(joined, &format!("{joined}\n{joined}"));
    match replay_text(&twice) {
        Err(ReplayError::Impossible { line, .. }) => assert_eq!(line, place + 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_policy_that_is_not_known_here_is_an_error_with_its_line() {
    let text = journal_of(&World::new("fifo", 1, 1, mix(6, 1, 0.9, 1.0, 0.05)));
    match replay_text(&text.replacen("\"policy\":\"fifo\"", "\"policy\":\"fifa\"", 1)) {
        Err(ReplayError::Name { line: 1, reason }) => {
            assert!(reason.contains("did you mean `fifo`"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_torn_last_line_is_told_and_the_rest_replayed() {
    let text = journal_of(&World::new("fifo", 1, 1, mix(7, 2, 0.9, 1.0, 0.05)));
    let lines = text.lines().count() as u64;
    let torn = replay_text(&text[..text.len() - 3]).unwrap();
    assert_eq!((torn.torn, torn.difference), (Some(lines), None));
}

#[test]
fn overheads_and_times_of_tasks_are_those_of_the_world() {
    let world = World::new("fifo", 2, 1, mix(8, 6, 0.9, 2.0, 0.05));
    let measured = measure(&journal_of(&world));
    let near = |found: f64, truth: f64| (found - truth).abs() < 1e-6;
    let overheads = measured.overheads;
    assert!(near(overheads.map, world.order + world.report), "{overheads:?}");
    assert!(near(overheads.reduce, world.order + world.report), "{overheads:?}");
    assert!(near(overheads.fetch, world.fetch), "{overheads:?}");
    assert_eq!(measured.jobs.len(), world.jobs.len());
    for (job, truth) in measured.jobs.iter().zip(&world.jobs) {
        assert!(job.succeeded && near(job.arrived, truth.arrival), "{job:?}");
        assert!(job.map_seconds.iter().zip(&truth.maps).all(|(&found, &truth)| near(found, truth)));
        assert!(job.reduce_seconds.iter().zip(&truth.reduces).all(|(&found, &truth)| near(found, truth)));
        let (started, maps, shuffle) =
            (job.started.unwrap(), job.maps_done.unwrap(), job.shuffle_done.unwrap());
        assert!(job.arrived <= started && started < maps && maps <= shuffle && shuffle < job.ended.unwrap());
    }
}

#[test]
fn maps_that_are_queued_behind_others_do_not_count_for_the_overhead() {
    let world = World::new("fifo", 1, 1, mix(9, 3, 0.9, 1.0, 0.003));
    let overheads = measure(&journal_of(&world)).overheads;
    assert!((overheads.map - 0.003).abs() < 1e-6, "{overheads:?}");
}

#[test]
fn times_are_taken_to_speed_one() {
    let mut world = World::new("fifo", 1, 1, mix(10, 2, 0.9, 1.0, 0.05));
    world.workers[0].1 = 0.5;
    let measured = measure(&journal_of(&world));
    assert_eq!(measured.workers[0].speed, 0.5);
    let (found, truth) = (&measured.jobs[0].map_seconds, &world.jobs[0].maps);
    assert!(
        found.iter().zip(truth).all(|(found, truth)| (found - truth).abs() < 1e-6),
        "{found:?} {truth:?}"
    );
}

#[test]
fn a_task_counts_by_its_last_good_attempt() {
    let mut world = World::new("fifo", 2, 1, mix(11, 4, 0.9, 2.0, 0.05));
    world.fails.insert(TaskId::map(JobId(1), 0));
    world.fails.insert(TaskId::reduce(JobId(1), 0));
    world.loses.push((0.3, WorkerId(2)));
    let text = journal_of(&world);
    assert!(text.contains("worker_lost") && text.contains("attempt_failed"));
    let measured = measure(&text);
    assert_eq!(measured.workers.len(), 2);
    for (job, truth) in measured.jobs.iter().zip(&world.jobs) {
        let (found, truth): (f64, f64) = (job.map_seconds.iter().sum(), truth.maps.iter().sum());
        assert!(job.succeeded && (found - truth).abs() < 1e-6, "{} instead of {}", found, truth);
    }
    assert_eq!(replay_with(&measured, "fifo").len(), 4);
}

/// Returns the lines of a journal after the header of a world's.
fn by_hand(records: &[JournalRecord]) -> String {
    let header = journal_of(&World::new("fifo", 1, 1, Vec::new()));
    let lines = records.iter().map(|record| serde_json::to_string(record).unwrap());
    std::iter::once(header.lines().next().unwrap().to_owned()).chain(lines).map(|line| line + "\n").collect()
}

#[test]
fn a_suspended_reduce_counts_what_it_ran_and_what_the_suspension_cost_apart() {
    use gristmill_scheduler::event::Event;
    use gristmill_scheduler::ids::HostId;
    use gristmill_scheduler::job::{JobSpec, MapSpec};
    use gristmill_scheduler::units::{Bytes, Span};
    use serde_json::json;
    let (job, worker) = (JobId(1), WorkerId(1));
    let (map, first) = (TaskId::map(job, 0).attempt(0), TaskId::reduce(job, 0).attempt(0));
    let ms = |ms: u64| Time(ms * 1_000_000);
    let instant = |at: u64, fact: Event, orders: Vec<Value>| JournalRecord::Instant {
        at: ms(at),
        facts: vec![fact],
        orders,
        shuffle: None,
    };
    let launch = |attempt| json!({"launch": {"attempt": attempt, "worker": worker, "reason": null}});
    let done = |at: u64, attempt, took: u64, orders: Vec<Value>| {
        let (output_bytes, took) = (Bytes(10), Span::milliseconds(took));
        instant(at, Event::ReduceFinished { attempt, output_bytes, took }, orders)
    };
    let spec = JobSpec::new(vec![MapSpec::anywhere(Bytes(1))], 1);
    let map_done = Event::MapFinished {
        attempt: map,
        output_bytes: Bytes(10),
        took: Span::milliseconds(95),
        fingerprint: None,
    };
    let ended = vec![json!({"job_ended": {"job": job, "outcome": "succeeded"}})];
    let resume = json!({"resume": {"attempt": first, "worker": worker, "reason": null}});
    let joined = Event::WorkerJoined { worker, host: HostId(1), slots: Slots::Unified(1) };
    let common = vec![
        instant(1, joined, vec![]),
        instant(100, Event::JobArrived { job, spec: spec.into() }, vec![launch(map)]),
        instant(200, map_done, vec![launch(first)]),
        instant(300, Event::AttemptSuspended { attempt: first }, vec![]),
    ];
    // It runs 100 ms, waits, and runs 50 ms more. 20 ms of these 150 are system time.
    let mut there = common;
    there.push(instant(400, Event::Tick, vec![resume]));
    there.push(done(450, first, 130, ended.clone()));
    let measured = measure(&by_hand(&there));
    assert_eq!(measured.jobs[0].reduce_seconds, [0.13]);
    assert!((measured.overheads.suspension - 0.02).abs() < 1e-9, "{:?}", measured.overheads);
    assert_eq!(measured.jobs[0].reduce_overheads, [None]);
}

fn replay_with(measured: &RunMeasurements, policy: &str) -> Vec<SimulatedJob> {
    simulate(&Registry::standard(), &measured.replayed().unwrap(), policy, "pull", "history").unwrap()
}

#[test]
fn the_replayed_mean_flow_time_is_that_of_the_world_at_three_loads() {
    for (seed, load) in [(12, 0.5), (13, 0.8), (14, 1.1)] {
        for (policy, task) in [("fifo", 0.05), ("fair", 0.05), ("fair", 0.004), ("max-srpt", 0.1)] {
            let mut world = World::new(policy, 4, 2, mix(seed, 40, load, 8.0, task));
            // Overheads shrink with short tasks, which they would dominate otherwise.
            let shorter = (task / 0.05_f64).min(1.0);
            (world.order, world.report) = (shorter * world.order, shorter * world.report);
            world.fetch *= shorter;
            let measured = measure(&journal_of(&world));
            let truth = mean_flow(&measured.recorded());
            let found = mean_flow(&replay_with(&measured, policy));
            let error = (found / truth - 1.0).abs();
            eprintln!("load {load}, {policy}, tasks of {task} s: error {:.2} %", error * 100.0);
            assert!(error < 0.03, "{policy} at {load}: {found} s instead of {truth} s");
        }
    }
}

#[test]
fn replayed_under_another_policy_is_what_the_world_does_under_it() {
    let jobs = mix(15, 40, 0.9, 8.0, 0.05);
    let measured = measure(&journal_of(&World::new("fifo", 4, 2, jobs.clone())));
    for policy in ["fair", "max-srpt", "lrpt"] {
        let truth = mean_flow(&measure(&journal_of(&World::new(policy, 4, 2, jobs.clone()))).recorded());
        let found = mean_flow(&replay_with(&measured, policy));
        eprintln!("{policy}: {found:.4} s replayed, {truth:.4} s true");
        assert!((found / truth - 1.0).abs() < 0.05, "{policy}: {found} s instead of {truth} s");
    }
}

#[test]
fn pools_and_speeds_are_replayed_as_they_were() {
    let mut world = World::new("fair", 4, 2, mix(16, 30, 0.8, 6.0, 0.05));
    for (place, worker) in world.workers.iter_mut().enumerate() {
        *worker = (Slots::Pools { map: 2, reduce: 1 }, if place < 2 { 1.0 } else { 0.5 });
    }
    let measured = measure(&journal_of(&world));
    let (truth, found) = (mean_flow(&measured.recorded()), mean_flow(&replay_with(&measured, "fair")));
    assert!((found / truth - 1.0).abs() < 0.03, "{found} s instead of {truth} s");
}

#[test]
fn what_cannot_be_simulated_says_why() {
    let text = journal_of(&World::new("fifo", 1, 1, mix(17, 1, 0.9, 1.0, 0.05)));
    let measured = measure(&text);
    let registry = Registry::standard();
    let unknown = simulate(&registry, &measured.replayed().unwrap(), "fifa", "pull", "history").unwrap_err();
    assert!(unknown.to_string().contains("did you mean `fifo`"), "{unknown}");
    let deserted = RunMeasurements { workers: Vec::new(), ..measured.clone() };
    assert!(matches!(deserted.replayed(), Err(SimulateError::NoWorkers)));
    let mut failed = measured;
    failed.jobs.iter_mut().for_each(|job| job.succeeded = false);
    assert!(matches!(failed.replayed(), Err(SimulateError::NoJobs)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_world_replays_to_its_own_orders(
        seed in 0..1_000_000_u64,
        policy in prop::sample::select(vec!["fifo", "fair", "max-srpt", "asrpt", "split-srpt", "lrpt"]),
        load in 0.3..1.5_f64,
        task in prop::sample::select(vec![0.002, 0.05]),
        pooled in any::<bool>(),
        lost in prop::option::of(0.0..1.0_f64),
    ) {
        let mut world = World::new(policy, 3, 2, mix(seed, 8, load, 6.0, task));
        if pooled {
            world.workers.iter_mut().for_each(|worker| worker.0 = Slots::Pools { map: 2, reduce: 1 });
        }
        if let Some(at) = lost {
            world.loses.push((at, WorkerId(1)));
        }
        let text = journal_of(&world);
        let replayed = replay_text(&text).unwrap();
        prop_assert_eq!(replayed.difference, None);
        let measured = measure(&text);
        let ended = measured.jobs.iter().filter(|job| job.succeeded).count();
        prop_assert_eq!(replay_with(&measured, "fair").len(), ended);
    }
}

/// Returns what is known of a world's jobs before it runs.
fn known(world: &World) -> BTreeMap<JobId, KnownJob> {
    let job = |(place, job): (usize, &TrueJob)| {
        let work = ExactWork {
            map_seconds: job.maps.clone(),
            shuffle_bytes: (job.bytes * job.maps.len() as u64) as f64,
            reduce_seconds: job.reduces.clone(),
        };
        let known = KnownJob { arrival: job.arrival, deadline: None, work, source: SizeSource::Told };
        (JobId(place as u32 + 1), known)
    };
    world.jobs.iter().enumerate().map(job).collect()
}

/// Returns the costs of a world, which take time but no processor.
fn costs(world: &World) -> SystemCosts {
    let task = world.order + world.report;
    SystemCosts { task: [task; 2], fetch: world.fetch, cores: 2, ..SystemCosts::default() }
}

#[test]
fn a_world_is_predicted_from_sizes_and_costs_that_were_known_before() {
    for (seed, policy) in [(21, "fifo"), (22, "fair"), (23, "max-srpt")] {
        let world = World::new(policy, 4, 2, mix(seed, 40, 0.8, 8.0, 0.05));
        let measured = measure(&journal_of(&world));
        let scenario = measured.predicted(&known(&world), &costs(&world)).unwrap();
        let found = simulate(&Registry::standard(), &scenario, policy, "pull", "history").unwrap();
        let (truth, found) = (mean_flow(&measured.recorded()), mean_flow(&found));
        assert!((found / truth - 1.0).abs() < 0.03, "{policy}: {found} s instead of {truth} s");
    }
}

#[test]
fn a_prediction_uses_nothing_that_was_measured_in_the_run() {
    let world = World::new("fair", 3, 2, mix(24, 12, 0.8, 6.0, 0.05));
    let (known, costs) = (known(&world), costs(&world));
    let text = journal_of(&world);
    let measured = measure(&text);
    // Another run of the same jobs, in which everything took three times as long and arrived late.
    let mut other = measured.clone();
    for job in &mut other.jobs {
        job.map_seconds.iter_mut().chain(&mut job.reduce_seconds).for_each(|seconds| *seconds *= 3.0);
        job.output_bytes.iter_mut().for_each(|bytes| *bytes *= 3.0);
        job.map_overheads.iter_mut().chain(&mut job.reduce_overheads).for_each(|one| *one = Some(9.0));
        job.arrived += 1.0;
        (job.started, job.maps_done, job.shuffle_done, job.ended) = (None, None, None, None);
    }
    other.overheads = Overheads { map: 9.0, reduce: 9.0, fetch: 9.0, suspension: 9.0 };
    (other.carried, other.workers_ready) = (Some(1.0), 0.5);
    assert_eq!(measured.predicted(&known, &costs).unwrap(), other.predicted(&known, &costs).unwrap());
    assert_ne!(measured.replayed().unwrap(), other.replayed().unwrap());
}

#[test]
fn a_job_of_unknown_size_is_not_predicted_and_is_named() {
    let world = World::new("fifo", 1, 1, mix(25, 2, 0.9, 1.0, 0.05));
    let measured = measure(&journal_of(&world));
    let mut known = known(&world);
    known.get_mut(&JobId(2)).unwrap().work.map_seconds.push(1.0);
    let other_shape = measured.predicted(&known, &costs(&world)).unwrap_err();
    assert!(matches!(other_shape, SimulateError::Unknown { job: JobId(2), .. }), "{other_shape}");
    known.remove(&JobId(1));
    let unknown = measured.predicted(&known, &costs(&world)).unwrap_err();
    assert!(unknown.to_string().contains("nothing says before the run"), "{unknown}");
}

#[test]
fn costs_of_the_system_are_taken_out_of_times_that_have_them_in_them() {
    let world = World::new(
        "fifo",
        1,
        1,
        vec![TrueJob { arrival: 0.0, maps: vec![0.5], reduces: vec![0.3], bytes: 1000 }],
    );
    let measured = measure(&journal_of(&world));
    let mut known = known(&world);
    known.get_mut(&JobId(1)).unwrap().source = SizeSource::Alone;
    let costs = SystemCosts { cores: 1, work: [0.01, 0.02], byte_work: [1e-5, 2e-5], ..costs(&world) };
    let scenario = measured.predicted(&known, &costs).unwrap();
    let job = &scenario.jobs[0].simulated;
    assert!((job.maps[0] - 0.48).abs() < 1e-9 && (job.reduces[0] - 0.26).abs() < 1e-9, "{job:?}");
}
