//! `mapred job -kill` and `yarn application -kill`, and the logs that drivers read.

use super::hadoop::{call, install, well};
use crate::support::sandbox::Running;
use crate::support::{Sandbox, until};
use std::fs;

/// Returns the first recorded job, as `STAMP_0001`.
fn number(sandbox: &Sandbox) -> Option<String> {
    let directory = sandbox.path("hdfs/tmp/hadoop-yarn/staging/me/.staging");
    let mut entries = fs::read_dir(directory).ok()?.flatten();
    let entry = entries.find(|entry| entry.path().join("process").exists())?;
    entry.file_name().to_string_lossy().strip_prefix("job_").map(str::to_owned)
}

/// A job whose mapper waits until it is killed.
fn waiting_job(sandbox: &Sandbox) -> (Running, String) {
    sandbox.write("hdfs/user/me/in", "x\n");
    let jar = install(sandbox);
    let job = [
        "jar",
        &jar,
        "-D",
        "mapreduce.job.name=waits",
        "-input",
        "in",
        "-output",
        "out",
        "-mapper",
        "sleep 1000",
    ];
    let running = call(sandbox, "hadoop", &job).start();
    let number = until("a job that runs", || number(sandbox));
    (running, number)
}

#[test]
fn job_is_ended_by_its_number() {
    let sandbox = Sandbox::new();
    let (running, number) = waiting_job(&sandbox);
    let job = format!("job_{number}");
    let kill = |name: &str, code| {
        call(&sandbox, "mapred", &["job", "-kill", name]).finish().expect_code(code).stdout_text()
    };
    assert_eq!(kill(&job, 0), format!("Killed job {job}\n"));
    running.finish().expect_code(6).expect_words(&["Streaming Command Failed!"]);
    assert!(!sandbox.path("hdfs/user/me/out").exists());
    assert_eq!(kill(&job, 255), format!("Could not kill job {job}, as it has already ended\n"));
    assert_eq!(kill("job_1_0001", 255), "Could not find job job_1_0001\n");
    let finished = call(&sandbox, "mapred", &["job", "-list"]).finish().expect_code(255);
    finished.expect_words(&["Usage: job -kill NAME; other commands are not supported"]);
    sandbox.assert_nothing_left();
}

#[test]
fn application_is_ended_as_its_job_is() {
    let sandbox = Sandbox::new();
    let (running, number) = waiting_job(&sandbox);
    let application = format!("application_{number}");
    let killed = call(&sandbox, "yarn", &["application", "-kill", &application]).finish().expect_code(0);
    assert_eq!(killed.stdout_text(), format!("Killed application {application}\n"));
    running.finish().expect_code(6);
    sandbox.assert_nothing_left();
}

#[test]
fn last_words_of_attempts_lie_where_drivers_look() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/user/me/in", "x\n");
    let jar = install(&sandbox);
    let script = sandbox.write("job.sh", "cat; echo Traceback >&2; echo '  why' >&2; exit 3");
    let mapper = format!("sh {script}");
    let once = ["-D", "mapred.map.tasks=1", "-D", "mapred.map.max.attempts=1"];
    let job = ["-input", "in", "-output", "out", "-mapper", &mapper];
    call(&sandbox, "hadoop", &[&["jar", &jar], &once[..], &job].concat()).finish().expect_code(1);
    let number = number(&sandbox).unwrap();
    let attempt = format!("attempt_{number}_m_000000_0");
    let logs = format!("hdfs:///tmp/hadoop-yarn/staging/userlogs/application_{number}/{attempt}");
    assert_eq!(well(&sandbox, &["fs", "-cat", &format!("{logs}/stderr")]), "Traceback\n  why\n");
    let syslog = well(&sandbox, &["fs", "-cat", &format!("{logs}/syslog")]);
    let split = "MapTask: Processing split: hdfs:///user/me/in:0+2\n";
    assert!(syslog.contains(split) && syslog.contains("subprocess failed with code 3"), "{syslog}");
}
