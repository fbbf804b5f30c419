//! User code gets only what it is given, and all its processes end with it.

use super::stream;
use crate::support::data::tool;
use crate::support::sandbox::PROGRAM;
use crate::support::standing::{Standing, await_join_line};
use crate::support::{Sandbox, is_root, oracle, process};
use std::fs;
use std::path::Path;

/// One map whose output is the job's output.
const ONE_MAP: [&str; 4] = ["-numReduceTasks", "0", "-D", "mapred.map.tasks=1"];

#[test]
fn command_has_no_descriptor_of_others_a_session_of_its_own_and_no_way_to_new_rights() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    let facts =
        "cat > /dev/null; cd /proc/$$; ls fd; grep -c 'NoNewPrivs:.1' status; cut -d' ' -f6 stat; echo $$";
    let mapper = format!("sh -c '{}'", facts.replace('\'', "\""));
    // A descriptor that the program inherits, and passes to its worker.
    let script = "exec 9< /etc/passwd; exec \"$0\" \"$@\"";
    let job =
        ["streaming", "--workers", "1", "--no-sync", "-input", "in", "-output", "out", "-mapper", &mapper];
    let words = [&["-c", script, PROGRAM][..], &job, &ONE_MAP].concat();
    sandbox.program(Path::new("bash"), words).finish().expect_code(0);
    let out = String::from_utf8(oracle::whole(&sandbox.path("out"))).unwrap();
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    let [descriptors @ .., no_new_rights, session, pid] = &lines[..] else { panic!("{out}") };
    assert_eq!((descriptors, *no_new_rights), (&["0", "1", "2"][..], "1"));
    assert_eq!(session, pid);
}

#[test]
fn processes_that_leave_group_session_and_parent_end_with_their_task() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    let pids = sandbox.text("pids");
    // The second hides its origin.
    let script = format!(
        "cat; for how in 'setsid' 'env -i setsid'; do (exec $how sh -c 'echo $$ >> {pids}; exec sleep 1000' \
         < /dev/null > /dev/null 2>&1 &); done; until [ $(cat {pids} | wc -l) = 2 ]; do :; done"
    );
    let script = sandbox.write("job.sh", script);
    let mapper = format!("sh {script}");
    stream(&sandbox, &[&["-mapper", &mapper][..], &ONE_MAP].concat()).expect_code(0);
    let pids = fs::read_to_string(pids).unwrap();
    let pids: Vec<u32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 2);
    assert_eq!(pids.iter().filter(|pid| process::is_alive(**pid)).count(), 0, "they outlive their job");
}

#[test]
fn worker_that_is_process_1_reaps_what_its_tasks_leave_behind() {
    if !is_root("a worker that is process 1") || !tool("unshare", "a worker that is process 1") {
        return;
    }
    let sandbox = Sandbox::new();
    let master = sandbox.gristmill(["master", "--allow-commands", "--allow-root"]).start();
    let join = await_join_line(&master);
    let first = ["-pf", "--mount-proc", "--kill-child", PROGRAM, "worker", "--workers", "1", "--slots", "2"];
    let worker = sandbox.program(Path::new("unshare"), first).start();
    let standing = Standing::new(&sandbox, master, vec![worker], join);
    sandbox.write("in", "x\ny\nz\n");
    let script = sandbox.write("job.sh", "cat; setsid sh -c 'sleep 0.01' < /dev/null > /dev/null 2>&1 &");
    let (mapper, file) = (format!("sh {script}"), sandbox.text("state/join"));
    let job =
        ["streaming", "--join", &file, "--no-sync", "-input", "in", "-output", "out", "-mapper", &mapper];
    let words = [&job[..], &["-numReduceTasks", "0", "-D", "mapred.map.tasks=6"]].concat();
    sandbox.gristmill(words).finish().expect_code(0);
    let workers = sandbox.pids_of("worker");
    let stats = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let left = stats.filter(|stat| {
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        fields[0] == "Z" && workers.contains(&fields[1].parse().unwrap())
    });
    assert_eq!(left.count(), 0, "zombies of {workers:?}");
    standing.end();
}

#[test]
fn local_job_needs_no_home() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "b\na\n");
    let job =
        ["streaming", "--workers", "1", "--no-sync", "-output", "out", "-mapper", "cat", "-reducer", "cat"];
    let homeless = ["-u", "HOME", "-u", "XDG_DATA_HOME", PROGRAM];
    let words = [&homeless[..], &job, &["-input", "in"]].concat();
    sandbox.program(Path::new("env"), words).finish().expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"a\t\nb\t\n");
    let words = [&homeless[..], &job, &["-input", "hdfs:///in"]].concat();
    let refused = sandbox.program(Path::new("env"), words).finish().expect_code(3);
    refused.expect_words(&["HOME is not set", "GRISTMILL_HDFS_ROOT"]);
}

#[test]
fn failures_name_the_interpreter_that_is_missing_and_the_command_as_it_was_typed() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    let script = sandbox.write("job.sh", "#!/bin/sh\r\ncat\r\n");
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let job = [&["-file", &script, "-mapper", "./job.sh"][..], &ONE_MAP].concat();
    let finished = stream(&sandbox, &job).expect_code(1);
    finished.expect_words(&["job.sh", r"its interpreter `/bin/sh\r` does not exist", "carriage return"]);
    let finished = stream(&sandbox, &[&["-mapper", "cat | grep a"][..], &ONE_MAP].concat()).expect_code(1);
    finished.expect_words(&["subprocess failed with code 1: `cat | grep a`\n"]);
}

#[test]
fn property_that_would_change_the_result_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "a;b");
    let delimiter = ["-mapper", "cat", "-D", "textinputformat.record.delimiter=;"];
    let refused = stream(&sandbox, &delimiter).expect_code(3);
    refused
        .expect_words(&["textinputformat.record.delimiter=; would change the result", "convert the input"]);
    assert!(!sandbox.path("out").exists());
}
