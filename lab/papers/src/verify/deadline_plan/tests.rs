//! Tests with the worked examples of the deadlines paper, and with invalid cases.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn passes(input: &Value, expect: &Value) {
    crate::verify::tests::passes("deadline-plan", input, expect);
}

fn computed(input: &Value) -> Result<Value, String> {
    compute(input, &Map::new())
}

fn job(submit: u32, deadline: u32, done: &[u32], running_elapsed: &[u32], pending: u32) -> Value {
    json!({
        "submit": submit, "goal": deadline, "done": done, "running_elapsed": running_elapsed, "pending": pending
    })
}

fn case(free_slots: u32, jobs: &[Value]) -> Value {
    json!({"now": 100, "free_slots": free_slots, "jobs": jobs})
}

#[test]
fn equation_3_adds_1_72_slots() {
    passes(
        &case(10, &[job(0, 150, &[8, 10, 12], &[4, 12], 18)]),
        &json!({
            "state": {"0": "ADJUST"}, "mu": {"0": 10.0}, "s_req": {"0": 1.72}, "priority": [0],
            "min": {"0": 2}, "max": {"0": 10},
        }),
    );
}

#[test]
fn fresh_jobs_take_every_free_slot_the_oldest_first() {
    passes(
        &case(
            12,
            &[job(0, 500, &[10, 10], &[2, 3], 40), job(90, 400, &[], &[], 7), job(95, 300, &[], &[], 9)],
        ),
        &json!({
            "state": {"0": "ADJUST", "1": "NODATA", "2": "NODATA"}, "mu": {"0": 10.0, "1": null, "2": null},
            "s_req": {"0": -0.9625}, "priority": [1, 2, 0],
            "min": {"0": 0, "1": 7, "2": 5}, "max": {"0": 0, "1": 7, "2": 5},
        }),
    );
}

#[test]
fn the_oldest_is_who_was_submitted_first_wherever_it_stands_in_the_list() {
    let fresh = |submit: u32| job(submit, 400, &[], &[], 3);
    passes(
        &case(8, &[fresh(95), fresh(60), fresh(90), fresh(60)]),
        &json!({
            "priority": [1, 3, 2, 0],
            "min": {"0": 0, "1": 3, "2": 2, "3": 3}, "max": {"0": 0, "1": 3, "2": 2, "3": 3},
        }),
    );
}

#[test]
fn jobs_of_equal_need_take_turns_by_their_place_in_the_list() {
    let alike = |submit: u32| job(submit, 200, &[10], &[], 40);
    passes(
        &case(3, &[alike(50), alike(0)]),
        &json!({"priority": [0, 1], "min": {"0": 2, "1": 1}, "max": {"0": 2, "1": 1}}),
    );
}

#[test]
fn a_job_that_missed_its_deadline_goes_before_all_others() {
    passes(
        &case(
            10,
            &[job(0, 500, &[10, 10], &[2, 3], 40), job(10, 90, &[20], &[5], 6), job(95, 300, &[], &[], 9)],
        ),
        &json!({
            "state": {"0": "ADJUST", "1": "UNDEAD", "2": "NODATA"}, "mu": {"0": 10.0, "1": 20.0, "2": null},
            "s_req": {"0": -0.9625}, "priority": [1, 2, 0],
            "min": {"0": 0, "1": 6, "2": 4}, "max": {"0": 0, "1": 6, "2": 4},
        }),
    );
}

#[test]
fn min_leaves_slots_idle_that_max_hands_out_by_the_same_order() {
    passes(
        &case(12, &[job(0, 300, &[10; 4], &[5, 5], 60), job(50, 200, &[20; 3], &[10], 12)]),
        &json!({
            "state": {"0": "ADJUST", "1": "ADJUST"}, "mu": {"0": 10.0, "1": 20.0},
            "s_req": {"0": 1.05, "1": 1.5}, "priority": [1, 0],
            "min": {"0": 2, "1": 2}, "max": {"0": 6, "1": 6},
        }),
    );
}

#[test]
fn too_few_slots_are_shared_so_that_needs_stay_equal() {
    passes(
        &case(6, &[job(0, 300, &[10; 4], &[], 166), job(50, 200, &[20; 3], &[], 40)]),
        &json!({
            "state": {"0": "ADJUST", "1": "ADJUST"}, "mu": {"0": 10.0, "1": 20.0},
            "s_req": {"0": 8.3, "1": 8.0}, "priority": [0, 1],
            "min": {"0": 3, "1": 3}, "max": {"0": 3, "1": 3},
        }),
    );
}

/// Expected ends at 100 + 80/1 and 100 + 40/2 for deadlines 50 and 10 s after the arrivals: initially 2.6 and 12. The
/// second decreases to 11.3 on 3 slots and has nothing pending after the next, which leaves one for the first.
#[test]
fn jobs_that_missed_their_deadlines_are_evened_out_relative_to_them() {
    let jobs = [job(50, 100, &[20], &[0], 3), job(0, 10, &[10], &[0, 0], 2)];
    passes(
        &case(3, &jobs),
        &json!({
            "state": {"0": "UNDEAD", "1": "UNDEAD"}, "priority": [1, 0], "s_req": {},
            "min": {"0": 1, "1": 2}, "max": {"0": 1, "1": 2},
        }),
    );
}

#[test]
fn a_case_that_cannot_be_computed_says_which_field_is_wrong() {
    let error = |input: &Value| computed(input).unwrap_err();
    let good = job(0, 150, &[8], &[4], 18);
    assert_eq!(error(&json!({})), "`now` is missing");
    assert!(error(&json!({"now": "soon"})).contains("invalid type: string \"soon\""));
    assert!(error(&json!({"now": 1, "free_slots": -1})).contains("integer `-1`, expected u32"));
    assert!(
        error(&json!({"now": 1, "free_slots": 1, "jobs": 2})).contains("integer `2`, expected a sequence")
    );
    let with = |field: &str, value: Value| {
        let mut bad = good.clone();
        bad[field] = value;
        error(&case(1, &[good.clone(), bad]))
    };
    assert_eq!(with("submit", json!(-1)), "`submit` is -1, not a number from 0 to 3.2e9");
    assert_eq!(with("done", json!([1, -2])), "`done` is -2, not a number from 0 to 3.2e9");
    assert!(with("pending", json!(1.5)).contains("floating point `1.5`, expected u32"));
    assert_eq!(with("running_elapsed", json!([101])), "`running_elapsed` is 101, not a number from 0 to 1e2");
}

proptest! {
    #[test]
    fn any_numbers_are_computed_or_refused(
        now in prop::num::f64::ANY,
        free in 0..50_u32,
        numbers in prop::collection::vec((prop::num::f64::ANY, 0.0..1e4_f64, 0..20_u32), 0..6),
    ) {
        let jobs: Vec<Value> = numbers
            .iter()
            .map(|&(wild, tame, pending)| json!({
                "submit": tame, "goal": wild, "done": [tame, tame / 7.0], "running_elapsed": [], "pending": pending,
            }))
            .collect();
        let input = json!({"now": now, "free_slots": free, "jobs": jobs});
        let _ = computed(&input);
    }
}
