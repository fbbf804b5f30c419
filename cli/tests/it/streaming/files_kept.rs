//! `hadoop fs` destroys nothing that it was not told to: what it refuses to remove, to replace, and to copy into itself.

use super::hadoop::{call, install, well};
use crate::support::sandbox::Invocation;
use crate::support::{Sandbox, say_skipped, until};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn fs_call(sandbox: &Sandbox, words: &[&str]) -> Invocation {
    call(sandbox, "hadoop", &[&["fs"], words].concat())
}

fn refused(sandbox: &Sandbox, words: &[&str], said: &str) {
    fs_call(sandbox, words).finish().expect_code(1).expect_words(&[said]);
}

fn run(sandbox: &Sandbox, words: &[&str]) -> String {
    well(sandbox, &[&["fs"], words].concat())
}

fn install_hadoop(sandbox: &Sandbox) -> String {
    install(sandbox);
    sandbox.text("home/bin/hadoop")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn braces_stand_for_each_file_once_for_empty_alternatives_and_for_no_folder_above() {
    let sandbox = Sandbox::new();
    install(&sandbox);
    for name in ["part", "part-b"] {
        sandbox.write(&format!("hdfs/d/{name}"), format!("{name}\n"));
    }
    for words in [&["-rm", "-r", "/d/{.}"][..], &["-rm", "-r", "/d/x/{..,q}"], &["-mv", "/d/.{.}", "/e"]] {
        refused(&sandbox, words, "No such file or directory");
        assert!(sandbox.path("hdfs/d/part").exists(), "{words:?}");
    }
    assert_eq!(run(&sandbox, &["-cat", "/d/part{-b,}"]), "part\npart-b\n");
    assert_eq!(run(&sandbox, &["-cat", "/d/{part*,*b}"]), "part\npart-b\n");
    run(&sandbox, &["-rm", "/d/{part*,*b}"]);
    assert!(fs::read_dir(sandbox.path("hdfs/d")).unwrap().next().is_none());
}

#[test]
fn folder_that_holds_where_one_is_stays_when_it_is_to_be_removed_or_moved() {
    let sandbox = Sandbox::new();
    sandbox.write("top/a/b/sub/kept", "kept\n");
    let [a, b] = ["top/a", "top/a/b"].map(|name| format!("file://{}", sandbox.text(name)));
    let through = format!("{b}/sub/..");
    for words in [
        &["-rm", "-r", ".."][..],
        &["-rm", "-r", "-f", "."],
        &["-rmr", "sub/."],
        &["-rm", "-r", "sub/./"],
        &["-rm", "-r", "{no/ne,..}"],
        &["-rm", "-r", "*/.."],
        &["-rm", "-r", &a],
        &["-rm", "-r", &b],
        &["-rm", "-r", &through],
        &["-mv", &a, "../../other"],
        &["-mv", "..", "../../other"],
        &["-moveFromLocal", &a, "../../other"],
        &["-rmdir", ".."],
    ] {
        let words = [&["-fs", "file:///"], words].concat();
        fs_call(&sandbox, &words)
            .within(sandbox.path("top/a/b"))
            .finish()
            .expect_code(1)
            .expect_words(&["is not removed or moved"]);
        assert_eq!(fs::read(sandbox.path("top/a/b/sub/kept")).unwrap(), b"kept\n", "{words:?}");
        assert!(!sandbox.path("top/other").exists(), "{words:?}");
    }
    well(&sandbox, &["fs", "-rm", "-r", &format!("{b}/sub")]);
}

#[test]
fn root_of_hdfs_and_what_holds_it_stay_when_they_are_to_be_removed() {
    let sandbox = Sandbox::new();
    sandbox.write("data/hdfs/x", "kept\n");
    symlink("data", sandbox.path("linked")).unwrap();
    let name = |below: &str| format!("file://{}", sandbox.text(below));
    for name in ["/", "/x/..", "hdfs://host", &name("data"), &name("linked/hdfs"), &name("data/hdfs/")] {
        for verb in [&["-rm", "-r"][..], &["-rmdir"]] {
            fs_call(&sandbox, &[verb, &[name]].concat())
                .env("GRISTMILL_HDFS_ROOT", sandbox.path("data/hdfs"))
                .finish()
                .expect_code(1)
                .expect_words(&["is not removed or moved"]);
        }
        assert_eq!(fs::read(sandbox.path("data/hdfs/x")).unwrap(), b"kept\n", "{name}");
    }
}

#[test]
fn link_alone_is_removed_when_its_name_ends_with_a_slash() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/kept", "kept\n");
    symlink("folder", sandbox.path("link")).unwrap();
    run(&sandbox, &["-rm", "-r", &format!("file://{}//", sandbox.text("link"))]);
    assert!(fs::symlink_metadata(sandbox.path("link")).is_err());
    assert_eq!(fs::read(sandbox.path("folder/kept")).unwrap(), b"kept\n");
}

#[test]
fn file_whose_name_does_not_fit_stays_when_a_class_of_letters_removes_others() {
    let sandbox = Sandbox::new();
    for name in ["ärger", "üben", "öl"] {
        sandbox.write(&format!("hdfs/d/{name}"), "");
    }
    assert_eq!(run(&sandbox, &["-rm", "/d/[ä]*"]), "Deleted hdfs:///d/ärger\n");
    assert_eq!(run(&sandbox, &["-ls", "-C", "/d/?l"]), "/d/öl\n");
}

#[test]
fn signs_behind_backslashes_mean_themselves_and_what_else_would_fit_stays() {
    let sandbox = Sandbox::new();
    let names = ["a", "b", "-", "*", "a,b", "{a}"];
    for name in names {
        sandbox.write(&format!("hdfs/d/{name}"), "");
    }
    let left = || run(&sandbox, &["-ls", "-C", "/d"]).replace("/d/", "");
    assert_eq!(left(), "*\n-\na\na,b\nb\n{a}\n");
    assert_eq!(run(&sandbox, &["-rm", r"/d/[\-z]"]), "Deleted hdfs:///d/-\n");
    assert_eq!(run(&sandbox, &["-rm", r"/d/\*"]), "Deleted hdfs:///d/*\n");
    assert_eq!(run(&sandbox, &["-rm", r"/d/{a\,b,x}"]), "Deleted hdfs:///d/a,b\n");
    assert_eq!(run(&sandbox, &["-rm", r"/d/\{a\}"]), "Deleted hdfs:///d/{a}\n");
    assert_eq!(left(), "a\nb\n");
    for dots in [r"/d/\.\.", r"/d/\.", r"/d/.\."] {
        refused(&sandbox, &["-rm", "-r", dots], "No such file or directory");
    }
    assert_eq!(left(), "a\nb\n");
}

#[test]
fn copy_goes_on_behind_what_cannot_be_copied_and_a_move_leaves_the_source() {
    let sandbox = Sandbox::new();
    install(&sandbox);
    for name in ["from/z", "from/deep/z", "hdfs/x"] {
        sandbox.write(name, "z\n");
    }
    symlink("nowhere", sandbox.path("from/a-link")).unwrap();
    mkfifoat(CWD, sandbox.path("from/deep/a-pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    let from = sandbox.text("from");
    let said = ["a-link': No such file", "a-pipe': is a pipe, a socket or a device"];
    fs_call(&sandbox, &["-put", &from, "/copied"]).finish().expect_code(1).expect_words(&said);
    let link = sandbox.text("link");
    symlink("from", &link).unwrap();
    let said = ["link': not all of it could be copied, so it stays"];
    fs_call(&sandbox, &["-moveFromLocal", &link, "/moved"]).finish().expect_code(1).expect_words(&said);
    for to in ["copied", "moved"] {
        let names = ["z", "deep/z"].map(|name| fs::read(sandbox.path(&format!("hdfs/{to}/{name}"))).unwrap());
        assert_eq!(names, [b"z\n", b"z\n"]);
    }
    assert!(fs::symlink_metadata(&link).is_ok());
}

/// A folder on another disk than the sandbox, in memory; `None`, which it says, where there is none.
pub fn other_disk(sandbox: &Sandbox) -> Option<tempfile::TempDir> {
    let disk = |path: &Path| fs::metadata(path).unwrap().dev();
    let folder = tempfile::tempdir_in("/dev/shm").ok();
    let other = folder.filter(|folder| disk(folder.path()) != disk(&sandbox.path("")));
    if other.is_none() {
        say_skipped("moves to another disk", "/dev/shm is none");
    }
    other
}

#[test]
fn copy_or_move_to_another_disk_loses_nothing_when_links_in_the_target_lead_to_what_is_copied() {
    let sandbox = Sandbox::new();
    let Some(disk) = other_disk(&sandbox) else { return };
    install(&sandbox);
    let make = |name: &str, text: &str| {
        let path = disk.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let read = |name: &str| fs::read_to_string(sandbox.path("hdfs").join(name)).unwrap();
    let link = |to: &str, name: &str| {
        let path = sandbox.path("hdfs").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    };
    // A folder, where another one of the same source is.
    let (inner, outer) = (make("a/sub/p", "precious"), make("a/other/o", "o"));
    link(outer.strip_suffix("/o").unwrap(), "a/sub");
    let a = disk.path().join("a").to_str().unwrap().to_owned();
    refused(&sandbox, &["-put", "-f", &a, "/"], "is a link, and a folder is not copied to where one leads");
    refused(&sandbox, &["-moveFromLocal", "-f", &a, "/"], "Directory is not empty");
    assert_eq!([&inner, &outer].map(|path| fs::read_to_string(path).unwrap()), ["precious", "o"]);
    // A file, where another one of the same source is.
    make("b/x", "X");
    let y = make("b/y", "Y");
    link(&y, "b/x");
    let b = disk.path().join("b").to_str().unwrap().to_owned();
    refused(&sandbox, &["-moveFromLocal", "-f", &b, "/"], "Directory is not empty");
    assert_eq!(fs::read_to_string(&y).unwrap(), "Y");
    run(&sandbox, &["-put", "-f", &b, "/"]);
    assert_eq!(
        (read("b/x"), read("b/y"), fs::read_to_string(&y).unwrap()),
        ("X".into(), "Y".into(), "Y".into())
    );
    // A file with two names, of which one goes first.
    let one = make("h/one", "1");
    fs::hard_link(&one, disk.path().join("h/two")).unwrap();
    let h = disk.path().join("h").to_str().unwrap().to_owned();
    run(&sandbox, &["-moveFromLocal", &h, "/"]);
    assert_eq!((read("h/one"), read("h/two"), Path::new(&h).exists()), ("1".into(), "1".into(), false));
    // A file, where another source goes.
    let (latest, third) = (make("latest", "LATEST"), make("part-3", "P3"));
    link("part-3", "latest");
    run(&sandbox, &["-moveFromLocal", "-f", &latest, &third, "/"]);
    assert_eq!((read("latest"), read("part-3")), ("LATEST".into(), "P3".into()));
    // What keeps nothing.
    let x = make("c/x", "X");
    link("/dev/null", "c/x");
    let c = disk.path().join("c").to_str().unwrap().to_owned();
    refused(&sandbox, &["-put", "-f", &c, "/"], "is a pipe, a socket or a device");
    refused(&sandbox, &["-moveFromLocal", "-f", &c, "/"], "Directory is not empty");
    assert_eq!(fs::read_to_string(&x).unwrap(), "X");
    // And a copy beside its source.
    sandbox.write("hdfs/s/x", "X");
    sandbox.write("hdfs/s/y", "Y");
    link("../../s/y", "t/s/x");
    run(&sandbox, &["-cp", "-f", "/s", "/t"]);
    assert_eq!(["s/x", "s/y", "t/s/x", "t/s/y"].map(read), ["X", "Y", "X", "Y"]);
}

#[test]
fn what_comes_or_changes_while_a_folder_moves_to_another_disk_stays() {
    let sandbox = Sandbox::new();
    let Some(disk) = other_disk(&sandbox) else { return };
    fs::create_dir(sandbox.path("hdfs")).unwrap();
    let source = disk.path().join("d");
    fs::create_dir(&source).unwrap();
    for name in ["a", "b"] {
        fs::write(source.join(name), "early\n").unwrap();
    }
    // Long enough to be met at.
    File::create(source.join("z")).unwrap().set_len(1 << 30).unwrap();
    let moving = fs_call(&sandbox, &["-moveFromLocal", source.to_str().unwrap(), "/"]).start();
    let is_draft = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with(".gristmill-draft-");
    let is_met = || {
        let target = sandbox.path("hdfs/d");
        target.join("b").exists() && fs::read_dir(target).unwrap().flatten().any(is_draft)
    };
    until("the draft of the last file", || is_met().then_some(()));
    File::options().append(true).open(source.join("a")).unwrap().write_all(b"late\n").unwrap();
    fs::write(source.join("late"), "late\n").unwrap();
    assert!(is_met(), "the last file was not being copied any more");
    let said = ["a': has changed since it was copied, so it stays", "d': Directory is not empty"];
    moving.finish().expect_code(1).expect_words(&said);
    let mut left: Vec<_> = fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort_unstable();
    assert_eq!(left, ["a", "late"]);
    assert_eq!(fs::read(source.join("a")).unwrap(), b"early\nlate\n");
    assert_eq!(fs::read(sandbox.path("hdfs/d/b")).unwrap(), b"early\n");
}

#[test]
fn pipes_are_waited_for_only_when_they_are_named_themselves() {
    let sandbox = Sandbox::new();
    install(&sandbox);
    for name in ["w/a", "w/c", "d/x", "d/y", "hdfs/d/y"] {
        sandbox.write(name, "1\n");
    }
    for name in ["w/b", "hdfs/d/x"] {
        mkfifoat(CWD, sandbox.path(name), Mode::RUSR | Mode::WUSR).unwrap();
    }
    let (all, d) = (sandbox.text("w/*"), sandbox.text("d"));
    refused(&sandbox, &["-put", &all, "/"], "w/b': is a pipe, a socket or a device");
    assert_eq!(run(&sandbox, &["-cat", "/a", "/c"]), "1\n1\n");
    sandbox.write("d/y", "2\n");
    refused(&sandbox, &["-put", "-f", &d, "/"], "/d/x': is a pipe, a socket or a device");
    assert_eq!(run(&sandbox, &["-cat", "/d/y"]), "2\n");
    // Nor is one that was not named itself.
    let x = sandbox.text("d/x");
    refused(&sandbox, &["-put", "-f", &x, "/d"], "/d/x': is a pipe, a socket or a device");
}

#[test]
fn what_cannot_be_looked_at_is_told_and_what_is_no_range_means_nothing() {
    let sandbox = Sandbox::new();
    for name in ["hdfs/d/a", "hdfs/d/z", r"hdfs/d/\*", "hdfs/d/*"] {
        sandbox.write(name, "");
    }
    symlink("loop", sandbox.path("hdfs/loop")).unwrap();
    refused(&sandbox, &["-rm", "-f", "/loop/x"], "/loop/x': ");
    assert_eq!(run(&sandbox, &["-rm", "/loop"]), "Deleted hdfs:///loop\n");
    refused(&sandbox, &["-rm", "/d/[!z-a]"], "No such file or directory");
    // Not the file whose name is written as the pattern is.
    assert_eq!(run(&sandbox, &["-rm", r"/d/\*"]), "Deleted hdfs:///d/*\n");
    assert_eq!(run(&sandbox, &["-ls", "-C", "/d"]), "/d/\\*\n/d/a\n/d/z\n");
}

#[test]
fn folder_in_which_one_is_or_hdfs_lies_is_no_pattern_whatever_it_is_called() {
    let sandbox = Sandbox::new();
    for (own, other) in [(r"w/b\s", "w/bs"), ("w/c[ab]", "w/ca"), ("r*", "rother")] {
        for folder in [own, other] {
            sandbox.write(&format!("{folder}/x"), "");
        }
        for pattern in ["x", "x*", r"\x"] {
            fs::write(sandbox.path(own).join("x"), "").unwrap();
            let within = fs_call(&sandbox, &["-fs", "file:///", "-rm", pattern]).within(sandbox.path(own));
            within.finish().expect_code(0);
            assert!(!sandbox.path(own).join("x").exists(), "{own} {pattern}");
            fs::write(sandbox.path(own).join("x"), "").unwrap();
            let rooted = fs_call(&sandbox, &["-rm", &format!("/{pattern}")]);
            rooted.env("GRISTMILL_HDFS_ROOT", sandbox.path(own)).finish().expect_code(0);
            assert!(!sandbox.path(own).join("x").exists(), "{own} {pattern}");
            assert!(sandbox.path(other).join("x").exists(), "{own} {pattern}");
        }
    }
}

#[test]
fn two_sources_of_one_name_stay_when_they_would_go_to_one_file() {
    let sandbox = Sandbox::new();
    for (name, text) in [("hdfs/d1/x", "1"), ("hdfs/d2/x", "2"), ("l1/x", "1"), ("l2/x", "2")] {
        sandbox.write(name, text);
    }
    let [one, two, down] = ["l1/x", "l2/x", "down"].map(|name| sandbox.text(name));
    run(&sandbox, &["-mkdir", "/t"]);
    fs::create_dir(&down).unwrap();
    for words in [
        &["-mv", "-f", "/d1/x", "/d2/x", "/t"][..],
        &["-mv", "/d1/x", "/d2/x", "/t"],
        &["-cp", "-f", "/d*/x", "/t"],
        &["-moveFromLocal", "-f", &one, &two, "/t"],
        &["-put", &one, &two, "/t"],
        &["-get", "-f", "/d1/x", "/d2/x", &down],
    ] {
        refused(&sandbox, words, "would both become");
        assert_eq!(run(&sandbox, &["-cat", "/d1/x", "/d2/x"]), "12", "{words:?}");
        assert_eq!([&one, &two].map(|path| fs::read_to_string(path).unwrap()), ["1", "2"], "{words:?}");
        assert_eq!(run(&sandbox, &["-ls", "-C", "/t"]), "", "{words:?}");
        assert_eq!(fs::read_dir(&down).unwrap().count(), 0, "{words:?}");
    }
}

#[test]
fn file_that_came_meanwhile_stays_when_a_put_without_force_ends() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("hdfs")).unwrap();
    for (number, words) in [&["-put", "-"][..], &["-cp", "PIPE"], &["-get", "PIPE"]].iter().enumerate() {
        let pipe = sandbox.path("hdfs").join(format!("pipe-{number}"));
        mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
        // Open for both: nobody waits for the other.
        let mut feed = File::options().read(true).write(true).open(&pipe).unwrap();
        let named = format!("/pipe-{number}");
        let target = sandbox.path("hdfs").join(format!("x-{number}"));
        let target_name = match words[0] {
            "-get" => target.to_str().unwrap().to_owned(),
            _ => format!("/x-{number}"),
        };
        let source = if words[1] == "-" { "-" } else { &named };
        let running = fs_call(&sandbox, &[words[0], source, &target_name]).stdin_file(&pipe).start();
        let is_begun = || {
            let names = fs::read_dir(sandbox.path("hdfs")).unwrap().flatten();
            names
                .into_iter()
                .any(|entry| entry.file_name().to_string_lossy().starts_with(".gristmill-draft-"))
        };
        until("the draft of the copy", || is_begun().then_some(()));
        fs::write(&target, "kept\n").unwrap();
        feed.write_all(b"late\n").unwrap();
        drop(feed);
        running.finish().expect_code(1).expect_words(&["File exists"]);
        assert_eq!(fs::read(&target).unwrap(), b"kept\n", "{words:?}");
    }
}

#[test]
fn source_stays_when_a_link_in_the_target_leads_to_it() {
    let sandbox = Sandbox::new();
    let one = sandbox.write("hdfs/s/one", "one\n");
    sandbox.write("hdfs/t/s/other", "");
    symlink(&one, sandbox.path("hdfs/t/s/one")).unwrap();
    refused(&sandbox, &["-cp", "-f", "/s", "/t"], "are identical");
    assert_eq!(fs::read(&one).unwrap(), b"one\n");
    assert!(fs::symlink_metadata(sandbox.path("hdfs/t/s/one")).unwrap().is_symlink());
}

#[test]
fn copy_of_a_folder_ends_where_a_link_leads_back_to_what_holds_it() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/a/b/x", "x\n");
    symlink("..", sandbox.path("hdfs/a/b/up")).unwrap();
    refused(&sandbox, &["-cp", "/a", "/copy"], "leads back");
    refused(&sandbox, &["-cp", "/a/b", "/a/aa"], "leads back");
    let found = run(&sandbox, &["-find", "/"]);
    assert_eq!(found.lines().find(|name| 6 < name.matches('/').count()), None, "{found}");
}

#[test]
fn file_goes_and_its_content_stays_when_a_link_to_it_is_moved_from_this_machine() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/file", "content\n");
    symlink("file", sandbox.path("folder/link")).unwrap();
    fs::create_dir(sandbox.path("hdfs")).unwrap();
    run(&sandbox, &["-moveFromLocal", &sandbox.text("folder/link"), "/x"]);
    let there = sandbox.path("hdfs/x");
    assert!(fs::symlink_metadata(&there).unwrap().is_file());
    assert_eq!(fs::read(&there).unwrap(), b"content\n");
    assert!(fs::symlink_metadata(sandbox.path("folder/link")).is_err());
    assert!(sandbox.path("folder/file").exists());
    // Also in a folder.
    fs::create_dir(sandbox.path("folder/in")).unwrap();
    symlink("../file", sandbox.path("folder/in/link")).unwrap();
    run(&sandbox, &["-moveFromLocal", &sandbox.text("folder/in"), "/y"]);
    assert_eq!(fs::read(sandbox.path("hdfs/y/link")).unwrap(), b"content\n");
    assert!(!sandbox.path("folder/in").exists() && sandbox.path("folder/file").exists());
}

#[test]
fn folders_keep_their_rights_and_files_lose_those_of_their_owner_when_they_are_copied() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("hdfs/a/b/x", "x\n");
    let set = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(Path::new(&file), 0o6755);
    set(&sandbox.path("hdfs/a/b"), 0o500);
    set(&sandbox.path("hdfs/a"), 0o700);
    run(&sandbox, &["-cp", "/a", "/copy"]);
    let copied = ["copy", "copy/b", "copy/b/x"].map(|name| mode(&sandbox.path("hdfs").join(name)));
    assert_eq!(copied, [0o700, 0o500, 0o755]);
    run(&sandbox, &["-touch", "-t", "20240229:123456", "/a/b/x", "/a/b", "/a"]);
    run(&sandbox, &["-cp", "-p", "/a", "/same"]);
    for name in ["same", "same/b", "same/b/x"] {
        assert_eq!(fs::metadata(sandbox.path("hdfs").join(name)).unwrap().mtime(), 1_709_210_096, "{name}");
    }
}

#[test]
fn pipe_that_is_standard_output_is_written_to_when_it_is_the_target() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/d/x", "x\n");
    // Standard output is a file here, in which something stands already.
    let script = "$0 fs -cat /d/x && $0 fs -get -f /d/x /dev/stdout && $0 fs -getmerge /d /dev/stdout";
    let program = install_hadoop(&sandbox);
    let shell = sandbox.program(Path::new("sh"), ["-c", script, &program]);
    let finished = shell.env("GRISTMILL_HDFS_ROOT", sandbox.path("hdfs")).finish().expect_code(0);
    assert_eq!(finished.stdout_text(), "x\nx\nx\n");
    let pipe = sandbox.path("pipe");
    mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).unwrap();
    let mut reader = File::options().read(true).write(true).open(&pipe).unwrap();
    run(&sandbox, &["-get", "-f", "/d/x", &sandbox.text("pipe")]);
    let mut read = [0; 2];
    std::io::Read::read_exact(&mut reader, &mut read).unwrap();
    assert_eq!(&read, b"x\n");
}

#[test]
fn target_stays_as_it_was_when_one_source_of_an_append_is_a_folder() {
    let sandbox = Sandbox::new();
    let (good, target) = (sandbox.write("good", "good\n"), sandbox.write("hdfs/t", "kept\n"));
    refused(&sandbox, &["-appendToFile", &good, &sandbox.text("hdfs"), "/t"], "Is a directory");
    assert_eq!(fs::read(&target).unwrap(), b"kept\n");
}
