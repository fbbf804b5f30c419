//! The output directory: what is refused before a task starts, what is published, what is restored after a
//! failure.

use crate::support::data::{Random, tool};
use crate::support::sandbox::PROGRAM;
use crate::support::{Finished, Sandbox, is_root, oracle};
use std::fs;
use std::path::Path;

/// Runs wordcount into this directory; refused with exit code 3 before a task was started.
fn refused(sandbox: &Sandbox, output: &str, words: &[&str]) {
    let input = sandbox.write("text", "a b\n");
    let finished = sandbox.run(["run", "wordcount", &input, "--output", output]).expect_code(3);
    let finished = finished.expect_words(words);
    assert!(!finished.stderr.contains("job-1"), "a job was submitted:\n{}", finished.stderr);
}

/// Writes a directory like the output of a Hadoop job: one part.
fn old_output(sandbox: &Sandbox, out: &str) {
    sandbox.write(&format!("{out}/part-00009"), "old");
    sandbox.write(&format!("{out}/_SUCCESS"), "");
}

/// Runs a job that fails, with `--overwrite`.
fn fails(sandbox: &Sandbox, output: &str) -> Finished {
    let input = sandbox.write("bad", "bad\n");
    let arguments = ["run", "faulty", &input, "--how", "error", "--overwrite", "--output", output];
    let finished = sandbox.program(&crate::user_code::faulty_program(), arguments).finish().expect_code(1);
    sandbox.assert_nothing_left();
    finished
}

#[test]
fn directory_with_files_is_refused_and_left_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("out/mine", "precious");
    refused(&sandbox, &sandbox.text("out"), &["out exists and is not empty", "hint: ", "--overwrite"]);
    assert_eq!(oracle::names(&sandbox.path("out")), ["mine"]);
    assert_eq!(fs::read(sandbox.path("out/mine")).unwrap(), b"precious");
}

#[test]
fn compressed_parts_hold_the_same_bytes_for_their_own_tools_and_for_later_jobs() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", Random::seeded(72).text(60_000, &[" ", "\n"]));
    for (job, given) in [("sort", vec![&*input]), ("wordcount", vec![&input]), ("grep", vec!["a", &input])] {
        let run = |flags: &[&str]| {
            let shape = ["--split-size", "9KiB", "--reduces", "3", "--quiet", "--no-sync"];
            sandbox.run_well([&["run", job], &*given, &shape, flags].concat())
        };
        let plain_out = sandbox.text(&format!("{job}-plain"));
        run(&["--output", &plain_out]);
        let plain = oracle::parts(plain_out.as_ref());
        for (how, end) in [("gzip", "gz"), ("zstd", "zst"), ("bzip2", "bz2")] {
            let out = sandbox.text(&format!("{job}-{how}"));
            run(&["--compress-output", how, "--output", &out]);
            let names = oracle::part_names(out.as_ref());
            let expected: Vec<String> =
                (0..plain.len()).map(|part| format!("part-{part:05}.{end}")).collect();
            assert_eq!(names, expected, "{job}");
            let success = oracle::success(out.as_ref());
            for (part, said) in oracle::parts(out.as_ref()).iter().zip(success["parts"].as_array().unwrap()) {
                assert_eq!(said["bytes"], part.len(), "{job}: as they lie on disk");
            }
            // By each of several readers that share no code with the writer, or none with the part's tool.
            if tool(how, "compressed output") {
                for (name, plain) in names.iter().zip(&plain) {
                    let unpacked = oracle::shell(r#"$1 -dc < "$2""#, &[how, &format!("{out}/{name}")]);
                    assert!(unpacked == *plain, "{job}: {name}");
                }
            }
            let again = sandbox.run_well(["run", "grep", "", &out, "--quiet"]).stdout;
            assert!(again == plain.concat(), "{job}: read by a later job");
            assert!(run(&["--compress-output", how]).stdout == plain.concat(), "{job}: printed as it is");
        }
    }
    for how in ["gzip", "zstd", "bzip2"] {
        sandbox.run_well(["verify-sort", &sandbox.text(&format!("sort-{how}"))]);
    }
}

#[test]
fn compressed_output_of_a_job_that_fails_is_not_there_and_what_was_overwritten_is() {
    let sandbox = Sandbox::new();
    sandbox.write("out/part-00000.gz", "old");
    sandbox.write("out/_SUCCESS", "");
    let input = sandbox.write("bad", "good\n".repeat(1000) + "bad\n");
    let arguments = ["run", "faulty", &input, "--how", "error", "--overwrite", "--compress-output", "gzip"];
    let out = sandbox.text("out");
    let faulty = crate::user_code::faulty_program();
    sandbox.program(&faulty, arguments.iter().chain(&["--output", &out])).finish().expect_code(1);
    sandbox.assert_nothing_left();
    assert_eq!(oracle::names(out.as_ref()), ["_SUCCESS", "part-00000.gz"]);
    assert_eq!(fs::read(sandbox.path("out/part-00000.gz")).unwrap(), b"old");
}

/// Runs the job that also writes odd lines to a named output, into `out`.
fn run_aside(sandbox: &Sandbox, input: &str, flags: &[&str]) -> Finished {
    let out = sandbox.text("out");
    let shape =
        ["run", "faulty", input, "--how", "error", "--in-reduce", "--reduces", "3", "--split-size", "4KiB"];
    let arguments = [&shape[..], &["--workers", "2", "--output", &out, "--quiet"], flags].concat();
    let finished = sandbox.program(&crate::user_code::faulty_program(), arguments).finish();
    sandbox.assert_nothing_left();
    finished
}

/// Files of an output and of its named output, with their contents.
fn whole_tree(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut names = oracle::names(out);
    if out.join("odd").is_dir() {
        names.retain(|name| name != "odd");
        names.extend(oracle::names(&out.join("odd")).iter().map(|name| format!("odd/{name}")));
    }
    names.into_iter().map(|name| (name.clone(), fs::read(out.join(&name)).unwrap())).collect()
}

#[test]
fn named_output_lies_beside_the_main_one_and_comes_with_it_or_not_at_all() {
    let sandbox = Sandbox::new();
    let lines = |odd: bool| -> Vec<String> {
        let mut lines: Vec<String> = (0..2000)
            .filter(|number| (number % 7 == 0) == odd)
            .map(|number| format!("{} {number}", if odd { "odd" } else { "line" }))
            .collect();
        lines.sort_unstable();
        lines
    };
    let sorted = |bytes: &[u8]| -> Vec<String> {
        let mut lines: Vec<String> = String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let text = [lines(true), lines(false)].concat().join("\n");
    let input = sandbox.write("text", &text);
    let (out, odd) = (sandbox.path("out"), sandbox.path("out/odd"));
    run_aside(&sandbox, &input, &["--aside"]).expect_code(0);
    assert_eq!(oracle::names(&out), ["_SUCCESS", "odd", "part-00000", "part-00001", "part-00002"]);
    assert_eq!(oracle::names(&odd), ["part-00000", "part-00001", "part-00002"]);
    assert_eq!(sorted(&oracle::whole(&out)), lines(false));
    assert_eq!(sorted(&oracle::whole(&odd)), lines(true));
    let said = oracle::success(&out);
    for (part, said) in oracle::parts(&odd).iter().zip(said["parts"].as_array().unwrap()) {
        assert_eq!(
            (&said["named"][0]["output"], &said["named"][0]["bytes"]),
            (&"odd".into(), &part.len().into())
        );
    }
    assert_eq!(said["records"], 2000);
    let read =
        |input: &Path| sandbox.run_well(["run", "grep", "", input.to_str().unwrap(), "--quiet"]).stdout;
    assert_eq!(sorted(&read(&out)), lines(false), "a later job reads the main output");
    assert_eq!(sorted(&read(&odd)), lines(true));

    // One task fails after others have built all their parts.
    let before = whole_tree(&out);
    let bad = sandbox.write("bad", text + "\nbad\n");
    run_aside(&sandbox, &bad, &["--aside", "--overwrite"]).expect_code(1);
    assert!(whole_tree(&out) == before, "what was there is there again");
    run_aside(&sandbox, &input, &["--aside", "--overwrite", "--compress-output", "gzip"]).expect_code(0);
    assert_eq!(oracle::part_names(&odd), ["part-00000.gz", "part-00001.gz", "part-00002.gz"]);
    assert_eq!(sorted(&read(&odd)), lines(true));
    run_aside(&sandbox, &input, &["--overwrite"]).expect_code(0);
    assert!(!odd.exists());
}

#[test]
fn output_whose_parent_is_missing_is_refused() {
    let sandbox = Sandbox::new();
    refused(&sandbox, &sandbox.text("not/there"), &["could not create", "not/there"]);
    assert!(!sandbox.path("not").exists());
}

#[test]
fn output_that_is_a_file_is_refused() {
    let sandbox = Sandbox::new();
    let out = sandbox.write("out", "precious");
    refused(&sandbox, &out, &["out exists and is not a directory"]);
    assert_eq!(fs::read(&out).unwrap(), b"precious");
}

#[test]
fn root_of_all_files_is_refused_as_an_output() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a b\n");
    for root in ["/", "/tmp/.."] {
        // Without `--overwrite`: a test that fails must not damage the machine.
        let refused = sandbox.run(["run", "wordcount", &input, "--output", root]).expect_code(3);
        refused.expect_words(&["is the root of the file system"]);
    }
}

#[test]
fn output_that_holds_an_input_of_the_job_is_refused_and_left_alone() {
    let sandbox = Sandbox::new();
    let text = sandbox.write("data/deep/text", "a b\n");
    let side = sandbox.write("side/right.csv", "1,x\n");
    let left = sandbox.write("left.csv", "1,y\n");
    std::os::unix::fs::symlink(sandbox.path("data"), sandbox.path("link")).unwrap();
    let (data, link, through) = (sandbox.text("data"), sandbox.text("link"), sandbox.text("link/deep"));
    let join = ["join", "--left", &left, "--right", &side, "--on", "1", "--strategy", "broadcast"];
    let cases: [(&[&str], String); 5] = [
        (&["wordcount", &text], sandbox.text("data/deep")),
        (&["wordcount", &text], data),
        (&["wordcount", &text], link),
        (&["wordcount", &through], sandbox.text("data/deep")),
        (&join, sandbox.text("side")),
    ];
    for (job, output) in cases {
        let arguments = [&["run"], job, &["--overwrite", "--output", &output]].concat();
        sandbox.run(arguments).expect_code(3).expect_words(&["an input of the same job"]);
        assert_eq!(fs::read(&text).unwrap(), b"a b\n");
        assert_eq!(fs::read(&side).unwrap(), b"1,x\n");
    }
    // A sibling directory is accepted, also if its name has the same prefix.
    old_output(&sandbox, "data-out");
    let out = sandbox.text("data-out");
    sandbox.run_well(["run", "wordcount", &text, "--reduces", "1", "--overwrite", "--output", &out]);
    assert_eq!(oracle::names(&sandbox.path("data-out")), ["_SUCCESS", "part-00000"]);
}

#[test]
fn directory_that_another_job_writes_to_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.arm("map");
    let input = sandbox.write("other-text", "a b\n");
    let out = sandbox.text("out");
    let first = sandbox.gristmill(["run", "wordcount", &input, "--output", &out]).start();
    sandbox.stopped_at("map");
    let arguments = ["run", "wordcount", &input, "--overwrite", "--output", &out];
    let second = sandbox.gristmill(arguments).finish().expect_code(3);
    second.expect_words(&["another job is writing to", "_temporary"]);
    sandbox.go_on("map");
    first.finish().expect_code(0);
    assert_eq!(oracle::success(&sandbox.path("out"))["records"], 2);
}

#[test]
fn empty_directory_is_used_and_kept() {
    let sandbox = Sandbox::new();
    let out = sandbox.path("out");
    fs::create_dir(&out).unwrap();
    fails(&sandbox, out.to_str().unwrap());
    assert_eq!(oracle::names(&out), [""; 0], "it was there before");
    let input = sandbox.write("text", "a b\n");
    sandbox.run_well(["run", "wordcount", &input, "--reduces", "1", "--output", out.to_str().unwrap()]);
    assert_eq!(oracle::names(&out), ["_SUCCESS", "part-00000"]);
}

#[test]
fn overwrite_replaces_what_was_there_only_after_success() {
    let sandbox = Sandbox::new();
    old_output(&sandbox, "out");
    let input = sandbox.write("text", "a b\n");
    let out = sandbox.text("out");
    sandbox.arm("reduce");
    let arguments = ["run", "wordcount", &input, "--reduces", "1", "--overwrite", "--output", &out];
    let running = sandbox.gristmill(arguments).start();
    sandbox.stopped_at("reduce");
    let inside = oracle::names(&sandbox.path("out")).into_iter();
    let aside: Vec<String> = inside.filter(|name| name.starts_with("_replaced-")).collect();
    assert_eq!(aside.len(), 1, "what was there lies aside until the job has succeeded");
    assert!(sandbox.path("out").join(&aside[0]).join("part-00009").exists());
    assert!(!sandbox.path("out/part-00009").exists());
    sandbox.go_on("reduce");
    running.finish().expect_code(0);
    assert_eq!(oracle::names(&sandbox.path("out")), ["_SUCCESS", "part-00000"]);
}

#[test]
fn overwrite_refuses_a_directory_that_holds_what_a_person_has_or_stands_on() {
    let (sandbox, elsewhere) = (Sandbox::new(), Sandbox::new());
    let input = elsewhere.write("text", "a b\n");
    for name in ["home/precious", "tmp/precious", "here/precious"] {
        sandbox.write(name, "old");
    }
    let whole = sandbox.path("").canonicalize().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_gristmill")).parent().unwrap().to_str().unwrap();
    let home = sandbox.text("home");
    for (out, what) in [
        (home.as_str(), "your home directory"),
        (&sandbox.text("tmp"), "temporary files"),
        (whole.to_str().unwrap(), "holds"),
        (".", "holds"),
        (program, "this program"),
    ] {
        let arguments = ["run", "wordcount", &input, "--overwrite", "--output", out];
        let finished = sandbox.gristmill(arguments).env("HOME", &home).finish().expect_code(2);
        finished.expect_words(&[what, "--overwrite", "another directory"]);
    }
    for name in ["home", "tmp", "here"] {
        assert_eq!(oracle::names(&sandbox.path(name)), ["precious"]);
    }
    fs::remove_file(sandbox.path("tmp/precious")).unwrap();
}

#[test]
fn overwrite_replaces_nothing_but_the_output_of_a_job() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a b\n");
    let overwrite = |out: &str| {
        let out = sandbox.text(out);
        sandbox.run(["run", "wordcount", &input, "--reduces", "1", "--overwrite", "--output", &out])
    };
    for other in ["thesis.tex", ".bashrc", "more/part-00000", "part-two.md", "_data/f"] {
        for kept in ["part-00000", other] {
            sandbox.write(&format!("mine/{kept}"), "kept");
        }
        sandbox.write("mine/_SUCCESS", "");
        let name = other.split('/').next().unwrap();
        let words = ["mine holds ", name, "nothing but the output of a job", "remove that yourself"];
        overwrite("mine").expect_code(3).expect_words(&words);
        let mut expected = ["part-00000", "_SUCCESS", name];
        expected.sort_unstable();
        assert_eq!(oracle::names(&sandbox.path("mine")), expected);
        assert_eq!(fs::read_to_string(sandbox.path("mine").join(other)).unwrap(), "kept");
        fs::remove_dir_all(sandbox.path("mine")).unwrap();
    }
    sandbox.write("split/part-00000", "kept");
    overwrite("split")
        .expect_code(3)
        .expect_words(&["split is not empty and has no _SUCCESS", "--overwrite"]);
    assert_eq!(oracle::names(&sandbox.path("split")), ["part-00000"]);
    // The output of another MapReduce program.
    for name in ["part-r-00000", ".part-r-00000.crc", "._SUCCESS.crc"] {
        sandbox.write(&format!("hadoops/{name}"), "old");
    }
    sandbox.write("hadoops/_SUCCESS", "");
    overwrite("hadoops").expect_code(0);
    assert_eq!(oracle::names(&sandbox.path("hadoops")), ["_SUCCESS", "part-00000"]);
}

#[test]
fn overwrite_of_a_link_replaces_what_it_names_and_not_the_link() {
    let sandbox = Sandbox::new();
    old_output(&sandbox, "target");
    let (input, link) = (sandbox.write("text", "a b\n"), sandbox.path("link"));
    std::os::unix::fs::symlink(sandbox.path("target"), &link).unwrap();
    let out = sandbox.text("link");
    sandbox.run_well(["run", "wordcount", &input, "--reduces", "1", "--overwrite", "--output", &out]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(oracle::names(&sandbox.path("target")), ["_SUCCESS", "part-00000"]);
    fails(&sandbox, &out);
    assert_eq!(oracle::names(&sandbox.path("target")), ["_SUCCESS", "part-00000"], "the old is there again");
}

#[test]
fn overwrite_brings_back_what_was_there_when_the_job_fails() {
    let sandbox = Sandbox::new();
    old_output(&sandbox, "out");
    fails(&sandbox, &sandbox.text("out"));
    assert_eq!(oracle::names(&sandbox.path("out")), ["_SUCCESS", "part-00009"]);
    let others = oracle::names(sandbox.path("").as_path());
    assert!(!others.iter().any(|name| name.contains("replaced")), "{others:?}");
}

#[test]
fn failed_job_leaves_no_output_directory() {
    let sandbox = Sandbox::new();
    fails(&sandbox, &sandbox.text("out"));
    assert!(!sandbox.path("out").exists());
}

#[test]
fn part_that_was_changed_before_the_end_of_the_job_is_not_published() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a b\n");
    let out = sandbox.text("out");
    sandbox.arm("commit.after");
    let running = sandbox.gristmill(["run", "wordcount", &input, "--reduces", "1", "--output", &out]).start();
    sandbox.stopped_at("commit.after");
    let built = oracle::names(&sandbox.path("out/_temporary"));
    let built = built.iter().find(|name| name.ends_with("-reduce-0.0")).unwrap();
    fs::write(sandbox.path(&format!("out/_temporary/{built}")), "a\t1\nb\t2\n").unwrap();
    sandbox.go_on("commit.after");
    running.finish().expect_code(7).expect_words(&["part-00000", "is not as it was left", "checksum"]);
    sandbox.assert_nothing_left();
    assert!(!sandbox.path("out").exists());
}

#[test]
fn output_that_is_removed_under_a_running_job_is_told_as_removed() {
    // Before a part of it exists, and when all of them do.
    for (place, words) in [
        ("reduce", "the output directory is gone: it was removed while the job ran"),
        ("commit.after", " was removed before the output was complete"),
    ] {
        let sandbox = Sandbox::new();
        let input = sandbox.write("text", "a b\n");
        let out = sandbox.text("out");
        sandbox.arm(place);
        let arguments = ["run", "wordcount", &input, "--reduces", "1", "--workers", "1", "--output", &out];
        let running = sandbox.gristmill(arguments).start();
        sandbox.stopped_at(place);
        fs::remove_dir_all(&out).unwrap();
        sandbox.go_on(place);
        let finished = running.finish().expect_code(3);
        assert!(!finished.stderr.contains("free some space"), "{}", finished.stderr);
        finished.expect_words(&[words, "  hint: run it again, and leave its output directory alone"]);
        assert!(!sandbox.path("out").exists());
        sandbox.assert_nothing_left();
    }
}

#[test]
fn success_file_lists_the_parts_with_their_sizes_and_checksums() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "b a c\na b\n");
    let out = sandbox.path("out");
    sandbox.run_well(["run", "wordcount", &input, "--reduces", "4", "--output", out.to_str().unwrap()]);
    let success = oracle::success(&out);
    assert_eq!((&success["schema"], &success["job"]), (&1.into(), &"wordcount".into()));
    assert_eq!(success["parameters"]["inputs"][0], input.as_str());
    let parts = success["parts"].as_array().unwrap();
    let names: Vec<&str> = parts.iter().map(|part| part["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["part-00000", "part-00001", "part-00002", "part-00003"]);
    assert_eq!(oracle::part_names(&out), names);
    for part in parts {
        let bytes = fs::read(out.join(part["name"].as_str().unwrap())).unwrap();
        assert_eq!(part["bytes"], bytes.len());
        assert_eq!(part["records"], oracle::lines(&bytes).len());
        assert_eq!(part["crc32c"], crc32c::crc32c(&bytes), "{}", part["name"]);
    }
    assert_eq!(success["records"], 3);
}

#[test]
fn output_goes_where_there_are_no_hard_links_and_no_removal_of_open_files() {
    if !is_root("file systems of its own") {
        return;
    }
    let sandbox = Sandbox::new();
    let input = sandbox.write("input", "b\na\n");
    let made = "dd if=/dev/zero of=image bs=1M count=32 2>/dev/null && mkfs.exfat image >/dev/null && loop=$(losetup -f --show image)";
    let exfat = format!("{made} && mount.exfat-fuse -o fmask=0133,dmask=0022 $loop there >/dev/null");
    let cases = [
        ("mount.exfat-fuse", exfat.as_str(), "umount there; losetup -d $loop"),
        ("bindfs", "mkdir src; bindfs src there", "umount there"),
    ];
    for (needed, mount, unmount) in cases {
        let script = format!(
            "command -v {needed} >/dev/null || exit 77; rm -rf place; mkdir -p place/there; cd place; {mount} || exit 77; mkdir there/tmp
            TMPDIR=$PWD/there/tmp \"$0\" run sort \"$1\" --quiet --reduces 1 --output there/out; code=$?
            cat there/out/part-*; ls -A there/out there/tmp; {unmount}; exit $code"
        );
        let finished =
            sandbox.program(Path::new("unshare"), ["-m", "sh", "-c", &script, PROGRAM, &input]).finish();
        if finished.status.code() == Some(77) {
            crate::support::say_skipped(needed, "it is not installed");
            continue;
        }
        let said = finished.expect_code(0).stdout_text();
        assert_eq!(said, "a\nb\nthere/out:\n_SUCCESS\npart-00000\n\nthere/tmp:\n", "{needed}");
    }
}
