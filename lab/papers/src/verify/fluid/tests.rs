//! Tests with the worked examples of the overlap paper as cases, and malformed cases.

use crate::verify::check_file;
use crate::verify::tests::differences;
use serde_json::{Value, json};

#[track_caller]
fn passes(input: &Value, expect: &Value) {
    assert_eq!(differences("fluid", input, expect), [""; 0]);
}

#[test]
fn worked_examples_of_the_overlap_paper_pass() {
    for report in check_file(include_str!("worked.json")).unwrap() {
        assert_eq!(report.differences, [], "{}: {}", report.id, report.description);
    }
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
        let differences = differences("fluid", &input, &expect);
        assert_eq!(differences.len(), 1, "{differences:?}");
        differences.into_iter().next().unwrap()
    };
    let total = json!({ "total": { "FCFS": 1 } });
    assert_eq!(refused(json!({}), total.clone()), "`jobs` is missing");
    assert_eq!(refused(json!({ "jobs": [] }), total.clone()), "`jobs` has no job");
    assert_eq!(
        refused(json!({ "jobs": [[0, 1]] }), total.clone()),
        "`jobs`: invalid length 2, expected an array of length 3"
    );
    assert_eq!(
        refused(json!({ "jobs": [[0, -1, 1]] }), total.clone()),
        "policy `FCFS`: job 0: `map work` is -1, which is not a number from 0 to 1e15"
    );
    assert_eq!(
        refused(json!({ "jobs": [[0, 1e16, 1]] }), json!({ "lower_bound": 1 })),
        "job 0: `map work` is 10000000000000000, which is not a number from 0 to 1e15"
    );
    assert_eq!(
        refused(json!({ "jobs": [[0, "one", 1]] }), json!({ "lower_bound": 1 })),
        "`jobs`: \"one\" is not a number"
    );
    assert!(refused(json!({ "jobs": [[0, 1, 1]], "k": 0 }), total.clone()).contains("integer `0`"));
    assert_eq!(
        refused(json!({ "jobs": [[0, 1, 1]] }), json!({ "total": { "LIFO": 1 } })),
        "there is no policy `LIFO` in this model"
    );
    assert_eq!(
        refused(json!({ "jobs": [[0, 1, 1]] }), json!({ "total": 1 })),
        "total: is expected, but nothing like it is computed"
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
