//! Files that a command writes for its user after a job; it never overwrites what that job reads.

use crate::support::standing::Standing;
use crate::support::{Sandbox, oracle};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;

#[test]
fn report_that_would_be_written_over_input_of_its_own_job_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "to be or not to be\n");
    let directory = sandbox.write("directory/part", "not to be\n").replace("/part", "");
    symlink("text", sandbox.path("link")).unwrap();
    fs::hard_link(sandbox.path("text"), sandbox.path("twin")).unwrap();
    let check = |name: &str, flag: &str, inputs: &[&str]| {
        let written = sandbox.text(name);
        let fixed = ["run", "wordcount", "--workers", "1", "--overwrite", flag, &written];
        let refused = sandbox.run(fixed.iter().chain(inputs)).expect_code(2);
        refused.expect_words(&[&format!("{written} would be written over input"), "name another place"]);
        let kept = ["text", "directory/part"].map(|name| fs::read_to_string(sandbox.path(name)).unwrap());
        assert_eq!(kept, ["to be or not to be\n", "not to be\n"], "{flag} {name}");
        sandbox.assert_nothing_left();
    };
    let flag = "--trace";
    for name in ["text", "link", "twin"] {
        check(name, flag, &[&input]);
    }
    check("directory/part", flag, &[&directory]);
    check("text", flag, &[&format!("worker-1:{input}")]);
    // An output path within an input directory is allowed, as long as no file exists there.
    sandbox.run_well([
        "run",
        "wordcount",
        &directory,
        "--workers",
        "1",
        "--trace",
        &sandbox.text("directory/new"),
    ]);
}

#[test]
fn trace_of_a_submitted_job_or_of_piped_input_is_not_written_over_that_input() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "to be or not to be\n");
    let refused = "would be written over input";
    let script = format!("exec \"$0\" run wordcount - --workers 1 --overwrite --trace {input} < {input}");
    let program = crate::support::sandbox::PROGRAM;
    let piped = sandbox.program(Path::new("sh"), ["-c", &script, program]).finish();
    piped.expect_code(2).expect_words(&[refused]);
    let standing = Standing::start(&sandbox, 1);
    let submitted =
        sandbox.gristmill(["submit", "wordcount", &input, "--overwrite", "--trace", &input]).finish();
    submitted.expect_code(2).expect_words(&[refused]);
    assert_eq!(fs::read_to_string(&input).unwrap(), "to be or not to be\n");
    standing.end();
}

#[test]
fn report_that_would_be_written_into_the_output_of_its_own_job_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    let (input, out) = (sandbox.write("text", "a\n"), sandbox.text("out"));
    sandbox.write("out/part-00000", "old");
    sandbox.write("out/_SUCCESS", "");
    symlink("out", sandbox.path("link")).unwrap();
    symlink("out/part-00000", sandbox.path("part")).unwrap();
    let flag = "--trace";
    for name in ["out/part-00000", "out/_SUCCESS", "out/trace", "link/trace", "part", "link/../out/trace"] {
        let written = sandbox.text(name);
        let words = ["run", "wordcount", &input, "--workers", "1", "--overwrite", "--output", &out];
        let refused = sandbox.run(words.iter().chain(&[flag, &written])).expect_code(2);
        refused.expect_words(&[&format!("{written} would be written into the output directory")]);
        assert_eq!(fs::read_to_string(sandbox.path("out/part-00000")).unwrap(), "old");
        assert_eq!(oracle::names(&sandbox.path("out")), ["_SUCCESS", "part-00000"]);
    }
    // Neither is a new file, even through a link that leads nowhere before the job has run.
    let new = sandbox.text("new");
    symlink("new/part-00000", sandbox.path("to-new")).unwrap();
    symlink("to-new", sandbox.path("to-it")).unwrap();
    symlink("out/none", sandbox.path("to-out")).unwrap();
    let within = sandbox.text("new/trace");
    sandbox.run(["run", "wordcount", &input, "--output", &new, "--trace", &within]).expect_code(3);
    for (name, output) in [("to-new", &new), ("to-it", &new), ("to-out", &out)] {
        let written = sandbox.text(name);
        let words = ["run", "wordcount", &input, "--workers", "1", "--overwrite", "--output", output];
        let refused = sandbox.run(words.iter().chain(&["--trace", &written])).expect_code(2);
        refused.expect_words(&[&format!("{written} would be written into the output directory")]);
        assert!(!sandbox.path("new").exists() && !sandbox.path("out/none").exists(), "{name}");
    }
    // A sibling is accepted, also if its name has the same prefix.
    let beside = sandbox.text("out-trace");
    sandbox.run_well(["run", "wordcount", &input, "--overwrite", "--output", &out, "--trace", &beside]);
}

#[test]
fn journal_in_one_file_with_a_trace_among_the_inputs_or_in_the_output_is_refused() {
    let sandbox = Sandbox::new();
    let (input, one) = (sandbox.write("texts/one", "a\n"), sandbox.text("one"));
    let flag = "--trace";
    let flags = ["run", "wordcount", &input, "--overwrite", flag, &one, "--journal", &one];
    let same = format!("{flag} and --journal name the same file");
    sandbox.run(flags).expect_code(2).expect_words(&[&same]);
    assert!(!sandbox.path("one").exists(), "{flag}");
    let (texts, out) = (sandbox.text("texts"), sandbox.text("out"));
    let within = sandbox.text("texts/journal");
    let flags = ["run", "wordcount", &texts, "--workers", "1", "--output", &out, "--journal", &within];
    sandbox.run(flags).expect_code(2).expect_words(&["would be written over input", "texts/journal"]);
    assert!(!sandbox.path("out").exists());
    sandbox.run_well(["run", "wordcount", &input, "--output", &out]);
    let within = sandbox.text("out/journal");
    let flags = ["run", "wordcount", &input, "--overwrite", "--output", &out, "--journal", &within];
    sandbox.run(flags).expect_code(2).expect_words(&["would be written into the output directory"]);
    assert!(sandbox.path("out/_SUCCESS").exists());
}

#[test]
fn trace_goes_to_a_pipe_if_somebody_reads_from_it_and_waits_for_nobody() {
    let sandbox = Sandbox::new();
    let (input, pipe) = (sandbox.write("text", "a\n"), sandbox.text("pipe"));
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let run = || sandbox.run(["run", "wordcount", &input, "--workers", "1", "--trace", &pipe]);
    run().expect_code(3).expect_words(&["could not write the trace", "this pipe has no reader"]);
    // Opened before any writer, without waiting for one.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let mut reader = File::from(rustix::fs::open(&pipe, flags, Mode::empty()).unwrap());
    run().expect_code(0);
    let mut trace = String::new();
    reader.read_to_string(&mut trace).unwrap();
    assert!(trace.contains("traceEvents"));
}

#[test]
fn trace_to_the_programs_own_output_goes_behind_what_is_there() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a\n");
    let log = sandbox.path("all");
    fs::write(&log, "earlier\n").unwrap();
    let script =
        "exec \"$0\" run wordcount \"$1\" --workers 1 --quiet --overwrite --trace /dev/stdout >> \"$2\"";
    let done = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_gristmill"), &input])
        .arg(&log)
        .env("HOME", sandbox.path(""))
        .status();
    assert!(done.unwrap().success());
    let log = fs::read_to_string(&log).unwrap();
    assert!(log.starts_with("earlier\n") && log.contains("a\t1\n") && log.contains("traceEvents"), "{log}");
}

#[test]
fn place_where_a_trace_could_not_be_written_is_refused_before_the_job_runs() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a\n");
    for place in ["nowhere/trace.json", "."] {
        let (place, out) = (sandbox.text(place), sandbox.text("out"));
        let finished = sandbox.run(["run", "wordcount", &input, "--output", &out, "--trace", &place]);
        finished.expect_code(3).expect_words(&[&place, "nothing was run"]);
        assert!(!sandbox.path("out").exists());
    }
}

#[test]
fn report_takes_the_place_of_a_file_with_overwrite_only() {
    let sandbox = Sandbox::new();
    let (input, there) = (sandbox.write("text", "a\n"), sandbox.write("there", "kept"));
    let flag = "--trace";
    let words = ["run", "wordcount", &input, "--workers", "1", flag, &there];
    let refused = sandbox.run(words).expect_code(3);
    refused.expect_words(&["the file exists already", "hint: choose another file, or add --overwrite"]);
    assert_eq!(fs::read_to_string(&there).unwrap(), "kept");
    sandbox.run_well(["run", "wordcount", &input, "--workers", "1", "--overwrite", "--trace", &there]);
    assert!(fs::read_to_string(&there).unwrap().contains("traceEvents"));
    // A device accepts it as before.
    sandbox.run_well(["run", "wordcount", &input, "--workers", "1", "--trace", "/dev/null"]);
}

#[test]
fn link_that_leads_nowhere_is_told_before_anything_runs_and_replaced_when_asked() {
    let sandbox = Sandbox::new();
    let (input, link, out) = (sandbox.write("text", "a\n"), sandbox.text("link"), sandbox.text("out"));
    symlink("nowhere", &link).unwrap();
    let flag = "--trace";
    let flags = ["run", "wordcount", &input, "--workers", "1", "--output", &out, flag, &link];
    sandbox.run(flags).expect_code(3).expect_words(&["the file exists already"]);
    assert!(!sandbox.path("out").exists(), "{flag}");
    sandbox.run_well(["run", "wordcount", &input, "--overwrite", "--trace", &link]);
    assert!(fs::symlink_metadata(&link).unwrap().is_file() && !sandbox.path("nowhere").exists());
}

#[test]
fn old_trace_stays_when_the_disk_has_no_room_for_the_new_one() {
    let sandbox = Sandbox::new();
    let (input, trace) = (sandbox.write("text", "a\n"), sandbox.write("trace", "old"));
    // Files may have 1 KiB: less than the trace has, and more than the job writes.
    let program = env!("CARGO_BIN_EXE_gristmill");
    let line =
        format!("ulimit -f 2; exec {program} run wordcount {input} --workers 1 --overwrite --trace {trace}");
    sandbox.program(std::path::Path::new("/bin/sh"), ["-c", &line]).finish().expect_code(7);
    assert_eq!(fs::read_to_string(&trace).unwrap(), "old");
}
