//! Tests of the meaning of shares, on plain counts; the oracle of max-min is water filling.

use super::*;
use crate::policy::Policy;
use crate::station::{PerStation, Station};
use crate::view::{Change, Row, View};
use proptest::prelude::*;

/// Slots and demands as plain counts.
pub(crate) struct Counts {
    pub(crate) unified: bool,
    /// Free slots by station; unified slots are under `Map`.
    pub(crate) free: PerStation<u32>,
    /// Demands by job and station.
    pub(crate) wants: Vec<PerStation<u32>>,
    pub(crate) held: Vec<PerStation<u32>>,
    pub(crate) lanes: Vec<Handle>,
}

impl Counts {
    pub(crate) fn unified(free: u32, wants: impl IntoIterator<Item: Into<PerStation<u32>>>) -> Self {
        let wants: Vec<PerStation<u32>> = wants.into_iter().map(Into::into).collect();
        let held = vec![PerStation::default(); wants.len()];
        Counts { unified: true, free: PerStation::new(free, 0, 0), wants, held, lanes: Vec::new() }
    }

    /// Returns the slots that each job holds at both stations together.
    pub(crate) fn totals(&self) -> Vec<u32> {
        self.held.iter().map(|held| held.iter().sum()).collect()
    }

    fn pool(&self, station: Station) -> Station {
        if self.unified { Station::Map } else { station }
    }

    /// Lets a new policy observe these jobs and plan once.
    pub(crate) fn plan(&mut self, policy: &mut dyn Policy, rows: &mut [Row]) {
        for (index, row) in rows.iter_mut().enumerate() {
            row.can = self.wants[index].map(f64::from);
            row.held = self.held[index].map(f64::from);
        }
        let cap = self.free.map(f64::from);
        for index in 0..rows.len() as u32 {
            let touched = [Handle(index)];
            let view =
                View { now: Time::ZERO, rows, touched: &touched, cap, unified: self.unified, runs: &[] };
            policy.observe(view, Change::Arrived(Handle(index)));
        }
        let view = View { now: Time::ZERO, rows, touched: &[], cap, unified: self.unified, runs: &[] };
        let mut plan = Plan::new(self);
        policy.plan(view, &mut plan);
        plan.finish();
    }
}

impl Floor for Counts {
    fn unified(&self) -> bool {
        self.unified
    }
    fn remaining(&self, station: Station) -> f64 {
        f64::from(self.free[self.pool(station)])
    }
    fn held(&self, job: Handle, station: Station) -> f64 {
        f64::from(self.held[job.index()][station])
    }
    fn start(&mut self, job: Handle, station: Station, _: Option<Line>, _: Reason) -> bool {
        let pool = self.pool(station);
        let want = &mut self.wants[job.index()][station];
        if self.free[pool] == 0 || *want == 0 {
            return false;
        }
        self.free[pool] -= 1;
        *want -= 1;
        self.held[job.index()][station] += 1;
        true
    }
    fn line_open(&self, _: Station, _: Line) -> bool {
        false
    }
    fn lane(&mut self, job: Handle, _: Share) -> Option<bool> {
        self.lanes.push(job);
        Some(self.lanes.len() < 3)
    }
}

/// Returns fractional max-min shares: the level is raised until the capacity is used or all demands are met.
pub(crate) fn water_filling(capacity: f64, demands: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; demands.len()];
    let mut order: Vec<usize> = (0..demands.len()).collect();
    order.sort_by(|&a, &b| (demands[a] / weights[a]).total_cmp(&(demands[b] / weights[b])));
    let mut left = capacity;
    for (rank, &job) in order.iter().enumerate() {
        let weight: f64 = order[rank..].iter().map(|&other| weights[other]).sum();
        shares[job] = demands[job].min(left * weights[job] / weight);
        left -= shares[job];
    }
    shares
}

/// Checks max-min for whole slots: no job could get one more from a job that would still be no worse off.
#[track_caller]
pub(crate) fn check_max_min(free: u32, held: &[u32], demands: &[u32], weights: &[f64]) {
    let given: u32 = held.iter().sum();
    assert_eq!(given, free.min(demands.iter().sum()), "slots idle while wanted: {held:?}");
    for (poor, _) in held.iter().enumerate().filter(|&(job, &held)| held < demands[job]) {
        for (rich, _) in held.iter().enumerate().filter(|&(_, &held)| 0 < held) {
            let above = f64::from(held[rich] - 1) / weights[rich];
            let below = f64::from(held[poor]) / weights[poor];
            assert!(above <= below + 1e-9, "{rich} got a slot that {poor} should have: {held:?}");
        }
    }
    let equal = weights.iter().all(|weight| (weight - weights[0]).abs() < 1e-9);
    let wide = demands.iter().map(|&demand| f64::from(demand)).collect::<Vec<_>>();
    for (share, &held) in water_filling(f64::from(free), &wide, weights).iter().zip(held) {
        assert!(
            !equal || (share - f64::from(held)).abs() < 1.0 + 1e-9,
            "{held} slots for a share of {share}"
        );
    }
}

const WHY: Reason = Reason::Own("a test");

fn jobs(count: usize) -> impl Iterator<Item = Handle> {
    (0..count as u32).map(Handle)
}

#[test]
fn water_filling_gives_what_the_small_do_not_want_to_the_large() {
    assert_eq!(water_filling(9.0, &[1.0, 20.0, 20.0], &[1.0; 3]), [1.0, 4.0, 4.0]);
    assert_eq!(water_filling(8.0, &[20.0, 20.0], &[1.0, 3.0]), [2.0, 6.0]);
}

#[test]
fn all_gives_the_first_what_it_can_use_before_the_next_gets_any() {
    let mut floor = Counts::unified(5, vec![[2, 0, 0], [9, 0, 0], [9, 0, 0]]);
    let mut plan = Plan::new(&mut floor);
    assert!(plan.grant(Handle(0), Station::Map, Share::All, WHY));
    assert!(!plan.grant(Handle(1), Station::Map, Share::All, WHY));
    assert_eq!(floor.totals(), [2, 3, 0]);
}

#[test]
fn slots_are_a_target_that_counts_what_is_held_and_that_a_second_grant_raises() {
    let mut floor = Counts::unified(5, vec![[9, 0, 0]]);
    floor.held[0] = PerStation::new(1, 0, 0);
    let mut plan = Plan::new(&mut floor);
    assert!(plan.grant(Handle(0), Station::Map, Share::Slots(2), WHY));
    assert_eq!(plan.got(Handle(0), Station::Map), 2.0);
    assert!(plan.grant(Handle(0), Station::Map, Share::Slots(1), WHY));
    assert!(plan.grant(Handle(0), Station::Map, Share::Slots(4), WHY));
    assert_eq!(floor.totals(), [4]);
}

#[test]
fn weights_fill_when_another_grant_or_the_end_closes_their_tier() {
    let mut floor = Counts::unified(6, vec![[9, 0, 0], [9, 0, 0], [2, 0, 0]]);
    let mut plan = Plan::new(&mut floor);
    assert!(plan.grant(Handle(0), Station::Map, Share::Weight(1.0), WHY));
    assert!(plan.grant(Handle(2), Station::Map, Share::Weight(1.0), WHY));
    assert_eq!(plan.got(Handle(0), Station::Map), 0.0);
    assert!(!plan.grant(Handle(1), Station::Map, Share::All, WHY));
    assert_eq!(floor.totals(), [4, 0, 2]);
    let mut floor = Counts::unified(6, vec![[9, 0, 0]]);
    let mut plan = Plan::new(&mut floor);
    plan.grant(Handle(0), Station::Map, Share::Weight(1.0), WHY);
    plan.finish();
    assert_eq!(floor.totals(), [6]);
}

#[test]
fn a_job_in_a_tier_takes_its_first_wish_first_and_counts_both_on_unified_slots() {
    let mut floor = Counts::unified(6, vec![[9, 0, 1], [9, 0, 0]]);
    let mut plan = Plan::new(&mut floor);
    plan.grant(Handle(0), Station::Reduce, Share::Weight(1.0), WHY);
    plan.grant(Handle(0), Station::Map, Share::Weight(1.0), WHY);
    plan.grant(Handle(1), Station::Map, Share::Weight(1.0), WHY);
    plan.finish();
    assert_eq!(floor.held, [[2, 0, 1], [3, 0, 0]]);
}

#[test]
fn stations_share_nothing_when_slots_are_not_unified() {
    let mut floor = Counts::unified(0, vec![[9, 0, 9], [9, 0, 0]]);
    floor.unified = false;
    floor.free = PerStation::new(4, 0, 3);
    let mut plan = Plan::new(&mut floor);
    for job in jobs(2) {
        plan.grant(job, Station::Reduce, Share::Weight(1.0), WHY);
        plan.grant(job, Station::Map, Share::Weight(1.0), WHY);
    }
    plan.finish();
    assert_eq!(floor.held, [[2, 0, 3], [2, 0, 0]]);
}

#[test]
fn the_shuffle_takes_a_list_until_it_is_full() {
    let mut floor = Counts::unified(0, vec![[0; 3]; 4]);
    let mut plan = Plan::new(&mut floor);
    let answers: Vec<bool> = jobs(3).map(|job| plan.grant(job, Station::Shuffle, Share::All, WHY)).collect();
    assert_eq!(answers, [true, true, false]);
}

#[test]
fn the_earliest_wish_to_be_woken_counts() {
    let mut floor = Counts::unified(0, [[0; 3]; 0]);
    let mut plan = Plan::new(&mut floor);
    plan.wake(Time(7));
    plan.wake(Time(5));
    plan.wake(Time(9));
    assert_eq!(plan.wished_wake(), Some(Time(5)));
}

proptest! {
    #[test]
    fn weights_are_max_min(
        free in 0..60_u32,
        members in prop::collection::vec((0..20_u32, 1..5_u32), 1..12),
    ) {
        let wants: Vec<[u32; 3]> = members.iter().map(|&(want, _)| [want, 0, 0]).collect();
        let weights: Vec<f64> = members.iter().map(|&(_, weight)| f64::from(weight)).collect();
        let mut floor = Counts::unified(free, wants);
        let mut plan = Plan::new(&mut floor);
        for job in jobs(members.len()) {
            plan.grant(job, Station::Map, Share::Weight(weights[job.index()]), WHY);
        }
        plan.finish();
        let demands: Vec<u32> = members.iter().map(|&(want, _)| want).collect();
        check_max_min(free, &floor.totals(), &demands, &weights);
    }
}
