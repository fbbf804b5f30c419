//! Cases of algorithms 5 and 8 step by step, right ones and wrong ones.

use crate::verify::check_file;
use serde_json::{Value, json};

fn differences(input: &Value, steps: &Value) -> Vec<String> {
    let case = json!({"id": "a", "kind": "online-order", "input": input, "expect": {"steps": steps}});
    let reports = check_file(&json!({"cases": [case]}).to_string()).unwrap();
    reports[0].differences.iter().map(ToString::to_string).collect()
}

#[test]
fn algorithm_5_is_followed_step_by_step() {
    let input = json!({"alpha": 0.5, "k": 2});
    let mut steps = json!([
        {"arrive": 0, "job": [1, 2], "u": 0.9, "branch": "new group", "groups": [[0]]},
        {"arrive": 1, "job": [8, 2], "u": 0.9, "branch": "new group", "groups": [[0], [1]]},
        {"arrive": 2, "job": [2, 9], "u": 0.9, "branch": "joined 1", "groups": [[0], [2, 1]]},
        {"pop": 0, "groups": [[2, 1]]},
        {"arrive": 4, "job": [1, 1], "u": 1e-9, "branch": "reschedule", "groups": [[4], [2, 1]]},
    ]);
    assert_eq!(differences(&input, &steps), [""; 0]);
    steps[2]["branch"] = json!("joined 0");
    steps[3]["pop"] = json!(2);
    let found = differences(&input, &steps);
    assert!(found[0].starts_with("steps[2].branch: expected \"joined 0\""), "{found:?}");
    assert!(found[1].starts_with("steps[3].pop: expected 2"), "{found:?}");
}

#[test]
fn algorithm_8_is_followed_step_by_step() {
    let steps = json!([
        {"arrive": 0, "job": [1, 2], "u": 0.9, "branch": "reschedule", "S": [0]},
        {"arrive": 1, "job": [2, 1], "u": 0.9, "branch": "insert", "S": [0, 1]},
        {"arrive": 2, "job": [1, 3], "u": 0.9, "branch": "insert", "S": [0, 2, 1]},
        {"pop": 0},
        {"arrive": 4, "job": [1, 1], "u": 1e-9, "branch": "reschedule", "S": [2, 4, 1]},
    ]);
    assert_eq!(differences(&json!({}), &steps), [""; 0]);
}

#[test]
fn steps_that_cannot_be_taken_say_which_field() {
    let refused = |steps: Value| differences(&json!({}), &steps).join("; ");
    assert!(refused(json!([{"arrive": 0, "job": [1, 2], "u": 0.9}])).contains("neither `groups`"));
    assert!(refused(json!([{"S": []}])).contains("`steps[0]` has neither `arrive` nor `pop`"));
    assert!(refused(json!([{"pop": 0, "S": []}])).contains("no job waits"));
    assert!(refused(json!([{"arrive": 0, "job": [1], "u": 0.9, "S": []}])).contains("`steps[0].job`"));
    assert!(refused(json!([{"arrive": 0, "job": [1, 2], "u": 2, "S": []}])).contains("`steps[0].u`"));
    let twice = json!({"arrive": 0, "job": [1, 2], "u": 0.9, "S": [0]});
    assert!(refused(json!([twice, twice])).contains("job 0 waits already"));
}
