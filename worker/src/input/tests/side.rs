//! Side inputs are built once and shared.

use super::plan::plan_side;
use super::*;
use crate::api::{FailureKind, TaskError};
use crate::attempt::SideInputs;
use crate::input::Block;
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
    let text = |index| {
        let whole = |file: &Block<'_>| (file.offset(), file.bytes().to_vec());
        side.get(index, |blocks| Ok(blocks.iter().map(whole).collect::<Vec<_>>())).unwrap()
    };
    assert_eq!(*text(0), [(4, b"1,2".to_vec()), (4, b"3,4\n".to_vec())]);
    assert_eq!(*text(1), [(0, b"k,v\n1,2".to_vec()), (0, b"k,v\n3,4\n".to_vec())]);
    assert_eq!(*text(2), []);
}

#[test]
fn side_input_files_end_with_themselves_however_they_end() {
    let files = Files::new();
    let ends = ["1,x\r", "2,y", "3,\"z\r\n\"", "4,w\r\n", "\u{feff}5,v\r"];
    let paths: Vec<String> =
        ends.iter().enumerate().map(|(number, text)| files.write(&format!("{number}"), text)).collect();
    let table = input(&paths, RecordFormat::Csv { delimiter: b',', header: false });
    let planned = plan_side(&[table], &LocalListing).unwrap();
    for block_bytes in [1, 3, 1 << 20] {
        let side = SideInputs::new(planned.clone(), Arc::new(LocalFiles), limits(block_bytes));
        let rows = side.get(0, |blocks| {
            let records = blocks.iter().flat_map(|block| block.records());
            Ok(records.map(|row| (row.source().path.clone(), row.text().into_owned())).collect::<Vec<_>>())
        });
        let expected = ["1,x\r", "2,y", "3,\"z\r\n\"", "4,w", "5,v\r"].map(str::to_owned);
        let expected: Vec<(String, String)> = paths.iter().cloned().zip(expected).collect();
        assert_eq!(*rows.unwrap(), expected, "blocks of {block_bytes}");
    }
}

#[test]
fn side_input_with_an_unclosed_quote_is_the_inputs_fault_and_named() {
    let files = Files::new();
    let paths = [files.write("a", "1,\"x\n2,y\n"), files.write("b", "3,\"z\"\n")];
    let planned =
        plan_side(&[input(&paths, RecordFormat::Csv { delimiter: b',', header: false })], &LocalListing);
    let side = SideInputs::new(planned.unwrap(), Arc::new(LocalFiles), InputLimits::default());
    let error = side.get(0, |blocks| Ok(blocks.len())).unwrap_err();
    assert_eq!(error.kind, FailureKind::Input);
    assert!(error.chain().contains(&format!("byte 2 of {} is never closed", paths[0])), "{error}");
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
                let count = side.get(0, |blocks| {
                    built.fetch_add(1, Ordering::Relaxed);
                    Ok(blocks.len())
                });
                assert_eq!(*count.unwrap(), 2);
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
fn side_input_that_cannot_be_fetched_is_charged_to_nobody() {
    struct Gone;
    impl FileAccess for Gone {
        fn open(&self, piece: &Piece) -> Result<Box<dyn ByteSource>, InputError> {
            Err(InputError::Remote { path: piece.name.clone(), offset: 0, source: "gone".into() })
        }
    }
    let files = Files::new();
    let table = input(&[files.write("a", "1\n")], RecordFormat::Lines);
    let planned = plan_side(&[table], &LocalListing).unwrap();
    let side = SideInputs::new(planned, Arc::new(Gone), InputLimits::default());
    let error = side.get(0, |blocks| Ok(blocks.len())).unwrap_err();
    assert_eq!(error.kind, FailureKind::Unavailable);
    assert_eq!(crate::task::TaskFailure::from(error).class(), crate::task::Fault::Transport);
}

#[test]
fn side_input_that_cannot_be_read_is_the_inputs_fault() {
    let files = Files::new();
    let side = side(&files);
    std::fs::remove_file(files.path("b")).unwrap();
    let error = side.get(0, |blocks| Ok(blocks.len())).unwrap_err();
    assert_eq!(error.kind, FailureKind::Input);
    assert!(error.chain().contains("does not exist"), "{error}");
}
