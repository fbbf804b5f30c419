//! Tests of claims, of closing outputs, and of the remains of either.

use super::*;
use crate::api::{BuiltPart, SCHEMA};
use gristmill_scheduler::ids::{JobId, TaskId};
use gristmill_worker::commit::{built_name, part_name};
use gristmill_worker::input::FileStamp;
use gristmill_worker::output::PartFormat;
use gristmill_worker::protocol::{NamedPart, Part};
use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::time::{Duration, SystemTime};

fn success() -> Success {
    Success {
        schema: SCHEMA,
        job: "test".to_owned(),
        parameters: serde_json::Value::Null,
        columns: None,
        parts: Vec::new(),
        records: 0,
        bytes: 0,
        counters: BTreeMap::new(),
        remarks: Vec::new(),
        bad_records: Vec::new(),
    }
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Creates the output that an old job of Hadoop leaves: one part.
fn old_output(out: &Path) {
    fs::create_dir_all(out).unwrap();
    fs::write(out.join("part-00009"), "old").unwrap();
    fs::write(out.join(SUCCESS), "").unwrap();
}

#[test]
fn claim_refuses_a_directory_with_files_and_leaves_it_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine"), "x").unwrap();
    let error = OutputDirectory::claim(dir.path(), false, false, "1").unwrap_err();
    assert!(matches!(error, OutputError::NotEmpty { .. }), "{error:?}");
    assert_eq!(names(dir.path()), ["mine"]);
}

#[test]
fn claim_refuses_a_directory_that_another_job_holds() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let first = OutputDirectory::claim(&out, false, false, "1").unwrap();
    let error = OutputDirectory::claim(&out, true, false, "2").unwrap_err();
    assert!(matches!(error, OutputError::Busy { .. }), "{error:?}");
    first.finish(&success(), &[], false).unwrap();
    assert_eq!(names(&out), ["_SUCCESS"]);
}

#[test]
fn finished_output_can_be_claimed_again_before_what_is_left_of_the_claim_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let remains = OutputDirectory::claim(&out, false, false, "1").unwrap().finish(&success(), &[], false);
    let remains = remains.unwrap();
    assert_eq!(names(&out), ["_SUCCESS", "_claim-1"]);
    OutputDirectory::claim(&out, true, false, "2").unwrap().abandon();
    drop(remains);
    assert_eq!(names(&out), ["_SUCCESS"]);
}

#[test]
fn abandon_brings_back_what_was_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    old_output(&out);
    let claimed = OutputDirectory::claim(&out, true, false, "1").unwrap();
    built(&out, "new");
    claimed.abandon();
    assert_eq!(fs::read_to_string(out.join("part-00009")).unwrap(), "old");
    assert_eq!(names(dir.path()), ["out"]);
}

#[test]
fn only_the_first_of_two_processes_closes_an_output() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
    let directory = Directory::open(&out).unwrap();
    let temporary = directory.directory(TEMPORARY).unwrap();
    let lock = temporary.open_own("probe-1").unwrap();
    let other = OutputDirectory {
        directory,
        temporary,
        probe: "probe-1".parse().unwrap(),
        made: true,
        lock: Some(lock),
    };
    fs::write(out.join("part-00000"), "x").unwrap();
    claimed.finish(&success(), &[], false).unwrap();
    other.abandon();
    assert_eq!(names(&out), ["_SUCCESS", "part-00000"]);
}

/// A part built by an attempt, and the attempt's report.
fn built(out: &Path, content: &str) -> (Part, BuiltPart, PathBuf) {
    let attempt = TaskId::reduce(JobId(1), 0).attempt(3);
    let path = out.join(TEMPORARY).join(built_name(&"probe-1".parse().unwrap(), attempt));
    fs::write(&path, content).unwrap();
    let (bytes, crc32c) = (content.len() as u64, crc32c::crc32c(content.as_bytes()));
    let stamp = FileStamp::from_metadata(&fs::metadata(&path).unwrap());
    let part = Part { name: "part-00000".to_owned(), bytes, records: 1, crc32c, named: Vec::new() };
    (part, BuiltPart { attempt, stamp }, path)
}

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
            (part, BuiltPart { attempt, stamp })
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

fn named(output: &str, content: &str) -> NamedPart {
    let (bytes, crc32c) = (content.len() as u64, crc32c::crc32c(content.as_bytes()));
    NamedPart { output: output.parse().unwrap(), bytes, records: 1, crc32c }
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
    next.publish_rest(std::slice::from_ref(&part), &[built]).unwrap();
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
                BuiltPart { attempt, stamp },
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
fn claim_of_one_job_is_not_given_to_another() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
    let hold = |job| claim::hold(&claimed.temporary, &claimed.probe, true, Some(job));
    let _first = hold(JobId(3)).unwrap();
    assert!(hold(JobId(4)).is_err());
    hold(JobId(3)).unwrap();
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

/// Leaves a claim as a dead process does.
fn dies(claimed: OutputDirectory) {
    let path = claimed.path();
    drop(claimed);
    let temporary = path.join(TEMPORARY);
    let claim = names(&temporary).into_iter().find(|name| !name.contains('.')).unwrap();
    let mut said: serde_json::Value =
        serde_json::from_slice(&fs::read(temporary.join(&claim)).unwrap()).unwrap();
    said["owner"]["began_ticks"] = 1.into();
    fs::write(temporary.join(&claim), said.to_string()).unwrap();
}

#[test]
fn claim_of_the_dead_is_taken_over_and_what_it_overwrote_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    old_output(&out);
    let dead = OutputDirectory::claim(&out, true, false, "1").unwrap();
    built(&out, "half");
    dies(dead);
    let error = OutputDirectory::claim(&out, false, false, "2").unwrap_err();
    assert!(matches!(error, OutputError::NotEmpty { .. }), "{error}");
    assert_eq!(names(&out), [SUCCESS, "part-00009"]);
    let next = OutputDirectory::claim(&out, true, false, "3").unwrap();
    next.finish(&success(), &[], false).unwrap();
    assert_eq!(names(&out), ["_SUCCESS"]);
}

#[test]
fn directory_that_the_dead_had_made_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    dies(OutputDirectory::claim(&out, false, true, "1").unwrap());
    OutputDirectory::claim(&out, false, false, "2").unwrap().abandon();
    assert!(!out.exists());
}

#[test]
fn output_that_was_complete_when_its_job_died_stays_and_one_half_published_goes() {
    for (complete, part) in
        [(true, "part-00000"), (false, "part-00000"), (false, "part-00000.gz"), (false, "part-000000.zst")]
    {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let dead = OutputDirectory::claim(&out, false, false, "1").unwrap();
        dead.take_claim(claim::CLOSING).unwrap();
        fs::write(out.join(part), "new").unwrap();
        if complete {
            fs::write(out.join(SUCCESS), "{}").unwrap();
        }
        dies(dead);
        let claimed = OutputDirectory::claim(&out, false, false, "2");
        assert_eq!(matches!(claimed, Err(OutputError::NotEmpty { .. })), complete, "{claimed:?}");
        drop(claimed);
        assert_eq!(out.join(part).exists(), complete);
    }
}

#[test]
fn what_was_overwritten_survives_a_death_while_it_is_brought_back() {
    for old in ["part-00009", SUCCESS] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        old_output(&out);
        let dying = OutputDirectory::claim(&out, true, false, "1").unwrap();
        dying.take_claim(claim::CLOSING).unwrap();
        fs::write(out.join("part-00000"), "new").unwrap();
        dying.unpublish(&Published::Unknown);
        // One of two files is back.
        fs::rename(dying.directory.path(dying.aside()).join(old), out.join(old)).unwrap();
        dies(dying);
        let error = OutputDirectory::claim(&out, false, false, "2").unwrap_err();
        assert!(matches!(error, OutputError::NotEmpty { .. }), "{error}");
        assert_eq!(names(&out), [SUCCESS, "part-00009"]);
        assert_eq!(fs::read_to_string(out.join("part-00009")).unwrap(), "old");
    }
}

#[test]
fn what_a_client_that_died_after_success_had_not_cleared_away_goes() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    old_output(&out);
    let dying = OutputDirectory::claim(&out, true, false, "1").unwrap();
    dying.take_claim(claim::CLOSING).unwrap();
    dying.write_success(&success(), false, &mut Vec::new()).unwrap();
    dies(dying);
    OutputDirectory::left_finished(&out, &success()).unwrap();
    assert_eq!(names(&out), [SUCCESS]);
}

#[test]
fn what_attempts_had_built_goes_before_the_claim_that_a_death_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let dying = OutputDirectory::claim(&out, false, false, "1").unwrap();
    built(&out, "much");
    dying.take_claim(claim::ABANDONING).unwrap();
    dying.remove_built();
    assert_eq!(names(&out.join(TEMPORARY)), ["abandoning-1"]);
    dies(dying);
    OutputDirectory::claim(&out, false, false, "2").unwrap().abandon();
    assert!(!out.exists());
}

#[test]
fn claims_of_the_living_and_of_the_unknown_stay() {
    let dir = tempfile::tempdir().unwrap();
    let check = |name: &str, change: &dyn Fn(&Path)| {
        let out = dir.path().join(name);
        let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
        change(&out.join("_temporary/probe-1"));
        let error = OutputDirectory::claim(&out, true, false, "2").unwrap_err();
        assert!(matches!(error, OutputError::Busy { .. }), "{name}: {error}");
        drop(claimed);
        let error = OutputDirectory::claim(&out, true, false, "2").unwrap_err();
        assert!(matches!(error, OutputError::Busy { .. }), "{name}, without its lock: {error}");
        assert_eq!(names(&out.join(TEMPORARY)), ["probe-1"]);
    };
    check("alive", &|_| {});
    check("garbled", &|claim| fs::write(claim, "{\"owner\":").unwrap());
    check("elsewhere", &|claim| {
        let mut said: serde_json::Value = serde_json::from_slice(&fs::read(claim).unwrap()).unwrap();
        (said["owner"]["boot"], said["owner"]["host"]) = ("another".into(), "another".into());
        fs::write(claim, said.to_string()).unwrap();
    });
    let held = dir.path().join("held");
    let claimed = OutputDirectory::claim(&held, false, false, "1").unwrap();
    let master = claim::hold(
        &Directory::open(&held.join(TEMPORARY)).unwrap(),
        &"probe-1".parse().unwrap(),
        true,
        Some(JobId(3)),
    )
    .unwrap();
    dies(claimed);
    let error = OutputDirectory::claim(&held, false, false, "2").unwrap_err();
    assert!(error.to_string().contains("for job-3"), "the master has it: {error}");
    drop(master);
    OutputDirectory::claim(&held, false, false, "2").unwrap();
}

#[test]
fn what_says_that_an_output_is_complete_goes_before_its_parts_and_comes_behind_them() {
    let names = ["part-00001", "part-00000", SUCCESS, "part-00002"].map(OsString::from);
    let sorted = success_first(names.to_vec());
    assert_eq!(sorted, [SUCCESS, "part-00001", "part-00000", "part-00002"]);
}

#[test]
fn of_two_claims_on_one_directory_the_second_disturbs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    old_output(&out);
    // Repeated, because the order of the threads varies.
    for round in 0..50 {
        let claims: Vec<Result<OutputDirectory, OutputError>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|number| {
                    let (out, nonce) = (&out, format!("{round}x{number}"));
                    scope.spawn(move || OutputDirectory::claim(out, true, false, &nonce))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (won, lost): (Vec<_>, Vec<_>) = claims.into_iter().partition(Result::is_ok);
        assert_eq!(won.len(), 1, "{lost:?}");
        for lost in lost {
            assert!(matches!(lost, Err(OutputError::Busy { .. })), "{lost:?}");
        }
        assert_eq!(names(&out.join(TEMPORARY)).len(), 1);
        won.into_iter().for_each(|won| won.unwrap().abandon());
        assert_eq!(names(&out), [SUCCESS, "part-00009"]);
    }
}

#[test]
fn claim_on_a_link_is_one_on_what_it_names() {
    let dir = tempfile::tempdir().unwrap();
    let (target, link) = (dir.path().join("target"), dir.path().join("link"));
    old_output(&target);
    std::os::unix::fs::symlink(&target, &link).unwrap();
    OutputDirectory::claim(&link, true, false, "1").unwrap().finish(&success(), &[], false).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the link is a link");
    assert_eq!(names(&target), ["_SUCCESS"]);
}

/// Error of a claim of this directory with `overwrite`; `None` if the directory may be replaced. The directory is left
/// unchanged.
fn refusal(out: &Path) -> Option<OutputError> {
    match OutputDirectory::claim(out, true, false, "1") {
        Ok(claimed) => {
            claimed.abandon();
            None
        }
        Err(error) => Some(error),
    }
}

#[test]
fn claim_refuses_to_replace_what_no_job_has_put_there() {
    for other in [
        "part-two.md",
        "part-1",
        "part-00000.PARQUET",
        "part-00000.feather",
        "part-x-00000",
        "part-r-",
        "_data/f",
        "_config.yml",
        "_SUCCESS.bak",
        ".part-two.crc",
        ".thesis.crc",
        "part-00000/f",
        "_BAD_RECORDS/f",
        "named/part-00000",
        "_replaced-1",
        "_replaced-1/thesis",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        old_output(&out);
        fs::create_dir_all(out.join(other).parent().unwrap()).unwrap();
        fs::write(out.join(other), "mine").unwrap();
        let refused = refusal(&out);
        let first = Path::new(other).iter().next().unwrap();
        let is_named = matches!(&refused, Some(OutputError::NotAnOutput { name, .. }) if name == first);
        assert!(is_named, "{other}: {refused:?}");
        assert_eq!(fs::read_to_string(out.join(other)).unwrap(), "mine");
    }
}

#[test]
fn claim_refuses_to_replace_links_whatever_they_are_called() {
    for name in ["part-00000", "part-00000.gz", ".part-00009.crc", "_BAD_RECORDS", "errors", "_replaced-1"] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
        let (part, built, path) = built(&out, "it");
        fs::write(format!("{}.errors", path.display()), "this").unwrap();
        let parts =
            vec![Part { name: "part-00000".to_owned(), named: vec![named("errors", "this")], ..part }];
        drop(claimed.finish(&Success { parts, ..success() }, &[built], false).unwrap());
        assert!(refusal(&out).is_none());
        let _ = fs::rename(out.join(name), dir.path().join("elsewhere"));
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), out.join(name)).unwrap();
        let refused = refusal(&out);
        assert!(matches!(refused, Some(OutputError::NotAnOutput { .. })), "{name}: {refused:?}");
        assert!(fs::symlink_metadata(out.join(name)).unwrap().is_symlink());
    }
}

#[test]
fn claim_refuses_to_replace_a_named_output_with_anything_else_in_it() {
    for (other, good) in
        [("part-00001", true), (".part-00000.crc", true), ("thesis", false), ("deep/f", false)]
    {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
        let (part, built, path) = built(&out, "it");
        fs::write(format!("{}.errors", path.display()), "this").unwrap();
        let parts = vec![Part { named: vec![named("errors", "this")], ..part }];
        drop(claimed.finish(&Success { parts, ..success() }, &[built], false).unwrap());
        let other = out.join("errors").join(other);
        fs::create_dir_all(other.parent().unwrap()).unwrap();
        fs::write(&other, "mine").unwrap();
        assert_eq!(refusal(&out).is_none(), good, "{}", other.display());
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
    }
}

#[test]
fn claim_refuses_to_replace_parts_without_success() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    old_output(&out);
    assert!(refusal(&out).is_none());
    fs::remove_file(out.join(SUCCESS)).unwrap();
    let refused = refusal(&out);
    assert!(matches!(refused, Some(OutputError::NoSuccess { .. })), "{refused:?}");
    fs::write(out.join(SUCCESS), "passed").unwrap();
    let refused = refusal(&out);
    assert!(matches!(refused, Some(OutputError::NotAnOutput { .. })), "none of ours: {refused:?}");
    assert_eq!(names(&out), [SUCCESS, "part-00009"]);
}

#[test]
fn claim_replaces_what_a_job_that_died_has_left_moved_aside() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    old_output(&out.join("_replaced-0"));
    assert!(refusal(&out).is_none());
}

#[test]
fn claim_says_that_a_link_leads_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let (link, file) = (dir.path().join("link"), dir.path().join("file"));
    std::os::unix::fs::symlink("file", &link).unwrap();
    let error = OutputDirectory::claim(&link, false, false, "1").unwrap_err();
    assert!(matches!(error, OutputError::DanglingLink { .. }), "{error:?}");
    fs::write(&file, "").unwrap();
    let error = OutputDirectory::claim(&link, false, false, "1").unwrap_err();
    assert!(matches!(error, OutputError::NotADirectory { .. }), "{error:?}");
    assert_eq!(names(dir.path()), ["file", "link"]);
}

#[test]
fn what_is_left_of_claims_of_the_dead_goes_with_the_next_claim() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let remains = OutputDirectory::claim(&out, false, false, "1").unwrap().finish(&success(), &[], false);
    let remains = remains.unwrap();
    let said = fs::read(out.join("_claim-1/closing-1")).unwrap();
    let mut of_dead: serde_json::Value = serde_json::from_slice(&said).unwrap();
    of_dead["owner"]["began_ticks"] = 1.into();
    let make = |name: &str, claim: &str| {
        fs::DirBuilder::new().mode(0o700).create(out.join(name)).unwrap();
        fs::write(out.join(name).join("closing-2"), claim).unwrap();
    };
    make("_claim-dead", &of_dead.to_string());
    make("_claim-unknown", "{");
    // One claim too old to be signed, and one that may be signed soon.
    for (name, age) in [("_claim-old", 2 * 3600), ("_claim-new", 0)] {
        fs::DirBuilder::new().mode(0o700).create(out.join(name)).unwrap();
        let made = SystemTime::now() - Duration::from_secs(age);
        File::open(out.join(name)).unwrap().set_modified(made).unwrap();
    }
    // One whose process was killed while it signed, long ago, goes too.
    make("_claim-half", "");
    let half = File::options().write(true).open(out.join("_claim-half/closing-2")).unwrap();
    half.set_modified(SystemTime::now() - Duration::from_secs(2 * 3600)).unwrap();
    drop(half);
    OutputDirectory::claim(&out, true, false, "3").unwrap().abandon();
    assert_eq!(names(&out), [SUCCESS, "_claim-1", "_claim-new", "_claim-unknown"]);
    drop(remains);
}
