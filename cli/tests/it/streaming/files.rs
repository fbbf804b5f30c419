//! `hadoop fs`, verb by verb, beyond what drivers use (`hadoop`).

use super::hadoop::{call, well};
use crate::support::Sandbox;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn files_are_copied_moved_and_appended_to_under_all_names_of_these_verbs() {
    let sandbox = Sandbox::new();
    let (local, other) = (sandbox.write("local", "one\n"), sandbox.write("other", "two\n"));
    let run = |words: &[&str]| well(&sandbox, &[&["fs"], words].concat());
    run(&["-mkdir", "-p", "/a", "/b"]);
    run(&["-copyFromLocal", &local, "/a/x"]);
    call(&sandbox, "hadoop", &["fs", "-copyFromLocal", &local, "/a/x"])
        .finish()
        .expect_code(1)
        .expect_words(&["File exists"]);
    run(&["-put", "-f", &local, "/a/x"]);
    run(&["-moveFromLocal", &other, "/a/y"]);
    assert!(!sandbox.path("other").exists());
    run(&["-cp", "/a/x", "/a/y", "/b"]);
    run(&["-cp", "-f", "/a/y", "/b/x"]);
    assert_eq!(run(&["-cat", "/b/x", "/b/y"]), "two\ntwo\n");
    run(&["-appendToFile", &local, "/b/x"]);
    assert_eq!(run(&["-cat", "/b/x"]), "two\none\n");
    run(&["-copyToLocal", "/b/x", &sandbox.text("back")]);
    assert_eq!(fs::read(sandbox.path("back")).unwrap(), b"two\none\n");
    assert_eq!(run(&["-head", "/b/x"]), "two\none\n");
    assert_eq!(run(&["-tail", "/b/x"]), "two\none\n");
    run(&["-cp", "/b", "/c"]);
    assert_eq!(run(&["-ls", "-C", "/c"]), "/c/x\n/c/y\n");
    call(&sandbox, "hadoop", &["fs", "-moveToLocal", "/c/x", "x"])
        .finish()
        .expect_code(255)
        .expect_words(&["not implemented yet"]);
}

#[test]
fn rights_are_changed_and_owners_and_copies_looked_at() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("hdfs/a/x", "x");
    let run = |words: &[&str]| well(&sandbox, &[&["fs"], words].concat());
    run(&["-chmod", "go-rwx,u=rwx", "/a/x"]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o700);
    let outside = sandbox.write("key", "x");
    fs::set_permissions(sandbox.path("key"), fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&outside, format!("{file}-link")).unwrap();
    run(&["-chmod", "-R", "777", "/a"]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o777);
    assert_eq!(
        fs::metadata(sandbox.path("key")).unwrap().permissions().mode() & 0o777,
        0o600,
        "behind a link"
    );
    fs::remove_file(format!("{file}-link")).unwrap();
    run(&["-chmod", "644", "/a/x"]);
    assert!(run(&["-ls", "/a/x"]).starts_with("-rw-r--r--   1 me supergroup          1 "));
    run(&["-chown", "-R", "me:us", "/a"]);
    run(&["-chgrp", "us", "/a/x"]);
    run(&["-setrep", "-w", "3", "/a/x"]);
    assert_eq!(run(&["-stat", "%F %n %b %a %r", "/a/x"]), "regular file x 1 644 1\n");
    for wrong in [["-chmod", "9", "/a"], ["-chmod", "755", "/nope"], ["-chown", "me", "/nope"]] {
        let finished = call(&sandbox, "hdfs", &[&["dfs"], &wrong[..]].concat()).finish();
        assert!(
            finished.stderr.lines().count() == 1 && finished.stdout.is_empty(),
            "{wrong:?}: {}",
            finished.stderr
        );
        finished.expect_code(if wrong[1] == "9" { 255 } else { 1 });
    }
}

#[test]
fn files_are_found_by_name_and_listed_by_size() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/a/b/part-1", vec![b'x'; 1536]);
    sandbox.write("hdfs/a/part-2", "x");
    sandbox.write("hdfs/a/Other", "");
    let run = |words: &[&str]| well(&sandbox, &[&["fs"], words].concat());
    assert_eq!(run(&["-find", "/a", "-name", "part-*", "-print"]), "hdfs:///a/b/part-1\nhdfs:///a/part-2\n");
    assert_eq!(run(&["-find", "/a", "-iname", "OTHER"]), "hdfs:///a/Other\n");
    assert_eq!(run(&["-find", "/a/b", "-print0"]), "hdfs:///a/b\0hdfs:///a/b/part-1\0");
    assert_eq!(run(&["-du", "-h", "/a/b"]), "1.5 K  1.5 K  hdfs:///a/b/part-1\n");
    assert_eq!(run(&["-ls", "-C", "-S", "/a"]).lines().last(), Some("/a/Other"));
    assert!(run(&["-df", "/"]).starts_with("Filesystem "));
    assert!(run(&["-help"]).contains("-appendToFile"));
    call(&sandbox, "hadoop", &["fs", "-find", "/a", "-size", "1"]).finish().expect_code(255);
    call(&sandbox, "hadoop", &["fs", "-frob", "/a"])
        .finish()
        .expect_code(255)
        .expect_words(&["-frob: Unknown command"]);
}

#[test]
fn file_is_never_copied_onto_itself_under_whatever_name() {
    let sandbox = Sandbox::new();
    let one = sandbox.write("hdfs/d/one", "one\n");
    sandbox.write("hdfs/d/two", "two\n");
    fs::hard_link(&one, sandbox.path("hdfs/linked")).unwrap();
    let same = format!("file://{one}");
    for (words, said) in [
        (["-cp", "-f", "/d/one", "/d/one"], "are identical"),
        (["-cp", "-f", "/d/one", "/d"], "are identical"),
        (["-cp", "-f", "/d/one", "/linked"], "are identical"),
        (["-mv", "-f", "/d/one", "/linked"], "are identical"),
        (["-put", "-f", &one, "/d/one"], "are identical"),
        (["-copyFromLocal", "-f", &one, "/linked"], "are identical"),
        (["-get", "-f", "/d/one", &one], "are identical"),
        (["-cp", "-f", "/d/one", &same], "are identical"),
        (["-cp", "-f", "/d/*", "/d"], "are identical"),
        (["-cp", "-f", "/d/*", "/linked"], "Is not a directory"),
        (["-cp", "-f", "/d/*", "/missing"], "No such file or directory"),
        (["-cp", "-f", "/d", "/d"], "is a subdirectory of itself"),
        (["-cp", "-f", "/d", "/d/e"], "is a subdirectory of itself"),
        (["-mv", "-f", "/d", "/d/e"], "is a subdirectory of itself"),
        (["-getmerge", "-nl", "/d", &one], "are identical"),
    ] {
        let refused = call(&sandbox, "hadoop", &[&["fs"], &words[..]].concat()).finish();
        refused.expect_code(1).expect_words(&[words[0].trim_start_matches('-'), said]);
        let listed = well(&sandbox, &["fs", "-ls", "-R", "-C", "/"]);
        assert_eq!(listed, "/d\n/d/one\n/d/two\n/linked\n", "{words:?}");
        let held = well(&sandbox, &["fs", "-cat", "/d/one", "/d/two", "/linked"]);
        assert_eq!(held, "one\ntwo\none\n", "{words:?}");
    }
}

#[test]
fn append_of_a_file_to_itself_is_refused_before_it_grows() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("hdfs/x", "one\n");
    let refuse = |words: &[&str], said: &str| {
        call(&sandbox, "hadoop", &[&["fs", "-appendToFile"], words].concat())
            .stdin_file(&file)
            .finish()
            .expect_code(1)
            .expect_words(&[said]);
        assert_eq!(fs::read(&file).unwrap(), b"one\n", "{words:?}");
    };
    refuse(&[&file, "/x"], "are identical");
    refuse(&["-", "/x"], "are identical");
    refuse(&[&sandbox.write("other", "two\n"), &sandbox.text("missing"), "/x"], "No such file");
}

#[test]
fn getmerge_that_finds_nothing_leaves_its_target_as_it_was() {
    let sandbox = Sandbox::new();
    let target = sandbox.write("target", "kept\n");
    sandbox.write("hdfs/d/part-0", "one\n");
    sandbox.write("hdfs/d/part-1", "two\n");
    for sources in [&["/nope"][..], &["/d", "/nope"]] {
        let words = [&["fs", "-getmerge"], sources, &[&target]].concat();
        call(&sandbox, "hadoop", &words).finish().expect_code(1).expect_words(&["`/nope': No such file"]);
        assert_eq!(fs::read(&target).unwrap(), b"kept\n");
    }
    call(&sandbox, "hadoop", &["fs", "-getmerge", "/d"]).finish().expect_code(255);
    well(&sandbox, &["fs", "-getmerge", "/d", &target]);
    assert_eq!(fs::read(&target).unwrap(), b"one\ntwo\n");
}

#[test]
fn empty_name_is_refused_and_never_the_folder_of_the_user() {
    let sandbox = Sandbox::new();
    well(&sandbox, &["fs", "-mkdir", "-p", "mine"]);
    for words in [&["-rm", "-r", ""][..], &["-rm", "-r", "-f", "", "mine"], &["-ls", ""], &["-mv", "", "/x"]]
    {
        call(&sandbox, "hadoop", &[&["fs"], words].concat())
            .finish()
            .expect_code(255)
            .expect_words(&["empty string"]);
        well(&sandbox, &["fs", "-test", "-d", "mine"]);
    }
    for verb in ["-rm", "-mkdir", "-touchz", "-cat", "-cp"] {
        let refused = call(&sandbox, "hadoop", &["fs", verb]).finish();
        refused.expect_code(255).expect_words(&["Not enough arguments"]);
    }
}
