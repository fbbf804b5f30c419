//! Full disks: a small file system in memory stands in for one, visible to one run only.
//!
//! Deliberately not here: disks that return errors or stand still.

use crate::support::data::tool;
use crate::support::{Finished, Sandbox, is_root};
use std::path::Path;

/// Runs the program with the folder `disk` on a file system of 2 MiB; what is left on it is listed on stdout.
fn with_small_disk(sandbox: &Sandbox, arguments: &[&str]) -> Finished {
    std::fs::create_dir_all(sandbox.path("disk")).unwrap();
    let script = "mount -t tmpfs -o size=2m none disk && \"$@\"; code=$?; find disk -mindepth 1; exit $code";
    let program = env!("CARGO_BIN_EXE_gristmill");
    let all = ["-m", "sh", "-c", script, "sh", program].into_iter().chain(arguments.iter().copied());
    let finished = sandbox.program(Path::new("unshare"), all).finish();
    sandbox.assert_nothing_left();
    finished
}

fn possible(what: &str) -> bool {
    is_root(what) && tool("unshare", what)
}

fn records(sandbox: &Sandbox, size: &str) -> String {
    let path = sandbox.text("records");
    sandbox.run_well(["gen", "records", &path, "--size", size]);
    path
}

#[test]
fn output_disk_that_is_full_ends_the_job_with_code_7_and_leaves_nothing_on_it() {
    if !possible("a full output disk") {
        return;
    }
    let sandbox = Sandbox::new();
    let input = records(&sandbox, "8MiB");
    let finished = with_small_disk(&sandbox, &["run", "sort", &input, "--output", "disk/out"]).expect_code(7);
    assert_eq!(finished.stdout_text(), "", "something was left on the disk");
    finished.expect_words(&["could not write", "disk/out", "No space left on device", "hint: "]);
}

#[test]
fn spill_disk_that_is_full_everywhere_ends_the_job_with_code_7_and_leaves_nothing() {
    if !possible("a full spill disk") {
        return;
    }
    let sandbox = Sandbox::new();
    let input = records(&sandbox, "40MiB");
    let out = sandbox.text("out");
    let arguments = [
        "run",
        "sort",
        &input,
        "--output",
        &out,
        "--memory",
        "16MiB",
        "--workers",
        "2",
        "--spill-dir",
        "disk",
    ];
    let finished = with_small_disk(&sandbox, &arguments).expect_code(7);
    assert_eq!(finished.stdout_text(), "", "something was left on the disk");
    assert!(!Path::new(&out).exists(), "the output of a failed job was left");
    finished.expect_words(&["could not write to", "No space left on device"]);
}

#[test]
fn small_memory_spills_to_disk_and_changes_no_byte() {
    let sandbox = Sandbox::new();
    let input = records(&sandbox, "40MiB");
    let sorted = |memory: &str, out: &str| {
        let arguments =
            ["run", "sort", &input, "--output", out, "--reduces", "2", "--memory", memory, "--json"];
        let status = sandbox.run_well(arguments).json();
        let parts = crate::support::oracle::parts(Path::new(out));
        (parts, status["status"]["totals"]["spilled_bytes"].as_u64().unwrap())
    };
    let (plenty, none) = sorted("1GiB", &sandbox.text("plenty"));
    let (little, spilled) = sorted("16MiB", &sandbox.text("little"));
    assert_eq!(none, 0, "a gibibyte was too little for 40 MiB");
    // Spilled blocks are compressed.
    assert!(8 << 20 <= spilled, "only {spilled} bytes were spilled");
    assert!(plenty == little, "spilling changed the output");
}
