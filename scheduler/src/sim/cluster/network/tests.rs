//! Tests of the order and the rates of fetches.

use super::*;
use crate::ids::TaskId;
use crate::plan::{Line, Share};

const HOME: u32 = 0;

fn network(lanes: u32) -> Network {
    Network::new(
        NetworkConfig { in_rate: 100.0, out_rate: 100.0, latency: 0.0, lanes, own: false },
        12,
        f64::INFINITY,
    )
}

/// Runs all transfers under one order. Returns the jobs in the order in which their transfers started.
fn flow(network: &mut Network, order: &ShuffleOrder) -> Vec<u32> {
    let mut foreseen = BTreeSet::new();
    let mut began = Vec::new();
    let mut now = Time(0);
    loop {
        network.settle(now, (order, 0), &mut None, |end, transfer| {
            foreseen.insert((end, transfer));
        });
        for transfer in network.transfers.iter().flatten().filter(|transfer| transfer.began == now) {
            began.push((now, transfer.job.0));
        }
        let Some((end, next)) = foreseen.pop_first() else { break };
        // After a rate change there is a new prediction.
        if network.end(next).is_some() {
            now = end;
        }
    }
    assert!(
        network.ends.iter().all(|end| end.waiting.is_empty() && end.into.is_empty() && end.out.is_empty())
    );
    began.into_iter().map(|(_, job)| job).collect()
}

/// Offers this many bytes of each job at each of these workers.
fn offer(network: &mut Network, jobs: &[(u32, f64)], workers: std::ops::Range<u32>) {
    for from in workers {
        for &(job, bytes) in jobs {
            network.offer(TaskId::map(JobId(job), from).attempt(0), from, HOME, bytes);
        }
    }
}

fn order(grants: &[(u32, Share)], lines: &[f64]) -> ShuffleOrder {
    let grants = grants.iter().map(|&(job, share)| (JobId(job), share)).collect();
    ShuffleOrder { grants, lines: lines.to_vec(), only: false }
}

#[test]
fn one_lane_serves_the_order_strictly_and_the_rest_by_age() {
    let mut network = network(1);
    offer(&mut network, &[(1, 10.0), (2, 10.0), (3, 10.0), (4, 10.0)], 1..3);
    let began = flow(&mut network, &order(&[(3, Share::All), (2, Share::Slots(1))], &[]));
    assert_eq!(began, [3, 3, 2, 2, 1, 1, 4, 4]);
    assert_eq!(network.moved_bytes, 80.0);
}

#[test]
fn a_tier_shares_bytes_by_weight_while_both_have_something() {
    let mut network = network(1);
    offer(&mut network, &[(1, 10.0), (2, 10.0)], 1..10);
    let began = flow(&mut network, &order(&[(1, Share::Weight(1.0)), (2, Share::Weight(2.0))], &[]));
    // The second gets twice as much until it has all its nine.
    let first: usize = began[..12].iter().filter(|&&job| job == 1).count();
    assert!((4..=5).contains(&first), "{began:?}");
    assert_eq!(began.len(), 18);
}

#[test]
fn lines_share_bytes_by_their_fractions_and_hand_over_what_is_idle() {
    let mut network = network(1);
    offer(&mut network, &[(1, 10.0), (2, 10.0), (3, 10.0)], 1..9);
    let grants = [(1, Share::In(Line(0))), (2, Share::In(Line(1))), (3, Share::In(Line(1)))];
    let began = flow(&mut network, &order(&grants, &[0.25, 0.75]));
    let of_first = began[..16].iter().filter(|&&job| job == 1).count();
    assert!((3..=5).contains(&of_first), "{began:?}");
    let second = began.iter().position(|&job| job == 3).unwrap();
    assert!(!began[second..].contains(&2), "within its line the second job goes first: {began:?}");
    assert_eq!(began.len(), 24);
}

#[test]
fn lanes_fetch_from_different_workers_and_take_all_that_is_there_at_once() {
    let mut network = network(4);
    offer(&mut network, &[(1, 10.0), (1, 20.0)], 1..3);
    network.settle(Time(0), (&order(&[], &[]), 0), &mut None, |_, _| {});
    let flows: Vec<(u32, usize, f64, f64)> = network
        .transfers
        .iter()
        .flatten()
        .map(|transfer| (transfer.from, transfer.maps.len(), transfer.bytes, transfer.rate))
        .collect();
    assert_eq!(flows, [(1, 2, 30.0, 50.0), (2, 2, 30.0, 50.0)]);
}

#[test]
fn a_transfer_takes_no_further_map_when_it_has_the_bytes_of_a_request() {
    let config = NetworkConfig { in_rate: 100.0, out_rate: 100.0, latency: 0.0, lanes: 1, own: false };
    let mut network = Network::new(config, 12, 25.0);
    for map in 0..5 {
        network.offer(TaskId::map(JobId(1), map).attempt(0), 1, HOME, 10.0);
    }
    // 30 bytes, then 20.
    assert_eq!(flow(&mut network, &order(&[], &[])), [1, 1]);
    assert_eq!(network.moved_bytes, 50.0);
}
