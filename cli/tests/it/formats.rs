//! Forms of input files: compressed, with other line ends, without a last line end, empty, binary.

use crate::support::data::{Random, tool};
use crate::support::oracle::{self, counts_of_parts, word_counts};
use crate::support::{Sandbox, is_root};
use std::fs;

/// Sorts the input; returns the parts of the output, concatenated.
fn sorted(sandbox: &Sandbox, input: &str, flags: &[&str]) -> Vec<u8> {
    let arguments = ["run", "sort", input, "--quiet", "--split-size", "1KiB", "--reduces", "2"];
    sandbox.run_well(arguments.iter().chain(flags)).stdout
}

fn sorted_lines(text: &[u8]) -> Vec<u8> {
    let mut lines = oracle::lines(text);
    lines.sort_unstable();
    lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect()
}

#[test]
fn compressed_files_are_read_whole() {
    for (tool_name, name) in [("gzip", "text.gz"), ("bzip2", "text.bz2"), ("zstd", "text.zst")] {
        if !tool(tool_name, "compressed input") {
            continue;
        }
        let sandbox = Sandbox::new();
        let text = Random::seeded(71).text(50_000, &[" ", "\n"]);
        let (head, tail) = text.split_at(20_000);
        // Two concatenated members, as `cat` makes them: the second must not be lost.
        let (one, two) = (sandbox.write("one", head), sandbox.write("two", tail));
        let packed = oracle::shell(r#"$1 -c "$2"; $1 -c "$3""#, &[tool_name, &one, &two]);
        let input = sandbox.write(&format!("in/{name}"), packed);
        assert!(sorted(&sandbox, &input, &[]) == sorted_lines(&text), "{name}");
    }
}

#[test]
fn bytes_after_the_data_of_a_gzip_file_are_refused() {
    if !tool("gzip", "compressed input") {
        return;
    }
    let sandbox = Sandbox::new();
    let plain = sandbox.write("plain", "b\na\n");
    let packed = oracle::shell(r#"gzip -c "$1""#, &[&plain]);
    let input = sandbox.write("text.gz", [&packed[..], b"a signature"].concat());
    sandbox.run(["run", "grep", "", &input]).expect_code(4).expect_words(&[&input, "cannot be decompressed"]);
}

#[test]
fn compressed_and_plain_files_mix_in_one_directory() {
    if !tool("gzip", "compressed input") {
        return;
    }
    let sandbox = Sandbox::new();
    let plain = sandbox.write("plain", "b\na\n");
    sandbox.write("in/1.gz", oracle::shell(r#"gzip -c "$1""#, &[&plain]));
    sandbox.write("in/2", "d\nc\n");
    let printed = sandbox.run_well(["run", "grep", "", &sandbox.text("in")]).stdout_text();
    assert_eq!(printed, "b\na\nd\nc\n", "files in the order of their names");
}

#[test]
fn line_without_a_line_end_at_the_end_of_a_file_is_a_line() {
    let sandbox = Sandbox::new();
    sandbox.write("in/1", "b\nlast of the first");
    sandbox.write("in/2", "a");
    let printed = sandbox.run_well(["run", "grep", "", &sandbox.text("in")]).stdout_text();
    assert_eq!(printed, "b\nlast of the first\na\n");
    assert_eq!(sorted(&sandbox, &sandbox.text("in"), &[]), b"a\nb\nlast of the first\n");
}

#[test]
fn carriage_returns_belong_to_lines_and_separate_words() {
    let sandbox = Sandbox::new();
    let text = b"b c\r\na\r\n\r\nlone\rreturn\r\n";
    let input = sandbox.write("text", text);
    assert_eq!(sorted(&sandbox, &input, &[]), sorted_lines(text));
    let finished = sandbox.run_well(["run", "wordcount", &input, "--reduces", "1"]);
    assert_eq!(counts_of_parts(&[finished.stdout]), word_counts(text));
}

#[test]
fn empty_files_give_empty_parts() {
    let sandbox = Sandbox::new();
    for name in ["in/1", "in/2"] {
        sandbox.write(name, "");
    }
    fs::create_dir(sandbox.path("nothing")).unwrap();
    for (number, input) in
        [sandbox.text("in"), sandbox.text("in/1"), sandbox.text("nothing")].iter().enumerate()
    {
        for job in ["wordcount", "sort"] {
            let out = sandbox.path(&format!("{job}-{number}"));
            sandbox.run_well(["run", job, input, "--reduces", "3", "--output", out.to_str().unwrap()]);
            assert_eq!(oracle::parts(&out), [b"", b"", b""], "{job} of {input}");
            assert_eq!(oracle::success(&out)["records"], 0);
        }
        let out = sandbox.path(&format!("grep-{number}"));
        sandbox.run_well(["run", "grep", "x", input, "--output", out.to_str().unwrap()]);
        assert_eq!(oracle::whole(&out), b"");
    }
}

#[test]
fn empty_files_between_others_change_nothing() {
    let sandbox = Sandbox::new();
    for (name, text) in [("in/1", ""), ("in/2", "b\n"), ("in/3", ""), ("in/4", "a\n"), ("in/5", "\n")] {
        sandbox.write(name, text);
    }
    assert_eq!(sorted(&sandbox, &sandbox.text("in"), &[]), b"\na\nb\n");
}

#[test]
fn bytes_that_are_no_text_survive() {
    let sandbox = Sandbox::new();
    let bytes = Random::seeded(72).bytes(30_000);
    let input = sandbox.write("binary", &bytes);
    assert!(sorted(&sandbox, &input, &[]) == sorted_lines(&bytes));
    let finished = sandbox.run_well(["run", "wordcount", &input, "--split-size", "1KiB", "--reduces", "1"]);
    assert!(counts_of_parts(&[finished.stdout]) == word_counts(&bytes));
}

#[test]
fn names_of_files_may_be_any_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    let directory = sandbox.path("in");
    fs::create_dir(&directory).unwrap();
    for (name, line) in [(&b"not \xff utf-8"[..], "two\n"), (b"new\nline", "one\n"), (b"per%cent", "three\n")]
    {
        fs::write(directory.join(OsStr::from_bytes(name)), line).unwrap();
    }
    let printed = sandbox.run_well(["run", "grep", "", &sandbox.text("in")]).stdout_text();
    assert_eq!(printed, "one\ntwo\nthree\n");
}

#[test]
fn output_of_one_job_is_the_input_of_the_next() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "b a\nc\n");
    let out = sandbox.text("out");
    sandbox.run_well(["run", "sort", &input, "--reduces", "2", "--output", &out]);
    let finished = sandbox.run_well(["run", "wordcount", &out, "--reduces", "1"]);
    assert_eq!(finished.stdout_text(), "a\t1\nb\t1\nc\t1\n", "_SUCCESS is no input");
}

#[test]
fn disk_that_is_full_is_told_apart_from_a_job_that_fails() {
    if !is_root("a job on a full disk") {
        return;
    }
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", Random::seeded(73).text(3_000_000, &[" ", "\n"]));
    let disk = sandbox.path("disk");
    fs::create_dir(&disk).unwrap();
    // The small disk is visible to this invocation alone, and ends with it.
    let script = r#"mount -t tmpfs -o size=1m none "$1" && exec "$2" run sort "$3" --output "$1/out""#;
    let program = crate::support::sandbox::PROGRAM;
    let arguments = ["-m", "sh", "-c", script, "sh", disk.to_str().unwrap(), program, &input];
    let finished = sandbox.program("unshare".as_ref(), arguments).finish().expect_code(7);
    finished.expect_words(&["error: ", "could not write", "No space left on device", "hint: "]);
}
