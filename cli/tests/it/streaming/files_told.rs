//! `hadoop fs` says what it could not do: nothing is left out silently, and no word it does not know is passed over.

use super::hadoop::{call, well};
use crate::support::Sandbox;
use crate::support::sandbox::Finished;
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn ends(sandbox: &Sandbox, words: &[&str], code: i32, said: &str) -> Finished {
    call(sandbox, "hadoop", &[&["fs"], words].concat()).finish().expect_code(code).expect_words(&[said])
}

fn run(sandbox: &Sandbox, words: &[&str]) -> String {
    well(sandbox, &[&["fs"], words].concat())
}

#[test]
fn trees_are_gone_through_to_their_ends_when_they_are_deep() {
    let sandbox = Sandbox::new();
    let deep = "d/".repeat(500);
    sandbox.write(&format!("hdfs/{deep}x"), "12345");
    let count: Vec<String> = run(&sandbox, &["-count", "/d"]).split_whitespace().map(str::to_owned).collect();
    assert_eq!(count, ["500", "1", "5", "hdfs:///d"]);
    assert_eq!(run(&sandbox, &["-du", "-s", "/d"]), "5  5  hdfs:///d\n");
    for (words, root) in [(&["-ls", "-R", "-C", "/d"][..], ""), (&["-find", "/d", "-name", "x"], "hdfs://")] {
        assert_eq!(run(&sandbox, words).lines().last(), Some(&*format!("{root}/{deep}x")), "{words:?}");
    }
}

#[test]
fn folder_that_cannot_be_looked_at_is_named_when_trees_are_gone_through() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/a/x", "");
    // Deeper than any name may be long: root cannot look at it either.
    let name = "n".repeat(250);
    let mut folder = File::open(sandbox.path("hdfs/a")).unwrap();
    for _ in 0..17 {
        mkdirat(&folder, &name, Mode::from_raw_mode(0o700)).unwrap();
        folder = openat(&folder, &name, OFlags::DIRECTORY, Mode::empty()).unwrap().into();
    }
    for words in [
        &["-count", "/a"][..],
        &["-du", "/a"],
        &["-du", "-s", "/a"],
        &["-find", "/a"],
        &["-ls", "-R", "/a"],
        &["-cp", "/a", "/copy"],
        &["-cat", &format!("/a{}", "/*".repeat(18))],
    ] {
        ends(&sandbox, words, 1, &format!("{name}/{name}"));
    }
}

#[test]
fn link_that_leads_back_is_named_when_trees_are_gone_through() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/a/x", "");
    for name in ["here", "too"] {
        symlink(".", sandbox.path("hdfs/a").join(name)).unwrap();
    }
    for words in [&["-count", "/a"][..], &["-du", "-s", "/a"], &["-ls", "-R", "-C", "/a"]] {
        ends(&sandbox, words, 1, "/a/here': leads back to a folder that it lies in");
    }
    let listed = ends(&sandbox, &["-ls", "-R", "-C", "/a"], 1, "`/a/too': leads back").stdout_text();
    assert_eq!(listed, "/a/here\n/a/too\n/a/x\n");
    assert_eq!(run(&sandbox, &["-find", "/a"]), "hdfs:///a\nhdfs:///a/here\nhdfs:///a/too\nhdfs:///a/x\n");
}

#[test]
fn links_are_named_when_they_lead_on_in_more_ways_than_anybody_waits_for() {
    let sandbox = Sandbox::new();
    for number in 0..40 {
        let folder = sandbox.path(&format!("hdfs/a/{number}"));
        fs::create_dir_all(&folder).unwrap();
        for name in ["x", "y"] {
            symlink(format!("../{}", number + 1), folder.join(name)).unwrap();
        }
    }
    fs::create_dir(sandbox.path("hdfs/a/40")).unwrap();
    ends(&sandbox, &["-count", "/a/0"], 1, "in more than 20000 ways");
}

#[test]
fn draft_of_a_copy_that_was_killed_is_left_out_when_files_are_merged_or_named_by_a_star() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/d/.gristmill-draft-aB3xYz", "half");
    sandbox.write("hdfs/d/.hidden", "hidden\n");
    sandbox.write("hdfs/d/part-0", "one\n");
    // Not what somebody else calls so.
    sandbox.write("hdfs/e/.draft-report", "1");
    assert_eq!(run(&sandbox, &["-cat", "/e/*"]), "1");
    assert_eq!(run(&sandbox, &["-cat", "/d/*"]), "hidden\none\n");
    ends(&sandbox, &["-cat", "/d/?g*"], 1, "No such file or directory");
    assert_eq!(run(&sandbox, &["-getmerge", "/d", &sandbox.text("merged")]), "");
    assert_eq!(fs::read(sandbox.path("merged")).unwrap(), b"hidden\none\n");
    assert_eq!(
        run(&sandbox, &["-rm", "/d/.gristmill-draft-*"]),
        "Deleted hdfs:///d/.gristmill-draft-aB3xYz\n"
    );
}

#[test]
fn braces_are_refused_when_they_stand_for_too_many_names() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("hdfs")).unwrap();
    ends(&sandbox, &["-rm", "-f", &"{a,b}".repeat(26)], 1, "more than 10000 names");
}

#[test]
fn flag_that_a_command_does_not_know_is_refused_before_anything_is_done() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("hdfs/x", "kept\n");
    for (words, said) in [
        (&["-rm", "-safely", "/x"][..], "-rm: Illegal option -safely"),
        (&["-rm", "--f", "/x"], "-rm: Illegal option --f"),
        (&["-ls", "-Q", "/"], "-ls: Illegal option -Q"),
        (&["-count", "-q", "/"], "-count: Illegal option -q"),
        (&["-tail", "-f", "/x"], "-tail: Illegal option -f"),
        (&["-mkdir", "-m", "/y"], "-mkdir: Illegal option -m"),
        (&["-touch", "-r", "/y"], "-touch: Illegal option -r"),
        (&["-find", "/", "-name"], "-name"),
    ] {
        ends(&sandbox, words, 255, said);
        assert_eq!(fs::read(&file).unwrap(), b"kept\n");
        assert!(!sandbox.path("hdfs/y").exists());
    }
    sandbox.write("hdfs/user/me/-odd", "odd\n");
    assert_eq!(run(&sandbox, &["-cat", "--", "-odd"]), "odd\n");
    assert_eq!(run(&sandbox, &["-find", "-name", "-odd"]), "hdfs:///user/me/-odd\n");
}

#[test]
fn times_and_rights_are_set_when_the_flags_of_touch_and_chmod_say_so() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("hdfs/d/x", "kept\n");
    let seen = || fs::metadata(&file).unwrap();
    run(&sandbox, &["-touch", "-t", "20240229:123456", "/d/x"]);
    assert_eq!((seen().mtime(), seen().atime(), seen().len()), (1_709_210_096, 1_709_210_096, 5));
    run(&sandbox, &["-touch", "-m", "-t", "19991231:235959", "/d/x", "/d/new"]);
    assert_eq!((seen().mtime(), seen().atime()), (946_684_799, 1_709_210_096));
    assert_eq!(fs::metadata(sandbox.path("hdfs/d/new")).unwrap().mtime(), 946_684_799);
    run(&sandbox, &["-touch", "-c", "/d/none"]);
    assert!(!sandbox.path("hdfs/d/none").exists());
    ends(&sandbox, &["-touch", "-t", "tomorrow", "/d/none"], 255, "yyyyMMdd:HHmmss");
    ends(&sandbox, &["-touchz", "/d/x"], 1, "Not a zero-length file");
    assert_eq!(fs::read(&file).unwrap(), b"kept\n");
    run(&sandbox, &["-touchz", "/d/empty", "/d/empty"]);
    assert_eq!(fs::metadata(sandbox.path("hdfs/d/empty")).unwrap().len(), 0);
    run(&sandbox, &["-chmod", "u=rwX,go=", "/d", "/d/x"]);
    let rights = |name: &str| fs::metadata(sandbox.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((rights("hdfs/d"), rights("hdfs/d/x")), (0o700, 0o600));
    run(&sandbox, &["-chmod", "-w", "/d/x"]);
    assert_eq!(rights("hdfs/d/x"), 0o400);
    // Who may remove what is in a folder, and to which group that belongs, stays unless it is said.
    let folder = sandbox.path("hdfs/d");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o3777)).unwrap();
    for (mode, is) in [("g-w", 0o3757), ("750", 0o2750), ("+t", 0o3750), ("1700", 0o3700)] {
        run(&sandbox, &["-chmod", mode, "/d"]);
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, is, "{mode}");
    }
    ends(&sandbox, &["-chmod", "7", "/d"], 255, "mode '7' does not match");
    // With the times, and without.
    run(&sandbox, &["-touch", "-t", "20010203:040506", "/d/x"]);
    assert_eq!(run(&sandbox, &["-stat", "%X %x", "/d/x"]), "981173106000 2001-02-03 04:05:06\n");
    for (flag, is_kept) in [("-ptopax", true), ("-pax", false)] {
        run(&sandbox, &["-cp", "-f", flag, "/d/x", "/d/y"]);
        let copied = fs::metadata(sandbox.path("hdfs/d/y")).unwrap();
        assert_eq!(copied.mtime() == 981_173_106, is_kept, "{flag}");
    }
    ends(&sandbox, &["-cp", "-pq", "/d/x", "/d/y"], 255, "-cp: Illegal option -pq");
}

#[test]
fn empty_files_are_skipped_when_getmerge_is_told_to() {
    let sandbox = Sandbox::new();
    for (name, text) in [("a", "one"), ("b", ""), ("c", "two")] {
        sandbox.write(&format!("hdfs/d/{name}"), text);
    }
    let merged = sandbox.text("merged");
    run(&sandbox, &["-getmerge", "-nl", "/d", &merged]);
    assert_eq!(fs::read(&merged).unwrap(), b"one\n\ntwo\n");
    run(&sandbox, &["-getmerge", "-nl", "-skip-empty-file", "/d", &merged]);
    assert_eq!(fs::read(&merged).unwrap(), b"one\ntwo\n");
    symlink("nowhere", sandbox.path("hdfs/d/lost")).unwrap();
    ends(&sandbox, &["-getmerge", "/d", &merged], 1, "`hdfs:///d/lost': No such file");
    assert_eq!(fs::read(&merged).unwrap(), b"one\ntwo\n");
}

#[test]
fn file_that_cannot_be_read_is_blamed_and_not_standard_output() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/d/bad.gz", "no gzip at all");
    ends(&sandbox, &["-tail", "/d"], 1, "tail: `hdfs:///d': Is a directory");
    ends(&sandbox, &["-head", "/d"], 1, "head: `hdfs:///d': Is a directory");
    let said = ends(&sandbox, &["-text", "/d/bad.gz"], 1, "text: `hdfs:///d/bad.gz': ").stderr;
    assert!(!said.contains("standard output"), "{said}");
}
