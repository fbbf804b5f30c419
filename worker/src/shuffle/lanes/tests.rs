//! Tests of the order: strict between tiers, by bytes and weight inside one.

use super::*;
use proptest::prelude::*;

const QUANTUM: u64 = 1000;

fn job(number: u32) -> JobId {
    JobId(number)
}

fn order(grants: &[(u32, LaneShare)]) -> LaneOrder {
    let grants = grants.iter().map(|&(number, share)| (job(number), share)).collect();
    LaneOrder { grants, lines: Vec::new(), only: false }
}

/// Creates lanes with this order where these jobs have something to fetch.
fn lanes(order: &LaneOrder, waiting: impl IntoIterator<Item = u32>) -> Lanes {
    let mut lanes = Lanes::new(QUANTUM);
    lanes.order(order);
    waiting.into_iter().for_each(|number| lanes.enter(job(number)));
    lanes
}

fn next_of(lanes: &mut Lanes, able: &[u32]) -> Option<u32> {
    lanes.next(Tier::LAST, |job, _, _| able.contains(&job.0)).map(|job| job.0)
}

/// Gives this many turns of this many bytes, all to jobs that can take one. Returns bytes by job.
fn run(lanes: &mut Lanes, turns: u32, bytes: f64, able: &[u32]) -> BTreeMap<u32, f64> {
    let mut had = BTreeMap::new();
    for _ in 0..turns {
        let taker = next_of(lanes, able).unwrap();
        lanes.charge(job(taker), bytes);
        *had.entry(taker).or_default() += bytes;
    }
    had
}

#[test]
fn lanes_serve_named_jobs_in_the_order_of_the_list_and_others_by_age_after_them() {
    let mut lanes = lanes(&order(&[(5, LaneShare::All), (2, LaneShare::Requests(3))]), [1, 2, 3, 5]);
    assert_eq!(next_of(&mut lanes, &[1, 2, 3, 5]), Some(5));
    assert_eq!(next_of(&mut lanes, &[1, 2, 3]), Some(2));
    assert_eq!(next_of(&mut lanes, &[1, 3]), Some(1));
    assert_eq!(next_of(&mut lanes, &[3]), Some(3));
    assert_eq!(next_of(&mut lanes, &[]), None);
}

#[test]
fn lanes_serve_nobody_who_is_not_named_when_the_order_says_only() {
    let mut lanes = lanes(&LaneOrder { only: true, ..order(&[(5, LaneShare::All)]) }, [1, 5]);
    assert_eq!(next_of(&mut lanes, &[1]), None);
    assert_eq!(lanes.tier(job(1)), Tier::LAST);
    lanes.order(&order(&[(5, LaneShare::All)]));
    assert_eq!(next_of(&mut lanes, &[1]), Some(1));
}

#[test]
fn lanes_tell_how_many_requests_a_job_may_have() {
    let order = order(&[(1, LaneShare::Requests(3)), (2, LaneShare::All)]);
    let mut lanes = lanes(&order, [1, 2]);
    let capped = lanes.next(Tier::LAST, |_, _, most| most.is_none_or(|most| 3 < most));
    assert_eq!(capped, Some(job(2)));
}

#[test]
fn lanes_share_equally_by_bytes_when_no_order_was_ever_given() {
    let mut lanes = lanes(&LaneOrder::default(), [1, 2]);
    let mut had = [0.0; 2];
    for _ in 0..100 {
        let taker = next_of(&mut lanes, &[1, 2]).unwrap();
        // The turns of the second cost three times as much.
        let bytes = if taker == 1 { 500.0 } else { 1500.0 };
        lanes.charge(job(taker), bytes);
        had[taker as usize - 1] += bytes;
    }
    assert!((had[0] - had[1]).abs() <= 2500.0, "{had:?}");
}

#[test]
fn lanes_give_lines_their_fractions_and_a_line_to_its_first_job() {
    let grants = [(1, LaneShare::Line(0)), (2, LaneShare::Line(1)), (3, LaneShare::Line(0))];
    let order = LaneOrder { lines: vec![0.75, 0.25], ..order(&grants) };
    let mut lanes = lanes(&order, [1, 2, 3]);
    let had = run(&mut lanes, 400, 100.0, &[1, 2, 3]);
    assert!((had[&1] - 30_000.0).abs() <= 1100.0, "{had:?}");
    assert_eq!(had.get(&3), None, "the first job of the line can take it all");
    let had = run(&mut lanes, 400, 100.0, &[2, 3]);
    assert!((had[&3] - 30_000.0).abs() <= 1100.0, "{had:?}");
    // The unused share of a line goes to the other.
    assert_eq!(run(&mut lanes, 10, 100.0, &[2])[&2], 1000.0);
}

#[test]
fn lanes_serve_a_line_without_a_fraction_when_no_other_line_can_take_a_turn() {
    let grants = [(1, LaneShare::Line(0)), (2, LaneShare::Line(1)), (3, LaneShare::Line(7))];
    let order = LaneOrder { lines: vec![0.0, 1.0], ..order(&grants) };
    let mut lanes = lanes(&order, [1, 2, 3]);
    assert_eq!(run(&mut lanes, 50, 100.0, &[1, 2, 3]), BTreeMap::from([(2, 5000.0)]));
    assert_eq!(run(&mut lanes, 50, 100.0, &[1, 3]).values().sum::<f64>(), 5000.0);
}

#[test]
fn lanes_let_a_job_catch_up_when_its_sources_had_no_room_but_not_when_it_had_nothing_to_fetch() {
    let order = order(&[(1, LaneShare::Weight(1.0)), (2, LaneShare::Weight(1.0))]);
    let mut lanes = lanes(&order, [1, 2]);
    run(&mut lanes, 80, 100.0, &[1]);
    let had = run(&mut lanes, 100, 100.0, &[1, 2]);
    assert!(8000.0 <= had[&2] - had.get(&1).unwrap_or(&0.0), "{had:?}");

    lanes.leave(job(2));
    run(&mut lanes, 80, 100.0, &[1]);
    lanes.enter(job(2));
    let had = run(&mut lanes, 100, 100.0, &[1, 2]);
    assert!((had[&2] - had[&1]).abs() <= 1200.0, "{had:?}");
}

#[test]
fn lanes_keep_what_was_had_when_the_order_changes() {
    let equal = order(&[(1, LaneShare::Weight(1.0)), (2, LaneShare::Weight(1.0))]);
    let mut lanes = lanes(&equal, [1, 2]);
    assert_eq!(next_of(&mut lanes, &[1, 2]), Some(1));
    lanes.charge(job(1), 50_000.0);
    lanes.order(&order(&[(1, LaneShare::Weight(2.0)), (2, LaneShare::Weight(2.0)), (3, LaneShare::All)]));
    let had = run(&mut lanes, 49, 1000.0, &[1, 2]);
    assert_eq!(had, BTreeMap::from([(2, 49_000.0)]), "the first had its bytes before");
}

#[test]
fn lanes_survive_weights_that_no_policy_may_give() {
    let weights = [f64::NAN, 0.0, -1.0, f64::INFINITY, 1e-300];
    let grants: Vec<_> =
        (0..).zip(weights).map(|(number, weight)| (number, LaneShare::Weight(weight))).collect();
    for able in 0..5 {
        let mut lanes = lanes(&order(&grants), 0..5);
        lanes.charge(job(able), 1e18);
        assert_eq!(run(&mut lanes, 100, 1e12, &[able])[&able], 1e14);
    }
}

#[test]
fn lanes_keep_no_account_of_jobs_that_are_gone() {
    let mut lanes = Lanes::new(QUANTUM);
    for number in 0..1000 {
        lanes.enter(job(number));
        run(&mut lanes, 3, 700.0, &[number]);
        lanes.leave(job(number));
    }
    assert!(lanes.credit.len() < 3, "{:?}", lanes.credit);
}

fn share() -> impl Strategy<Value = LaneShare> {
    prop_oneof![
        Just(LaneShare::All),
        (1..4_u32).prop_map(LaneShare::Requests),
        (1..5_u32).prop_map(|weight| LaneShare::Weight(f64::from(weight))),
        (0..3_u32).prop_map(LaneShare::Line),
    ]
}

/// Computes the list of tiers directly, most urgent first, each a set of jobs.
fn tiers(order: &LaneOrder, jobs: u32) -> Vec<Vec<u32>> {
    let mut tiers: Vec<Vec<u32>> = Vec::new();
    let mut seen = Vec::new();
    let mut before: Option<LaneShare> = None;
    for &(job, share) in &order.grants {
        let kind = |share: &LaneShare| match share {
            LaneShare::Weight(_) => 1,
            LaneShare::Line(_) => 2,
            LaneShare::All | LaneShare::Requests(_) => 0,
        };
        let joins = before.is_some_and(|before| kind(&before) == kind(&share) && 0 < kind(&share));
        before = Some(share);
        if !joins {
            tiers.push(Vec::new());
        }
        if !seen.contains(&job.0) {
            seen.push(job.0);
            tiers.last_mut().unwrap().push(job.0);
        }
    }
    if order.grants.is_empty() && !order.only {
        return vec![(0..jobs).collect()];
    }
    if !order.only {
        tiers.extend((0..jobs).filter(|job| !seen.contains(job)).map(|job| vec![job]));
    }
    tiers
}

proptest! {
    #[test]
    fn lanes_give_every_turn_to_the_most_urgent_tier_that_can_take_it(
        grants in prop::collection::vec((0..6_u32, share()), 0..8),
        lines in prop::collection::vec(0.0..1.0_f64, 0..3),
        only in any::<bool>(),
        steps in prop::collection::vec((any::<u8>(), any::<u8>(), 0..5000_u32), 1..40),
    ) {
        let order = LaneOrder { lines, only, ..order(&grants) };
        let mut lanes = lanes(&order, []);
        for (waiting, able, bytes) in steps {
            let among = |mask: u8| (0..6_u32).filter(move |job| mask >> job & 1 == 1);
            for number in 0..6 {
                if waiting >> number & 1 == 1 { lanes.enter(job(number)) } else { lanes.leave(job(number)) }
            }
            let able: Vec<u32> = among(able & waiting).collect();
            let first = tiers(&order, 6).into_iter().find(|tier| tier.iter().any(|job| able.contains(job)));
            let taker = next_of(&mut lanes, &able);
            prop_assert_eq!(taker.is_some(), first.is_some(), "{:?} of {:?}", &able, &order);
            if let (Some(taker), Some(tier)) = (taker, first) {
                prop_assert!(tier.contains(&taker) && able.contains(&taker), "{} of {:?}", taker, tier);
                lanes.charge(job(taker), f64::from(bytes));
            }
        }
    }

    #[test]
    fn lanes_keep_bytes_by_weight_within_a_quantum_and_a_turn_of_each_other(
        weights in prop::collection::vec(1..20_u32, 1..6),
        turns in prop::collection::vec((1..3000_u32, 0..3000_u32), 1..300),
    ) {
        let grants: Vec<_> =
            (0..).zip(&weights).map(|(job, &weight)| (job, LaneShare::Weight(f64::from(weight)))).collect();
        let all: Vec<u32> = (0..weights.len() as u32).collect();
        let mut lanes = lanes(&order(&grants), all.iter().copied());
        let mut had = vec![0.0; weights.len()];
        let heaviest = f64::from(*weights.iter().max().unwrap());
        for (bytes, foreseen) in turns {
            let taker = next_of(&mut lanes, &all).unwrap();
            // Half of them are charged in advance with a wrong prediction.
            lanes.charge(job(taker), f64::from(foreseen));
            lanes.charge(job(taker), f64::from(bytes) - f64::from(foreseen));
            had[taker as usize] += f64::from(bytes);
            let level = |job: usize| had[job] * heaviest / f64::from(weights[job]);
            for (one, other) in (0..had.len()).flat_map(|one| (0..one).map(move |other| (one, other))) {
                let lighter = f64::from(weights[one].min(weights[other]));
                let most = QUANTUM as f64 + 3000.0 * heaviest / lighter;
                prop_assert!((level(one) - level(other)).abs() <= most, "{:?} of {:?}", &had, &weights);
            }
        }
    }

    #[test]
    fn lanes_starve_nobody_in_a_tier_whoever_else_comes_and_goes(
        weights in prop::collection::vec(1..4_u32, 2..5),
        masks in prop::collection::vec(any::<u8>(), 400),
    ) {
        // The first can always take a turn; it gets at least its share of the turns of 500 bytes.
        let grants: Vec<_> =
            (0..).zip(&weights).map(|(job, &weight)| (job, LaneShare::Weight(f64::from(weight)))).collect();
        let mut lanes = lanes(&order(&grants), 0..weights.len() as u32);
        let mut had = 0.0;
        let total: u32 = weights.iter().sum();
        for mask in &masks {
            let able: Vec<u32> = (0..weights.len() as u32).filter(|job| *job == 0 || mask >> job & 1 == 1).collect();
            let taker = next_of(&mut lanes, &able).unwrap();
            lanes.charge(job(taker), 500.0);
            had += if taker == 0 { 500.0 } else { 0.0 };
        }
        let saved = SAVED_QUANTA_MAX * QUANTUM as f64 * (weights.len() - 1) as f64;
        let due = masks.len() as f64 * 500.0 * f64::from(weights[0]) / f64::from(total);
        prop_assert!(due - saved <= had, "{had} of {due}");
    }
}
