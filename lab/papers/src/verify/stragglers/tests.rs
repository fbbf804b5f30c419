//! Tests with valid and invalid cases of the stragglers thesis.

use crate::verify::tests::{differences, passes};
use serde_json::{Value, json};

fn refused(kind: &str, input: &Value) -> String {
    differences(kind, input, &json!({ "mst": 1.0 })).concat()
}

#[test]
fn cases_that_can_be_computed_by_hand_pass() {
    let half = 1.0 - (-0.5_f64).exp();
    passes(
        "dtd",
        &json!({ "a": 0.5, "b": 0, "T": 1, "xs": [0, 2] }),
        &json!({ "cdf": [0, half], "mean": 3 }),
    );
    passes(
        "dtd",
        &json!({ "a": 0, "b": 1, "T": 0, "xs": [1] }),
        &json!({ "cdf": [0.5], "pdf": [0.25], "mean": "inf" }),
    );
    passes("mst", &json!({ "rates": [1, 2] }), &json!({ "mst": 7.0 / 6.0 }));
    passes("mst", &json!({ "rates": [1], "offsets": [3] }), &json!({ "mst": 4 }));
    passes("mst", &json!({ "params": [[0, 3, 1], [0, 3, 1]] }), &json!({ "mst": 1.8 }));
    let stable = json!({ "mu": [2, 1], "lam": 2, "D": 0 });
    passes(
        "rates",
        &stable,
        &json!({ "fair": [1, 1], "stoch": [1.5, 0.5], "mep": [1.5, 0.5], "mst": { "fair": "inf", "stoch": 3 } }),
    );
    passes(
        "g-m-1",
        &json!({ "kind": "M", "mu": [2, 1], "lam": 2 }),
        &json!({ "lam": [1.5, 0.5], "r0": [0.75, 0.5] }),
    );
    passes(
        "g-m-1",
        &json!({ "kind": "M", "mu": [2, 0.5], "lam": 1 }),
        &json!({ "lam": [1, 0], "r0": [0.5, null] }),
    );
    let exponential = json!({ "mu": [2, 1], "var_or_cs2": [0.25, 1], "lam": 2 });
    passes("m-g-1", &exponential, &json!({ "mg1": { "lam": [1.5, 0.5], "alpha": 2 } }));
    passes(
        "workers",
        &json!({ "mu": 1, "lam": 2, "D": 0, "range": [3, 50] }),
        &json!({ "lemma10": [8, 3.623809523809524] }),
    );
    passes("workers", &json!({ "mu": 1, "lam": 9, "range": [3, 8] }), &json!({ "lemma10": null }));
    passes("budget", &json!({ "types": [[1, 1]], "lam": 1, "budget": 3.5 }), &json!({ "best": [3, 2.75] }));
    passes("budget", &json!({ "types": [[1, 1]], "lam": 1, "budget": 1 }), &json!({ "best": null }));
    let data = json!({ "data": [1, 2, 4] });
    passes("dtd-fit", &data, &json!({ "T": 1 }));
}

#[test]
fn a_wrong_value_is_a_difference() {
    assert_eq!(differences("mst", &json!({ "rates": [1] }), &json!({ "mst": 2 })).len(), 1);
    assert_eq!(differences("mst", &json!({ "rates": [1] }), &json!({ "most": 1 })).len(), 1);
}

#[test]
fn malformed_input_is_named() {
    assert_eq!(refused("mst", &json!({ "rates": [] })), "there are 0 workers, not 1 to 1000000");
    assert!(refused("mst", &json!({ "rates": [1, "x"] })).starts_with("`rates`: invalid type: string \"x\""));
    assert_eq!(refused("mst", &json!({ "rates": [0] })), "`a` is 0, which is not above 0 where `b` is 0");
    assert_eq!(
        refused("mst", &json!({ "rates": [1], "offsets": [] })),
        "`offsets` has 0 values, but `rates` has 1"
    );
    assert!(refused("mst", &json!({ "params": [[1, 2]] })).contains("invalid length 2"));
    assert_eq!(refused("mst", &json!(null)), "`rates` is missing");
    let lambda = "`lambda` is 3 tasks/s, but all workers together serve only 1 tasks/s: it must be less";
    assert_eq!(refused("rates", &json!({ "mu": [1], "lam": 3 })), lambda);
    assert_eq!(
        refused("rates", &json!({ "mu": [-1], "lam": 3 })),
        "worker 0: `mu` is -1, which is not a finite rate above 0"
    );
    assert!(refused("g-m-1", &json!({ "kind": "E0", "mu": [1], "lam": 0.5 })).starts_with("`kind` is `E0`"));
    assert!(refused("workers", &json!({ "mu": 1, "lam": 1, "range": [1] })).contains("invalid length 1"));
    let far = json!({ "mu": 1, "lam": 1, "range": [1, 4_000_000_000_u32] });
    assert!(refused("workers", &far).contains("limit on numbers of workers"));
    assert!(
        refused("budget", &json!({ "types": [[1, 1e-9]], "lam": 1, "budget": 1e9 }))
            .contains("at most a million")
    );
    assert!(refused("dtd-fit", &json!({ "data": [1, 1] })).contains("two different times"));
    assert!(refused("dtd", &json!({ "a": 0, "b": 0, "T": 0 })).contains("above 0 where `b` is 0"));
}
