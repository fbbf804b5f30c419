//! Entry points of fuzzing: one function for each parser of external data.
//!
//! Each takes arbitrary bytes, must come back without a panic, and must agree with itself where it took them. The targets
//! in `targets` call these under libFuzzer; `cli/tests/it/fuzz.rs` calls them with changed seeds under any compiler.

use gristmill_lab::compare::file;
use gristmill_runtime::api::{PolicyChange, Submission, WorkerEnded};
use gristmill_runtime::journal::JournalReader;
use gristmill_worker::agent::files::RangeRequest;
use gristmill_worker::codec;
use gristmill_worker::http::JoinLine;
use gristmill_worker::protocol::{FRAME_BYTES_MAX, MasterFrame, WorkerFrame};
use gristmill_worker::segment::{SegmentData, SegmentReader};
use gristmill_worker::shuffle::{FetchHead, FetchRequest};
use gristmill_worker::value::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;

/// A message: what was taken is written and read again as itself.
fn message<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    let Ok(value) = codec::decode_message::<T>(bytes, 4 * FRAME_BYTES_MAX) else { return };
    let mut again = Vec::new();
    codec::encode(&value, &mut again);
    let back = codec::decode_message::<T>(&again, 4 * FRAME_BYTES_MAX).expect("it was just written");
    let mut third = Vec::new();
    codec::encode(&back, &mut third);
    assert_eq!(again, third, "a message is not read as it was written");
}

/// A frame of a worker.
pub fn worker_frame(bytes: &[u8]) {
    message::<WorkerFrame>(bytes);
}

/// A frame of a master.
pub fn master_frame(bytes: &[u8]) {
    message::<MasterFrame>(bytes);
}

/// The body of a request for segments.
pub fn fetch_request(bytes: &[u8]) {
    message::<FetchRequest>(bytes);
}

/// The head before the segments of a response.
pub fn fetch_head(bytes: &[u8]) {
    message::<FetchHead>(bytes);
}

/// The body of a request for ranges of a file.
pub fn range_request(bytes: &[u8]) {
    message::<RangeRequest>(bytes);
}

/// A segment, read to its end; no more pairs come out than its header says.
pub fn segment(bytes: &[u8]) {
    let Ok(mut reader) = SegmentReader::open(SegmentData::Memory(bytes.to_vec().into())) else { return };
    let said = reader.header().records;
    let mut pairs = 0;
    while let Ok(true) = reader.advance() {
        let _ = (reader.key().len(), reader.value().len());
        pairs += 1;
        assert!(pairs <= said, "{pairs} pairs of a segment that says {said}");
    }
}

/// A journal, read to its end.
pub fn journal(bytes: &[u8]) {
    let Ok(mut reader) = JournalReader::new(bytes) else { return };
    while let Ok(Some(_)) = reader.record() {}
}

/// A body of JSON: what was taken is written and read again as itself.
fn body<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    let Ok(read) = serde_json::from_slice::<T>(bytes) else { return };
    let again = serde_json::to_vec(&read).expect("it was just read");
    let back: T = serde_json::from_slice(&again).expect("it was just written");
    assert_eq!(serde_json::to_vec(&back).expect("as before"), again, "a body is not read as it was written");
}

/// The body that submits a job.
pub fn submission(bytes: &[u8]) {
    body::<Submission>(bytes);
}

/// The body that says how the process of a worker ended.
pub fn worker_ended(bytes: &[u8]) {
    body::<WorkerEnded>(bytes);
}

/// The body that changes the policy.
pub fn policy_change(bytes: &[u8]) {
    body::<PolicyChange>(bytes);
}

/// A workload file of a comparison.
pub fn workload_file(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = file::parse("fuzzed.toml", "fuzzed", text, Path::new("/nowhere"));
    }
}

/// A join line.
pub fn join_line(bytes: &[u8]) {
    let Some(line) = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<JoinLine>().ok()) else {
        return;
    };
    let again = line.to_text();
    let back: JoinLine = again.parse().expect("it was just written");
    assert_eq!(*back.to_text(), *again, "a join line is not read as it was written");
}

/// A value of user code.
pub fn value(bytes: &[u8]) {
    let _ = <Vec<(u8, Option<String>, BTreeMap<u16, Vec<f64>>)> as Value>::decode(bytes);
}

/// A reader and its name.
pub type Entry = (&'static str, fn(&[u8]));

/// All of them; each has a target of the same name.
pub const ENTRIES: &[Entry] = &[
    ("worker_frame", worker_frame),
    ("master_frame", master_frame),
    ("fetch_request", fetch_request),
    ("fetch_head", fetch_head),
    ("range_request", range_request),
    ("segment", segment),
    ("journal", journal),
    ("submission", submission),
    ("worker_ended", worker_ended),
    ("policy_change", policy_change),
    ("workload_file", workload_file),
    ("join_line", join_line),
    ("value", value),
];
