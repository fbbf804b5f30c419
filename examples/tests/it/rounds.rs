//! Programs of several jobs that fail in the middle and resume, as their users see them, in the example
//! `tf_idf`.

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

fn resumed(value: &serde_json::Value) -> Vec<(&str, bool)> {
    let rounds = value["rounds"].as_array().unwrap().iter();
    rounds.map(|round| (round["name"].as_str().unwrap(), round["resumed"].as_bool().unwrap())).collect()
}

#[test]
fn rounds_go_on_after_a_failure_without_running_again_what_is_done() {
    let expected = {
        let stage = Stage::new();
        stage.write("a", "so say so\nSAY\n");
        stage.write("b", "so be it\n");
        String::from_utf8(run(&stage, "a b --output out --quiet").stdout).unwrap()
    };
    assert_eq!(expected.lines().count(), 5);
    let stage = in_the_way();
    let failed = run(&stage, "a b --output out --json --trace trace.json");
    assert_eq!(failed.status.code(), Some(3));
    let told = json(&failed);
    assert_eq!(resumed(&told), [("counts", false), ("shares", false)]);
    assert!(told["result"].is_null() && told["error"].as_str().unwrap().contains("exists and is not empty"));

    fs::remove_file(stage.path("out/weights/mine")).unwrap();
    let went_on = run(&stage, "a b --output out --json --resume --trace trace.json");
    assert!(went_on.status.success());
    let told = json(&went_on);
    assert_eq!(resumed(&told), [("counts", true), ("shares", true), ("weights", false)]);
    assert_eq!(told["result"], expected.trim_end());
    assert_eq!(told["rounds"][0]["status"]["state"], "succeeded");
    assert_eq!(told["rounds"][1]["status"]["counters"]["documents"], 2);
    let trace: serde_json::Value =
        serde_json::from_slice(&fs::read(stage.path("trace.json")).unwrap()).unwrap();
    assert_eq!(trace["otherData"]["rounds"].as_array().unwrap().len(), 1, "what was run: {trace}");

    // All rounds are done: no job runs, and the result is the same.
    let again = run(&stage, "a b --output out --resume");
    assert_eq!(String::from_utf8(again.stdout).unwrap(), expected);
    let said = String::from_utf8(again.stderr).unwrap();
    assert_eq!(said.matches("done before, not run again").count(), 3, "{said}");
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

#[test]
fn rounds_are_refused_when_inputs_or_arguments_have_changed() {
    let stage = in_the_way();
    fails(&stage, "a b --output out --resume", 3, "there are no rounds to go on with in out");
    fails(&stage, "a b --output out", 3, "exists and is not empty");
    fails(&stage, "a b --output out", 3, "2 rounds of tf-idf are done in out");
    fails(&stage, "a --output out --resume", 3, "were begun with inputs");
    fails(&stage, "a b --output out --resume --overwrite", 2, "cannot be used with");
    let document = fs::read(stage.path("b")).unwrap();
    stage.write("b", "so be it then\n");
    fails(
        &stage,
        "a b --output out --resume",
        4,
        "an input of round counts has changed since: b is not what it was",
    );
    fs::write(stage.path("b"), document).unwrap();
    fails(&stage, "a b --output out --resume", 4, "b is not what it was");
    fs::remove_file(stage.path("b")).unwrap();
    fails(&stage, "a b --output out --resume", 4, "b");
    stage.write("b", "so be it\n");
    fails(&stage, "a b --output out --overwrite", 3, "replaces nothing but the output of a job");
    fs::remove_file(stage.path("out/weights/mine")).unwrap();
    let anew = run(&stage, "a b --output out --overwrite --json");
    assert_eq!(resumed(&json(&anew)), [("counts", false), ("shares", false), ("weights", false)]);
}
