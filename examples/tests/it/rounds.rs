//! Programs of several jobs that fail in the middle, as their users see them, in the example `tf_idf`.

use crate::stage::Stage;
use std::fs;
use std::process::Output;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tf_idf");

/// Returns documents, and an output directory in which the last round finds foreign files.
fn in_the_way() -> Stage {
    let stage = Stage::new();
    stage.write("a", "so say so\nSAY\n");
    stage.write("b", "so be it\n");
    fs::create_dir_all(stage.path("out/weights")).unwrap();
    stage.write("out/weights/mine", "precious");
    stage
}

fn run(stage: &Stage, arguments: &str) -> Output {
    let shape = "--workers 2 --reduces 2 --no-sync";
    stage.command(PROGRAM, &format!("run {shape} tf-idf {arguments}")).output().unwrap()
}

/// Runs it and expects this exit code and these words on stderr.
fn fails(stage: &Stage, arguments: &str, code: i32, words: &str) {
    let done = run(stage, arguments);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(code), "{arguments}: {said}");
    assert!(said.contains(words), "{arguments}: {said}");
}

fn json(done: &Output) -> serde_json::Value {
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn rounds(value: &serde_json::Value) -> Vec<&str> {
    value["rounds"].as_array().unwrap().iter().map(|round| round["name"].as_str().unwrap()).collect()
}

#[test]
fn rounds_that_fail_name_those_that_are_done_and_run_again_with_overwrite() {
    let stage = in_the_way();
    let failed = run(&stage, "a b --output out --overwrite --json");
    assert_eq!(failed.status.code(), Some(3));
    let told = json(&failed);
    assert_eq!(rounds(&told), ["counts", "shares"]);
    assert!(told["result"].is_null() && told["error"].as_str().unwrap().contains("replaces nothing but"));
    fs::remove_file(stage.path("out/weights/mine")).unwrap();
    fails(&stage, "a b --output out", 3, "the output directory out exists and is not empty");
    let again = run(&stage, "a b --output out --overwrite --json");
    assert!(again.status.success());
    assert_eq!(rounds(&json(&again)), ["counts", "shares", "weights"]);
}

#[test]
fn rounds_have_one_trace_with_the_tasks_of_all_of_them() {
    let stage = Stage::new();
    stage.write("a", "so say so\nSAY\n");
    assert!(run(&stage, "a --output out --trace trace.json").status.success());
    let trace: serde_json::Value =
        serde_json::from_slice(&fs::read(stage.path("trace.json")).unwrap()).unwrap();
    assert_eq!(trace["otherData"]["rounds"].as_array().unwrap().len(), 3);
    for job in 1..=3 {
        let begins = format!("job-{job} reduce-0");
        let mut events = trace["traceEvents"].as_array().unwrap().iter();
        assert!(events.any(|event| event["name"].as_str().unwrap().starts_with(&begins)), "{begins}");
    }
}
