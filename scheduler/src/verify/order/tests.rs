//! Cases of orders, right ones and wrong ones.

use crate::verify::check_file;
use serde_json::{Value, json};
use std::io::Write as _;

fn differences(input: &Value, expect: &Value) -> Vec<String> {
    let case = json!({"id": "a", "kind": "order", "input": input, "expect": expect});
    let reports = check_file(&json!({"tol": 1e-9, "cases": [case]}).to_string()).unwrap();
    reports[0].differences.iter().map(ToString::to_string).collect()
}

#[test]
fn all_cases_of_the_pairs_paper_pass() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/cases/pairs.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        let _ = writeln!(std::io::stderr(), "no {path}: nothing to check");
        return;
    };
    for report in check_file(&text).unwrap() {
        assert_eq!(report.differences, [], "{} ({})", report.id, report.kind);
    }
}

#[test]
fn orders_averages_and_optima_are_compared() {
    let input = json!({"jobs": [[1, 2], [98, 97], [45, 49], [55, 51]], "alpha": 0.5, "k": 2, "step": null});
    let expect = json!({
        "algorithms": {
            "maxsrpt": {"order": [0, 2, 3, 1], "avg": [37.0, 51.5, 88.5]},
            "match": {"order": [2, 0, 1, 3]},
        },
        "brute_force_total": 354,
        "brute_force_order": [0, 2, 3, 1],
        "smjpd": 75,
        "min_matching_weight": 95,
    });
    assert_eq!(differences(&input, &expect), [""; 0]);
    let wrong = json!({"algorithms": {"pair": {"order": [0, 2, 1, 3]}, "best": {}}, "smjpd": 1});
    let found = differences(&input, &wrong);
    assert!(found[0].starts_with("algorithms.best: there is no such"), "{found:?}");
    assert!(found[1].starts_with("algorithms.pair.order[2]: expected 1"), "{found:?}");
    assert!(found.last().unwrap().starts_with("smjpd: expected 1"), "{found:?}");
}

#[test]
fn cases_that_cannot_be_computed_say_which_field() {
    let expect = json!({"smjpd": 0});
    let refused = |input: Value| differences(&input, &expect).join("; ");
    assert_eq!(refused(json!({})), "`input.jobs` is missing, or no list");
    assert_eq!(refused(json!({"jobs": []})), "`input.jobs` has 0 jobs, not 1 to 1000");
    assert!(refused(json!({"jobs": [[1, 2], [1]]})).contains("input.jobs[1]"));
    assert!(refused(json!({"jobs": [[1, -2]]})).contains("`input.jobs[0]` is -2, not a number from 0"));
    assert!(refused(json!({"jobs": [[1, "inf"]]})).contains("not a number from 0"));
    assert!(refused(json!({"jobs": [[1, 2]], "alpha": 2})).contains("`alpha` is 2"));
    assert!(refused(json!({"jobs": [[1, 2]], "k": 0})).contains("`input.k` is 0"));
    assert!(refused(json!({"jobs": [[1, 2]], "step": -1})).contains("`step` is -1"));
    let many = json!({"jobs": vec![[1, 2]; 11]});
    assert!(differences(&many, &json!({"brute_force_total": 1})).join("").contains("too many to try"));
}
