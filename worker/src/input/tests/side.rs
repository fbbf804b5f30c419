//! Side inputs are built once and shared.

use super::plan::plan_side;
use super::*;
use crate::api::{FailureKind, TaskError};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};

fn side(files: &Files) -> SideInputs {
    let paths = [files.write("a", "k,v\n1,2"), files.write("b", "k,v\n3,4\n")];
    let table = input(&paths, RecordFormat::Csv { delimiter: b',', header: true });
    let lines = input(&paths, RecordFormat::Lines);
    let empty = input(&[files.write("empty", "")], RecordFormat::Lines);
    let planned = plan_side(&[table, lines, empty], &LocalListing).unwrap();
    SideInputs::new(planned, Arc::new(LocalFiles), InputLimits::default())
}

#[test]
fn side_input_is_all_records_without_headers() {
    let files = Files::new();
    let side = side(&files);
    let text = |index| side.get(index, |bytes| Ok(bytes.to_vec())).unwrap();
    assert_eq!(*text(0), b"1,2\n3,4\n");
    assert_eq!(*text(1), b"k,v\n1,2\nk,v\n3,4\n");
    assert_eq!(*text(2), b"");
}

#[test]
fn side_input_is_built_once_for_all_threads() {
    let files = Files::new();
    let side = side(&files);
    let (built, barrier) = (AtomicU32::new(0), Barrier::new(4));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                let length = side.get(0, |bytes| {
                    built.fetch_add(1, Ordering::Relaxed);
                    Ok(bytes.len())
                });
                assert_eq!(*length.unwrap(), 8);
            });
        }
    });
    assert_eq!(built.into_inner(), 1);
}

#[test]
fn side_input_is_built_again_when_building_failed_or_panicked() {
    let files = Files::new();
    let side = side(&files);
    let failed = side.get::<u32>(0, |_| Err(TaskError::new("not today")));
    assert_eq!(failed.unwrap_err().chain(), "not today");
    let panicked =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| side.get::<u32>(0, |_| panic!("no"))));
    assert!(panicked.is_err());
    assert_eq!(*side.get(0, |_| Ok(7_u32)).unwrap(), 7);
}

#[test]
fn side_input_refuses_a_wrong_index_or_type() {
    let files = Files::new();
    let side = side(&files);
    side.get(0, |_| Ok(7_u32)).unwrap();
    assert_eq!(side.get(0, |_| Ok(7_u64)).unwrap_err().kind, FailureKind::Config);
    assert_eq!(side.get(3, |_| Ok(7_u64)).unwrap_err().kind, FailureKind::Config);
    assert_eq!(SideInputs::none().get(0, |_| Ok(7_u64)).unwrap_err().kind, FailureKind::Config);
}

#[test]
fn side_input_that_cannot_be_read_is_the_inputs_fault() {
    let files = Files::new();
    let side = side(&files);
    std::fs::remove_file(files.path("b")).unwrap();
    let error = side.get(0, |bytes| Ok(bytes.len())).unwrap_err();
    assert_eq!(error.kind, FailureKind::Input);
    assert!(error.chain().contains("does not exist"), "{error}");
}
