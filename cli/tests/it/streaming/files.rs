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
    assert_eq!(run(&["-ls", "-C", "/c"]), "hdfs:///c/x\nhdfs:///c/y\n");
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
    run(&["-chmod", "-R", "go-rwx,u=rwx", "/a"]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o700);
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
    assert_eq!(run(&["-ls", "-C", "-S", "/a"]).lines().last(), Some("hdfs:///a/Other"));
    assert!(run(&["-df", "/"]).starts_with("Filesystem "));
    assert!(run(&["-help"]).contains("-appendToFile"));
    call(&sandbox, "hadoop", &["fs", "-find", "/a", "-size", "1"]).finish().expect_code(255);
    call(&sandbox, "hadoop", &["fs", "-frob", "/a"])
        .finish()
        .expect_code(255)
        .expect_words(&["-frob: Unknown command"]);
}
