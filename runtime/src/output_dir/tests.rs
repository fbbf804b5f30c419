//! Tests of claims, of closing outputs, and of the remains of either.

mod finish;
mod joined;
mod replaced;

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
    (part, BuiltPart::new(attempt, stamp), path)
}

fn named(output: &str, content: &str) -> NamedPart {
    let (bytes, crc32c) = (content.len() as u64, crc32c::crc32c(content.as_bytes()));
    NamedPart { output: output.parse().unwrap(), bytes, records: 1, crc32c }
}

#[test]
fn claim_of_one_job_is_not_given_to_another() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
    let hold = |job| claim::hold(&claimed.temporary, &claimed.probe, true, Some(job));
    let _first = hold(JobId(3)).unwrap();
    let refused = hold(JobId(4)).unwrap_err();
    assert_eq!(
        (refused.kind(), refused.to_string()),
        (io::ErrorKind::AlreadyExists, "it is that of job-3".to_owned())
    );
    hold(JobId(3)).unwrap();
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
