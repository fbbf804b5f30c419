//! `hadoop fs`, command by command, beyond what drivers use (`hadoop`): the files that a name matches, and
//! what is refused.

use super::hadoop::{call, well};
use crate::support::Sandbox;
use crate::support::sandbox::Finished;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

fn run(sandbox: &Sandbox, words: &[&str]) -> String {
    well(sandbox, &[&["fs"], words].concat())
}

fn ends(sandbox: &Sandbox, words: &[&str], code: i32, said: &str) -> Finished {
    call(sandbox, "hadoop", &[&["fs"], words].concat()).finish().expect_code(code).expect_words(&[said])
}

const NOT_FOUND: &str = "No such file or directory";

#[test]
fn files_and_trees_are_copied_moved_and_merged() {
    let sandbox = Sandbox::new();
    let (local, other) = (sandbox.write("local", "one\n"), sandbox.write("tree/in/other", "two\n"));
    run(&sandbox, &["-mkdir", "-p", "/a", "/b"]);
    run(&sandbox, &["-put", &local, "/a/x"]);
    ends(&sandbox, &["-put", &local, "/a/x"], 1, "put: `/a/x': File exists");
    run(&sandbox, &["-put", "-f", &other, "/a/x"]);
    run(&sandbox, &["-put", &local, &other, "/b"]);
    run(&sandbox, &["-put", &sandbox.text("tree"), "/"]);
    assert_eq!(run(&sandbox, &["-cat", "/a/x", "/b/*", "/tree/in/other"]), "two\none\ntwo\ntwo\n");
    call(&sandbox, "hadoop", &["fs", "-put", "-", "/b/typed"]).stdin_file(&local).finish().expect_code(0);
    assert_eq!(run(&sandbox, &["-cat", "/b/typed"]), "one\n");
    run(&sandbox, &["-cp", "/b", "/c"]);
    run(&sandbox, &["-cp", "-f", "/a/x", "/c/local"]);
    run(&sandbox, &["-mv", "/c/local", "/c/moved"]);
    ends(&sandbox, &["-mv", "/c/other", "/c/moved"], 1, "File exists");
    run(&sandbox, &["-get", "/c", &sandbox.text("back")]);
    assert_eq!(fs::read(sandbox.path("back/moved")).unwrap(), b"two\n");
    run(&sandbox, &["-getmerge", "-nl", "/c", &sandbox.text("merged")]);
    assert_eq!(fs::read(sandbox.path("merged")).unwrap(), b"two\n\ntwo\n\none\n\n");
    ends(&sandbox, &["-getmerge", "/c", "/none", &sandbox.text("merged")], 1, NOT_FOUND);
    assert_eq!(fs::read(sandbox.path("merged")).unwrap().len(), 15, "the target of a failed merge stays");
    run(&sandbox, &["-get", "-f", "/a/x", "/dev/null"]);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn rights_change_and_owners_stay() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("hdfs/a/x", "x");
    let outside = sandbox.write("key", "x");
    fs::set_permissions(&outside, Permissions::from_mode(0o600)).unwrap();
    symlink(&outside, sandbox.path("hdfs/a/link")).unwrap();
    let mode = |path: &str| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    run(&sandbox, &["-chmod", "-R", "777", "/a"]);
    assert_eq!((mode(&file), mode(&outside)), (0o777, 0o600), "a link below is not followed");
    run(&sandbox, &["-chmod", "755", "/a/*"]);
    assert_eq!((mode(&file), mode(&outside)), (0o755, 0o600), "nor one that matches a pattern");
    run(&sandbox, &["-chmod", "600", "/a/x"]);
    assert!(run(&sandbox, &["-ls", "/a/x"]).starts_with("-rw-------   1 me supergroup          1 "));
    run(&sandbox, &["-chown", "-R", "me:us", "/a"]);
    ends(&sandbox, &["-stat", "%F", "/a/x"], 255, "stat: formats are not supported");
    for mode in ["9", "888", "go-w", "2755"] {
        ends(&sandbox, &["-chmod", mode, "/a"], 1, &format!("mode '{mode}' is not supported"));
    }
    ends(&sandbox, &["-chown", "me", "/nope"], 1, NOT_FOUND);
}

#[test]
fn names_stand_for_what_they_match_and_new_names_for_themselves() {
    let sandbox = Sandbox::new();
    let new = sandbox.write("new", "new");
    for name in ["d/part-0", "d/part-1", "d/_log", "d/a*", "d/ab"] {
        sandbox.write(&format!("hdfs/{name}"), name);
    }
    assert_eq!(run(&sandbox, &["-cat", "/d/part-{1,0}"]), "d/part-0d/part-1");
    assert_eq!(run(&sandbox, &["-du", "/d/*"]).lines().count(), 5, "hidden names match");
    // The file with exactly this name is meant, and no other that matches.
    assert_eq!(run(&sandbox, &["-rm", "/d/a*"]), "Deleted hdfs:///d/a*\n");
    run(&sandbox, &["-put", &new, "/d/x[1]"]);
    assert_eq!(run(&sandbox, &["-cat", r"/d/x\[1\]", "/d/x[1]"]), "newnew");
    run(&sandbox, &["-test", "-e", "/d/part-*"]);
    ends(&sandbox, &["-test", "-z", "/d/part-*"], 1, "");
    for words in [&["-cat", "/d/none*"][..], &["-rm", "-r", "/{,}/*"], &["-rm", "-r", "/d/.{a,}/*"]] {
        ends(&sandbox, words, 1, NOT_FOUND);
    }
    run(&sandbox, &["-rm", "-f", "/d/none*"]);
    ends(&sandbox, &["-rm", "/d/[ä]*"], 1, NOT_FOUND);
    ends(&sandbox, &["-put", &new, "/none/"], 1, NOT_FOUND);
    ends(&sandbox, &["-put", "-f", &new, &new, "/d/ab"], 1, "Is not a directory");
    // The root is not a pattern, whatever its name.
    sandbox.write("r*/x", "");
    sandbox.write("rother/x", "");
    let rooted = call(&sandbox, "hadoop", &["fs", "-rm", "/x*"]);
    rooted.env("GRISTMILL_HDFS_ROOT", sandbox.path("r*")).finish().expect_code(0);
    assert!(sandbox.path("rother/x").exists() && !sandbox.path("r*/x").exists());
}

#[test]
fn roots_homes_and_the_current_directory_are_never_removed_or_moved() {
    let sandbox = Sandbox::new();
    sandbox.write("top/a/kept", "kept\n");
    sandbox.write("hdfs/x", "kept\n");
    symlink("hdfs", sandbox.path("linked")).unwrap();
    let [above, here, root, linked] =
        ["top", "top/a", "", "hdfs/../hdfs"].map(|name| format!("file://{}", sandbox.text(name)));
    for words in [
        &["-rm", "-r", "/"][..],
        &["-rm", "-r", "hdfs://host"],
        &["-rm", "-r", "/x/.."],
        &["-rm", "-r", "file:///"],
        &["-rm", "-r", &above],
        &["-rm", "-r", &here],
        &["-rm", "-r", &root],
        &["-rm", "-r", &linked],
        &["-mv", &here, "/t"],
        &["-fs", "file:///", "-rm", "-r", ".."],
        &["-fs", "file:///", "-rm", "-r", "."],
    ] {
        let removed = call(&sandbox, "hadoop", &[&["fs"], words].concat()).within(sandbox.path("top/a"));
        removed.finish().expect_code(1).expect_words(&["is not removed or moved"]);
        assert!(sandbox.path("top/a/kept").exists() && sandbox.path("hdfs/x").exists(), "{words:?}");
    }
    // A link is removed itself, also with a trailing slash.
    run(&sandbox, &["-rm", "-r", &format!("file://{}/", sandbox.text("linked"))]);
    assert!(sandbox.path("hdfs/x").exists() && !sandbox.path("linked").exists());
}

#[test]
fn nothing_is_lost_when_copies_and_moves_make_no_sense() {
    let sandbox = Sandbox::new();
    let one = sandbox.write("hdfs/d/one", "one\n");
    sandbox.write("hdfs/d/two", "two\n");
    for (words, said) in [
        (&["-cp", "-f", "/d", "/d/e"][..], "is a subdirectory of itself"),
        (&["-mv", "/d", "/d/e"], "is a subdirectory of itself"),
        (&["-mv", "/d/one", "/d/two"], "File exists"),
        (&["-mv", "/d/one", "/missing", "/d/two"], "Is not a directory"),
        (&["-cp", "-f", "/d/*", "/missing"], NOT_FOUND),
        (&["-getmerge", "/d", "/none/merged"], NOT_FOUND),
        (&["-touchz", "/d/one"], "Not a zero-length file"),
        (&["-mkdir", "/d/one"], "File exists"),
        (&["-rm", "/d"], "Is a directory"),
        (&["-cat", "/d"], "Is a directory"),
    ] {
        ends(&sandbox, words, 1, said);
        assert_eq!(run(&sandbox, &["-cat", "/d/one", "/d/two"]), "one\ntwo\n", "{words:?}");
    }
    run(&sandbox, &["-cp", "-f", "/d/one", "/d/one"]);
    run(&sandbox, &["-getmerge", "/d", &one]);
    assert_eq!(run(&sandbox, &["-cat", "/d/one"]), "one\ntwo\n");
}

#[test]
fn calls_that_make_no_sense_are_refused_before_anything_is_done() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("hdfs/user/me/x", "kept\n");
    for (words, said) in [
        (&["-rm", "-safely", "x"][..], "-rm: Illegal option -safely"),
        (&["-cp", "-p", "x", "y"], "-cp: Illegal option -p"),
        (&["-rm", "-r", "", "x"], "rm: Can not create a Path from an empty string"),
        (&["-rm"], "rm: Not enough arguments: expected 1 but got 0"),
        (&["-mv", "x"], "mv: Not enough arguments: expected 2 but got 1"),
        (&["-tail", "x"], "-tail: Unknown command; available: ls (lsr), cat, mkdir, "),
        (&["-fs", "s3a://b", "-rm", "x"], "is not a supported file system"),
        (&["-conf", "none.xml", "-rm", "x"], "-conf: files of properties are not supported"),
    ] {
        ends(&sandbox, words, 255, said);
        assert_eq!(fs::read(&file).unwrap(), b"kept\n", "{words:?}");
    }
    ends(&sandbox, &["-rm", "file://logs/x"], 1, "Wrong FS");
    sandbox.write("hdfs/user/me/-odd", "odd\n");
    assert_eq!(run(&sandbox, &["-cat", "--", "-odd"]), "odd\n");
    // The working directory of this machine, if that is the file system.
    let own = sandbox.write("out", "");
    let local = call(&sandbox, "hadoop", &["fs", "-D", "fs.default.name=file:///", "-rm", "out"]);
    local.within(sandbox.path("")).finish().expect_code(0);
    assert!(!fs::exists(own).unwrap());
}

#[test]
fn link_that_leads_back_is_named_when_trees_are_walked() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/a/x", "12345");
    assert_eq!(run(&sandbox, &["-count", "/a"]), "           1            1                  5 hdfs:///a\n");
    symlink(".", sandbox.path("hdfs/a/back")).unwrap();
    for words in [&["-count", "/a"][..], &["-du", "-s", "/a"], &["-ls", "-R", "/a"], &["-cp", "/a", "/copy"]]
    {
        ends(&sandbox, words, 1, "`hdfs:///a/back': is a link that leads back to its parent");
    }
    assert!(ends(&sandbox, &["-ls", "-R", "/a"], 1, "").stdout_text().ends_with(" /a/x\n"));
}
