//! Hadoop Streaming: real commands behind real pipes, their environment, their ends, and their exact output.
//!
//! `hadoop` calls the program by Hadoop's names, as drivers do. `files` calls those for files, `jobs` those
//! for jobs, and `command_lines` has whole lines as users type them. The book's chapter "Hadoop Streaming"
//! has a row for each rule, with the test here that covers it.

mod bad_input;
mod command_lines;
mod commands;
mod confined;
mod files;
mod hadoop;
mod jobs;
mod keys;

use crate::support::standing::Standing;
use crate::support::{Finished, Sandbox, oracle, process, until};
use std::fs;
use std::process::Command;

/// Runs a job on a cluster of one worker; input and output are `in` and `out` of the sandbox.
fn stream(sandbox: &Sandbox, words: &[&str]) -> Finished {
    let flags = ["streaming", "--workers", "1", "--no-sync"];
    let paths = ["-input", "in", "-output", "out"];
    sandbox.run([&flags[..], &paths, words].concat())
}

/// The partition of a key by the rule that Hadoop documents, in Python: it shares no code with the product.
const PYTHON_PARTITION: &str = "
import sys
def partition(key, parts):
    h = 1
    for byte in key:
        h = 31 * h + (byte - 256 if byte > 127 else byte)
    h &= 0xffffffff
    return (h & 0x7fffffff) % parts
parts = [[] for _ in range(int(sys.argv[2]))]
for line in open(sys.argv[1], 'rb').read().split(b'\\n')[:-1]:
    key, _, value = line.partition(b'\\t')
    parts[partition(key, len(parts))].append((key, value))
for number, pairs in enumerate(parts):
    # Sorted by the bytes of the key alone; Python's sort is stable, as ours is.
    pairs.sort(key=lambda pair: pair[0])
    with open(f'{sys.argv[3]}-{number:05}', 'wb') as part:
        part.writelines(key + b'\\t' + value + b'\\n' for key, value in pairs)
";

/// True if Python is available; reports what is skipped if not.
fn has_python(what: &str) -> bool {
    let has = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has {
        crate::support::say_skipped(what, "no python3");
    }
    has
}

#[test]
fn parts_are_those_that_hadoops_rules_in_python_give_byte_by_byte() {
    if !has_python("parts beside those of Python") {
        return;
    }
    let sandbox = Sandbox::new();
    let mut random = crate::support::data::Random::seeded(7);
    let mut lines = Vec::new();
    for number in 0..3_000_u64 {
        // Keys of any bytes except those that end a line or a key. Some keys are equal and some are empty.
        let length = random.below(6);
        let key: Vec<u8> = (0..length).map(|_| *random.pick(&[b'a', b'b', 0x80, 0xff, b' ', 0])).collect();
        lines.extend_from_slice(&key);
        if 0 < random.below(9) {
            lines.extend_from_slice(format!("\tv{number}").as_bytes());
        }
        lines.push(b'\n');
    }
    let input = sandbox.write("in", &lines);
    let script = sandbox.write("partition.py", PYTHON_PARTITION);
    for parts in ["1", "7"] {
        let asked =
            Command::new("python3").args([&script, &input, parts, &sandbox.text("expected")]).status();
        assert!(asked.unwrap().success());
        stream(&sandbox, &["-mapper", "cat", "-reducer", "cat", "-numReduceTasks", parts]).expect_code(0);
        let names = oracle::part_names(&sandbox.path("out"));
        assert_eq!(names.len().to_string(), parts);
        for (number, name) in names.iter().enumerate() {
            let expected = fs::read(sandbox.path(&format!("expected-{number:05}"))).unwrap();
            assert!(
                fs::read(sandbox.path("out").join(name)).unwrap() == expected,
                "{name} of {parts} differs"
            );
        }
        fs::remove_dir_all(sandbox.path("out")).unwrap();
    }
}

#[test]
fn lines_without_a_value_keep_the_separator_and_success_is_an_empty_file() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "foo\r\nbar\tx\rlast");
    stream(&sandbox, &["-mapper", "cat", "-reducer", "cat"]).expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"bar\tx\nfoo\t\nlast\t\n");
    assert_eq!(fs::read(sandbox.path("out/_SUCCESS")).unwrap(), b"");
}

#[test]
fn byte_order_mark_is_no_part_of_the_first_line() {
    let sandbox = Sandbox::new();
    sandbox.write("in/a", "\u{feff}b\n\u{feff}c\n");
    sandbox.write("in/b", "\u{feff}d\rx\n");
    sandbox.write("in/c", "\u{feff}");
    let maps = ["-mapper", "cat", "-numReduceTasks", "0", "-D", "mapred.map.tasks=1"];
    stream(&sandbox, &maps).expect_code(0);
    let expected: [&[u8]; 3] = ["b\t\n\u{feff}c\t\n".as_bytes(), b"d\t\nx\t\n", b""];
    assert_eq!(oracle::parts(&sandbox.path("out")), expected);
    fs::remove_dir_all(sandbox.path("out")).unwrap();
    stream(&sandbox, &[&maps[..], &["-inputformat", "NLineInputFormat"]].concat()).expect_code(0);
    let numbered: [&[u8]; 4] = [b"0\tb\n", "5\t\u{feff}c\n".as_bytes(), b"0\td\n5\tx\n", b""];
    assert_eq!(oracle::parts(&sandbox.path("out")), numbered);
}

#[test]
fn files_in_directories_count_for_the_number_of_maps_and_packed_ones_are_known_by_their_bytes() {
    let sandbox = Sandbox::new();
    sandbox.write("in/month=01/a", "some words\n".repeat(136));
    sandbox.write("in/month=02/b", "x\n");
    let recursive = ["-D", "mapreduce.input.fileinputformat.input.dir.recursive=true"];
    let maps = ["-mapper", "cat", "-numReduceTasks", "0"];
    stream(&sandbox, &[&recursive[..], &maps].concat()).expect_code(0);
    assert_eq!(oracle::part_names(&sandbox.path("out")).len(), 3, "two of the one and one of the other");
    fs::remove_dir_all(sandbox.path("out")).unwrap();
    sandbox.write("in/month=02/b.xz", b"\xFD7zXZ\0...");
    stream(&sandbox, &[&recursive[..], &maps].concat()).expect_code(1).expect_words(&["b.xz is an xz file"]);
}

#[test]
fn reducer_without_input_runs_and_what_it_writes_is_thrown_away() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "one\n");
    let words = ["-mapper", "cat", "-reducer", "wc -l", "-numReduceTasks", "4", "-lazyOutput"];
    stream(&sandbox, &words).expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"1\t\n");
    assert_eq!(oracle::part_names(&sandbox.path("out")).len(), 1, "empty parts were not asked for");
}

#[test]
fn parts_are_compressed_if_asked() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "b\na\n");
    let gzip = [
        "-D",
        "mapred.output.compress=true",
        "-D",
        "mapred.output.compression.codec=org.apache.hadoop.io.compress.GzipCodec",
    ];
    stream(&sandbox, &[&gzip[..], &["-mapper", "cat"]].concat()).expect_code(0);
    let unpacked = Command::new("gzip").arg("-dc").arg(sandbox.path("out/part-00000.gz")).output().unwrap();
    assert_eq!(unpacked.stdout, b"a\t\nb\t\n");
}

#[test]
fn wildcards_and_lists_name_inputs() {
    let sandbox = Sandbox::new();
    for (name, line) in [("in/a1", "1\n"), ("in/a2", "2\n"), ("in/b1", "3\n"), ("in/c1", "4\n")] {
        sandbox.write(name, line);
    }
    let words = ["streaming", "--workers", "1", "--no-sync", "-input", "in/a*,in/{b,c}1", "-output", "out"];
    sandbox.run([&words[..], &["-mapper", "cat", "-D", "mapred.map.tasks=1"]].concat()).expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"1\t\n2\t\n3\t\n4\t\n");
}

#[test]
fn file_is_read_once_when_several_names_of_braces_mean_it() {
    let sandbox = Sandbox::new();
    for (name, line) in [("in/a1", "1\n"), ("in/b1", "2\n"), ("in/_c1", "3\n"), ("in/d,1", "4\n")] {
        sandbox.write(name, line);
    }
    let maps = |input: &str, output: &str| {
        let words =
            ["streaming", "--workers", "1", "--no-sync", "-D", "mapred.map.tasks=1", "-mapper", "cat"];
        sandbox.run([&words[..], &["-input", input, "-output", output]].concat())
    };
    maps("in/{a*,*1,none}", "out").expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"1\t\n2\t\n4\t\n");
    maps(r"in/{d\,1,a1}", "escaped").expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("escaped")), b"1\t\n4\t\n");
    maps("in/{x*,y}", "none").expect_words(&["Input Pattern in/{x*,y} matches 0 files"]);
    assert!(!sandbox.path("none").exists());
}

#[test]
fn maps_alone_write_a_part_for_each_split_and_no_two_files_share_one() {
    let sandbox = Sandbox::new();
    sandbox.write("in/a", "1\n2\n");
    sandbox.write("in/b", "3\n");
    sandbox.write("in/_not", "4\n");
    stream(&sandbox, &["-mapper", "cat", "-numReduceTasks", "0", "-D", "mapred.map.tasks=1"]).expect_code(0);
    assert_eq!(oracle::parts(&sandbox.path("out")), [&b"1\t\n2\t\n"[..], b"3\t\n"]);
}

#[test]
fn combiner_gets_sorted_lines_before_they_travel() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "b\na\nb\na\nb\n");
    let combiner = "uniq -c";
    let words = ["-mapper", "cat", "-combiner", combiner, "-reducer", "cat", "-D", "mapred.map.tasks=1"];
    let finished = stream(&sandbox, &words).expect_code(0);
    let out = String::from_utf8(oracle::whole(&sandbox.path("out"))).unwrap();
    let counts: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(counts, [["2", "a"], ["3", "b"]]);
    finished.expect_words(&["Reduce input records=2"]);
}

#[test]
fn lines_of_nlineinputformat_come_with_their_place_and_so_many_to_a_map() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "one\ntwo\nthree\nfour\nfive\n");
    let format = ["-inputformat", "org.apache.hadoop.mapred.lib.NLineInputFormat", "-numReduceTasks", "0"];
    let lines = ["-D", "mapred.line.input.format.linespermap=2", "-mapper", "cat"];
    stream(&sandbox, &[&format[..], &lines].concat()).expect_code(0);
    let parts = oracle::parts(&sandbox.path("out"));
    assert_eq!(parts, [&b"0\tone\n4\ttwo\n"[..], b"8\tthree\n14\tfour\n", b"19\tfive\n"]);
}

#[test]
fn lines_of_keyvaluetextinputformat_come_as_key_and_value() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "a=1\nb\n");
    let format = ["-inputformat", "KeyValueTextInputFormat", "-D", "key.value.separator.in.input.line=="];
    stream(
        &sandbox,
        &[&format[..], &["-mapper", "cat", "-numReduceTasks", "0", "-D", "mapred.map.tasks=1"]].concat(),
    )
    .expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"a\t1\nb\t\n");
}

#[test]
fn archives_are_unpacked_in_the_working_directory() {
    if !has_python("archives that Python has made") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    sandbox.write("tree/run.sh", "cat tree/sub/words; cat > /dev/null\n");
    sandbox.write("tree/sub/words", "some words\n");
    for (kind, name) in [("gztar", "a.tar.gz"), ("tar", "a.tar"), ("zip", "a.zip")] {
        let make = "import shutil, sys; shutil.make_archive('a', sys.argv[1], 'tree')";
        let made = Command::new("python3").args(["-c", make, kind]).current_dir(sandbox.path("")).status();
        assert!(made.unwrap().success());
        let archive = format!("{name}#tree");
        let words = ["-mapper", "sh tree/run.sh", "-archives", &archive, "-numReduceTasks", "0"];
        stream(&sandbox, &[&words[..], &["-D", "mapred.map.tasks=1"]].concat()).expect_code(0);
        assert_eq!(oracle::whole(&sandbox.path("out")), b"some words\t\n", "{name}");
        fs::remove_dir_all(sandbox.path("out")).unwrap();
    }
}

#[test]
fn mistakes_end_with_the_codes_of_hadoop() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    let run = |words: &[&str], code: i32, said: &str| {
        let finished = sandbox.run([&["streaming", "--workers", "1"], words].concat()).expect_code(code);
        finished.expect_words(&[said, "Streaming Command Failed!"]);
    };
    run(&["-input", "in"], 1, "Required argument: -output");
    run(&["-output", "out"], 1, "Required argument: -input");
    run(&["-input", "in", "-output", "out", "-nope"], 1, "Unrecognized option: -nope");
    run(&["-input", "in", "--workers", "1"], 1, "before all of Hadoop's options");
    run(&["-input", "missing", "-output", "out", "-mapper", "cat"], 2, "Input path does not exist");
    run(&["-input", "in", "-output", "out", "-inputformat", "Mine"], 3, "class not found : Mine");
    run(&["-input", "in", "-output", "in", "-mapper", "cat"], 4, "already exists");
}

#[test]
fn job_runs_on_a_master_that_is_there_already() {
    let sandbox = Sandbox::new();
    let standing = Standing::start_with(&sandbox, 1, &["--allow-commands", "--pools", "class=1,staff=2"]);
    let (input, out) = (sandbox.write("in", "b\na\n"), sandbox.text("out"));
    let (join, script) = (sandbox.text("state/join"), sandbox.write("job.sh", "cat; cat list.gz"));
    // Nothing is decompressed by its name on its way.
    let list = sandbox.write("list.gz", "c\n");
    let words = ["streaming", "--join", &join, "--no-sync", "-D", "mapred.job.queue.name=staff"];
    let words = [&words[..], &["-input", &input, "-output", &out]].concat();
    let steps = ["-mapper", "cat", "-reducer", "sh job.sh", "-file", &script, "-file", &list];
    sandbox.gristmill([&words[..], &steps].concat()).finish().expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"a\t\nb\t\nc\t\n");
    assert_eq!(standing.job("job-1")["pool"], "staff", "Hadoop's queue is the pool");
    standing.end();
}

#[test]
fn master_that_was_not_told_to_take_commands_refuses_them() {
    let sandbox = Sandbox::new();
    let standing = Standing::start(&sandbox, 1);
    let (input, out, join) = (sandbox.write("in", "b\n"), sandbox.text("out"), sandbox.text("state/join"));
    let words = ["streaming", "--join", &join, "-input", &input, "-output", &out, "-mapper", "cat"];
    let finished = sandbox.gristmill(words).finish().expect_code(5);
    finished.expect_words(&["the master refused", "--allow-commands"]);
    assert!(!sandbox.path("out").exists());
    standing.end();
}
