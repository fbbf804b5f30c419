//! Mapped files that are truncated, or fail, while they are read.

use super::*;
use crate::input::local::open;
use crate::input::maps::MappedFiles;
use std::fs::File;
use std::sync::Arc;

struct With(MappedFiles);

impl FileAccess for With {
    fn open(&self, piece: &Piece) -> Result<Box<dyn ByteSource>, InputError> {
        open(piece, &self.0)
    }
}

/// Returns a piece of many pages, its bytes, and the maps for it.
fn large_file(files: &Files) -> (Piece, Vec<u8>, With) {
    let bytes = (0..100_000).map(|line| format!("{line:08} of them\n")).collect::<String>().into_bytes();
    (files.piece("lines", &bytes), bytes, With(MappedFiles::new(u64::MAX)))
}

fn cut(files: &Files, length: u64) {
    File::options().write(true).open(files.path("lines")).unwrap().set_len(length).unwrap();
}

fn mapping(access: &With, piece: &Piece) -> Arc<crate::input::MappedFile> {
    let file = access.open(piece).unwrap();
    file.mapping().unwrap().clone()
}

#[test]
fn a_file_that_is_cut_short_while_it_is_read_ends_as_changed_input_and_the_process_goes_on() {
    let files = Files::new();
    let (piece, bytes, access) = large_file(&files);
    let split = Split { input: 0, format: RecordFormat::Lines, pieces: vec![piece] };
    let limits = limits(10_000);
    let mut blocks = open_split(&split, &access, &limits);
    assert!(blocks.next_block().unwrap().is_some());
    cut(&files, 5_000);
    let mut read = 0;
    let error = loop {
        match blocks.next_block() {
            Ok(Some(block)) => read += block.bytes().iter().filter(|byte| **byte != 0).count(),
            Ok(None) => panic!("it ended as if it were whole"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, InputError::Changed { .. }), "{error}");
    assert!(error.is_input_fault());
    assert!(read < bytes.len() / 2, "{read} bytes were there to be read");
}

#[test]
fn a_map_with_lost_pages_has_zeros_and_says_so_and_is_given_to_nobody_else() {
    let files = Files::new();
    let (piece, bytes, access) = large_file(&files);
    let stamped = std::fs::metadata(files.path("lines")).unwrap().modified().unwrap();
    let (first, second) = (mapping(&access, &piece), mapping(&access, &piece));
    assert_eq!(first.bytes().as_ptr(), second.bytes().as_ptr());
    cut(&files, 0);
    assert_eq!(first.bytes()[bytes.len() / 2], 0);
    assert!(first.is_lost() && second.is_lost());
    assert!(matches!(first.verify_unchanged(), Err(InputError::Changed { .. })));

    // Restored afterwards: the bytes read in between were still not those of the file.
    files.write("lines", &bytes);
    File::options().write(true).open(files.path("lines")).unwrap().set_modified(stamped).unwrap();
    let error = first.verify_unchanged().unwrap_err();
    assert!(matches!(error, InputError::Unavailable { .. }) && !error.is_input_fault(), "{error}");
    let anew = mapping(&access, &piece);
    assert!(anew.bytes() == bytes && anew.verify_unchanged().is_ok());
}

#[test]
fn a_map_made_where_a_lost_one_was_is_whole() {
    let files = Files::new();
    for _ in 0..20 {
        let (piece, bytes, access) = large_file(&files);
        let map = mapping(&access, &piece);
        assert!(!map.is_lost() && map.bytes() == bytes);
        cut(&files, 0);
        assert_eq!((map.bytes()[bytes.len() - 1], map.is_lost()), (0, true));
    }
}
