//! The program under Hadoop's names, as drivers of Hadoop Streaming call it.

use crate::support::sandbox::{Invocation, PROGRAM};
use crate::support::{Sandbox, oracle};
use std::fs;
use std::os::unix::fs::symlink;

/// Installs the program under Hadoop's names, once. Returns the jar of Hadoop Streaming.
pub fn install(sandbox: &Sandbox) -> String {
    let directory = sandbox.path("home/bin");
    if !directory.exists() {
        fs::create_dir_all(&directory).unwrap();
        for name in ["hadoop", "hdfs", "yarn", "mapred"] {
            symlink(PROGRAM, directory.join(name)).unwrap();
        }
        sandbox.write("home/streaming.jar", "");
    }
    sandbox.text("home/streaming.jar")
}

/// The program as it was installed under one of Hadoop's names.
pub fn call(sandbox: &Sandbox, name: &str, words: &[&str]) -> Invocation {
    install(sandbox);
    let program = sandbox.path("home/bin").join(name);
    sandbox
        .program(&program, words)
        .env("GRISTMILL_HDFS_ROOT", sandbox.path("hdfs"))
        .env("HADOOP_USER_NAME", "me")
        .env("GRISTMILL_STREAMING_FLAGS", "--workers 1 --no-sync")
}

pub fn well(sandbox: &Sandbox, words: &[&str]) -> String {
    let finished = call(sandbox, "hadoop", words).finish().expect_code(0);
    assert_eq!(finished.stderr, "", "{words:?}");
    finished.stdout_text()
}

#[test]
fn version_is_one_that_drivers_know() {
    let sandbox = Sandbox::new();
    for name in ["hadoop", "hdfs", "yarn", "mapred"] {
        let said = call(&sandbox, name, &["version"]).finish().expect_code(0).stdout_text();
        assert!(said.starts_with("Hadoop 3.3.6 (gristmill "), "{said}");
    }
}

#[test]
fn files_come_and_go_below_the_root_of_hdfs() {
    let sandbox = Sandbox::new();
    let local = sandbox.write("local", "some text\n");
    let run = |words: &[&str]| well(&sandbox, words);
    run(&["fs", "-mkdir", "-p", "hdfs:///a/b/"]);
    run(&["fs", "-mkdir", "-p", "hdfs:///a/b/"]);
    run(&["fs", "-put", &local, "hdfs:///a/b/file"]);
    run(&["fs", "-put", &local, "/a/b"]);
    assert_eq!(fs::read(sandbox.path("hdfs/a/b/file")).unwrap(), b"some text\n");
    assert_eq!(run(&["fs", "-cat", "/a/b/f*"]), "some text\n");
    assert_eq!(run(&["fs", "-du", "-s", "/a"]), "20  20  hdfs:///a\n");
    let listed = run(&["fs", "-ls", "-R", "hdfs:///"]);
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 4, "{listed}");
    assert!(lines[0].starts_with("drwx") && lines[0].ends_with(" hdfs:///a"), "{listed}");
    let words: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!((words[1], words[4], words[7]), ("1", "10", "hdfs:///a/b/file"), "{listed}");
    assert!(words[6].len() == 5 && words[6].as_bytes()[2] == b':', "{listed}");
    assert!(run(&["fs", "-ls", "/a/b"]).starts_with("Found 2 items\n"));
    run(&["fs", "-get", "/a/b/file", &sandbox.text("back")]);
    assert_eq!(fs::read(sandbox.path("back")).unwrap(), b"some text\n");
    for (flag, path, code) in
        [("-e", "/a", 0), ("-d", "/a", 0), ("-f", "/a", 1), ("-z", "/a/b/file", 1), ("-e", "/no", 1)]
    {
        call(&sandbox, "hdfs", &["dfs", "-test", flag, path]).finish().expect_code(code);
    }
    run(&["fs", "-mv", "/a/b/file", "/a/moved"]);
    assert_eq!(run(&["fs", "-getmerge", "/a/b", &sandbox.text("merged")]), "");
    assert_eq!(fs::read(sandbox.path("merged")).unwrap(), b"some text\n");
    assert_eq!(run(&["fs", "-rm", "-R", "-f", "-skipTrash", "hdfs:///a"]), "Deleted hdfs:///a\n");
    run(&["fs", "-rm", "-R", "-f", "-skipTrash", "hdfs:///a"]);
    // No path leads out of the root.
    call(&sandbox, "hadoop", &["fs", "-cat", "hdfs:///../local"]).finish().expect_code(1);
}

#[test]
fn what_is_missing_is_said_in_one_line() {
    let sandbox = Sandbox::new();
    for words in [["fs", "-ls", "hdfs:///nope"], ["fs", "-ls", "hdfs:///nope/*"]] {
        let finished = call(&sandbox, "hadoop", &words).finish().expect_code(1);
        assert_eq!(finished.stderr, format!("ls: `{}': No such file or directory\n", words[2]));
    }
}

#[test]
fn job_of_a_driver_runs_and_prints_what_drivers_read() {
    let sandbox = Sandbox::new();
    let local = sandbox.write("local", "b a\nb\n");
    let script = sandbox.write("words.sh", "tr ' ' '\\n'");
    well(&sandbox, &["fs", "-mkdir", "-p", "/user/me"]);
    well(&sandbox, &["fs", "-put", &local, "in"]);
    let jar = install(&sandbox);
    let files = format!("{script}#w.sh");
    let job = [
        "jar",
        &jar,
        "-files",
        &files,
        "-D",
        "mapred.reduce.tasks=1",
        "-input",
        "in",
        "-output",
        "hdfs:///out/x",
    ];
    let steps = ["-mapper", "sh w.sh", "-reducer", "uniq -c"];
    let finished = call(&sandbox, "hadoop", &[&job[..], &steps].concat()).finish().expect_code(0);
    assert_eq!(finished.stdout, b"");
    let said = &finished.stderr;
    assert!(!said.contains('\x1b') && !said.contains('\r'), "{said}");
    let line = regex::Regex::new(
        r"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO mapreduce\.Job: Running job: job_\d+_\d{4}$",
    );
    assert!(line.unwrap().is_match(said), "{said}");
    let mut rest = said.as_str();
    for word in [
        "number of splits:",
        "Submitted application application_",
        "The url to track the job: ",
        "Running job: job_",
        " map 100% reduce 100%",
        " completed successfully",
        "Counters: ",
        "\n\tMap-Reduce Framework\n\t\t",
        "Output directory: hdfs:///out/x\n",
    ] {
        rest = rest.split_once(word).unwrap_or_else(|| panic!("no {word:?} where it belongs in {said}")).1;
    }
    let out = String::from_utf8(oracle::whole(&sandbox.path("hdfs/out/x"))).unwrap();
    assert_eq!(out.split_whitespace().collect::<Vec<_>>(), ["1", "a", "2", "b"]);
    sandbox.assert_nothing_left();
}

#[test]
fn jar_that_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    call(&sandbox, "yarn", &["jar", "nope.jar"])
        .finish()
        .expect_code(255)
        .expect_words(&["Not a valid JAR:"]);
}
