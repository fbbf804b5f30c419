//! Test that equal events give equal commands: the events of a simulation are serialized, read, and sent to another
//! core.

use super::*;
use crate::core::ShuffleOrder;
use crate::units::Time;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// One call of the core: its events as in a journal, and its results.
struct Instant {
    now: Time,
    facts: String,
    orders: Vec<Command>,
    shuffle: ShuffleOrder,
}

#[derive(Default)]
struct Journal(Vec<Instant>);

impl Observer for Journal {
    fn instant(&mut self, now: Time, events: &[Event], commands: &[Command], order: &ShuffleOrder) {
        let facts = serde_json::to_string(events).unwrap();
        self.0.push(Instant { now, facts, orders: commands.to_vec(), shuffle: order.clone() });
    }
}

fn drawn(seed: u64) -> (Config, Vec<Job>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let slots = match seed % 2 {
        0 => Slots::Unified(2),
        _ => Slots::Pools { map: 2, reduce: 1 },
    };
    let mut config = Config { seed, ..Config::uniform(3, slots) };
    config.network = NetworkConfig { in_rate: 100.0, out_rate: 100.0, latency: 0.01, lanes: 2, own: false };
    config.workers[2].speed = 0.5;
    let mut arrival = 0.0;
    let jobs = (0..12).map(|index| {
        arrival += rng.random_range(0.0..3.0);
        let mut lengths = |most: usize, seconds: f64| -> Vec<f64> {
            (0..rng.random_range(1..=most)).map(|_| rng.random_range(0.1..seconds)).collect()
        };
        let (maps, reduces) = (lengths(8, 2.0), lengths(3, 12.0));
        Job {
            shuffle_bytes: rng.random_range(0.0..400.0),
            deadline: (index % 3 == 0).then_some(arrival + 20.0),
            weight: f64::from(1 + index % 2),
            pool: (index % 4 == 0).then_some(1),
            ..job_of(arrival, maps, reduces)
        }
    });
    let jobs = jobs.collect();
    (config, jobs)
}

/// Runs the jobs, then sends all events to a fresh core. Returns the number of suspensions.
fn check_same(policy: &str, placement: &str, seed: u64) -> usize {
    let (config, jobs) = drawn(seed);
    let deciders = || TestDeciders::named(policy, placement, Some("oracle"));
    let core = || {
        let deciders = deciders();
        check::core_of(&config, deciders.0).unwrap()
    };
    let mut journal = Journal::default();
    engine::Engine::new(&config, core(), &mut journal, &mut |_| {})
        .run(&mut jobs.iter().cloned(), &mut |_| {})
        .unwrap_or_else(|error| panic!("{policy} with {placement}, seed {seed}: {error}"));
    let mut fresh = core();
    let mut orders = Vec::new();
    for instant in &journal.0 {
        let facts: Vec<Event> = serde_json::from_str(&instant.facts).unwrap();
        orders.clear();
        fresh.handle(instant.now, &facts, &mut orders);
        assert_eq!(orders, instant.orders, "{policy} with {placement}, seed {seed}, at {}", instant.now);
        assert_eq!(fresh.shuffle_order(), &instant.shuffle, "{policy} with {placement}, seed {seed}");
    }
    assert!(fresh.live_jobs().next().is_none(), "the facts tell everything");
    let all = journal.0.iter().flat_map(|instant| &instant.orders);
    all.filter(|order| matches!(order, Command::Suspend { .. })).count()
}

#[test]
fn every_live_policy_orders_the_same_on_a_fresh_core_that_is_told_the_same_facts() {
    for policy in live_policies() {
        let suspensions: usize = (0..4).map(|seed| check_same(policy, "pull", seed)).sum();
        assert_eq!(0 < suspensions, PREEMPTING.contains(&policy), "{policy} suspended {suspensions} times");
    }
}

#[test]
fn every_live_placement_orders_the_same_on_a_fresh_core_that_is_told_the_same_facts() {
    for entry in placement::catalogue().into_iter().filter(|entry| entry.only_simulated.is_none()) {
        for seed in 0..4 {
            check_same("fair", entry.name, seed);
        }
    }
}

#[test]
fn the_standing_order_has_a_new_revision_exactly_when_it_is_another() {
    let (config, jobs) = drawn(7);
    for policy in ["fifo", "fair", "max-srpt", "split-srpt"] {
        let deciders = TestDeciders::named(policy, "pull", Some("oracle"));
        let core = check::core_of(&config, deciders.0).unwrap();
        let mut before = (0, ShuffleOrder::default());
        let mut changes = 0;
        engine::Engine::new(&config, core, &mut (), &mut |_| {})
            .run(&mut jobs.iter().cloned(), &mut |core| {
                let now = (core.shuffle_revision(), core.shuffle_order().clone());
                assert_eq!(before.0 != now.0, before.1 != now.1, "{policy} at {}", core.now());
                changes += u32::from(before != now);
                before = now;
            })
            .unwrap();
        assert!(10 < changes, "{policy}: {changes}");
    }
}
