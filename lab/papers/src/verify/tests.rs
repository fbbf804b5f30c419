//! Kept cases of all papers, and the differences of single cases for the tests of each kind.

use super::check_file;
use serde_json::{Value, json};
use std::path::Path;

/// Returns the differences of a case of this kind; empty if it passes.
pub(super) fn differences(kind: &str, input: &Value, expect: &Value) -> Vec<String> {
    let case = json!({"id": "case", "kind": kind, "input": input, "expect": expect});
    let reports = check_file(&json!({"tol": 1e-9, "cases": [case]}).to_string()).unwrap();
    reports[0].differences.iter().map(ToString::to_string).collect()
}

#[track_caller]
pub(super) fn passes(kind: &str, input: &Value, expect: &Value) {
    assert_eq!(differences(kind, input, expect), [""; 0], "{kind}");
}

#[test]
#[allow(clippy::disallowed_macros, reason = "a test that compares nothing prints so")]
fn kept_cases_of_all_papers_pass() {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/cases"));
    for paper in ["asrpt", "overlap", "pairs", "deadlines", "stragglers"] {
        let Ok(text) = std::fs::read_to_string(directory.join(paper).with_extension("json")) else {
            println!("no cases of {paper} in {}: nothing compared", directory.display());
            continue;
        };
        let reports = check_file(&text).unwrap();
        assert!(!reports.is_empty(), "{paper}");
        for report in reports {
            assert_eq!(report.differences, [], "{paper}, {} ({})", report.id, report.kind);
        }
    }
}
