//! Which files a name means to `hadoop fs`: the same to every verb, and none that is not surely meant.

use super::files_kept::other_disk;
use super::hadoop::{call, install, well};
use crate::support::Sandbox;
use crate::support::sandbox::Finished;
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn ends(sandbox: &Sandbox, words: &[&str], code: i32, said: &str) -> Finished {
    call(sandbox, "hadoop", &[&["fs"], words].concat()).finish().expect_code(code).expect_words(&[said])
}

fn run(sandbox: &Sandbox, words: &[&str]) -> String {
    well(sandbox, &[&["fs"], words].concat())
}

const NOT_FOUND: &str = "No such file or directory";

#[test]
fn braces_that_leave_nothing_between_slashes_mean_no_folder_above() {
    let sandbox = Sandbox::new();
    let files = ["logs/x/a", "logs/y/a", "logs/z/a", "other/a", "user/me/a"];
    for name in files {
        sandbox.write(&format!("hdfs/{name}"), name);
    }
    let are_there = |names: &[&str]| names.iter().all(|name| sandbox.path("hdfs").join(name).exists());
    for name in
        ["/logs/{}", "/logs/{/}", "/logs/{,}", "/logs/{}/*", "/logs/{x,y}/{}", "{}", "{}/*", "/{}", "{{},}"]
    {
        ends(&sandbox, &["-rm", "-r", name], 1, NOT_FOUND);
        ends(&sandbox, &["-mv", name, "/t"], 1, NOT_FOUND);
        assert!(are_there(&files), "{name}");
    }
    for name in ["/logs/.{x,}/*", "/logs/{.x,.}/*", "/logs/..{x,}/*", "/logs/.{.x,.}/*", ".{a/b,./c}"] {
        ends(&sandbox, &["-rm", "-r", name], 1, NOT_FOUND);
        ends(&sandbox, &["-mv", name, "/t"], 1, NOT_FOUND);
        ends(&sandbox, &["-chmod", "000", name], 1, NOT_FOUND);
        assert!(are_there(&files), "{name}");
    }
    assert_eq!(run(&sandbox, &["-rm", "-r", "/logs/{x,}/*"]), "Deleted hdfs:///logs/x/a\n");
    assert_eq!(run(&sandbox, &["-rm", "-r", "/logs/{x,}"]), "Deleted hdfs:///logs/x\n");
    ends(&sandbox, &["-rm", "-r", "{x,}/*"], 1, NOT_FOUND);
    assert!(are_there(&files[1..]));
}

#[test]
fn file_system_is_the_one_that_was_named_last_and_never_that_of_an_unrelated_word() {
    let sandbox = Sandbox::new();
    let settings =
        |name: &str, inner: &str| sandbox.write(name, format!("<configuration>{inner}</configuration>"));
    let of = |value: &str| format!("<property><name>fs.defaultFS</name><value>{value}</value></property>");
    let none = settings("none.xml", "");
    let commented = settings("commented.xml", &format!("<!-- {} -->", of("file:///")));
    let local = settings("local.xml", &of("file:///"));
    let (own, named) = (sandbox.path("out"), sandbox.path("hdfs/user/me/out"));
    let is_local = |words: &[&str]| {
        sandbox.write("out", "");
        sandbox.write("hdfs/user/me/out", "");
        let removed = call(&sandbox, "hadoop", &[&["fs"], words, &["-rm", "out"]].concat());
        removed.within(sandbox.path("")).finish().expect_code(0);
        assert!(own.exists() != named.exists(), "{words:?}");
        named.exists()
    };
    let uri = format!("file://{none}");
    for words in [
        &[][..],
        &["-conf", &uri],
        &["-conf", &commented],
        &["-fs", "file:///", "-fs", "hdfs://nn/"],
        &["-D", "fs.defaultFS=file:///", "-D", "fs.defaultFS=hdfs://nn"],
        &["-D", "my.own=file:///", "-fs", "nn:8020"],
        &["-conf", &local, "-fs", "hdfs://nn"],
        &["-D", "fs.defaultFS=hdfs://nn", "-conf", &local],
    ] {
        assert!(!is_local(words), "{words:?}");
    }
    for words in [
        &["-fs", "file:///"][..],
        &["-fs", "local"],
        &["-D", "fs.default.name=file:///"],
        &["-Dfs.defaultFS=file:///"],
        &["-D", "fs.defaultFS=file:///", "-fs", "hdfs://nn"],
        &["-conf", &local],
    ] {
        assert!(is_local(words), "{words:?}");
    }
    let attributes = settings("attributes.xml", "<property name='fs.defaultFS' value='file:///'/>");
    let quoted = "<property\n><name ><!-- -->fs.<![CDATA[default]]><!-- -->FS</name><value>file&#58;///</value>\
                  </property>";
    let quoted = settings("quoted.xml", quoted);
    for words in [&["-D", "fs.defaultFS = file:///"][..], &["-conf", &attributes], &["-conf", &quoted]] {
        assert!(is_local(words), "{words:?}");
    }
    let including = settings("including.xml", "<xi:include xmlns:xi='x' href='none.xml'/>");
    let no_xml = sandbox.write("no.xml", "fs.defaultFS=file:///");
    let own = settings("own.xml", &of("${my.own}"));
    for words in [
        &["-fs", "s3a://b"][..],
        &["-fs", ""],
        &["-fs", "file"],
        &["-fs", "file:"],
        &["-fs", "FILE:"],
        &["-fs", "s3a:"],
        &["-fs", "Local"],
        &["-D", "fs.defaultFS="],
        &["-D", "fs.defaultFS"],
        &["-D", "fs.defaultFS=s3a://b"],
        &["-conf", "none.xml.not"],
        &["-conf", &including],
        &["-conf", &no_xml],
        &["-conf", &own],
    ] {
        let said = call(&sandbox, "hadoop", &[&["fs"], words, &["-rm", "out"]].concat()).finish();
        said.expect_code(255);
    }
}

#[test]
fn name_means_the_same_files_to_every_verb() {
    let sandbox = Sandbox::new();
    let new = sandbox.write("new", "new");
    for name in ["a*b", "part-0", "part-1", "p1"] {
        sandbox.write(&format!("hdfs/d/{name}"), "");
    }
    // One that a \ makes a plain name, there already or not.
    run(&sandbox, &["-put", "-f", &new, r"/d/a\*b"]);
    assert_eq!(run(&sandbox, &["-cat", r"/d/a\*b"]), "new");
    run(&sandbox, &["-rm", r"/d/a\*b"]);
    ends(&sandbox, &["-test", "-e", r"/d/a\*b"], 1, "");
    run(&sandbox, &["-touchz", r"/d/\{b\}", r"/d/a\*b"]);
    assert!(sandbox.path("hdfs/d/{b}").exists() && sandbox.path("hdfs/d/a*b").exists());
    // Patterns are those of the files that are there, and never made to be names.
    run(&sandbox, &["-test", "-e", "/d/part-*"]);
    ends(&sandbox, &["-test", "-s", "/d/part-*"], 1, "");
    run(&sandbox, &["-appendToFile", &new, "/d/part-[1-9]"]);
    assert_eq!(run(&sandbox, &["-cat", "/d/part-*"]), "new");
    let before = run(&sandbox, &["-ls", "-C", "/d"]);
    for words in [
        &["-mkdir", "/d/x{1,2}"][..],
        &["-mkdir", "-p", "/d/x?/y"],
        &["-touchz", "/d/x?"],
        &["-touch", "/d/x*"],
        &["-put", &new, "/d/x?"],
        &["-appendToFile", &new, "/d/x/*"],
        &["-mv", "/d/p1", "/d/[x]"],
    ] {
        ends(&sandbox, words, 1, NOT_FOUND);
    }
    for words in [&["-put", "-f", &new, "/d/part-?"][..], &["-appendToFile", &new, "/d/p*"]] {
        ends(&sandbox, words, 1, "files, and one is needed");
    }
    assert_eq!(run(&sandbox, &["-ls", "-C", "/d"]), before);
}

#[test]
fn name_that_is_a_files_own_and_a_pattern_of_others_is_refused() {
    let sandbox = Sandbox::new();
    for name in ["d/a*", "d/ab", "e/x[1]", "e/x1", "f/y[1]", "f/z*"] {
        sandbox.write(&format!("hdfs/{name}"), name);
    }
    for name in ["/d/a*", "/e/x[1]"] {
        for verb in ["-rm", "-cat", "-du"] {
            ends(&sandbox, &[verb, name], 1, "and there are others that fit it as a pattern");
        }
        ends(&sandbox, &["-mv", name, "/t"], 1, "and there are others that fit it as a pattern");
    }
    assert_eq!(run(&sandbox, &["-cat", r"/d/a\*", r"/e/x\[1\]"]), "d/a*e/x[1]");
    // Braces are a pattern, too.
    for name in ["g/v{1,2}", "g/v1", "g/w{}", "g/w", "h/only{1,2}", "g/a{/x", "g/b}/x", "g/a/x"] {
        sandbox.write(&format!("hdfs/{name}"), name);
    }
    for name in ["/g/v{1,2}", "/g/w{}"] {
        for words in [&["-rm", name][..], &["-cat", name], &["-mv", name, "/t"]] {
            ends(&sandbox, words, 1, "and there are others that fit it as a pattern");
        }
    }
    assert_eq!(run(&sandbox, &["-cat", r"/g/v\{1,2\}", "/g/{a,b}/x"]), "g/v{1,2}g/a/x");
    // Where nothing else fits, only one thing can be meant.
    assert_eq!(run(&sandbox, &["-cat", "/f/y[1]", "/f/z*", "/h/only{1,2}"]), "f/y[1]f/z*h/only{1,2}");
    // Nothing is a name of which `..` takes the pattern back.
    for name in ["/g/{}/../v1", "hdfs://{}/g/v1", "file://{}/g", "/g/{}/.."] {
        ends(&sandbox, &["-rm", "-r", name], 1, "");
        assert!(sandbox.path("hdfs/g/v1").exists(), "{name}");
    }
    assert_eq!(run(&sandbox, &["-rm", "/d/??"]), "Deleted hdfs:///d/a*\nDeleted hdfs:///d/ab\n");
    // A shell has expanded what stands for files of this machine.
    let (one, _) = (sandbox.write("l/x[1]", "one"), sandbox.write("l/x1", "other"));
    run(&sandbox, &["-put", &one, "/put"]);
    assert_eq!(run(&sandbox, &["-cat", "/put"]), "one");
}

#[test]
fn escaped_colon_makes_no_scheme_and_a_machine_before_a_path_is_never_passed_over() {
    let sandbox = Sandbox::new();
    let new = sandbox.write("new", "new");
    let own = sandbox.write("own/x", "own");
    sandbox.write("hdfs/a", "a");
    sandbox.write("hdfs/user/me/hdfs:/a", "of a folder");
    assert_eq!(run(&sandbox, &["-cat", r"hdfs\:/a"]), "of a folder");
    run(&sandbox, &["-put", "-f", &new, r"hdfs\:/a"]);
    assert_eq!(run(&sandbox, &["-cat", r"hdfs\:/a", "/a"]), "newa");
    run(&sandbox, &["-mkdir", "-p", r"file\:/tmp"]);
    assert!(sandbox.path("hdfs/user/me/file:/tmp").is_dir());
    run(&sandbox, &["-touchz", r"\hdfs:/b"]);
    assert!(sandbox.path("hdfs/user/me/hdfs:/b").is_file());
    // Most often a slash is missing, and all is one folder further up.
    let hosted = format!("file://logs{own}");
    let below = format!("file://logs{}/*", sandbox.path("own").display());
    for words in
        [&["-rm", &hosted][..], &["-rm", "-r", &below], &["-mv", "/a", &hosted], &["-get", "/a", &hosted]]
    {
        let said = call(&sandbox, "hadoop", &[&["fs"], words].concat()).finish();
        assert_ne!(said.status.code(), Some(0), "{words:?}");
        said.expect_words(&["Wrong FS", "`logs' is where the name of a machine stands"]);
        assert_eq!(fs::read_to_string(&own).unwrap(), "own");
    }
    assert_eq!(run(&sandbox, &["-cat", &format!("file://localhost{own}"), "/a"]), "owna");
    // What braces leave nothing of is no place either.
    for name in ["{}/..", "{}/../../..", "/user/{}/../.."] {
        ends(&sandbox, &["-put", &new, name], 1, NOT_FOUND);
    }
    assert!(!sandbox.path("hdfs/new").exists() && !sandbox.path("hdfs/user/me/new").exists());
}

#[test]
fn source_that_another_one_would_overwrite_or_that_has_no_name_is_never_lost() {
    let sandbox = Sandbox::new();
    for name in ["new/d/old", "t/d/old", "t/a", "x/a"] {
        sandbox.write(&format!("hdfs/{name}"), name);
    }
    sandbox.write("from/same", "new");
    sandbox.write("from/s/x", "x");
    sandbox.write("hdfs/t/same", "old");
    fs::create_dir_all(sandbox.path("hdfs/y")).unwrap();
    symlink(sandbox.path("hdfs/t/a"), sandbox.path("hdfs/y/l")).unwrap();
    let (old, lost) = (format!("file://{}", sandbox.path("hdfs/t/d/old").display()), "before its turn");
    let other = sandbox.path("hdfs/new/d").display().to_string();
    for words in [
        &["-cp", "-f", "/new/d", "/t/d/*", "/t"][..],
        &["-mv", "-f", "/new/d", "/t/d/old", "/t"],
        &["-put", "-f", &other, &old, "/t"],
        &["-cp", "-f", "/x/a", "/y/l", "/t"],
        &["-cp", "-f", "/y/l", "/x/a", "/t"],
    ] {
        let is_safe = words[2] == "/y/l";
        match is_safe {
            true => drop(run(&sandbox, words)),
            false => drop(ends(&sandbox, words, 1, lost)),
        }
        assert_eq!(run(&sandbox, &["-cat", "/t/d/old"]), "t/d/old", "{words:?}");
        assert_eq!(run(&sandbox, &["-cat", "/t/a"]), if is_safe { "x/a" } else { "t/a" }, "{words:?}");
    }
    // The folder above the working one has the name that it is called by.
    let put = call(&sandbox, "hadoop", &["fs", "-put", "-f", "..", "/t"]);
    put.within(sandbox.path("from/s")).finish().expect_code(0);
    assert_eq!(run(&sandbox, &["-cat", "/t/same", "/t/from/same", "/t/from/s/x"]), "oldnewx");
    ends(&sandbox, &["-put", "/", "/t"], 1, "has no name of its own");
}

#[test]
fn source_to_which_a_link_leads_that_another_one_replaces_is_never_another_file() {
    let sandbox = Sandbox::new();
    let link = |to: &str, name: &str| symlink(to, sandbox.path("hdfs").join(name)).unwrap();
    for name in ["w/old", "z/old", "z/f", "x/b", "t/c/f", "y/c/f", "s/v1", "live/v1", "d/a", "d/done/a"] {
        sandbox.write(&format!("hdfs/{name}"), name);
    }
    link("../z", "t/a");
    link("../w", "x/a");
    link("../z/f", "t/b");
    link("../t/b", "y/l");
    link("../t/c/f", "y/m");
    let all = ["/w/old", "/z/old", "/z/f", "/t/a/old", "/t/b", "/t/c/f", "/y/l", "/y/m"];
    let before = run(&sandbox, &[&["-cat"], &all[..]].concat());
    for words in [
        // The way to the second one leads through the place of the first.
        &["-mv", "-f", "/x/a", "/t/a/old", "/t"][..],
        &["-cp", "-f", "/x/b", "/y/l", "/t"],
        &["-cp", "-f", "/y/c", "/y/m", "/t"],
    ] {
        ends(&sandbox, words, 1, "before its turn");
        assert_eq!(run(&sandbox, &[&["-cat"], &all[..]].concat()), before, "{words:?}");
    }
    // So does the way to the folder where all go, and to what would go onto itself but for the first one.
    for name in ["a/b", "far/b", "q/y", "right/y"] {
        sandbox.write(&format!("hdfs/{name}"), name);
    }
    link(".", "t/self");
    link("../far", "a/self");
    link("../q", "a/z");
    link(".", "t/z");
    link("../t/z", "a/a2");
    link("../right", "t/a2");
    for words in
        [&["-mv", "-f", "/a/self", "/a/b", "/t/self"][..], &["-mv", "-f", "/a/z", "/a/a2", "/t/a2/y", "/t"]]
    {
        ends(&sandbox, words, 1, "before its turn");
        let left = run(&sandbox, &["-cat", "/a/b", "/far/b", "/q/y", "/right/y", "/t/a2/y", "/t/z/a2/y"]);
        assert_eq!(left, "a/bfar/bq/yright/yright/yright/y", "{words:?}");
    }
    // A link that moves is itself, and a folder that holds its own place stays alone.
    link("../live/v1", "s/z");
    run(&sandbox, &["-mv", "-f", "/s/*", "/live"]);
    assert_eq!(run(&sandbox, &["-cat", "/live/v1"]), "s/v1");
    ends(&sandbox, &["-mv", "-f", "/d/*", "/d/done"], 1, "`hdfs:///d/done' to `hdfs:///d/done/done'");
    assert_eq!(run(&sandbox, &["-cat", "/d/done/a"]), "d/a");
    // Nothing is a name whose end is taken back.
    sandbox.write("hdfs/{}/x", "");
    for name in ["/{}/.", "/{}/{}/..", "/{}/{}/../"] {
        ends(&sandbox, &["-rm", "-r", name], 1, "it ends in . or ..");
    }
    ends(&sandbox, &["-mv", "/{}/.", "/t"], 1, "it ends in . or ..");
    ends(&sandbox, &["-mv", "/{}/{}/..", "/t"], 1, NOT_FOUND);
    assert!(sandbox.path("hdfs/{}/x").exists());
}

#[test]
fn folder_that_moves_to_another_disk_is_never_mixed_with_one_that_is_there() {
    let sandbox = Sandbox::new();
    let Some(disk) = other_disk(&sandbox) else { return };
    let other = sandbox.path("hdfs/disk");
    for name in ["d/x", "d/z"] {
        sandbox.write(&format!("hdfs/{name}"), name);
    }
    symlink(disk.path(), other).unwrap();
    fs::create_dir(disk.path().join("d")).unwrap();
    fs::write(disk.path().join("d/x"), "old").unwrap();
    ends(&sandbox, &["-mv", "-f", "/d", "/disk"], 1, "Directory is not empty");
    assert_eq!(run(&sandbox, &["-cat", "/d/x", "/d/z", "/disk/d/x"]), "d/xd/zold");
    run(&sandbox, &["-rm", "/disk/d/x"]);
    for (path, mode) in [(sandbox.path("hdfs/d"), 0o700), (disk.path().join("d"), 0o777)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    run(&sandbox, &["-mv", "-f", "/d", "/disk"]);
    assert_eq!(fs::metadata(disk.path().join("d")).unwrap().mode() & 0o777, 0o700);
    assert_eq!(run(&sandbox, &["-cat", "/disk/d/*"]), "d/xd/z");
    assert!(!sandbox.path("hdfs/d").exists());
}

#[test]
fn link_that_moves_stays_a_link_on_another_disk_too() {
    let sandbox = Sandbox::new();
    let Some(disk) = other_disk(&sandbox) else { return };
    for (name, text) in [("x/a", "new"), ("far/y", "far")] {
        sandbox.write(&format!("hdfs/{name}"), text);
    }
    symlink(disk.path(), sandbox.path("hdfs/disk")).unwrap();
    for (name, text) in [("a", "old"), ("file", "file")] {
        fs::write(disk.path().join(name), text).unwrap();
    }
    let link = |to: &Path, name: &str| symlink(to, sandbox.path("hdfs").join(name)).unwrap();
    let leads = |name: &str| fs::read_link(disk.path().join(name)).unwrap();
    // To what another source has replaced before, to nothing, to a folder, and in a folder.
    let old = disk.path().join("a");
    link(&old, "l");
    link(Path::new("nowhere"), "x/none");
    link(Path::new("../far"), "x/far");
    link(Path::new("../far"), "file");
    run(&sandbox, &["-mv", "-f", "/x/a", "/l", "/disk"]);
    assert_eq!((leads("l"), fs::read_to_string(&old).unwrap()), (old.clone(), "new".to_owned()));
    ends(&sandbox, &["-mv", "/file", "/disk"], 1, "File exists");
    run(&sandbox, &["-mv", "-f", "/file", "/disk"]);
    assert_eq!(leads("file"), Path::new("../far"));
    fs::set_permissions(sandbox.path("hdfs/x"), fs::Permissions::from_mode(0o1777)).unwrap();
    run(&sandbox, &["-mv", "/x", "/disk"]);
    assert_eq!(fs::metadata(disk.path().join("x")).unwrap().mode() & 0o7777, 0o1777);
    assert_eq!((leads("x/none"), leads("x/far")), ("nowhere".into(), "../far".into()));
    assert_eq!(run(&sandbox, &["-ls", "-C", "/"]), "/disk\n/far\n");
    assert_eq!(run(&sandbox, &["-cat", "/far/y"]), "far");
    // Also into a folder of the one that it leads to, but not onto what it leads to.
    fs::create_dir(sandbox.path("hdfs/far/in")).unwrap();
    link(Path::new("."), "far/self");
    run(&sandbox, &["-mv", "/far/self", "/far/in"]);
    assert_eq!(fs::read_link(sandbox.path("hdfs/far/in/self")).unwrap(), Path::new("."));
    link(Path::new("y"), "far/l");
    ends(&sandbox, &["-mv", "-f", "/far/l", "/far/y"], 1, "are identical");
    assert_eq!(run(&sandbox, &["-cat", "/far/y"]), "far");
}

#[test]
fn find_lists_what_all_of_its_patterns_fit() {
    let sandbox = Sandbox::new();
    for name in ["d/a.log", "d/b.log", "d/A.txt"] {
        sandbox.write(&format!("hdfs/{name}"), "");
    }
    for and in [&["-and"][..], &["-a"], &[]] {
        let words = [&["-find", "/d", "-name", "a*"], and, &["-iname", "*.LOG"]].concat();
        assert_eq!(run(&sandbox, &words), "hdfs:///d/a.log\n");
    }
    assert_eq!(run(&sandbox, &["-find", "/d", "-iname", "a*", "-name", "*.txt"]), "hdfs:///d/A.txt\n");
}

#[test]
fn file_keeps_its_place_when_all_but_one_of_several_sources_are_missing() {
    let sandbox = Sandbox::new();
    let new = sandbox.write("new", "new");
    sandbox.write("hdfs/a", "a");
    sandbox.write("hdfs/t", "t");
    for words in [
        &["-mv", "-f", "/a", "/missing", "/t"][..],
        &["-cp", "-f", "/missing", "/a", "/t"],
        &["-put", "-f", &new, "missing", "/t"],
        &["-mv", "/a", "/missing", "/new-folder"],
    ] {
        ends(&sandbox, words, 1, "`/");
        assert_eq!(run(&sandbox, &["-cat", "/a", "/t"]), "at", "{words:?}");
        assert!(!sandbox.path("hdfs/new-folder").exists());
    }
}

#[test]
fn signs_that_nobody_sees_are_part_of_names() {
    let sandbox = Sandbox::new();
    for name in ["d/x", "d/\u{1}", "d/a\u{1}b", "d/ab"] {
        sandbox.write(&format!("hdfs/{name}"), "");
    }
    ends(&sandbox, &["-rm", "-r", "/d/\u{2}"], 1, NOT_FOUND);
    run(&sandbox, &["-rm", "-r", "/d/\u{1}"]);
    run(&sandbox, &["-rm", "/d/{a,q}\u{1}b"]);
    assert_eq!(run(&sandbox, &["-ls", "-C", "/d"]), "/d/ab\n/d/x\n");
}

#[test]
fn target_that_can_be_a_folder_only_never_becomes_a_file() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("hdfs")).unwrap();
    symlink("nothing", sandbox.path("hdfs/dangling")).unwrap();
    sandbox.write("hdfs/is-file", "");
    for name in ["/dangling/", "/dangling/.", "/is-file/", "/is-file/."] {
        for verb in ["-touchz", "-touch"] {
            let said = if name.starts_with("/d") { NOT_FOUND } else { "Is not a directory" };
            ends(&sandbox, &[verb, name], 1, said);
        }
    }
    assert!(!sandbox.path("hdfs/nothing").exists());
    let new = sandbox.write("new", "new");
    sandbox.write("hdfs/a", "a");
    sandbox.write("hdfs/f", "f");
    sandbox.write("hdfs/d/x", "x");
    for (target, why) in
        [("/f/", "Is not a directory"), ("/f/.", "Is not a directory"), ("/none/", NOT_FOUND)]
    {
        for words in [&["-put", "-f", &new][..], &["-mv", "-f", "/a"], &["-cp", "-f", "/a"]] {
            ends(&sandbox, &[words, &[target]].concat(), 1, why);
        }
        assert_eq!(run(&sandbox, &["-cat", "/a", "/f"]), "af", "{target}");
        assert!(!sandbox.path("hdfs/none").exists(), "{target}");
    }
    ends(&sandbox, &["-get", "/a", "none/"], 1, NOT_FOUND);
    let (old, none) = (format!("{}/", sandbox.write("old", "old")), sandbox.text("none/"));
    for (words, why) in [
        (&["-put", "-f", &new, "{/f/.,/q}"][..], "Is not a directory"),
        (&["-appendToFile", &new, "/f/."], "Is not a directory"),
        (&["-appendToFile", &new, "/none/"], NOT_FOUND),
        (&["-touchz", "/none/"], NOT_FOUND),
        (&["-touch", "/none/."], NOT_FOUND),
        (&["-getmerge", "/f", &old], "Is not a directory"),
        (&["-getmerge", "/f", &none], NOT_FOUND),
    ] {
        ends(&sandbox, words, 1, why);
    }
    assert_eq!(run(&sandbox, &["-cat", "/a", "/f"]), "af");
    assert_eq!(fs::read(sandbox.path("old")).unwrap(), b"old");
    assert!(!sandbox.path("hdfs/none").exists() && !sandbox.path("none").exists());
    // The user's folder is there from the beginning.
    for (number, target) in [None, Some("."), Some(""), Some("/user/me")].into_iter().enumerate() {
        let _ = fs::remove_dir_all(sandbox.path("hdfs/user"));
        let target: Vec<&str> = target.filter(|target| !target.is_empty()).into_iter().collect();
        run(&sandbox, &[&["-put", &new], &target[..]].concat());
        assert_eq!(run(&sandbox, &["-cat", "/user/me/new"]), "new", "{number}");
    }
    fs::remove_dir_all(sandbox.path("hdfs/user")).unwrap();
    run(&sandbox, &["-put", &new, "/user"]);
    assert_eq!(run(&sandbox, &["-cat", "/user/new"]), "new");
    run(&sandbox, &["-mkdir", "/user/me"]);
    fs::remove_dir_all(sandbox.path("hdfs/user")).unwrap();
    ends(&sandbox, &["-appendToFile", &new, "."], 1, "Is a directory");
    ends(&sandbox, &["-touchz", "."], 1, "Is a directory");
    // Also if all others that were found are no files.
    mkfifoat(CWD, sandbox.path("hdfs/d/pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    ends(&sandbox, &["-mv", "-f", "/d/*", "/f"], 1, "`/f': Is not a directory");
    assert_eq!(run(&sandbox, &["-cat", "/d/x", "/f"]), "xf");
}

#[test]
fn file_that_standard_output_goes_to_is_not_shown_into_itself() {
    let sandbox = Sandbox::new();
    install(&sandbox);
    for (name, text) in [("d/a", "one\n"), ("d/b", "two\n")] {
        sandbox.write(&format!("hdfs/{name}"), text);
    }
    for (line, left) in [
        ("fs -cat /d/a >> hdfs/d/a", "one\n"),
        ("fs -text '/d/*' >> hdfs/d/a", "one\ntwo\n"),
        ("fs -cat /d/b >> hdfs/d/a", "one\ntwo\ntwo\n"),
    ] {
        let shell = sandbox.program(Path::new("/bin/sh"), ["-c", &format!("exec home/bin/hadoop {line}")]);
        let shell = shell.env("GRISTMILL_HDFS_ROOT", sandbox.path("hdfs")).within(sandbox.path(""));
        let finished = shell.finish();
        if line.contains("/d/b") {
            finished.expect_code(0);
        } else {
            finished
                .expect_code(1)
                .expect_words(&["`hdfs:///d/a': is the file that standard output goes to"]);
        }
        assert_eq!(fs::read_to_string(sandbox.path("hdfs/d/a")).unwrap(), left, "{line}");
    }
}

#[test]
fn pipes_are_touched_and_told_but_never_waited_for() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/d/a", "a");
    let pipe = sandbox.path("hdfs/d/pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    run(&sandbox, &["-touch", "-t", "20010203:040506", "/d/pipe"]);
    assert_eq!(fs::metadata(&pipe).unwrap().mtime(), 981_173_106);
    ends(&sandbox, &["-touchz", "/d/pipe"], 1, "is a pipe, a socket or a device");
    let merged = sandbox.text("merged");
    for source in ["/d/pipe", "/d"] {
        for flags in [&["-getmerge"][..], &["-getmerge", "-skip-empty-file"]] {
            let words = [flags, &[source, &merged]].concat();
            ends(&sandbox, &words, 1, "is a pipe, a socket or a device");
            assert!(!sandbox.path("merged").exists());
        }
    }
}

#[test]
fn link_that_is_named_itself_is_followed_and_those_in_folders_are_not() {
    let sandbox = Sandbox::new();
    let far = sandbox.write("far/x", "");
    fs::create_dir(sandbox.path("hdfs")).unwrap();
    sandbox.write("other/y", "");
    fs::set_permissions(sandbox.path("other/y"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("../far", sandbox.path("hdfs/link")).unwrap();
    symlink("../other", sandbox.path("far/within")).unwrap();
    let found = "hdfs:///link\nhdfs:///link/within\nhdfs:///link/x\n";
    assert_eq!(run(&sandbox, &["-find", "/link"]), found);
    run(&sandbox, &["-chmod", "700", "/link", "/link/x"]);
    let mode = |path: &str| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&far), mode(&sandbox.text("far"))), (0o700, 0o700));
    assert_eq!(mode(&sandbox.text("other/y")), 0o640);
    // Nor those that only a pattern means.
    run(&sandbox, &["-chmod", "750", "/l*"]);
    assert_eq!(mode(&far), 0o700);
    assert_eq!(run(&sandbox, &["-find", "/l*"]), "hdfs:///link\n");
    assert_eq!(run(&sandbox, &["-find", "/l*", "-name", "link"]), "hdfs:///link\n");
    fs::create_dir(sandbox.path("hdfs/user")).unwrap();
    symlink("../../far", sandbox.path("hdfs/user/me")).unwrap();
    run(&sandbox, &["-chmod", "700", "/user/m*"]);
    assert_eq!(mode(&far), 0o700);
    run(&sandbox, &["-chmod", "750", "/user/m*"]);
    assert_eq!(mode(&far), 0o700);
    assert_eq!(run(&sandbox, &["-find", "/user/m*"]), "hdfs:///user/me\n");
    assert!(run(&sandbox, &["-find"]).contains("hdfs:///user/me/x\n"));
}

#[test]
fn link_to_itself_hides_no_other_file_of_a_pattern() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/d/a/f", "");
    symlink("loop", sandbox.path("hdfs/d/loop")).unwrap();
    assert_eq!(run(&sandbox, &["-ls", "-C", "/d/*/f"]), "/d/a/f\n");
    assert_eq!(run(&sandbox, &["-rm", "/d/*/*"]), "Deleted hdfs:///d/a/f\n");
}

#[test]
fn what_the_same_call_has_removed_is_no_failure_of_rm_with_force() {
    let sandbox = Sandbox::new();
    for words in [&["/d/*", "/d/x"][..], &["/d", "/d/x"], &["/d/x", "/d/x", "/none"]] {
        sandbox.write("hdfs/d/x", "");
        run(&sandbox, &[&["-rm", "-r", "-f"], words].concat());
        assert!(!sandbox.path("hdfs/d/x").exists(), "{words:?}");
    }
}

#[test]
fn words_that_are_missing_or_no_number_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("hdfs/d", "");
    for words in [&["-chown", "me"][..], &["-setrep", "3"], &["-chgrp"]] {
        ends(&sandbox, words, 255, "Not enough arguments: expected 2");
    }
    for copies in ["abc", "0", "-1"] {
        ends(&sandbox, &["-setrep", copies, "/d"], 255, copies);
    }
    ends(&sandbox, &["-test", "-e"], 255, "expected 1 path but got 0");
    ends(&sandbox, &["-test", "-e", "/d", "/d"], 255, "expected 1 path but got 2");
}
