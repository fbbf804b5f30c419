//! `mapred job` and `yarn application`: jobs as other processes see them, and end them.

use super::hadoop::{call, install, well};
use crate::support::sandbox::Running;
use crate::support::{Sandbox, until};
use std::fs;

/// Returns the first recorded job, as `STAMP_0001`.
fn number(sandbox: &Sandbox) -> Option<String> {
    let folder = sandbox.path("hdfs/tmp/hadoop-yarn/staging/me/.staging");
    let mut entries = fs::read_dir(folder).ok()?.flatten();
    let entry = entries.find(|entry| entry.path().join("job.json").exists())?;
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
fn job_that_runs_is_listed_and_ended_by_its_number() {
    let sandbox = Sandbox::new();
    let (running, number) = waiting_job(&sandbox);
    let (job, application) = (format!("job_{number}"), format!("application_{number}"));
    let run = |name: &str, words: &[&str]| call(&sandbox, name, words).finish().expect_code(0).stdout_text();
    let listed = run("mapred", &["job", "-list"]);
    assert!(
        listed.starts_with("Total jobs:1\n") && listed.contains(&job) && listed.contains("waits"),
        "{listed}"
    );
    let status = run("hadoop", &["job", "-status", &job]);
    assert!(status.contains("\nJob state: RUNNING\n") && status.contains("map() completion: "), "{status}");
    let listed = run("yarn", &["application", "-list"]);
    assert!(listed.contains(&application) && listed.contains("RUNNING"), "{listed}");
    assert_eq!(run("mapred", &["job", "-kill", &job]), format!("Killed job {job}\n"));
    let finished = running.finish().expect_code(1);
    finished.expect_words(&["failed with state KILLED due to: ", "Streaming Command Failed!"]);
    assert!(!sandbox.path("hdfs/user/me/out").exists());
    let finished = call(&sandbox, "mapred", &["job", "-kill", &job]).finish().expect_code(255);
    assert_eq!(finished.stdout_text(), format!("Could not kill job {job}, as it has already ended\n"));
    assert!(run("mapred", &["job", "-list"]).starts_with("Total jobs:0\n"));
    assert!(run("mapred", &["job", "-list", "all"]).contains("KILLED"));
    assert!(run("yarn", &["application", "-status", &application]).contains("\tFinal-State : KILLED\n"));
    sandbox.assert_nothing_left();
}

#[test]
fn application_is_ended_as_its_job_is() {
    let sandbox = Sandbox::new();
    let (running, number) = waiting_job(&sandbox);
    let application = format!("application_{number}");
    let killed = call(&sandbox, "yarn", &["application", "-kill", &application]).finish().expect_code(0);
    assert_eq!(killed.stdout_text(), format!("Killed application {application}\n"));
    running.finish().expect_code(1);
    sandbox.assert_nothing_left();
}

#[test]
fn job_whose_program_was_killed_is_one_that_failed() {
    let sandbox = Sandbox::new();
    let (mut running, number) = waiting_job(&sandbox);
    running.kill();
    until("its cluster to end", || sandbox.processes().is_empty().then_some(()));
    let status = call(&sandbox, "mapred", &["job", "-status", &format!("job_{number}")]);
    let status = status.finish().expect_code(0).stdout_text();
    assert!(
        status.contains("Job state: FAILED\n") && status.contains("the program that followed it was killed"),
        "{status}"
    );
    // A killed program leaves its temporary directory to the next one to clean up.
    sandbox.clear();
}

#[test]
fn job_that_has_ended_keeps_its_counters() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/user/me/in", "x\ny\n");
    let jar = install(&sandbox);
    let script = sandbox.write("job.sh", "cat; echo reporter:counter:G,n,5 >&2");
    let mapper = format!("sh {script}");
    let job = ["jar", &jar, "-D", "mapred.map.tasks=1", "-input", "in", "-output", "out", "-mapper", &mapper];
    call(&sandbox, "hadoop", &job).finish().expect_code(0);
    let job = format!("job_{}", number(&sandbox).unwrap());
    let status = well(&sandbox, &["job", "-status", &job]);
    let words = ["Job state: SUCCEEDED\n", "\tG\n\t\tn=5\n", "\t\tMap input records=2\n"];
    assert!(words.iter().all(|words| status.contains(words)), "{status}");
    let missing = call(&sandbox, "mapred", &["job", "-status", "job_1_0001"]).finish().expect_code(255);
    assert_eq!(missing.stdout_text(), "Could not find job job_1_0001\n");
    let finished = call(&sandbox, "mapred", &["job", "-history", "x"]).finish().expect_code(255);
    finished.expect_words(&["Usage: job -list [all]"]);
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
