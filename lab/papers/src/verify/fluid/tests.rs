//! Tests with the worked examples of the overlap paper as cases, malformed cases, and the file of cases if it exists.

use super::*;
use crate::verify::check_file;

/// Returns the differences of one case.
fn differences(tolerance: f64, input: &Value, expect: &Value) -> Vec<String> {
    let mut checker = Checker::new(tolerance);
    if let Err(reason) = check(input, expect, &mut checker) {
        checker.refuse(reason);
    }
    checker.into_differences().iter().map(ToString::to_string).collect()
}

#[track_caller]
fn passes(input: &Value, expect: &Value) {
    assert_eq!(differences(1e-9, input, expect), [""; 0]);
}

/// three-job example, FIFO at both stations, kinks at 1, 2.5, 4, 6
#[test]
fn worked_fig2() {
    passes(
        &json!({"jobs": [[0, 1, 2], [0, 3, 1], [0, 2, 2]], "policy": "FCFS"}),
        &json!({"completion": [2, 4, 6], "segments": [{"t0": 0, "t1": 1, "map": {"0": 1}, "shuffle": {"0": 1}}, {"t0": 1, "t1": 2, "map": {"1": 1}, "shuffle": {"0": 1}}, {"t0": 2, "t1": 2.5, "map": {"1": 1}, "shuffle": {"1": 1}}, {"t0": 2.5, "t1": 4, "map": {"1": 1}, "shuffle": {"1": 0.333333333333333}}, {"t0": 4, "t1": 6, "map": {"2": 1}, "shuffle": {"2": 1}}], "total_shuffle_rate": [[0, 2.5, 1], [2.5, 4, 0.333333333333333], [4, 6, 1]]}),
    );
}

/// cluster example, FIFO map + PS shuffle; job 3 taken as (7,11) (the text's (10,3) is a slip)
#[test]
fn worked_fig4() {
    passes(
        &json!({"jobs": [[0, 7, 11], [0, 10, 3], [0, 7, 11]], "policy": "FCFS_PS"}),
        &json!({"completion": [12.7142857142857, 17, 28], "segments": [{"t0": 0, "t1": 7, "map": {"0": 1}, "shuffle": {"0": 1}}, {"t0": 7, "t1": 12.7142857142857, "map": {"1": 1}, "shuffle": {"1": 0.3, "0": 0.7}}, {"t0": 12.7142857142857, "t1": 17, "map": {"1": 1}, "shuffle": {"1": 0.3}}, {"t0": 17, "t1": 24, "map": {"2": 1}, "shuffle": {"2": 1}}, {"t0": 24, "t1": 28, "map": {}, "shuffle": {"2": 1}}]}),
    );
}

/// Fig. 2 jobs under PS
#[test]
fn worked_fig2_ps() {
    passes(
        &json!({"jobs": [[0, 1, 2], [0, 3, 1], [0, "5/2", "9/4"]], "policy": "PS", "k": 2}),
        &json!({"completion": [3.56, 6.5, 6]}),
    );
}

/// Fig. 2 jobs under kLPS (k=2)
#[test]
fn worked_fig2_klps() {
    passes(
        &json!({"jobs": [[0, 1, 2], [0, 3, 1], [0, "5/2", "9/4"]], "policy": "kLPS", "k": 2}),
        &json!({"completion": [2.8, 6, 6.5]}),
    );
}

/// Fig. 2 jobs under MaxSRPT
#[test]
fn worked_fig2_maxsrpt() {
    passes(
        &json!({"jobs": [[0, 1, 2], [0, 3, 1], [0, "5/2", "9/4"]], "policy": "MaxSRPT", "k": 2}),
        &json!({"completion": [2, 6.5, 4.25]}),
    );
}

/// Fig. 2 jobs under MaxSRPT_head
#[test]
fn worked_fig2_maxsrpt_head() {
    passes(
        &json!({"jobs": [[0, 1, 2], [0, 3, 1], [0, "5/2", "9/4"]], "policy": "MaxSRPT_head", "k": 2}),
        &json!({"completion": [2, 6.5, 4.25]}),
    );
}

/// Fig. 2 jobs under SplitSRPT
#[test]
fn worked_fig2_splitsrpt() {
    passes(
        &json!({"jobs": [[0, 1, 2], [0, 3, 1], [0, "5/2", "9/4"]], "policy": "SplitSRPT", "k": 2}),
        &json!({"completion": [3.8, 8.75, 4.75]}),
    );
}

/// Fig. 2 jobs under SplitSRPT_wc
#[test]
fn worked_fig2_splitsrpt_wc() {
    passes(
        &json!({"jobs": [[0, 1, 2], [0, 3, 1], [0, "5/2", "9/4"]], "policy": "SplitSRPT_wc", "k": 2}),
        &json!({"completion": [3.8, 6.5, 4.25]}),
    );
}

/// lower bound on the Fig. 2 jobs plus a second cycle
#[test]
fn worked_lb3() {
    passes(
        &json!({"jobs": [[0, 1, 2], [0, 3, 1], [0, 2, 2], [10, 2, 1], [11, "1/2", 3]]}),
        &json!({"lower_bound": 14, "cycles": [10, 4]}),
    );
}

/// four staggered arrivals, FCFS
#[test]
fn worked_online4_fcfs() {
    passes(
        &json!({"jobs": [[0, 4, 3], [1, 1, "1/2"], [2, "5/2", "11/4"], [3, "1/2", 2]], "policy": "FCFS", "k": 2}),
        &json!({"completion": [4, 5, 7.75, 9.75], "segments": [{"t0": 0, "t1": 1, "map": {"0": 1}, "shuffle": {"0": 0.75}}, {"t0": 1, "t1": 2, "map": {"0": 1}, "shuffle": {"0": 0.75}}, {"t0": 2, "t1": 3, "map": {"0": 1}, "shuffle": {"0": 0.75}}, {"t0": 3, "t1": 4, "map": {"0": 1}, "shuffle": {"0": 0.75}}, {"t0": 4, "t1": 5, "map": {"1": 1}, "shuffle": {"1": 0.5}}, {"t0": 5, "t1": 7.5, "map": {"2": 1}, "shuffle": {"2": 1}}, {"t0": 7.5, "t1": 7.75, "map": {"3": 1}, "shuffle": {"2": 1}}, {"t0": 7.75, "t1": 8, "map": {"3": 1}, "shuffle": {"3": 1}}, {"t0": 8, "t1": 9.75, "map": {}, "shuffle": {"3": 1}}]}),
    );
}

/// four staggered arrivals, kLPS
#[test]
fn worked_online4_klps() {
    passes(
        &json!({"jobs": [[0, 4, 3], [1, 1, "1/2"], [2, "5/2", "11/4"], [3, "1/2", 2]], "policy": "kLPS", "k": 2}),
        &json!({"completion": [7, 3, 8.1, 9.55], "segments": [{"t0": 0, "t1": 1, "map": {"0": 1}, "shuffle": {"0": 0.75}}, {"t0": 1, "t1": 2, "map": {"0": 0.5, "1": 0.5}, "shuffle": {"0": 0.375, "1": 0.25}}, {"t0": 2, "t1": 3, "map": {"0": 0.5, "1": 0.5}, "shuffle": {"0": 0.375, "1": 0.25}}, {"t0": 3, "t1": 7, "map": {"0": 0.5, "2": 0.5}, "shuffle": {"0": 0.375, "2": 0.55}}, {"t0": 7, "t1": 8, "map": {"2": 0.5, "3": 0.5}, "shuffle": {"2": 0.5, "3": 0.5}}, {"t0": 8, "t1": 8.1, "map": {}, "shuffle": {"2": 0.5, "3": 0.5}}, {"t0": 8.1, "t1": 9.55, "map": {}, "shuffle": {"3": 1}}]}),
    );
}

/// four staggered arrivals, MaxSRPT
#[test]
fn worked_online4_maxsrpt() {
    passes(
        &json!({"jobs": [[0, 4, 3], [1, 1, "1/2"], [2, "5/2", "11/4"], [3, "1/2", 2]], "policy": "MaxSRPT", "k": 2}),
        &json!({"completion": [9, 2, 4.75, 6.75], "segments": [{"t0": 0, "t1": 1, "map": {"0": 1}, "shuffle": {"0": 0.75}}, {"t0": 1, "t1": 2, "map": {"1": 1}, "shuffle": {"1": 0.5}}, {"t0": 2, "t1": 3, "map": {"2": 1}, "shuffle": {"2": 1}}, {"t0": 3, "t1": 4.5, "map": {"2": 1}, "shuffle": {"2": 1}}, {"t0": 4.5, "t1": 4.75, "map": {"3": 1}, "shuffle": {"2": 1}}, {"t0": 4.75, "t1": 5, "map": {"3": 1}, "shuffle": {"3": 1}}, {"t0": 5, "t1": 6.75, "map": {"0": 1}, "shuffle": {"3": 1}}, {"t0": 6.75, "t1": 8, "map": {"0": 1}, "shuffle": {"0": 1}}, {"t0": 8, "t1": 9, "map": {}, "shuffle": {"0": 1}}]}),
    );
}

/// four staggered arrivals, MaxSRPT_head
#[test]
fn worked_online4_maxsrpt_head() {
    passes(
        &json!({"jobs": [[0, 4, 3], [1, 1, "1/2"], [2, "5/2", "11/4"], [3, "1/2", 2]], "policy": "MaxSRPT_head", "k": 2}),
        &json!({"completion": [9, 2, 4.75, 6.75], "segments": [{"t0": 0, "t1": 1, "map": {"0": 1}, "shuffle": {"0": 0.75}}, {"t0": 1, "t1": 2, "map": {"1": 1}, "shuffle": {"1": 0.5}}, {"t0": 2, "t1": 3, "map": {"2": 1}, "shuffle": {"2": 1}}, {"t0": 3, "t1": 4.5, "map": {"2": 1}, "shuffle": {"2": 1}}, {"t0": 4.5, "t1": 4.75, "map": {"3": 1}, "shuffle": {"2": 1}}, {"t0": 4.75, "t1": 5, "map": {"3": 1}, "shuffle": {"3": 1}}, {"t0": 5, "t1": 6.75, "map": {"0": 1}, "shuffle": {"3": 1}}, {"t0": 6.75, "t1": 8, "map": {"0": 1}, "shuffle": {"0": 1}}, {"t0": 8, "t1": 9, "map": {}, "shuffle": {"0": 1}}]}),
    );
}

/// four staggered arrivals, SplitSRPT
#[test]
fn worked_online4_splitsrpt() {
    passes(
        &json!({"jobs": [[0, 4, 3], [1, 1, "1/2"], [2, "5/2", "11/4"], [3, "1/2", 2]], "policy": "SplitSRPT", "k": 2}),
        &json!({"completion": [9.36363636363636, 2.81818181818182, 11.0681818181818, 6.81818181818182], "segments": [{"t0": 0, "t1": 1, "map": {"0": 0.571428571428571}, "shuffle": {"0": 0.428571428571429}}, {"t0": 1, "t1": 2, "map": {"1": 0.571428571428571}, "shuffle": {"1": 0.285714285714286}}, {"t0": 2, "t1": 2.81818181818182, "map": {"1": 0.523809523809524, "2": 0.476190476190476}, "shuffle": {"1": 0.261904761904762, "2": 0.523809523809524}}, {"t0": 2.81818181818182, "t1": 3, "map": {"0": 0.523809523809524, "2": 0.476190476190476}, "shuffle": {"0": 0.392857142857143, "2": 0.523809523809524}}, {"t0": 3, "t1": 4.05, "map": {"0": 0.523809523809524, "3": 0.476190476190476}, "shuffle": {"0": 0.392857142857143, "3": 0.523809523809524}}, {"t0": 4.05, "t1": 6.81818181818182, "map": {"0": 0.523809523809524, "2": 0.476190476190476}, "shuffle": {"0": 0.392857142857143, "3": 0.523809523809524}}, {"t0": 6.81818181818182, "t1": 8.3, "map": {"0": 0.523809523809524, "2": 0.476190476190476}, "shuffle": {"0": 0.392857142857143, "2": 0.523809523809524}}, {"t0": 8.3, "t1": 9.36363636363636, "map": {"0": 0.523809523809524}, "shuffle": {"0": 0.392857142857143, "2": 0.523809523809524}}, {"t0": 9.36363636363636, "t1": 11.0681818181818, "map": {}, "shuffle": {"2": 0.523809523809524}}]}),
    );
}

/// four staggered arrivals, SplitSRPT_wc
#[test]
fn worked_online4_splitsrpt_wc() {
    passes(
        &json!({"jobs": [[0, 4, 3], [1, 1, "1/2"], [2, "5/2", "11/4"], [3, "1/2", 2]], "policy": "SplitSRPT_wc", "k": 2}),
        &json!({"completion": [7.72727272727273, 2, 9.08333333333333, 6.29411764705882], "segments": [{"t0": 0, "t1": 1, "map": {"0": 1}, "shuffle": {"0": 0.75}}, {"t0": 1, "t1": 2, "map": {"1": 1}, "shuffle": {"1": 0.5}}, {"t0": 2, "t1": 3, "map": {"0": 0.523809523809524, "2": 0.476190476190476}, "shuffle": {"0": 0.392857142857143, "2": 0.523809523809524}}, {"t0": 3, "t1": 4.05, "map": {"0": 0.523809523809524, "3": 0.476190476190476}, "shuffle": {"0": 0.392857142857143, "3": 0.607142857142857}}, {"t0": 4.05, "t1": 6.29411764705882, "map": {"0": 0.523809523809524, "2": 0.476190476190476}, "shuffle": {"0": 0.392857142857143, "3": 0.607142857142857}}, {"t0": 6.29411764705882, "t1": 7.72727272727273, "map": {"0": 0.523809523809524, "2": 0.476190476190476}, "shuffle": {"0": 0.392857142857143, "2": 0.607142857142857}}, {"t0": 7.72727272727273, "t1": 8, "map": {"2": 1}, "shuffle": {"2": 1}}, {"t0": 8, "t1": 9.08333333333333, "map": {}, "shuffle": {"2": 1}}]}),
    );
}

/// Current sizes decide: job 2 passes job 1 at the shuffle at t = 10.
#[test]
fn worked_batch_dynamic() {
    passes(
        &json!({"jobs": [[0, 1, 10], [0, 1, "21/2"], [0, 11, 1]], "policy": "MaxSRPT"}),
        &json!({"completion": [10, 21.5, 13], "segments": [{"t0": 0, "t1": 1, "map": {"0": 1}, "shuffle": {"0": 1}}, {"t0": 1, "t1": 2, "map": {"1": 1}, "shuffle": {"0": 1}}, {"t0": 2, "t1": 10, "map": {"2": 1}, "shuffle": {"0": 1}}, {"t0": 10, "t1": 10.8, "map": {"2": 1}, "shuffle": {"2": 1}}, {"t0": 10.8, "t1": 13, "map": {"2": 1}, "shuffle": {"2": 0.0909090909090909, "1": 0.909090909090909}}, {"t0": 13, "t1": 21.5, "map": {}, "shuffle": {"1": 1}}]}),
    );
}

/// The makespan is max(sum x, sum y), which is optimal.
#[test]
fn worked_makespan() {
    passes(
        &json!({"jobs": [[0, 3, 1], [0, 1, 4], [0, 2, 2], [0, 5, 3], [0, 1, 1]], "policy": "Makespan"}),
        &json!({"makespan": 12}),
    );
}

/// All policies on one instance with idle times, as computed by the independent reference.
#[test]
fn every_policy_name_of_the_cases_is_computed() {
    let names = [
        "FCFS",
        "PS",
        "kLPS",
        "FCFS_PS",
        "MaxSRPT",
        "MaxSRPT_head",
        "SplitSRPT",
        "SplitSRPT_wc",
        "SplitSRPT_we",
    ];
    // A single job takes max(x, y) under every work-conserving policy.
    let all = |value: Value| {
        Value::Object(names.map(|name| (name.to_owned(), value.clone())).into_iter().collect())
    };
    let mut expect = json!({ "completion": all(json!([4.0])), "total": all(json!(3.0)), "lower_bound": 3.0 });
    // As printed, a single map-heavy job has u2 = 3/4 of the map.
    expect["completion"]["SplitSRPT"] = json!([5.0]);
    expect["total"]["SplitSRPT"] = json!(4.0);
    passes(&json!({ "jobs": [[1, 3, 1]], "k": 2 }), &expect);
}

#[test]
fn jobs_may_stand_in_any_order_and_be_empty_at_a_station() {
    let jobs = json!([[5, 0, 2], [0, 1, 0], [0, 2, 1], [9, 0, 0]]);
    let expect = json!({ "completion": { "FCFS": [7, 1, 3, 9] }, "total": { "FCFS": 6 }, "lower_bound": 6 });
    passes(&json!({ "jobs": jobs }), &expect);
}

#[test]
fn malformed_cases_are_refused_in_words() {
    let refused = |input: Value, expect: Value| {
        let differences = differences(1e-9, &input, &expect);
        assert_eq!(differences.len(), 1, "{differences:?}");
        differences.into_iter().next().unwrap()
    };
    let total = json!({ "total": { "FCFS": 1 } });
    assert_eq!(refused(json!({}), total.clone()), "`input.jobs` is not a list");
    assert_eq!(refused(json!({ "jobs": [] }), total.clone()), "`input.jobs` has 0 jobs, not 1 to 5000");
    assert_eq!(
        refused(json!({ "jobs": [[0, 1]] }), total.clone()),
        "`input.jobs[0]` is [0,1], not [arrival, map, shuffle]"
    );
    assert_eq!(
        refused(json!({ "jobs": [[0, -1, 1]] }), total.clone()),
        "policy `FCFS`: job 0: `map work` is -1, which is not a number from 0 to 1e15"
    );
    assert_eq!(
        refused(json!({ "jobs": [[0, "inf", 1]] }), json!({ "lower_bound": 1 })),
        "job 0: `map work` is inf, which is not a number from 0 to 1e15"
    );
    assert_eq!(
        refused(json!({ "jobs": [[0, 1, 1]], "k": 0 }), total.clone()),
        "`input.k` is 0, not a whole number above 0"
    );
    assert_eq!(
        refused(json!({ "jobs": [[0, 1, 1]] }), json!({ "total": { "LIFO": 1 } })),
        "there is no policy `LIFO` in this model"
    );
    assert_eq!(
        refused(json!({ "jobs": [[0, 1, 1]] }), json!({ "total": 1 })),
        "`expect.total` is not an object by policy"
    );
    assert_eq!(
        refused(json!({ "jobs": [[0, 1, 1]] }), json!({ "mean": { "FCFS": 1 } })),
        "mean: is expected, but nothing like it is computed"
    );
    assert_eq!(
        refused(json!({ "jobs": [[0, 1, 1]] }), json!({ "completion": { "FCFS": [2] } })),
        "completion.FCFS[0]: expected 2, computed 1"
    );
}

#[test]
fn the_cases_of_the_overlap_paper_pass() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/cases/overlap.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        // Only if the directory of cases exists next to the sources.
        return;
    };
    let reports = check_file(&text).unwrap();
    assert!(!reports.is_empty());
    for report in reports {
        assert_eq!(report.differences, [], "case {}", report.id);
    }
}
