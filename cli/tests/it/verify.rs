//! `verify`: worked cases on the command line. All cases next to the project must pass.

use crate::support::Sandbox;
use std::path::Path;

const GOOD: &str = r#"{"id": "one", "kind": "dtd", "desc": "exponential", "input": {"a": 2, "b": 0, "T": 1, "xs": [1]},
    "expect": {"mean": 1.5, "cdf": [0]}}"#;

fn file(cases: &[&str]) -> String {
    format!("{{\"tol\": 1e-9, \"cases\": [{}]}}", cases.join(","))
}

#[test]
fn cases_that_pass_are_named_and_end_with_zero() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("good.json", file(&[GOOD]));
    let text = sandbox.run_well(["verify", "--cases", &path]).stdout_text();
    assert!(text.contains("passed") && text.contains("one (dtd): exponential"), "{text}");
    assert!(text.ends_with("1 of 1 case passed\n"), "{text}");
    let json = sandbox.run_well(["verify", "--cases", &path, &path, "--json"]).json();
    assert_eq!(json[1]["cases"][0]["passed"], true);
}

#[test]
fn a_case_that_differs_is_shown_with_the_difference_and_ends_with_one() {
    let sandbox = Sandbox::new();
    let cases = [
        (GOOD.replace("1.5", "1.6"), "mean: expected 1.6, computed 1.5"),
        (GOOD.replace("\"cdf\": [0]", "\"cdf\": [0, 1]"), "cdf: expected 2 values, computed 1"),
        (GOOD.replace("\"mean\"", "\"median\""), "median"),
        (GOOD.replace("\"dtd\"", "\"dtt\""), "unknown kind `dtt`"),
        (GOOD.replace("\"a\": 2", "\"a\": -2"), "a"),
        (GOOD.replace("\"a\": 2", "\"a\": \"two\""), "a"),
    ];
    for (case, words) in &cases {
        let path = sandbox.write("bad.json", file(&[GOOD, case]));
        let finished = sandbox.run(["verify", "--cases", &path, "--quiet"]).expect_code(1);
        let text = finished.stdout_text();
        assert!(text.starts_with("FAILED") && text.contains(words), "{case}: {text}");
        assert!(text.ends_with("1 of 2 cases passed\n"), "{text}");
    }
}

#[test]
fn a_file_that_holds_no_cases_is_an_input_error() {
    let sandbox = Sandbox::new();
    for (text, words) in [("", "not JSON"), ("{}", "no list `cases`"), ("{\"cases\": []}", "it has no case")]
    {
        let path = sandbox.write("none.json", text);
        sandbox.run(["verify", "--cases", &path]).expect_code(4).expect_words(&["none.json", words]);
    }
    sandbox.run(["verify", "--cases", "not-there.json"]).expect_code(4).expect_words(&["not-there.json"]);
    sandbox.run(["verify"]).expect_code(2);
}

#[test]
fn the_cases_beside_the_project_all_pass() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases");
    let names = ["asrpt", "overlap", "pairs", "deadlines", "stragglers"];
    let files: Vec<String> =
        names.iter().map(|name| directory.join(format!("{name}.json")).display().to_string()).collect();
    if !files.iter().all(|file| Path::new(file).exists()) {
        println!("the cases are not here");
        return;
    }
    let sandbox = Sandbox::new();
    let arguments = ["verify", "--quiet", "--cases"].into_iter().chain(files.iter().map(String::as_str));
    let finished = sandbox.run(arguments);
    assert!(finished.stdout_text().lines().count() == 1, "{}", finished.stdout_text());
    finished.expect_code(0);
}
