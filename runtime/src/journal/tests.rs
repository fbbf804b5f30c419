//! Tests of reading journals, and of rejecting invalid ones.

use super::*;
use gristmill_scheduler::ids::{HostId, JobId, WorkerId};
use gristmill_scheduler::job::{Exact, JobSpec, MapSpec};
use gristmill_scheduler::units::Bytes;
use proptest::prelude::*;

fn header() -> JournalHeader {
    JournalHeader {
        schema: SCHEMA,
        version: "0.1.0".to_owned(),
        build: "test".to_owned(),
        policy: "fair".to_owned(),
        placement: "pull".to_owned(),
        estimator: "history".to_owned(),
        memory: serde_json::Value::Null,
        core: CoreConfig::default(),
    }
}

/// A journal with these lines after its header.
fn journal(lines: &[&str]) -> String {
    let header = serde_json::to_string(&header()).unwrap();
    std::iter::once(header.as_str()).chain(lines.iter().copied()).map(|line| format!("{line}\n")).collect()
}

fn error(text: &str) -> JournalReadError {
    let mut reader = match JournalReader::new(text.as_bytes()) {
        Ok(reader) => reader,
        Err(error) => return error,
    };
    loop {
        match reader.record() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("nothing was refused"),
            Err(error) => return error,
        }
    }
}

const TICK: &str = r#"{"instant":{"at":5,"facts":["tick"],"orders":[{"wake_at":{"time":7}}]}}"#;

#[test]
fn what_was_written_is_read_with_its_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let mut journal = Journal::create(&path, &header()).unwrap();
    let records = [
        JournalRecord::Worker { worker: WorkerId(1), speed: 0.8, nic_bytes_per_second: Some(50_000_000) },
        JournalRecord::Job { job: JobId(1), name: "sort".to_owned(), parameters: "{}".to_owned() },
        JournalRecord::DecideBy { at: Time(3), policy: "fifo".to_owned(), placement: "pull".to_owned() },
        JournalRecord::Memory { at: Time(4), memory: serde_json::json!({"schema": 1}) },
    ];
    records.iter().for_each(|record| journal.record(record).unwrap());
    let joined = Event::WorkerJoined {
        worker: WorkerId(1),
        host: HostId(1),
        slots: gristmill_scheduler::event::Slots::Unified(1),
    };
    journal
        .instant(Time(9), std::slice::from_ref(&joined), &[Command::WakeAt { time: Time(11) }], None)
        .unwrap();
    journal.flush().unwrap();
    let mut reader = JournalReader::open(&path).unwrap();
    assert_eq!(reader.header(), &header());
    for (record, line) in records.into_iter().zip(2..) {
        assert_eq!((reader.record().unwrap(), reader.line()), (Some(record), line));
    }
    let orders = vec![serde_json::json!({"wake_at": {"time": 11}})];
    let instant = JournalRecord::Instant { at: Time(9), facts: vec![joined], orders, shuffle: None };
    assert_eq!((reader.record().unwrap(), reader.line()), (Some(instant), 6));
    assert_eq!((reader.record().unwrap(), reader.torn()), (None, None));
}

#[test]
fn a_journal_that_exists_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    std::fs::write(&path, "mine").unwrap();
    assert_eq!(Journal::create(&path, &header()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn what_is_no_journal_is_refused() {
    for text in ["", "\n", "hello\n", "{}\n", "[1]\n", "{\"schema\":1}\n", "\u{0}\n"] {
        let error = error(text);
        assert!(matches!(error, JournalReadError::NoJournal { .. }), "{text:?}: {error}");
    }
}

#[test]
fn a_journal_of_another_schema_is_refused_with_both_numbers() {
    let error = error("{\"schema\":2,\"whatever\":true}\n");
    assert!(matches!(error, JournalReadError::Schema { found: 2 }), "{error}");
    assert_eq!(error.to_string(), "this is a journal of schema 2, and only schema 1 can be read");
}

#[test]
fn a_line_that_is_no_record_is_refused_with_its_number() {
    for line in ["", "{}", "null", "{\"instant\":{}}", "{\"later\":{}}"] {
        let error = error(&journal(&[TICK, line, TICK]));
        assert!(matches!(error, JournalReadError::Line { line: 3, .. }), "{line:?}: {error}");
    }
}

#[test]
fn a_last_line_that_is_cut_off_is_told_and_all_before_it_read() {
    let whole = journal(&[TICK, TICK]);
    for cut in 2..TICK.len() {
        let mut reader = JournalReader::new(&whole.as_bytes()[..whole.len() - cut]).unwrap();
        assert!(reader.record().unwrap().is_some());
        assert_eq!((reader.record().unwrap(), reader.torn()), (None, Some(3)), "without {cut} bytes");
    }
    let mut reader = JournalReader::new(&whole.as_bytes()[..whole.len() - 1]).unwrap();
    assert!(reader.record().unwrap().is_some() && reader.record().unwrap().is_some());
    assert_eq!((reader.record().unwrap(), reader.torn()), (None, None), "only the line break is missing");
}

proptest! {
    /// Orders depend on every bit of the numbers that policies receive.
    #[test]
    fn numbers_come_back_to_the_last_bit(
        weight in 1e-9..1e9_f64,
        maps in prop::collection::vec(0.0..1e6_f64, 0..5),
        shuffle_bytes in 0.0..1e18_f64,
    ) {
        let mut spec = JobSpec::new(vec![MapSpec::anywhere(Bytes(u64::MAX)); maps.len()], 0);
        spec.weight = weight;
        spec.exact = Some(Exact { maps: maps.into(), shuffle_bytes, reduces: [].into() });
        let fact = Event::JobArrived { job: JobId(1), spec: spec.into() };
        let text = serde_json::to_string(&fact).unwrap();
        prop_assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), fact);
    }
}
