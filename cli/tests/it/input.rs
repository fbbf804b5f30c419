//! Input that cannot be used: refused by name, before a task starts if that can be known by then.

use crate::support::data::{Random, tool};
use crate::support::oracle::{self, counts_of_parts, word_counts};
use crate::support::{Sandbox, say_skipped};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// Number of files in the test with many tiny ones. It is a fifth of what a release build must handle, since
/// a debug build takes several times as long to list and pack them.
const TINY_FILES: usize = 20_000;

/// Runs a job over the input. It must end with exit code 4, name all of `words`, start no task if it is
/// `early`, and leave no output.
fn refused(sandbox: &Sandbox, arguments: &[&str], early: bool, words: &[&str]) {
    let out = sandbox.text("out");
    let finished = sandbox.run(["run"].iter().chain(arguments).chain(&["--output", &out])).expect_code(4);
    let finished = finished.expect_words(words).expect_words(&["error: "]);
    assert_eq!(!finished.stderr.contains("launched"), early, "{}", finished.stderr);
    assert!(!sandbox.path("out").exists(), "the failed job left its output directory");
}

pub fn fifo(path: &Path) {
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
}

#[test]
fn missing_input_is_refused_by_name() {
    let sandbox = Sandbox::new();
    let there = sandbox.write("there", "x\n");
    let (one, two) = (sandbox.text("not-there"), sandbox.text("nor-there"));
    refused(&sandbox, &["wordcount", &there, &one, &two], true, &[&one, &two, "does not exist"]);
    symlink("nowhere", sandbox.path("dangling")).unwrap();
    refused(&sandbox, &["wordcount", &sandbox.text("dangling")], true, &["dangling"]);
}

#[test]
fn unreadable_input_is_refused_by_name() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("closed", "x\n");
    fs::set_permissions(&input, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&input).is_ok() {
        return say_skipped("unreadable input", "this user may read everything");
    }
    refused(&sandbox, &["wordcount", &input], false, &[&input]);
}

#[test]
fn directory_inside_a_directory_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("in/file", "x\n");
    sandbox.write("in/directory/file", "y\n");
    refused(&sandbox, &["wordcount", &sandbox.text("in")], true, &["in/directory", "is a directory"]);
}

#[test]
fn files_of_size_0_that_have_content_are_refused() {
    let sandbox = Sandbox::new();
    for input in ["/proc/meminfo", "worker-1:/proc/meminfo"] {
        refused(&sandbox, &["wordcount", input], true, &[input, "its size is 0 but has content"]);
    }
}

#[test]
fn pipes_are_refused_and_never_waited_for() {
    let sandbox = Sandbox::new();
    fifo(&sandbox.path("pipe"));
    refused(&sandbox, &["wordcount", &sandbox.text("pipe")], true, &["pipe is a pipe"]);
    sandbox.write("in/file", "x\n");
    fifo(&sandbox.path("in/pipe"));
    refused(&sandbox, &["wordcount", &sandbox.text("in")], true, &["in/pipe is a pipe"]);
}

/// Keeps the size, so that no process that has mapped it gets a fault.
fn overwrite(file: &fs::File) {
    let mut file = file;
    file.write_all(b"changed").unwrap();
}

/// A process that has mapped it finds no data there.
fn cut_short(file: &fs::File) {
    file.set_len(10).unwrap();
}

/// A sort of one map whose input changes while a worker is stopped at `place`, after that map.
fn refused_when_changed_at(place: &str, flags: &[&str], change: fn(&fs::File)) {
    let sandbox = Sandbox::new();
    // Long lines, which a sort leaves in their file.
    let words = Random::seeded(84).text(200_000, &[" "]);
    let lines: Vec<&[u8]> = words.chunks(1000).collect();
    let input = sandbox.write("text", lines.join(&b'\n'));
    let out = sandbox.text("out");
    sandbox.arm(place);
    let job = ["run", "sort", &input, "--workers", "1", "--reduces", "1", "--output", &out];
    let running = sandbox.gristmill([&job[..], flags].concat()).start();
    sandbox.stopped_at(place);
    change(&fs::OpenOptions::new().write(true).open(&input).unwrap());
    sandbox.go_on(place);
    let finished = running.finish().expect_code(4).expect_words(&[&input, "input changed during the job"]);
    sandbox.assert_nothing_left();
    let failures = finished.stderr.matches(" failed (").count();
    assert_eq!(failures, 1, "attempts that failed:\n{}", finished.stderr);
    assert!(!sandbox.path("out").exists(), "the failed job left its output directory");
}

#[test]
fn input_that_changes_behind_its_map_is_refused_when_pairs_are_read_in_place() {
    refused_when_changed_at("reduce", &[], overwrite);
}

#[test]
fn input_that_changes_behind_its_map_is_refused_when_pairs_are_served() {
    refused_when_changed_at("fetch", &["--shuffle", "http"], overwrite);
}

#[test]
fn input_that_is_cut_short_behind_its_map_is_refused_when_pairs_are_read_in_place() {
    refused_when_changed_at("reduce", &[], cut_short);
}

#[test]
fn input_that_is_cut_short_behind_its_map_is_refused_when_pairs_are_served() {
    refused_when_changed_at("fetch", &["--shuffle", "http"], cut_short);
}

#[test]
fn damaged_compressed_input_is_refused_by_name() {
    let sandbox = Sandbox::new();
    let plain = sandbox.write("plain", Random::seeded(81).text(20_000, &[" ", "\n"]));
    let packed = oracle::shell(r#"gzip -c "$1""#, &[&plain]);
    let cut = sandbox.write("cut.gz", &packed[..packed.len() / 2]);
    refused(&sandbox, &["wordcount", &cut], false, &[&cut, "cannot be decompressed"]);
    let mut flipped = packed.clone();
    flipped[packed.len() / 2] ^= 0x55;
    let flipped = sandbox.write("flipped.gz", flipped);
    refused(&sandbox, &["wordcount", &flipped], false, &[&flipped, "cannot be decompressed"]);
    for name in ["nonsense.zst", "nonsense.bz2"] {
        let nonsense = sandbox.write(name, "this was never compressed\n");
        refused(&sandbox, &["wordcount", &nonsense], false, &[&nonsense, "cannot be decompressed"]);
    }
    if tool("bzip2", "damaged compressed input") {
        let packed = oracle::shell(r#"bzip2 -c "$1""#, &[&plain]);
        let cut = sandbox.write("cut.bz2", &packed[..packed.len() / 2]);
        refused(&sandbox, &["wordcount", &cut], false, &[&cut, "cannot be decompressed"]);
    }
}

#[test]
fn record_over_the_limit_is_refused_with_its_place_and_the_flag() {
    let sandbox = Sandbox::new();
    let mut text = b"short\n".to_vec();
    text.extend(std::iter::repeat_n(b'x', 5_000));
    text.extend(b"\nshort again\n");
    let input = sandbox.write("text", &text);
    let place = format!("byte 6 of {input}");
    let words = [place.as_str(), "4096 bytes", "--max-record"];
    for job in ["sort", "wordcount"] {
        refused(&sandbox, &[job, &input, "--max-record", "4KiB"], false, &words);
    }
    let printed = sandbox.run_well(["run", "sort", &input, "--max-record", "8KiB"]).stdout;
    assert_eq!(printed.len(), text.len());
}

#[test]
fn file_that_holds_no_whole_number_of_records_is_refused() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("records", [7; 250]);
    let words = [input.as_str(), "250 bytes", "100"];
    refused(&sandbox, &["sort", &input, "--record-length", "100"], true, &words);
}

#[test]
fn input_that_changes_under_a_job_is_told() {
    let sandbox = Sandbox::new();
    let text = Random::seeded(82).text(60_000, &[" ", "\n"]);
    let input = sandbox.write("text", &text);
    sandbox.arm("map");
    let out = sandbox.text("out");
    let arguments = ["run", "sort", &input, "--workers", "1", "--split-size", "5KiB", "--output", &out];
    let running = sandbox.gristmill(arguments).start();
    sandbox.stopped_at("map");
    fs::write(&input, &text[..50_000]).unwrap();
    sandbox.go_on("map");
    running.finish().expect_code(4).expect_words(&["input changed during the job", &input]);
    sandbox.assert_nothing_left();
    assert!(!sandbox.path("out").exists());
}

#[test]
fn thousands_of_tiny_files_are_packed_into_few_tasks() {
    let sandbox = Sandbox::new();
    let directory = sandbox.path("in");
    fs::create_dir(&directory).unwrap();
    let mut all = Vec::new();
    for number in 0..TINY_FILES {
        let line = format!("file{} word\n", number % 50);
        fs::write(directory.join(format!("{number:06}")), &line).unwrap();
        all.extend_from_slice(line.as_bytes());
    }
    let out = sandbox.text("out");
    let finished = sandbox.run_well(["run", "wordcount", &sandbox.text("in"), "--json", "--output", &out]);
    assert!(counts_of_parts(&oracle::parts(&sandbox.path("out"))) == word_counts(&all));
    let maps = finished.json()["status"]["maps"]["total"].as_u64().unwrap();
    assert!(maps <= 40, "{maps} tasks for {TINY_FILES} files");
}
