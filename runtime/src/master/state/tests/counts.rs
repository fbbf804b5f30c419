//! Numbers of a submission and of a journal that are too large to allocate for.

use super::*;
use gristmill_scheduler::job::JobSpec;

/// Numbers too large to allocate for.
const HUGE: [u64; 6] = [100_001, 1_000_001, 1 << 31, u32::MAX as u64, 1 << 40, u64::MAX];

/// Replaces each number of a JSON value in turn by `huge`.
fn with_each_number(value: &serde_json::Value, huge: u64, tried: &mut dyn FnMut(&str, serde_json::Value)) {
    fn pointers(value: &serde_json::Value, at: &str, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| pointers(value, &format!("{at}/{name}"), found));
            }
            serde_json::Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, value)| pointers(value, &format!("{at}/{index}"), found));
            }
            serde_json::Value::Number(_) => found.push(at.to_owned()),
            _ => {}
        }
    }
    let mut found = Vec::new();
    pointers(value, "", &mut found);
    assert!(10 < found.len(), "{found:?}");
    for pointer in found {
        let mut changed = value.clone();
        *changed.pointer_mut(&pointer).unwrap() = huge.into();
        tried(&pointer, changed);
    }
}

#[test]
fn no_number_of_a_submission_sizes_anything_beyond_the_limits() {
    let stamp = FileStamp { size: 7, modified_ns: 1, inode: 1 };
    let piece = Piece {
        path: FilePath::from("/data"),
        name: FilePath::from("data"),
        place: Place::Worker(WorkerId(1)),
        offset: 0,
        length: 7,
        stamp,
        compression: Compression::None,
        table: None,
    };
    let mut given = submission();
    given.splits =
        vec![Split { input: 0, format: RecordFormat::Fixed { length: 7 }, pieces: vec![piece] }; 2];
    given.exact =
        Some(ExactWork { map_seconds: vec![1.0; 2], shuffle_bytes: 1.0, reduce_seconds: vec![1.0] });
    given.deadline_ns = Some(1_000_000_000);
    given.submitter = Some(Endpoint { host: "127.0.0.1".to_owned(), port: 7, pin: None });
    let tried = |what: &str, submission| {
        let mut scene = Scene::new(&[]);
        scene.join();
        if let Ok(job) = scene.state.submit(scene.now, submission).map(|(job, _)| job) {
            scene.settle();
            let totals = scene.state.queries().status(scene.now, job).unwrap();
            assert_eq!((totals.maps.total, totals.reduces.total), (2, 1), "{what}");
        }
    };
    let (whole, splits) =
        (serde_json::to_value(&given).unwrap(), serde_json::to_value(&given.splits).unwrap());
    for huge in HUGE {
        with_each_number(&whole, huge, &mut |pointer, changed| {
            let text = serde_json::to_vec(&changed).unwrap();
            let Ok(decoded) = codec::decode_json::<Submission>(&text, 1 << 20) else { return };
            assert_ne!(pointer, "/reduces", "{huge} was decoded");
            tried(&format!("{pointer} = {huge}"), decoded);
        });
        with_each_number(&splits, huge, &mut |pointer, changed| {
            let Ok(splits) = serde_json::from_value(changed) else { return };
            tried(&format!("{pointer} = {huge}"), Submission { splits, ..given.clone() });
        });
    }
}

#[test]
fn lists_of_a_submission_are_refused_by_what_they_take_and_by_their_length() {
    let mut scene = Scene::new(&[]);
    let mut refused = |change: &dyn Fn(&mut Submission)| scene.submit(change).unwrap_err().message;
    let bare = Split { input: 0, format: RecordFormat::Lines, pieces: Vec::new() };
    let words = refused(&|it| it.splits = vec![bare.clone(); 1_000_001]);
    assert_eq!(words, "1000001 maps are more than the 1000000 that a job can have");
    let words = refused(&|it| it.cuts = vec![String::new(); 9]);
    assert_eq!(words, "9 cuts are too many for 1 reduces");
    // The text form takes three bytes per cut, and a cut takes 24 bytes in memory.
    let mut text = serde_json::to_value(submission()).unwrap();
    text["cuts"] = vec![""; 100_000].into();
    let text = serde_json::to_vec(&text).unwrap();
    let error = codec::decode_json::<Submission>(&text, 1 << 20).unwrap_err().to_string();
    assert!(error.contains("more memory than is allowed"), "{error}");
    codec::decode_json::<Submission>(&text, 4 << 20).unwrap();
}

#[test]
fn no_number_of_reduces_of_a_journal_goes_beyond_the_limit() {
    for huge in HUGE.into_iter().filter_map(|huge| u32::try_from(huge).ok()) {
        let mut spec = serde_json::to_value(JobSpec::new(Vec::new(), 1)).unwrap();
        spec["reduces"] = huge.into();
        let error = serde_json::from_value::<JobSpec>(spec).unwrap_err().to_string();
        assert!(error.contains("reduces are more than the 100000"), "{error}");
    }
}
