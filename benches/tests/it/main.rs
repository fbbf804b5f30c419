//! Tests of the jobs that are made for measuring, run as programs.

use std::process::{Command, Output};

fn jobs(directory: &std::path::Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gristmill-bench-jobs"))
        .args(arguments.split_ascii_whitespace())
        .args(["--workers", "2", "--no-sync", "--quiet", "--output"])
        .arg(directory.join("out"))
        .env("TMPDIR", directory)
        .output()
        .expect("cargo built the program for this test")
}

#[test]
fn warm_jobs_prints_the_time_of_each_job_that_counts() {
    let directory = tempfile::tempdir().unwrap();
    let output = jobs(directory.path(), "run warm-jobs --jobs 3 --warm-up 1 --maps 4 --reduces 1");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["seconds"].as_array().unwrap().len(), 3);
    assert_eq!(printed["tasks"], 5);
}
