//! A master whose state directory is on a small file system that fills up: it accepts nothing that it cannot
//! record.

use crate::support::data::{Random, tool};
use crate::support::sandbox::Running;
use crate::support::standing::{JoinLine, Standing};
use crate::support::{Sandbox, is_root, until};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// True if this machine can give a master a small disk.
fn possible() -> bool {
    let what = "a full disk of a master";
    is_root(what) && tool("unshare", what)
}

/// Returns the state directory as seen by a master that has a small disk mounted there.
fn state_of(sandbox: &Sandbox, master: &Running) -> PathBuf {
    PathBuf::from(format!("/proc/{}/root{}", master.pid(), sandbox.text("state")))
}

/// Starts a worker, and a master whose state directory is a file system of 8 MiB. Clients see the directory
/// below that file system, so the join line is copied there.
fn start(sandbox: &Sandbox) -> Standing<'_> {
    let state = sandbox.text("state");
    fs::create_dir(&state).unwrap();
    let mount = format!("mount -t tmpfs -o size=8m,mode=700 none '{state}'");
    let master = sandbox.prepared(&mount, &["master"]).start();
    until("a master that listens", || master.stderr().contains("its join line is in").then_some(()));
    let line = fs::read_to_string(state_of(sandbox, &master).join("join")).unwrap();
    let file = sandbox.write_private("state/join", &line);
    let worker = sandbox.gristmill(["worker", "--workers", "1", "--slots", "1", "--join", &file]).start();
    let standing = Standing::new(sandbox, master, vec![worker], JoinLine::read(&line));
    standing.await_workers(1);
    standing
}

fn submit(sandbox: &Sandbox, input: &str, output: &str) -> Running {
    let output = sandbox.text(output);
    // The record of this many splits does not fit into the rest of the file's last page.
    let flags = ["--detach", "--split-size", "1KiB", "--reduces", "1", "--output", &output];
    let arguments = [&["submit", "wordcount", input], &flags[..]].concat();
    sandbox.gristmill(arguments).start()
}

/// Fills a disk to its last byte by a file on it.
fn fill(filler: &Path) {
    let mut file = File::create(filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    while file.write_all(&[0]).is_ok() {}
}

#[test]
fn master_whose_disk_is_full_acknowledges_and_orders_nothing_says_so_and_goes_on_with_room() {
    if !possible() {
        return;
    }
    let sandbox = Sandbox::new();
    let standing = start(&sandbox);
    let input = sandbox.write("text", Random::seeded(161).text(100_000, &[" ", "\n"]));
    submit(&sandbox, &input, "before").finish().expect_code(0);
    sandbox.gristmill(["wait", "job-1", "--quiet"]).finish().expect_code(0);
    let filler = state_of(&sandbox, &standing.master).join("filler");
    fill(&filler);
    sandbox.arm("map");
    // The first request detects that there is no space.
    let first = submit(&sandbox, &input, "first");
    let says_so = || {
        let said = sandbox.gristmill(["status"]).finish().expect_code(0).stdout_text();
        said.contains("launches no tasks for now") && said.contains("No space left on device")
    };
    until("a master that says that it has no room", || says_so().then_some(()));
    let refused = submit(&sandbox, &input, "second").finish().expect_code(3);
    refused.expect_words(&["takes no jobs for now", "No space left on device"]);
    assert!(!first.has_ended(), "a job was acknowledged that is not written down");
    assert!(sandbox.path("faults/map").exists(), "a map was ordered that is not written down");
    fs::remove_file(&filler).unwrap();
    let job = first.finish().expect_code(0).stdout_text();
    sandbox.stopped_at("map");
    sandbox.go_on("map");
    sandbox.gristmill(["wait", job.trim(), "--quiet"]).finish().expect_code(0);
    assert!(!says_so());
    fs::remove_file(sandbox.path("state/join")).unwrap();
    standing.end();
}

#[test]
fn master_whose_disk_is_full_at_its_start_ends_with_the_code_of_lacking_room() {
    if !possible() {
        return;
    }
    let sandbox = Sandbox::new();
    let state = sandbox.text("state");
    fs::create_dir(&state).unwrap();
    let mount = format!(
        "mount -t tmpfs -o size=64k,mode=700 none '{state}' && dd if=/dev/zero of='{state}/x' bs=4k || true"
    );
    let refused = sandbox.prepared(&mount, &["master"]).finish();
    refused.expect_code(7).expect_words(&["No space left on device", "free some space"]);
}
