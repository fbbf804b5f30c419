//! Small limits of the operating system: of the address space and of open files.

use crate::support::data::tool;
use crate::support::sandbox::PROGRAM;
use crate::support::standing::{Standing, await_join_line, start_worker};
use crate::support::{Finished, Sandbox, is_root, oracle, until};
use crate::user_code::faulty_program;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Runs the program under a limit of the shell's `ulimit`, for example `-v 1000000`.
fn run_under(sandbox: &Sandbox, limit: &str, arguments: &[&str]) -> Finished {
    let script = format!("ulimit {limit} && exec \"$@\"");
    let program = env!("CARGO_BIN_EXE_gristmill");
    let all = ["-c", &script, "sh", program].into_iter().chain(arguments.iter().copied());
    let finished = sandbox.program(Path::new("sh"), all).finish();
    sandbox.assert_nothing_left();
    finished
}

#[test]
fn sort_maps_a_file_once_for_all_its_splits_when_the_address_space_is_small() {
    let sandbox = Sandbox::new();
    let line = |number: usize| format!("{:08} {}\n", number * 7_919 % 10_000, "y".repeat(3_990));
    let mut lines: Vec<String> = (0..10_000).map(line).collect();
    let input = sandbox.write("lines", lines.concat());
    let out = sandbox.text("out");
    // A map of 40 MB for each of 100 splits would take 4 GB.
    let arguments = ["run", "sort", &input, "--workers", "1", "--split-size", "400KiB", "--reduces", "2"];
    run_under(&sandbox, "-v 2500000", &[&arguments[..], &["--output", &out]].concat()).expect_code(0);
    lines.sort_unstable();
    assert!(
        oracle::whole(Path::new(&out)) == lines.concat().as_bytes(),
        "the output is not the sorted input"
    );
}

#[test]
fn limit_of_processes_ends_a_job_in_order_or_lets_it_succeed() {
    if !is_root("a user without other processes") || !tool("setpriv", "a user without other processes") {
        return;
    }
    let sandbox = Sandbox::new();
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("gristmill");
    let open = |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o1777)).unwrap();
    // Linked and not written, so that it can be executed at once.
    std::fs::hard_link(PROGRAM, &program).or_else(|_| std::fs::copy(PROGRAM, &program).map(drop)).unwrap();
    let input = place.path().join("text");
    std::fs::write(&input, "a b a\n").unwrap();
    open(place.path());
    let mut succeeded = false;
    for limit in (3..24).chain([100]) {
        let run = format!(
            "ulimit -u {limit} && exec {} run wordcount {} --quiet",
            program.display(),
            input.display()
        );
        let user = ["--reuid", "45681", "--regid", "45681", "--clear-groups", "bash", "-c", &run];
        let finished = sandbox.program(Path::new("setpriv"), user).env("TMPDIR", place.path()).finish();
        assert!(!finished.stderr.contains("panicked"), "at {limit}: {}", finished.stderr);
        let code = finished.status.code();
        // If one limit is enough, so are all higher ones.
        let expected = if succeeded || code == Some(0) { 0 } else { 7 };
        assert_eq!(code, Some(expected), "at {limit}: {}", finished.stderr);
        succeeded |= code == Some(0);
        // The kernel counts ended processes until they are reaped.
        until("the end of all processes", || sandbox.processes().is_empty().then_some(()));
    }
    assert!(succeeded, "no limit was enough");
}

#[test]
fn more_spilled_outputs_than_a_process_may_open_files_are_no_trouble() {
    let sandbox = Sandbox::new();
    let line = |number: usize| format!("{:08} {}\n", number * 7_919 % 90_000, "y".repeat(90));
    let mut lines: Vec<String> = (0..90_000).map(line).collect();
    let input = sandbox.write("lines", lines.concat());
    let out = sandbox.text("out");
    // The reverse order is made of copies, a third of which fits in memory.
    let job = ["run", "sort", "-r", &input, "--split-size", "20kB", "--memory", "16MiB"];
    let rest = ["--workers", "1", "--reduces", "2", "--output", &out, "--json"];
    let finished = run_under(&sandbox, "-n 128", &[&job[..], &rest].concat()).expect_code(0);
    let spills = finished.json()["status"]["totals"]["spills"].as_u64().unwrap();
    assert!(250 < spills, "{spills} spills: not more than there may be open files");
    lines.sort_unstable_by(|a, b| b.cmp(a));
    assert!(
        oracle::whole(Path::new(&out)) == lines.concat().as_bytes(),
        "the output is not the sorted input"
    );
}

#[test]
fn more_detached_jobs_wait_than_the_master_may_open_files_and_all_succeed() {
    const JOBS: usize = 40;
    let sandbox = Sandbox::new();
    let words = ["-c", "ulimit -n 96 && exec \"$0\" master", env!("CARGO_BIN_EXE_gristmill")];
    let master = sandbox.program(Path::new("sh"), words).start();
    let join = await_join_line(&master);
    let input = sandbox.write("text", "b a\na\n");
    let opened = || std::fs::read_dir(format!("/proc/{}/fd", master.pid())).unwrap().count();
    let before = opened();
    for number in 0..JOBS {
        let output = sandbox.text(&format!("out-{number}"));
        let job = ["submit", "wordcount", &input, "--detach", "--reduces", "1", "--output", &output];
        sandbox.gristmill(job).finish().expect_code(0);
    }
    // Connections of the last clients may still be open.
    until("no file open for a job that waits", || (opened() <= before + 2).then_some(()));
    let standing = Standing::new(&sandbox, master, vec![start_worker(&sandbox)], join);
    for number in 0..JOBS {
        sandbox.gristmill(["wait", &format!("job-{}", number + 1), "--quiet"]).finish().expect_code(0);
        let left = oracle::names(&sandbox.path(&format!("out-{number}")));
        assert_eq!(left, ["_SUCCESS", "part-00000"]);
    }
    standing.end();
}

#[test]
fn a_record_that_no_slot_has_room_for_is_refused_and_the_remedy_is_named() {
    let sandbox = Sandbox::new();
    let long = "x".repeat(8_000_000);
    let input = sandbox.write("lines", format!("short\n{long}\na\n"));
    let sorted = format!("a\nshort\n{long}\n");
    let words: String = sorted.lines().map(|word| format!("{word}\t1\n")).collect();
    for (job, expected) in [("sort", &sorted), ("wordcount", &words)] {
        let out = sandbox.text(&format!("{job}-out"));
        let arguments = ["run", job, &input, "--workers", "1", "--reduces", "1", "--output", &out];
        let with = |memory| [&arguments[..], &["--max-record", "1GiB", "--memory", memory]].concat();
        let refused = sandbox.run(with("16MiB")).expect_code(4);
        refused.expect_words(&["8000000 bytes", "a slot of this worker has room for", "--memory"]);
        sandbox.run_well(with("80MiB"));
        assert!(oracle::whole(Path::new(&out)) == expected.as_bytes(), "{job}");
    }
}

#[test]
fn too_few_open_files_for_any_work_are_named_at_once_by_all_that_would_wait_for_one() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "one two\n");
    let join = "gristmill://127.0.0.1:1/?token=work-0000";
    let commands: [&[&str]; 3] =
        [&["run", "wordcount", &input], &["master"], &["worker", "--workers", "1", "--join", join]];
    for command in commands {
        let refused = run_under(&sandbox, "-n 40", command).expect_code(7);
        refused.expect_words(&["the limit of open files is 40", "64 are needed", "hint: ", "ulimit -n 1024"]);
    }
    run_under(&sandbox, "-n 64", &["run", "wordcount", &input]).expect_code(0);
}

#[test]
fn user_code_that_takes_memory_without_end_is_ended_over_the_budget_and_the_numbers_are_named() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "good\nbad\n");
    let out = sandbox.text("out");
    let flags =
        ["--how", "devour", "--workers", "1", "--memory", "64MiB", "--reduces", "1", "--output", &out];
    let words = [&["run", "faulty", &input, "--split-size", "5"], &flags[..]].concat();
    let failed = sandbox.program(&faulty_program(), words).finish().expect_code(7);
    failed.expect_words(&["memory ran out on 3 workers", "its budget of 64 MiB and ", "a larger --memory"]);
    sandbox.assert_nothing_left();
}

#[test]
fn rankings_that_no_slot_has_room_for_are_refused_and_the_remedy_is_named() {
    let sandbox = Sandbox::new();
    let words: Vec<String> = (0..600_000).map(|number| format!("w{number:08}\n")).collect();
    let input = sandbox.write("words", words.concat());
    let jobs: [&[&str]; 2] = [
        &["run", "wordcount", &input, "--top", "3000000"],
        &["run", "grep", "w[0-9]+", &input, "--count-matches"],
    ];
    for job in jobs {
        let with = |memory| [job, &["--workers", "1", "--memory", memory]].concat();
        let refused = sandbox.run(with("32MiB")).expect_code(2);
        refused.expect_words(&["in order of frequency takes over ", " MiB of memory", "--memory"]);
        sandbox.run_well(with("256MiB"));
    }
}

#[test]
fn join_holds_no_table_that_is_more_than_a_quarter_of_the_memory() {
    let sandbox = Sandbox::new();
    let row = |number: usize| format!("{number:06},{}\n", "x".repeat(92));
    let rows: Vec<String> = (0..50_000).map(row).collect();
    let (left, right) = (sandbox.write("left", rows.concat()), sandbox.write("right", rows.concat()));
    let join = ["run", "join", "--left", &left, "--right", &right, "--on", "1", "--workers", "1"];
    let with = |more: &[&'static str]| [&join[..], more].concat();
    let held = sandbox.run(with(&["--strategy", "broadcast", "--memory", "16MiB"])).expect_code(2);
    held.expect_words(&[
        "the right table has 5000000 bytes",
        "a quarter of a worker's 16777216 bytes",
        "--memory",
    ]);
    sandbox.run_well(with(&["--memory", "16MiB"]));
    sandbox.run_well(with(&["--strategy", "broadcast", "--memory", "64MiB"]));
}

#[test]
fn job_of_more_segments_than_memory_has_places_for_is_refused_with_the_numbers() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a b c\n".repeat(400));
    let job = ["run", "wordcount", &input, "--split-size", "12B", "--memory", "16MiB", "--workers", "1"];
    let refused = sandbox.gristmill([&job[..], &["--reduces", "1000"]].concat()).finish().expect_code(2);
    assert!(
        refused.stderr.contains("200 maps for 1000 reduces make up to 200000 segments"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("19200000 bytes of memory, and the workers have 16777216"),
        "{}",
        refused.stderr
    );
    sandbox.gristmill([&job[..], &["--reduces", "800"]].concat()).finish().expect_code(0);
}
