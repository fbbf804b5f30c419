//! Full disks: a small file system in memory stands in for one, visible to one run only.
//!
//! Deliberately not here: disks that return errors or stand still.

use crate::support::data::{Random, tool};
use crate::support::{Finished, Sandbox, is_root};
use std::path::Path;

/// Runs the program with the folder `disk` on a file system of 2 MiB; what is left on it is listed on stdout.
fn with_small_disk(sandbox: &Sandbox, arguments: &[&str]) -> Finished {
    std::fs::create_dir_all(sandbox.path("disk")).unwrap();
    let script = "mount -t tmpfs -o size=2m none disk && \"$@\"; code=$?; find disk -mindepth 1; exit $code";
    let program = env!("CARGO_BIN_EXE_gristmill");
    let all = ["-m", "sh", "-c", script, "sh", program].into_iter().chain(arguments.iter().copied());
    let finished = sandbox.program(Path::new("unshare"), all).finish();
    sandbox.assert_nothing_left();
    finished
}

fn possible(what: &str) -> bool {
    is_root(what) && tool("unshare", what)
}

fn records(sandbox: &Sandbox, size: &str) -> String {
    let path = sandbox.text("records");
    sandbox.run_well(["gen", "records", &path, "--size", size]);
    path
}

#[test]
fn output_disk_that_is_full_ends_the_job_with_code_7_and_leaves_nothing_on_it() {
    if !possible("a full output disk") {
        return;
    }
    let sandbox = Sandbox::new();
    let input = records(&sandbox, "8MiB");
    let finished = with_small_disk(&sandbox, &["run", "sort", &input, "--output", "disk/out"]).expect_code(7);
    assert_eq!(finished.stdout_text(), "", "something was left on the disk");
    finished.expect_words(&["could not write", "disk/out", "No space left on device", "hint: "]);
}

#[test]
fn spill_disk_that_is_full_everywhere_ends_the_job_with_code_7_and_leaves_nothing() {
    if !possible("a full spill disk") {
        return;
    }
    let sandbox = Sandbox::new();
    let input = records(&sandbox, "40MiB");
    let out = sandbox.text("out");
    let arguments = [
        "run",
        "sort",
        "-r",
        &input,
        "--output",
        &out,
        "--memory",
        "16MiB",
        "--workers",
        "2",
        "--spill-dir",
        "disk",
        "--disk-reserve",
        "0",
    ];
    let finished = with_small_disk(&sandbox, &arguments).expect_code(7);
    assert_eq!(finished.stdout_text(), "", "something was left on the disk");
    assert!(!Path::new(&out).exists(), "the output of a failed job was left");
    finished.expect_words(&["could not write to", "No space left on device"]);
}

#[test]
fn spills_leave_the_disk_reserve_alone_and_say_so() {
    let sandbox = Sandbox::new();
    let input = records(&sandbox, "20MiB");
    let out = sandbox.text("out");
    let arguments =
        ["run", "sort", "-r", &input, "--output", &out, "--memory", "16MiB", "--disk-reserve", "1000000GiB"];
    sandbox.run(arguments).expect_code(7).expect_words(&["are to stay free", "--disk-reserve"]);
    assert!(!Path::new(&out).exists(), "the output of a failed job was left");
    sandbox.assert_nothing_left();
}

/// The parts of a job on two workers of two slots with this memory, and the bytes and number of its spills.
fn run_with(sandbox: &Sandbox, job: &[&str], memory: &str) -> (Vec<Vec<u8>>, u64, u64) {
    let out = sandbox.text(&format!("{}-{memory}", job[0]));
    let cluster =
        ["--workers", "2", "--slots", "2", "--reduces", "3", "--split-size", "4MiB", "--memory", memory];
    let status = sandbox.run_well([&["run"], job, &cluster, &["--output", &out, "--json"]].concat()).json();
    let total = |name: &str| status["status"]["totals"][name].as_u64().unwrap();
    (crate::support::oracle::parts(Path::new(&out)), total("spilled_bytes"), total("spills"))
}

#[test]
fn small_memory_spills_to_disk_and_changes_no_byte() {
    let sandbox = Sandbox::new();
    let mut random = Random::seeded(61);
    // Words of which nearly all are different, so that combining does not help.
    let mut words = String::new();
    while words.len() < 12 << 20 {
        words.push_str(&format!("w{:09x} ", random.below(1 << 36)));
    }
    let words = sandbox.write("words", words);
    let table = |name: &str, random: &mut Random| {
        let row = |number: usize| format!("{},{name} {number} {:060}\n", random.below(50_000), number);
        let rows: String = (0..70_000).map(row).collect();
        sandbox.write(name, rows)
    };
    let (left, right) = (table("left", &mut random), table("right", &mut random));
    let records = records(&sandbox, "16MiB");
    // The reverse order is made of copies; a sort in order leaves its records in the input instead of spilling.
    let jobs: [&[&str]; 3] = [
        &["wordcount", &words],
        &["sort", "-r", &records],
        &["join", "--left", &left, "--right", &right, "--on", "1", "--strategy", "repartition"],
    ];
    for job in jobs {
        let (plenty, none, _) = run_with(&sandbox, job, "1GiB");
        let (little, spilled, spills) = run_with(&sandbox, job, "16MiB");
        assert_eq!(none, 0, "a gibibyte was too little for {}", job[0]);
        // Spilled blocks are compressed; three or four maps of each job spill more than once.
        assert!(1 << 20 <= spilled && 6 <= spills, "{}: {spills} spills of {spilled} bytes", job[0]);
        assert!(plenty == little, "spilling changed the output of {}", job[0]);
    }
}
