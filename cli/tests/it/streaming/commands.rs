//! Commands of tasks: their surroundings, their ends and their failures.

use super::*;

#[test]
fn commands_are_told_of_their_task_and_of_nothing_that_the_worker_keeps() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("in", "x\n");
    let one = ["-D", "mapred.map.tasks=1"];
    let words = ["-mapper", "env", "-numReduceTasks", "0", "-cmdenv", "MINE=a b", "-D", "my.own-name=7"];
    let flags = ["streaming", "--workers", "1", "--no-sync", "-input", "in", "-output", "out"];
    let finished = sandbox.gristmill([&flags[..], &words, &one].concat()).env("A_SECRET", "hidden").finish();
    finished.expect_code(0);
    let out = String::from_utf8(oracle::whole(&sandbox.path("out"))).unwrap();
    let has = |line: &str| assert!(out.contains(&format!("\n{line}\t\n")), "no {line} in {out}");
    has("MINE=a b");
    has("my_own_name=7");
    has(&format!("mapreduce_map_input_file=file:{input}"));
    has(&format!("map_input_file=file:{input}"));
    has("mapreduce_map_input_start=0");
    has("mapreduce_map_input_length=2");
    has("mapreduce_task_partition=0");
    has("mapred_task_is_map=true");
    has("mapreduce_task_ismap=true");
    has("mapreduce_job_reduces=0");
    for name in
        ["mapreduce_job_id=job_", "mapred_job_id=job_", "mapreduce_task_attempt_id=attempt_", "TMPDIR=/"]
    {
        assert!(out.contains(&format!("\n{name}")), "no {name} in {out}");
    }
    assert!(!out.contains("hidden") && !out.contains("GRISTMILL_"), "{out}");
}

#[test]
fn commands_work_in_a_fresh_directory_with_what_was_shipped() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    // A script that is not executable in its directory.
    let script = sandbox.write("job.sh", "#!/bin/sh\ncat > /dev/null; cat words; ls; touch left\n");
    let words = sandbox.write("list", "some words\n");
    let files = format!("{words}#words");
    let all = ["-mapper", "job.sh", "-file", &script, "-files", &files, "-numReduceTasks", "0"];
    stream(&sandbox, &[&all[..], &["-D", "mapred.map.tasks=1"]].concat()).expect_code(0);
    let expected = b"some words\t\njob.sh\t\ntmp\t\nwords\t\n";
    assert_eq!(oracle::whole(&sandbox.path("out")), expected);
}

#[test]
fn lines_for_the_framework_count_and_all_others_are_kept_in_the_log() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    let script = "cat; for line in counter:G,n,5 counter:G,n,-2 status:fine counter:wrong; do \
                  echo reporter:$line >&2; done; echo a remark >&2";
    let script = sandbox.write("job.sh", script);
    let mapper = format!("sh {script}");
    let finished = stream(&sandbox, &["-mapper", &mapper, "-D", "mapred.map.tasks=1"]).expect_code(0);
    finished.expect_words(&[
        "\n\tG\n\t\tn=3\n",
        "Counters: ",
        "completed successfully",
        "Output directory: file:///",
    ]);
}

#[test]
fn command_that_fails_fails_its_job_with_its_last_words() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    let script = sandbox.write("job.sh", "cat > /dev/null; echo why >&2; echo indeed >&2; exit 3");
    let mapper = format!("sh {script}");
    let attempts = ["-D", "mapred.map.max.attempts=2"];
    let finished = stream(&sandbox, &[&["-mapper", &mapper], &attempts[..]].concat()).expect_code(1);
    let finished = finished.expect_words(&[
        "_m_000000_0, Status : FAILED\nPipeMapRed.waitOutputThreads(): subprocess failed with code 3",
        "_m_000000_1, Status : FAILED",
        "\nwhy\nindeed\n",
        "failed with state FAILED due to: ",
        "\nStreaming Command Failed!\n",
    ]);
    assert!(!finished.stderr.contains("_m_000000_2"), "a third attempt:\n{}", finished.stderr);
    assert!(!sandbox.path("out").exists());
    let tolerant = ["-D", "stream.non.zero.exit.is.failure=false", "-mapper", &mapper];
    stream(&sandbox, &tolerant).expect_code(0);
}

#[test]
fn command_that_is_killed_is_told_by_its_signal() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    let script = sandbox.write("job.sh", "kill -9 $$");
    let mapper = format!("sh {script}");
    stream(&sandbox, &["-mapper", &mapper, "-D", "mapred.map.max.attempts=1"])
        .expect_code(1)
        .expect_words(&["subprocess failed with code 137 (killed by signal 9, not by gristmill)"]);
}

#[test]
fn command_that_is_not_there_fails_the_job_at_once() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    let finished = stream(&sandbox, &["-mapper", "no-such-command x"]).expect_code(1);
    let finished = finished.expect_words(&["Cannot run program \"no-such-command\"", "error=2"]);
    assert_eq!(finished.stderr.matches("Status : FAILED").count(), 1, "{}", finished.stderr);
}

#[test]
fn command_that_stands_still_is_killed_with_all_that_it_started() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    let pid = sandbox.text("pid");
    let script = sandbox.write("job.sh", format!("sleep 1000 & echo $! > {pid}; wait"));
    let mapper = format!("sh {script}");
    let limits = ["-D", "mapreduce.task.timeout=300", "-D", "mapred.map.max.attempts=1"];
    stream(&sandbox, &[&["-mapper", &mapper], &limits[..]].concat())
        .expect_code(1)
        .expect_words(&["failed to report status for 0.3 seconds. Killing!"]);
    let pid: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    until("the end of what the command started", || process::is_zombie(pid).then_some(()));
}

#[test]
fn command_that_closes_its_input_early_fails_unless_it_may() {
    let sandbox = Sandbox::new();
    let lines: String = (0..200_000).map(|line| format!("{line}\n")).collect();
    sandbox.write("in", lines);
    let words = ["-mapper", "head -1", "-D", "mapred.map.max.attempts=1", "-D", "mapred.map.tasks=1"];
    stream(&sandbox, &words)
        .expect_code(1)
        .expect_words(&["Broken pipe", "`head -1` closed its standard input"]);
    let may = ["-D", "stream.minRecWrittenToEnableSkip_=0"];
    stream(&sandbox, &[&words[..], &may].concat()).expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"0\t\n");
}

#[test]
fn few_lines_may_be_left_unread() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "a\nb\n");
    stream(&sandbox, &["-mapper", "head -1", "-D", "mapred.map.tasks=1"]).expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"a\t\n");
}

#[test]
fn commands_that_keep_all_back_or_write_far_more_than_they_read_block_nobody() {
    let sandbox = Sandbox::new();
    let lines: String = (0..100_000).map(|line| format!("{line:06}\n")).collect();
    sandbox.write("in", &lines);
    // `tac` writes nothing before it has read all; the reducer writes each line many times.
    let script = sandbox.write("job.sh", "while read -r line; do :; done; yes yes | head -300000");
    let reducer = format!("sh {script}");
    stream(&sandbox, &["-mapper", "tac", "-reducer", &reducer]).expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")).len(), 300_000 * "yes\t\n".len());
}

#[test]
fn job_ends_though_a_command_left_something_behind_that_holds_its_pipes() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    let pid = sandbox.text("pid");
    let script = sandbox.write("job.sh", format!("cat; sleep 1000 & echo $! > {pid}"));
    let mapper = format!("sh {script}");
    stream(&sandbox, &["-mapper", &mapper, "-D", "mapred.map.tasks=1"]).expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"x\t\n");
    let pid: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    until("the end of what was left behind", || process::is_zombie(pid).then_some(()));
}

#[test]
fn commands_die_with_a_worker_that_is_killed_and_the_job_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    let (pid, go) = (sandbox.text("pid"), sandbox.text("go"));
    // The first attempt waits for ever, the next one finds the token removed.
    sandbox.write("go", "");
    let script = format!(
        "cat; if rm {go} 2> /dev/null; then echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000; fi"
    );
    let script = sandbox.write("job.sh", script);
    let mapper = format!("sh {script}");
    let flags =
        ["streaming", "--workers", "1", "--no-sync", "-input", "in", "-output", "out", "-mapper", &mapper];
    let running = sandbox.gristmill(flags).start();
    let waits: u32 = until("a command that waits", || fs::read_to_string(&pid).ok()).trim().parse().unwrap();
    process::kill(sandbox.pids_of("worker")[0]);
    until("the end of the command", || process::is_zombie(waits).then_some(()));
    running.finish().expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"x\t\n");
    sandbox.assert_nothing_left();
}

#[test]
fn interrupted_job_leaves_no_command() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    let pid = sandbox.text("pid");
    let script = sandbox.write("job.sh", format!("echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000"));
    let mapper = format!("sh {script}");
    let flags =
        ["streaming", "--workers", "1", "--no-sync", "-input", "in", "-output", "out", "-mapper", &mapper];
    let running = sandbox.gristmill(flags).start();
    let waits: u32 = until("a command that waits", || fs::read_to_string(&pid).ok()).trim().parse().unwrap();
    running.signal(rustix::process::Signal::INT);
    running.finish().expect_code(6).expect_words(&["Streaming Command Failed!"]);
    until("the end of the command", || process::is_zombie(waits).then_some(()));
    assert!(!sandbox.path("out").exists());
    sandbox.assert_nothing_left();
}
