//! Tests with a miniature of the paper's experiments, with small clusters computed by an independent program, and with
//! invalid cases.

use super::*;
use crate::workload::deadlines::{Joins, SLOTS, WEIGHTS, scenario};
use proptest::prelude::*;
use serde_json::json;

#[track_caller]
fn passes(input: &Value, expect: &Value) {
    crate::verify::tests::passes("deadline-sim", input, expect);
}

fn job(submit: u32, deadline: u32, maps: &[u32], reduces: &[u32]) -> Value {
    json!({"submit": submit, "goal": deadline, "maps": maps, "reduces": reduces})
}

fn mini() -> Value {
    json!({"slots": 3, "tick": 1.0, "jobs": [job(0, 120, &[10; 12], &[4]), job(15, 70, &[5; 6], &[2, 2])]})
}

#[test]
fn three_slots_are_shared_as_in_the_miniature_of_section_5() {
    passes(
        &mini(),
        &json!({"finish": {
            "fifo": [44, 52], "fair_w1_1": [54, 52], "fair": [54, 52], "fair_w1_4": [59, 37],
            "min": [104, 42], "max": [59, 42],
        }}),
    );
}

/// Computed by a program of a few lines that shares no code with this one.
#[test]
fn three_jobs_on_five_slots_end_as_an_independent_program_says() {
    let jobs = [
        job(0, 60, &[8, 9, 4, 12, 6, 7, 11], &[5, 3]),
        job(3, 45, &[2, 3, 2, 5, 4, 3, 2, 2, 6], &[1]),
        job(7, 30, &[6, 6, 13, 2, 9], &[]),
    ];
    passes(
        &json!({"slots": 5, "tick": 1.0, "jobs": jobs}),
        &json!({"finish": {
            "fifo": [22, 22, 29], "fair_w1_1_1": [28, 23, 29], "fair_w1_2.5_4": [34, 23, 27],
            "min": [35, 36, 31], "max": [30, 27, 28],
        }}),
    );
}

/// Returns which jobs of section V meet their deadlines, in the approximation with these Joins.
fn deadlines_met(joins: Joins, scheduler: &str) -> [bool; 4] {
    let jobs = scenario(joins, [1.0; 4], 1);
    let deadlines: Vec<f64> = jobs.iter().filter_map(|job| job.deadline).collect();
    let case = SimCase { slots: SLOTS, tick: Span::whole_seconds(1), jobs };
    let finish = case.finish(scheduler).unwrap();
    std::array::from_fn(|job| finish[job] <= deadlines[job])
}

#[test]
fn the_scenario_of_section_5_ends_as_the_paper_says_where_joins_look_slow_at_first() {
    let met = |scheduler: &str| deadlines_met(Joins::SlowFirstHalf, scheduler);
    assert_eq!(met("fifo"), [true, false, false, false]);
    assert_eq!(met("fair"), [true, true, false, false], "joins miss their goals without weights");
    let [one, two, three, four] = WEIGHTS;
    assert_eq!(
        met(&format!("fair_w{one}_{two}_{three}_{four}")),
        [true; 4],
        "weights mimic the max-scheduler"
    );
    assert!(!met("min")[0], "min: Simulator misses its goal, its estimate being optimistic");
    assert_eq!(met("max"), [true; 4]);
}

#[test]
fn the_joins_of_section_5_miss_their_deadlines_under_max_where_their_tasks_are_stationary() {
    assert_eq!(deadlines_met(Joins::Stationary, "max"), [true, true, false, false]);
}

#[test]
fn jobs_may_stand_in_any_order() {
    let jobs = [job(15, 70, &[5; 6], &[2, 2]), job(0, 120, &[10; 12], &[4])];
    passes(
        &json!({"slots": 3, "jobs": jobs}),
        &json!({"finish": {"fifo": [52, 44], "fair_w4_1": [37, 59], "min": [42, 104], "max": [42, 59]}}),
    );
}

#[test]
fn a_wrong_finish_and_an_unknown_field_are_differences() {
    let expect = json!({"finish": {"fifo": [44, 53]}, "start": []});
    let differences = crate::verify::tests::differences("deadline-sim", &mini(), &expect);
    assert_eq!(
        differences,
        ["finish.fifo[1]: expected 53, computed 52", "start: is expected, but nothing like it is computed"]
    );
}

#[test]
fn a_case_that_cannot_be_computed_says_which_field_is_wrong() {
    let error = |input: &Value, scheduler: &str| {
        let expect = json!({"finish": {scheduler: [1, 2]}});
        compute(input, expect.as_object().unwrap()).unwrap_err()
    };
    let unknown = "`srpt` is not fifo, fair, fair_wWEIGHT_WEIGHT..., min or max";
    assert_eq!(error(&mini(), "srpt"), unknown);
    assert_eq!(error(&mini(), "fair_w1"), "fair_w1: 1 weights for 2 jobs");
    assert_eq!(error(&mini(), "fair_w1_x"), "fair_w1_x: weight `x` is no number from 1e-9 to 1e9");
    let with = |field: &str, value: Value| {
        let mut input = mini();
        input[field] = value;
        error(&input, "fifo")
    };
    assert!(with("slots", json!(0)).contains("integer `0`"));
    assert_eq!(with("tick", json!(0)), "`tick` is 0, not a number from 0.001 to 3.2e9");
    assert_eq!(with("jobs", json!([{}])), "`maps` is missing");
}

proptest! {
    #[test]
    fn every_job_ends_and_no_work_conserving_scheduler_takes_longer_than_one_slot_would(
        slots in 1..6_u32,
        jobs in prop::collection::vec(
            (0..30_u32, 1..200_u32, prop::collection::vec(0..20_u32, 0..12), prop::collection::vec(0..9_u32, 0..4)),
            1..5,
        ),
    ) {
        let all: u32 = jobs.iter().flat_map(|(_, _, maps, reduces)| maps.iter().chain(reduces)).sum();
        let input = json!({
            "slots": slots,
            "jobs": jobs.iter().map(|(at, deadline, maps, reduces)| job(*at, at + deadline, maps, reduces)).collect::<Vec<_>>(),
        });
        let case = SimCase::new(&input).unwrap();
        for scheduler in ["fifo", "fair", "min", "max"] {
            let finish = case.finish(scheduler).unwrap();
            for ((arrival, ..), finish) in jobs.iter().zip(&finish) {
                prop_assert!(f64::from(*arrival) <= *finish, "{scheduler}: {finish:?}");
                let most = f64::from(30 + all + if scheduler == "min" { 230 } else { 0 });
                prop_assert!(*finish <= most, "{scheduler}: {finish} is later than {most}");
            }
            prop_assert_eq!(finish, case.finish(scheduler).unwrap(), "twice the same");
        }
    }
}
