//! Tests of the jobs that are made for measuring, run as programs.

use std::fs;
use std::process::{Command, Output};

fn jobs(folder: &std::path::Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gristmill-bench-jobs"))
        .args(arguments.split_ascii_whitespace())
        .args(["--workers", "2", "--no-sync", "--quiet", "--output"])
        .arg(folder.join("out"))
        .env("TMPDIR", folder)
        .output()
        .expect("cargo built the program for this test")
}

#[test]
fn one_group_is_checked_value_by_value_when_it_is_larger_than_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let output = jobs(folder.path(), "run one-group --group-bytes 80MiB --map-bytes 10MiB --memory 64MiB");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let values = 80 * 1024;
    assert_eq!(
        fs::read_to_string(folder.path().join("out/part-00000")).unwrap(),
        format!("{values}\t1024\n")
    );
}

#[test]
fn warm_jobs_prints_the_time_of_each_job_that_counts() {
    let folder = tempfile::tempdir().unwrap();
    let output = jobs(folder.path(), "run warm-jobs --jobs 3 --warm-up 1 --maps 4 --reduces 1");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["seconds"].as_array().unwrap().len(), 3);
    assert_eq!(printed["tasks"], 5);
}
