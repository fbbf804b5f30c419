//! Tests of fair sharing against direct max-min arithmetic, over pools and inside them.

use super::*;
use crate::plan::tests::{Counts, check_max_min};
use crate::station::PerStation;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
struct Wish {
    maps: u32,
    reduces: u32,
    weight: u32,
    pool: Option<u32>,
}

fn wish(pools: bool) -> impl Strategy<Value = Wish> {
    let pool = if pools { prop::option::of(0..3_u32).boxed() } else { Just(None).boxed() };
    (0..12_u32, 0..4_u32, 1..4_u32, pool).prop_map(|(maps, reduces, weight, pool)| Wish {
        maps,
        reduces,
        weight,
        pool,
    })
}

fn rows(wishes: &[Wish]) -> Vec<Row> {
    let row = |(seq, wish): (usize, &Wish)| Row {
        seq: seq as u64,
        weight: f64::from(wish.weight),
        pool: wish.pool,
        live: true,
        ..Row::default()
    };
    wishes.iter().enumerate().map(row).collect()
}

fn planned(free: u32, wishes: &[Wish], pools: &BTreeMap<u32, f64>) -> Counts {
    planned_by(Fair::new(), free, wishes, pools)
}

fn planned_by(mut policy: Fair, free: u32, wishes: &[Wish], pools: &BTreeMap<u32, f64>) -> Counts {
    let wants = wishes.iter().map(|wish| [wish.maps, 0, wish.reduces]);
    let mut floor = Counts::unified(free, wants);
    let mut rows = rows(wishes);
    for row in &mut rows {
        row.pool_weight = row.pool.and_then(|pool| pools.get(&pool).copied());
    }
    floor.plan(&mut policy, &mut rows);
    floor
}

fn demand(wish: &Wish) -> u32 {
    wish.maps + wish.reduces
}

proptest! {
    #[test]
    fn fair_is_max_min_over_jobs(free in 0..60_u32, wishes in prop::collection::vec(wish(false), 1..12)) {
        let floor = planned(free, &wishes, &BTreeMap::new());
        let demands: Vec<u32> = wishes.iter().map(demand).collect();
        let weights: Vec<f64> = wishes.iter().map(|wish| f64::from(wish.weight)).collect();
        check_max_min(free, &floor.totals(), &demands, &weights);
    }

    #[test]
    fn fair_is_max_min_over_pools_and_inside_each(
        free in 0..60_u32,
        wishes in prop::collection::vec(wish(true), 1..12),
        heavy in 1..4_u32,
    ) {
        let named = BTreeMap::from([(0, f64::from(heavy))]);
        let held = planned(free, &wishes, &named).totals();
        let mut pools: BTreeMap<PoolKey, (f64, Vec<usize>)> = BTreeMap::new();
        for (job, wish) in wishes.iter().enumerate() {
            let (key, weight) = match wish.pool {
                Some(name) => (PoolKey::Named(name), named.get(&name).copied().unwrap_or(1.0)),
                None => (PoolKey::Single(job as u64), f64::from(wish.weight)),
            };
            pools.entry(key).or_insert((weight, Vec::new())).1.push(job);
        }
        let sum = |jobs: &Vec<usize>, of: &dyn Fn(usize) -> u32| jobs.iter().map(|&job| of(job)).sum::<u32>();
        let of_pools = |of: &dyn Fn(usize) -> u32| pools.values().map(|(_, jobs)| sum(jobs, of)).collect::<Vec<_>>();
        let weights: Vec<f64> = pools.values().map(|(weight, _)| *weight).collect();
        check_max_min(free, &of_pools(&|job| held[job]), &of_pools(&|job| demand(&wishes[job])), &weights);
        for (_, jobs) in pools.values() {
            let of_jobs = |of: &dyn Fn(usize) -> u32| jobs.iter().map(|&job| of(job)).collect::<Vec<_>>();
            let weights: Vec<f64> = jobs.iter().map(|&job| f64::from(wishes[job].weight)).collect();
            let got = of_jobs(&|job| held[job]);
            check_max_min(got.iter().sum(), &got, &of_jobs(&|job| demand(&wishes[job])), &weights);
        }
    }
}

proptest! {
    #[test]
    fn capacity_gives_each_pool_what_fair_gives_it_and_the_oldest_of_a_pool_all_they_can_use(
        free in 0..60_u32,
        wishes in prop::collection::vec(wish(true), 1..12),
    ) {
        let none = BTreeMap::new();
        let fair = planned(free, &wishes, &none).totals();
        let held = planned_by(Fair { in_order: true, ..Fair::new() }, free, &wishes, &none).totals();
        for pool in 0..3 {
            let jobs: Vec<usize> = (0..wishes.len()).filter(|&job| wishes[job].pool == Some(pool)).collect();
            let mut left = jobs.iter().map(|&job| held[job]).sum::<u32>();
            prop_assert_eq!(left, jobs.iter().map(|&job| fair[job]).sum::<u32>());
            for job in jobs {
                prop_assert_eq!(held[job], demand(&wishes[job]).min(left));
                left -= held[job];
            }
        }
        let single = (0..wishes.len()).filter(|&job| wishes[job].pool.is_none());
        prop_assert!(single.into_iter().all(|job| held[job] == fair[job]));
    }
}

#[test]
fn fair_counts_what_is_held_before_it_gives() {
    let wish = Wish { maps: 9, reduces: 0, weight: 1, pool: None };
    let mut floor = Counts::unified(4, vec![[9, 0, 0]; 2]);
    floor.held[0] = PerStation::new(3, 0, 0);
    floor.plan(&mut Fair::new(), &mut rows(&[wish; 2]));
    assert_eq!(floor.totals(), [4, 3]);
}

#[test]
fn fair_gives_a_job_its_reduces_before_its_maps() {
    let floor = planned(2, &[Wish { maps: 5, reduces: 1, weight: 1, pool: None }], &BTreeMap::new());
    assert_eq!(floor.held, [[1, 0, 1]]);
}

#[test]
fn fair_shares_each_station_by_itself_when_slots_are_not_unified() {
    let wish = Wish { maps: 9, reduces: 9, weight: 1, pool: None };
    let mut floor = Counts::unified(0, vec![[9, 0, 9], [9, 0, 0]]);
    floor.unified = false;
    floor.free = PerStation::new(4, 0, 3);
    floor.plan(&mut Fair::new(), &mut rows(&[wish; 2]));
    assert_eq!(floor.held, [[2, 0, 3], [2, 0, 0]]);
}

#[test]
fn fair_forgets_a_pool_with_its_last_job() {
    let mut fair = Fair::new();
    let mut rows = rows(&[Wish { maps: 1, reduces: 0, weight: 1, pool: Some(1) }]);
    Counts::unified(0, vec![[1, 0, 0]]).plan(&mut fair, &mut rows);
    rows[0].live = false;
    let view = View {
        now: crate::units::Time::ZERO,
        rows: &rows,
        touched: &[],
        cap: PerStation::all(0.0),
        unified: true,
        runs: &[],
    };
    fair.observe(view, Change::Left(Handle(0)));
    assert!(fair.sharings[0].pools.is_empty());
    assert!(fair.sharings[0].hungry.is_empty());
}
