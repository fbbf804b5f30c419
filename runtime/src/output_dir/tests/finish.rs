//! Parts that are published when an output is finished.

use super::*;

#[test]
fn finish_publishes_the_parts_that_count_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
    let (part, built, path) = built(&out, "it");
    // Modified but equal: the file is read again.
    fs::write(&path, "it").unwrap();
    fs::write(out.join("_temporary/probe-1-reduce-0.0"), "an earlier attempt's").unwrap();
    claimed.finish(&Success { parts: vec![part], ..success() }, &[built], true).unwrap();
    assert_eq!(names(&out), ["_SUCCESS", "part-00000"]);
    assert_eq!(fs::read_to_string(out.join("part-00000")).unwrap(), "it");
}

#[test]
fn finish_refuses_a_part_that_is_not_as_its_attempt_left_it() {
    for content in ["that", "This", ""] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
        let (part, built, path) = built(&out, "this");
        fs::write(&path, content).unwrap();
        let finished = claimed.finish(&Success { parts: vec![part], ..success() }, &[built], false);
        let error = finished.unwrap_err();
        assert!(matches!(error, OutputError::Changed { .. }), "{content:?}: {error}");
        assert!(!out.exists(), "no output is left");
    }
}

#[test]
fn finish_publishes_nothing_under_a_name_that_is_not_its_parts() {
    for name in ["../escaped", "/tmp/gristmill-escaped", "part-00001", "_SUCCESS", "", "sub/part-00000"] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
        let (part, built, _) = built(&out, "it");
        let part = Part { name: name.to_owned(), ..part };
        let error = claimed.finish(&Success { parts: vec![part], ..success() }, &[built], false).unwrap_err();
        assert!(matches!(error, OutputError::Io { action: "publish", .. }), "{name:?}: {error}");
        assert!(names(dir.path()).is_empty() && !Path::new("/tmp/gristmill-escaped").exists());
    }
}

#[test]
fn finish_that_fails_removes_what_the_job_has_published_and_nothing_of_others() {
    for foreign in ["part-00001", SUCCESS] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
        let of = |index: u32| {
            let attempt = TaskId::reduce(JobId(1), index).attempt(0);
            let path = out.join(TEMPORARY).join(built_name(&"probe-1".parse().unwrap(), attempt));
            fs::write(&path, "it").unwrap();
            let stamp = FileStamp::from_metadata(&fs::metadata(&path).unwrap());
            let part = Part {
                name: part_name(index, 2, PartFormat::default()),
                bytes: 2,
                records: 1,
                crc32c: crc32c::crc32c(b"it"),
                named: Vec::new(),
            };
            (part, BuiltPart::new(attempt, stamp))
        };
        let (parts, built): (Vec<_>, Vec<_>) = (0..2).map(of).unzip();
        // Another user's files appear while the job runs.
        for name in [foreign, "part-00007"] {
            fs::write(out.join(name), "of others").unwrap();
        }
        let error = claimed.finish(&Success { parts, ..success() }, &built, false).unwrap_err();
        assert!(matches!(error, OutputError::Io { action: "publish", .. }), "{foreign}: {error}");
        let mut expected = [foreign, "part-00007"];
        expected.sort_unstable();
        assert_eq!(names(&out), expected);
        assert_eq!(fs::read_to_string(out.join(foreign)).unwrap(), "of others");
    }
}

#[test]
fn finish_publishes_named_parts_with_the_main_one_or_neither() {
    for (outputs, content, good) in [
        (&["a", "errors"][..], "this", true),
        (&["a", "errors"], "that", false),
        (&["a", "errors"], "", false),
        (&["errors", "a"], "this", false),
        (&["a", "a"], "this", false),
        (&["_temporary"], "this", false),
        (&["part-00001"], "this", false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
        let (part, built, path) = built(&out, "it");
        for output in outputs {
            let content = if *output == "a" { "this" } else { content };
            fs::write(format!("{}.{output}", path.display()), content).unwrap();
        }
        let named = outputs.iter().map(|output| named(output, "this")).collect();
        let success = Success { parts: vec![Part { named, ..part }], ..success() };
        let finished = claimed.finish(&success, &[built], true);
        assert_eq!(finished.is_ok(), good, "{outputs:?}");
        drop(finished);
        if good {
            assert_eq!(names(&out), ["_SUCCESS", "a", "errors", "part-00000"]);
            assert_eq!(fs::read_to_string(out.join("errors/part-00000")).unwrap(), "this");
        } else {
            assert!(!out.exists(), "{outputs:?}: no output is left");
        }
    }
}

#[test]
fn named_parts_that_were_published_when_their_closer_died_go_or_are_completed() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let dead = OutputDirectory::claim(&out, false, false, "1").unwrap();
    dead.take_claim(claim::CLOSING).unwrap();
    fs::create_dir(out.join("errors")).unwrap();
    fs::write(out.join("errors/part-00000"), "this").unwrap();
    dies(dead);
    let next = OutputDirectory::claim(&out, false, false, "1").unwrap();
    assert_eq!(names(&out), [TEMPORARY], "the next job finds nothing");
    // This one dies too, and its parts are completed by the process that closes the output in its place.
    let (part, built, path) = built(&out, "it");
    let part = Part { named: vec![named("a", "that"), named("errors", "this")], ..part };
    fs::write(format!("{}.a", path.display()), "that").unwrap();
    fs::create_dir(out.join("errors")).unwrap();
    fs::write(out.join("errors/part-00000"), "this").unwrap();
    next.publish_rest(std::slice::from_ref(&part), &[built], false).unwrap();
    assert_eq!(fs::read_to_string(out.join("a/part-00000")).unwrap(), "that");
    assert_eq!(fs::read_to_string(out.join("errors/part-00000")).unwrap(), "this");
    let parts = [part];
    next.undo(&Published::These(vec![
        (parts[0].named.first().map(|named| &named.output), &parts[0].name),
        (parts[0].named.last().map(|named| &named.output), &parts[0].name),
        (None, &parts[0].name),
    ]));
    assert!(!out.exists(), "and undone by name");
}

#[test]
fn finish_publishes_compressed_parts_and_no_mix_of_them() {
    for (names_of_parts, good) in [
        (["part-00000.gz", "part-00001.gz"], true),
        (["part-00000.zst", "part-00001.zst"], true),
        (["part-00000.gz", "part-00001.zst"], false),
        (["part-00000.gz", "part-00001"], false),
        (["part-00000.GZ", "part-00001.GZ"], false),
        (["part-00000.zstd", "part-00001.zstd"], false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
        let of = |(index, name): (u32, &str)| {
            let attempt = TaskId::reduce(JobId(1), index).attempt(0);
            let path = out.join(TEMPORARY).join(built_name(&"probe-1".parse().unwrap(), attempt));
            fs::write(&path, "it").unwrap();
            let stamp = FileStamp::from_metadata(&fs::metadata(&path).unwrap());
            let crc32c = crc32c::crc32c(b"it");
            (
                Part { name: name.to_owned(), bytes: 2, records: 1, crc32c, named: Vec::new() },
                BuiltPart::new(attempt, stamp),
            )
        };
        let (parts, built): (Vec<_>, Vec<_>) = (0..).zip(names_of_parts).map(of).unzip();
        let finished = claimed.finish(&Success { parts, ..success() }, &built, false);
        assert_eq!(finished.is_ok(), good, "{names_of_parts:?}");
        drop(finished);
        if good {
            assert_eq!(names(&out), ["_SUCCESS", names_of_parts[0], names_of_parts[1]]);
        } else {
            assert!(!out.exists(), "{names_of_parts:?}: no output is left");
        }
    }
}

#[test]
fn finish_refuses_a_part_that_is_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
    let (part, built, path) = built(&out, "it");
    fs::rename(&path, dir.path().join("it")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("it"), &path).unwrap();
    let error = claimed.finish(&Success { parts: vec![part], ..success() }, &[built], false).unwrap_err();
    assert!(matches!(error, OutputError::Io { action: "look at the part", .. }), "{error}");
    assert_eq!(names(dir.path()), ["it"]);
}

#[test]
fn finish_removes_what_was_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    old_output(&out);
    OutputDirectory::claim(&out, true, false, "1").unwrap().finish(&success(), &[], true).unwrap();
    assert_eq!(names(&out), ["_SUCCESS"]);
    assert_eq!(names(dir.path()), ["out"]);
}
