//! Tests of estimators against jobs of known sizes.

use super::*;
use crate::station::{PerStation, Station};
use proptest::prelude::*;

/// Job whose maps have equal times and outputs per byte, observed after `done` maps.
#[derive(Clone, Copy, Debug)]
struct Alike {
    maps: u32,
    bytes: f64,
    seconds: f64,
    selectivity: f64,
    reduces: u32,
    reduce: f64,
}

const NETWORK: f64 = 100.0;

impl Alike {
    fn facts<'a>(&self, name: Option<&'a str>, maps_done: u32, reduces_done: u32) -> Facts<'a> {
        let done = f64::from(maps_done);
        Facts {
            name,
            maps: self.maps,
            maps_done,
            usual_map: None,
            input_bytes: self.bytes * f64::from(self.maps),
            input_bytes_done: self.bytes * done,
            map_time: self.seconds * done,
            output_bytes: self.bytes * self.selectivity * done,
            fetched_bytes: self.bytes * self.selectivity * done / 2.0,
            reduces: ReduceFacts {
                count: self.reduces,
                done: reduces_done,
                time: self.reduce * f64::from(reduces_done),
            },
            network: NETWORK,
            exact: None,
        }
    }

    fn whole(&self) -> [f64; 3] {
        let maps = f64::from(self.maps);
        let shuffle = if self.reduces == 0 { 0.0 } else { self.bytes * self.selectivity * maps / NETWORK };
        [self.seconds * maps, shuffle, self.reduce * f64::from(self.reduces)]
    }
}

const JOB: Alike = Alike { maps: 10, bytes: 50.0, seconds: 3.0, selectivity: 0.5, reduces: 4, reduce: 7.0 };

fn alike() -> impl Strategy<Value = Alike> {
    (1..50_u32, 1.0..1e6, 0.1..100.0, 0.0..3.0, 0..20_u32, 0.1..100.0).prop_map(
        |(maps, bytes, seconds, selectivity, reduces, reduce)| Alike {
            maps,
            bytes,
            seconds,
            selectivity,
            reduces,
            reduce,
        },
    )
}

fn close(left: [f64; 3], right: [f64; 3]) -> bool {
    left.iter().zip(right).all(|(l, r)| (l - r).abs() <= 1e-9 * r.abs().max(1.0))
}

proptest! {
    #[test]
    fn estimators_are_exact_for_a_job_whose_tasks_are_alike_once_one_of_each_kind_has_finished(
        job in alike(),
        part in 0.0..1.0_f64,
    ) {
        let maps_done = 1 + (part * f64::from(job.maps - 1)) as u32;
        let facts = job.facts(None, maps_done, job.reduces.min(1));
        for entry in catalogue() {
            let sizes = by_name(entry.name).unwrap().sizes(&facts);
            prop_assert!(close(sizes.whole.0, job.whole()), "{}: {:?} {:?}", entry.name, sizes, job.whole());
            let map_left = job.seconds * f64::from(job.maps - maps_done);
            prop_assert!((sizes.left[Station::Map] - map_left).abs() < 1e-6, "{}: {:?}", entry.name, sizes);
            let moved = if job.reduces == 0 { 0.0 } else { facts.fetched_bytes / NETWORK };
            prop_assert!((sizes.left[Station::Shuffle] - (job.whole()[1] - moved)).abs() <= 1e-9 * job.whole()[1].max(1.0));
        }
    }

    #[test]
    fn sizes_are_finite_and_what_is_left_is_never_more_than_the_whole(
        job in alike(),
        maps_done in 0..50_u32,
        reduces_done in 0..20_u32,
        known_bytes in any::<bool>(),
    ) {
        let mut facts = job.facts(Some("name"), maps_done.min(job.maps), reduces_done.min(job.reduces));
        if !known_bytes {
            (facts.input_bytes, facts.input_bytes_done) = (0.0, 0.0);
        }
        for entry in catalogue() {
            let mut estimator = by_name(entry.name).unwrap();
            for _ in 0..2 {
                let sizes = estimator.sizes(&facts);
                for (whole, left) in sizes.whole.iter().zip(sizes.left) {
                    let range = 0.0..=whole * (1.0 + 1e-12);
                    prop_assert!(whole.is_finite() && range.contains(&left), "{}: {sizes:?}", entry.name);
                }
                prop_assert_eq!(sizes, estimator.sizes(&facts), "{} changed its mind", entry.name);
                estimator.learn(&facts);
            }
        }
    }

    #[test]
    fn history_expects_of_a_new_job_what_its_predecessors_of_the_name_took(job in alike(), larger in 1..5_u32) {
        let mut history = History::new();
        history.learn(&job.facts(Some("daily"), job.maps, job.reduces));
        let next = Alike { maps: job.maps * larger, ..job };
        prop_assert!(close(history.sizes(&next.facts(Some("daily"), 0, 0)).whole.0, next.whole()));
        let other = next.facts(Some("other"), 0, 0);
        prop_assert_eq!(history.sizes(&other), Tasks.sizes(&other));
    }
}

#[test]
fn tasks_counts_tasks_of_a_second_until_one_has_finished() {
    let sizes = Tasks.sizes(&JOB.facts(None, 0, 0));
    assert_eq!(sizes.whole, [10.0, 500.0 / NETWORK, 4.0]);
    assert_eq!(sizes.left, sizes.whole);
    let sizes = Tasks.sizes(&JOB.facts(None, 4, 0));
    assert_eq!(sizes.whole, [30.0, 2.5, 12.0], "a reduce is as long as a map");
    assert_eq!(sizes.left, [18.0, 2.0, 12.0]);
}

#[test]
fn linear_goes_by_bytes_where_tasks_goes_by_number() {
    // The one finished map read half of all input.
    let mut facts = JOB.facts(None, 1, 0);
    facts.input_bytes_done = 250.0;
    assert_eq!(Linear.sizes(&facts).whole[Station::Map], 6.0);
    assert_eq!(Linear.sizes(&facts).left[Station::Map], 3.0);
    assert_eq!(Tasks.sizes(&facts).whole[Station::Map], 30.0);
}

#[test]
fn history_keeps_to_its_reduces_until_the_job_has_finished_one() {
    let mut history = History::new();
    history.learn(&JOB.facts(Some("daily"), JOB.maps, JOB.reduces));
    assert_eq!(history.sizes(&JOB.facts(Some("daily"), 5, 0)).whole[Station::Reduce], 28.0);
    let slower = Alike { reduce: 9.0, ..JOB };
    assert_eq!(history.sizes(&slower.facts(Some("daily"), 10, 1)).whole[Station::Reduce], 36.0);
}

#[test]
fn history_forgets_the_name_that_learned_longest_ago() {
    let mut history = History::new();
    for job in 0..=history::NAMES_MAX {
        history.learn(&JOB.facts(Some(&format!("name {job}")), 10, 4));
    }
    let sizes = |history: &mut History, name: &str| history.sizes(&JOB.facts(Some(name), 0, 0));
    let unknown = Tasks.sizes(&JOB.facts(None, 0, 0));
    assert_eq!(sizes(&mut history, "name 0"), unknown);
    assert_ne!(sizes(&mut history, "name 1"), unknown);
}

#[test]
fn oracle_says_what_the_driver_knows_and_predicts_where_it_knows_nothing() {
    let exact = Sizes { whole: PerStation::new(1.0, 2.0, 3.0), left: PerStation::new(0.5, 2.0, 3.0) };
    let facts = JOB.facts(None, 3, 0);
    assert_eq!(Oracle.sizes(&Facts { exact: Some(exact), ..facts }), exact);
    assert_eq!(Oracle.sizes(&facts), Linear.sizes(&facts));
}

#[test]
fn nothing_is_moved_on_an_infinite_network_or_without_reduces() {
    let infinite = Facts { network: f64::INFINITY, ..JOB.facts(None, 3, 0) };
    let without = Facts { reduces: ReduceFacts::default(), ..JOB.facts(None, 3, 0) };
    for entry in catalogue() {
        let mut estimator = by_name(entry.name).unwrap();
        assert_eq!(estimator.sizes(&infinite).whole[Station::Shuffle], 0.0, "{}", entry.name);
        assert_eq!(estimator.sizes(&without).whole[Station::Shuffle], 0.0, "{}", entry.name);
    }
}

#[test]
fn an_unknown_estimator_names_the_nearest() {
    let error = by_name("lineer").err().unwrap().to_string();
    assert_eq!(
        error,
        "there is no estimator `lineer`; did you mean `linear`? There is tasks, linear, history, oracle"
    );
}

#[test]
fn history_that_was_kept_and_restored_expects_the_same_and_goes_on_learning_the_same() {
    let mut history = History::new();
    history.learn(&JOB.facts(Some("daily"), JOB.maps, JOB.reduces));
    history.learn(&JOB.facts(Some("hourly"), JOB.maps, JOB.reduces));
    let text = serde_json::to_string(&history.memory()).unwrap();
    let mut restored = History::new();
    restored.restore(&serde_json::from_str(&text).unwrap()).unwrap();
    for estimator in [&mut history, &mut restored] {
        estimator.learn(&JOB.facts(Some("daily"), JOB.maps, JOB.reduces));
    }
    let next = JOB.facts(Some("daily"), 0, 0);
    assert_eq!(history.sizes(&next), restored.sizes(&next));
    assert_eq!(history.memory(), restored.memory());
    restored.restore(&serde_json::Value::Null).unwrap();
    assert!(!restored.knows(&next), "nothing restored is nothing known");
}

#[test]
fn history_refuses_a_memory_that_no_jobs_can_have_left_and_keeps_its_own() {
    let mut history = History::new();
    history.learn(&JOB.facts(Some("daily"), JOB.maps, JOB.reduces));
    let before = history.memory();
    let refuse = |history: &mut History, change: fn(&mut serde_json::Value)| {
        let mut memory = history.memory();
        change(&mut memory);
        history.restore(&memory).unwrap_err()
    };
    assert!(refuse(&mut history, |memory| memory["schema"] = 7.into()).contains("schema"));
    assert!(refuse(&mut history, |memory| memory["past"]["daily"]["maps"] = 0.into()).contains("impossible"));
    assert!(
        refuse(&mut history, |memory| memory["past"]["daily"]["surprise"] = 0.into()).contains("surprise")
    );
    assert_eq!(history.memory(), before);
    assert!(Linear.restore(&before).is_err(), "an estimator that learns nothing took a memory");
}
