//! Tests of which completed rounds are reused.

use super::*;
use crate::master::status_of;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::protocol::Part;
use tempfile::TempDir;

fn call(arguments: &[(&str, &str)]) -> RoundsCall {
    let arguments = arguments.iter().map(|(name, value)| (name.to_string(), vec![value.to_string()]));
    RoundsCall { program: "iterate".to_owned(), arguments: arguments.collect() }
}

const CALL: [(&str, &str); 2] = [("inputs", "a"), ("top", "3")];

fn begin(directory: &TempDir, earlier: Earlier) -> Result<RoundsRecord, ResumeError> {
    RoundsRecord::begin(directory.path(), call(&CALL), earlier, false)
}

fn wanted<'a>(name: &'a str, parameters: &'a str) -> WantedRound<'a> {
    WantedRound { name, job: "step", parameters }
}

fn file(name: &str, size: u64) -> InputFile {
    InputFile { name: name.into(), stamp: FileStamp { size, modified_ns: 1, inode: 2 } }
}

/// Runs a round and enters it.
fn run(record: &mut RoundsRecord, name: &str, files: &[InputFile]) {
    let output = record.directory.join(name);
    fs::create_dir(&output).unwrap();
    fs::write(output.join("part-00000"), "it").unwrap();
    let part = Part {
        name: "part-00000".to_owned(),
        bytes: 2,
        records: 1,
        crc32c: crc32c::crc32c(b"it"),
        named: Vec::new(),
    };
    let mut status = JobStatus { name: "step".to_owned(), parts: vec![part], ..status_of(JobId(1)) };
    status.counters.insert("changed".to_owned(), 7);
    fs::write(output.join("_SUCCESS"), serde_json::to_vec(&Success::of(&status, None)).unwrap()).unwrap();
    let inputs = RoundInputs { paths: vec!["a".to_owned()], files: files.iter().cloned().collect() };
    record.enter(&wanted(name, "{}"), inputs, &status).unwrap();
}

/// Requests a round that may be complete, when its input consists of these files.
fn ask(record: &mut RoundsRecord, name: &str, files: &[InputFile]) -> Result<Option<JobReport>, ResumeError> {
    match record.inputs_of(&wanted(name, "{}"))? {
        None => Ok(None),
        Some(_) => record.take(name, &files.iter().cloned().collect()),
    }
}

#[test]
fn rounds_that_are_done_are_believed_once_and_others_are_not_known() {
    let directory = TempDir::new().unwrap();
    let files = [file("a", 5)];
    run(&mut begin(&directory, Earlier::Refuse).unwrap(), "one", &files);
    let mut record = begin(&directory, Earlier::Resume).unwrap();
    let report = ask(&mut record, "one", &files).unwrap().unwrap();
    assert_eq!((report.counter("changed"), report.parts().len()), (7, 1));
    assert_eq!(report.output, directory.path().join("one"));
    assert!(ask(&mut record, "one", &files).unwrap().is_none(), "a second round of that name is another");
    assert!(ask(&mut record, "two", &files).unwrap().is_none());
    run(&mut record, "two", &files);
    let mut record = begin(&directory, Earlier::Resume).unwrap();
    for name in ["one", "two"] {
        assert!(ask(&mut record, name, &files).unwrap().is_some(), "{name}");
    }
}

#[test]
fn rounds_are_refused_when_something_is_not_as_it_was() {
    let directory = TempDir::new().unwrap();
    let files = [file("a", 5)];
    run(&mut begin(&directory, Earlier::Refuse).unwrap(), "one", &files);
    let words = |changed: &[InputFile]| {
        let mut record = begin(&directory, Earlier::Resume).unwrap();
        ask(&mut record, "one", changed).unwrap_err().to_string()
    };
    assert_eq!(words(&[file("a", 6)]), "an input of round one has changed since: a is not what it was");
    assert_eq!(words(&[]), "an input of round one has changed since: a is gone");
    assert_eq!(words(&[file("a", 5), file("b", 5)]), "an input of round one has changed since: b is new");
    let record = begin(&directory, Earlier::Resume).unwrap();
    let other = record.inputs_of(&wanted("one", r#"{"k":1}"#)).unwrap_err();
    assert!(matches!(other, ResumeError::Parameters { .. }), "{other}");
    let resume = |call| RoundsRecord::begin(directory.path(), call, Earlier::Resume, false).err().unwrap();
    let other = resume(call(&[("inputs", "a"), ("top", "4")])).to_string();
    assert!(other.ends_with(r#"were begun with top ["3"], and now it is ["4"]"#), "{other}");
    let other = resume(RoundsCall { program: "rank".to_owned(), ..call(&CALL) });
    assert!(matches!(other, ResumeError::Program { .. }), "{other}");
    fs::write(directory.path().join("one/part-00000"), "more").unwrap();
    let error = ask(&mut begin(&directory, Earlier::Resume).unwrap(), "one", &files).unwrap_err();
    assert!(matches!(error, ResumeError::Output { .. }), "{error}");
    fs::write(directory.path().join(ROUNDS), "{").unwrap();
    let error = begin(&directory, Earlier::Resume).err().unwrap();
    assert!(matches!(error, ResumeError::Record { .. }), "{error}");
}

#[test]
fn rounds_that_are_done_are_not_passed_over_in_silence() {
    let directory = TempDir::new().unwrap();
    assert!(matches!(begin(&directory, Earlier::Resume), Err(ResumeError::NoRecord { .. })));
    let mut record = begin(&directory, Earlier::Refuse).unwrap();
    begin(&directory, Earlier::Refuse).map(drop).expect("nothing is done yet");
    run(&mut record, "one", &[]);
    let error = begin(&directory, Earlier::Refuse).err().unwrap().to_string();
    assert!(error.starts_with("1 rounds of iterate are done in "), "{error}");
    let record = begin(&directory, Earlier::Replace).unwrap();
    assert!(record.inputs_of(&wanted("one", "{}")).unwrap().is_none());
}

#[test]
fn rounds_whose_output_was_discarded_count_as_done() {
    let directory = TempDir::new().unwrap();
    let mut record = begin(&directory, Earlier::Refuse).unwrap();
    run(&mut record, "one", &[]);
    let output = directory.path().join("one");
    record.discard(&output).unwrap();
    fs::remove_dir_all(&output).unwrap();
    let mut record = begin(&directory, Earlier::Resume).unwrap();
    let report = ask(&mut record, "one", &[]).unwrap().unwrap();
    assert_eq!((report.counter("changed"), report.parts().len()), (7, 0));
}

#[test]
fn rounds_compare_what_is_not_their_own() {
    let directory = TempDir::new().unwrap();
    let mut record = begin(&directory, Earlier::Refuse).unwrap();
    run(&mut record, "one", &[]);
    let own = directory.path().join("one").to_str().unwrap().to_owned();
    let inputs = RoundInputs {
        paths: vec![own.clone(), "a".to_owned()],
        files: [file(&format!("{own}/part-00000"), 2), file("a", 5)].into(),
    };
    record.enter(&wanted("two", "{}"), inputs, &status_of(JobId(2))).unwrap();
    assert_eq!(record.find("two").unwrap().inputs.files, [file("a", 5)].into());
    assert_eq!(record.find("two").unwrap().inputs.paths, ["a"]);
}

#[test]
fn round_that_ended_just_before_a_death_may_be_replaced_and_nothing_else() {
    let directory = TempDir::new().unwrap();
    run(&mut begin(&directory, Earlier::Refuse).unwrap(), "one", &[]);
    let record = begin(&directory, Earlier::Replace).unwrap();
    assert!(!record.left_unentered(&wanted("one", "{}")), "no client went on with it");
    let record = begin(&directory, Earlier::Resume).unwrap();
    assert!(record.left_unentered(&wanted("one", "{}")));
    assert!(!record.left_unentered(&WantedRound { job: "other", ..wanted("one", "{}") }));
    fs::remove_file(directory.path().join("one/_SUCCESS")).unwrap();
    assert!(!record.left_unentered(&wanted("one", "{}")));
}
