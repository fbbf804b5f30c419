//! Full disks: a small file system in memory, visible to one run only. Disks that lose written data.
//!
//! Disks that return errors or hang are not tested here.

use crate::support::data::{Random, tool};
use crate::support::standing::{Standing, await_join_line};
use crate::support::{Finished, Sandbox, is_root, oracle};
use std::path::{Path, PathBuf};

/// Runs the program with the directory `disk` on a file system of 2 MiB, and lists on stdout what is left on
/// it.
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

#[test]
fn worker_whose_temporary_files_were_cleared_away_makes_its_directories_again() {
    let sandbox = Sandbox::new();
    let input = records(&sandbox, "40MiB");
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    let worker = ["worker", "--workers", "1", "--slots", "1", "--memory", "32MiB"];
    let standing = Standing::new(&sandbox, master, vec![sandbox.gristmill(worker).start()], join);
    let sorted = |name: &str| {
        let out = sandbox.text(name);
        sandbox
            .gristmill(["submit", "sort", "-r", &input, "--output", &out, "--quiet"])
            .finish()
            .expect_code(0);
        oracle::whole(Path::new(&out))
    };
    let before = sorted("before");
    for entry in std::fs::read_dir(sandbox.path("tmp")).unwrap().flatten() {
        std::fs::remove_dir_all(entry.path()).unwrap();
    }
    assert!(sorted("after") == before, "another output");
    standing.end();
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
    // Nearly all words are different, so that combining does not help.
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
    // The reverse order is made of copies; a sort in order leaves its records in the input instead of
    // spilling.
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

/// Returns the files below a directory.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Runs a sort on one worker. `spoil` corrupts its first map output between the maps and the reduce; the job
/// must succeed.
fn goes_well_when_spilled_output_is(spoil: fn(&Path)) {
    let sandbox = Sandbox::new();
    let input = records(&sandbox, "40MiB");
    let (out, undisturbed, spill) = (sandbox.text("out"), sandbox.text("undisturbed"), sandbox.path("spill"));
    std::fs::create_dir(&spill).unwrap();
    sandbox.run_well(["run", "sort", "-r", &input, "--output", &undisturbed, "--workers", "1"]);
    sandbox.arm("reduce");
    let mut job = vec!["run", "sort", "-r", &input, "--output", &out, "--workers", "1", "--reduces", "1"];
    job.extend(["--memory", "16MiB", "--spill-dir", spill.to_str().unwrap()]);
    let running = sandbox.gristmill(&job).start();
    sandbox.stopped_at("reduce");
    let mut spilled = files_below(&spill);
    spilled.retain(|path| path.to_string_lossy().contains("-task-"));
    spilled.sort();
    spoil(spilled.first().expect("nothing was spilled"));
    sandbox.go_on("reduce");
    let finished = running.finish().expect_code(0).expect_words(&["is damaged on this worker", "succeeded"]);
    sandbox.assert_nothing_left();
    let failures = finished.stderr.matches(" failed (").count();
    assert_eq!(failures, 1, "attempts that failed:\n{}", finished.stderr);
    let all = |directory: &str| oracle::parts(&sandbox.path(directory)).concat();
    assert!(all("out") == all("undisturbed"), "the output differs");
}

#[test]
fn a_flipped_bit_in_a_map_output_on_disk_costs_that_map_and_no_more() {
    goes_well_when_spilled_output_is(|path| {
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).unwrap();
    });
}

#[test]
fn a_map_output_that_is_cut_to_nothing_on_disk_costs_that_map_and_no_more() {
    goes_well_when_spilled_output_is(|path| {
        std::fs::File::options().write(true).open(path).unwrap().set_len(0).unwrap();
    });
}
