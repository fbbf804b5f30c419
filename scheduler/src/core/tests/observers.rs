//! Tests of observing policies: their results, and that they change nothing.

use super::driver::{JOB, Table, map, plain};
use crate::core::{Core, Observation, Turn};
use crate::ids::JobId;
use crate::plan::Reason;
use crate::policy::{Fair, Fifo, MaxSrpt, Policy};
use crate::station::Station;

const SECOND: JobId = JobId(2);

/// Builds a worker of two slots, a large job that holds both, and a small one behind it; then a map ends.
fn two_jobs(decides: impl Policy + 'static, add_observers: Vec<Box<dyn Policy>>) -> (Table, Vec<String>) {
    let mut table = Table::new(decides);
    table.core.add_observers(add_observers);
    table.join(2);
    table.submit(plain(5, 1));
    table.submit(plain(1, 1));
    let orders = launches(&table.map_done(map(0, 0)));
    (table, orders)
}

fn launches(orders: &[String]) -> Vec<String> {
    orders.iter().filter(|order| order.starts_with("launch")).cloned().collect()
}

fn observation(core: &Core) -> &Observation {
    core.observation().expect("somebody looks on")
}

fn served(turns: &[Turn]) -> Vec<(JobId, u32)> {
    turns.iter().map(|turn| (turn.job, turn.slots)).collect()
}

#[test]
fn each_policy_says_whom_it_would_serve_and_why() {
    let (table, orders) = two_jobs(Fifo::new(), vec![Box::new(MaxSrpt::new()), Box::new(Fair::new())]);
    assert_eq!(orders, ["launch map-2.0 on w1"]);
    let seen = observation(&table.core);
    assert_eq!(seen.free[Station::Map], 1);
    let waiting: Vec<_> = seen.jobs.iter().map(|job| (job.job, job.can[Station::Map])).collect();
    assert_eq!(waiting, [(JOB, 3), (SECOND, 1)]);
    let [fifo, srpt, fair] = &seen.preferences[..] else { panic!("{seen:?}") };
    assert_eq!([&fifo.policy, &srpt.policy, &fair.policy], ["fifo", "max-srpt", "fair"]);
    assert_eq!(served(&fifo.turns), [(JOB, 3), (SECOND, 1)]);
    assert_eq!(fifo.turns[0].reason, Reason::Oldest);
    assert_eq!(served(&srpt.turns), [(SECOND, 1), (JOB, 3)]);
    assert_eq!(served(&fair.turns)[0], (SECOND, 1), "it holds less");
}

#[test]
fn observers_change_no_order() {
    let (_, alone) = two_jobs(MaxSrpt::new(), Vec::new());
    let (_, watched) = two_jobs(MaxSrpt::new(), vec![Box::new(Fifo::new()), Box::new(Fair::new())]);
    assert_eq!(alone, watched);
    assert_eq!(alone, ["launch job-2/map-0.0 on w1"]);
}

#[test]
fn observers_stay_when_another_policy_decides() {
    let (mut table, _) = two_jobs(Fifo::new(), vec![Box::new(Fair::new())]);
    table.core.decide_by(Box::new(MaxSrpt::new()), Box::new(crate::placement::Pull::new()));
    let orders = launches(&table.map_done(map(1, 0)));
    assert_eq!(orders, ["launch job-2/map-0.0 on w1"]);
    let seen = observation(&table.core);
    let policies: Vec<_> = seen.preferences.iter().map(|wish| wish.policy.as_str()).collect();
    assert_eq!(policies, ["max-srpt", "fair"]);
    assert_eq!(served(&seen.preferences[1].turns)[0], (SECOND, 1));
}

#[test]
fn nobody_is_asked_when_nobody_looks_on() {
    let mut table = Table::with_workers(&[1]);
    table.submit(plain(1, 0));
    assert_eq!(table.core.observation(), None);
}
