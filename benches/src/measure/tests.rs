//! Measured runs of small shell commands.

use super::*;
use std::sync::Mutex;

/// Every child of this process counts, so only one measurement may run at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn run(script: &str, timeout: Duration) -> (MeasuredRun, String) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let (stdout, stderr) = (directory.path().join("stdout"), directory.path().join("stderr"));
    let arguments = ["sh", "-c", script].map(str::to_owned);
    let request = Request {
        arguments: &arguments,
        environment: &[("WHO".to_owned(), "miller".to_owned())],
        timeout,
        spill_directories: &[],
        stdout: &stdout,
        stderr: &stderr,
    };
    let measured = measure(&request).unwrap();
    assert_eq!(descendants(std::process::id() as i32), Vec::<i32>::new(), "something was left behind");
    (measured, std::fs::read_to_string(stdout).unwrap())
}

const AMPLE: Duration = Duration::from_secs(60);

#[test]
fn measure_reports_exit_code_and_output() {
    let (measured, stdout) = run("echo $WHO; exit 3", AMPLE);
    assert_eq!(measured.ended, CommandEnd::Exited(3));
    assert_eq!(stdout, "miller\n");
}

#[test]
fn measure_reports_the_signal_that_killed() {
    let (measured, _) = run("kill -9 $$", AMPLE);
    assert_eq!(measured.ended, CommandEnd::Killed(9));
}

#[test]
fn measure_counts_processor_time_of_a_daemon_that_the_command_left_behind() {
    // The outer shell ends at once. The inner one continues, and is then a child of this process.
    let busy = "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done) &";
    let (measured, _) = run(busy, AMPLE);
    assert_eq!(measured.ended, CommandEnd::Exited(0));
    assert!(measured.user_s + measured.system_s > measured.wall_s, "{measured:?}");
}

#[test]
fn measure_kills_all_processes_when_the_command_takes_too_long() {
    let (measured, _) = run("sleep 1000 & sleep 1000", Duration::from_millis(50));
    assert_eq!(measured.ended, CommandEnd::TimedOut);
    assert!(measured.wall_s < 100.0);
}

#[test]
fn measure_sums_memory_over_processes() {
    let (measured, _) = run("sleep 0.2 & sleep 0.2; wait", AMPLE);
    assert!(measured.peak_private_bytes > 0, "{measured:?}");
    assert!(measured.peak_resident_bytes >= measured.peak_private_bytes);
}
