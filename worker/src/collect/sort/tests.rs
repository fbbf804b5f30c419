//! Tests of the sorting collector with a mixture of pairs that stay in their file and others.

use super::*;
use crate::api::Input;
use crate::attempt::Fault;
use crate::input::list::LocalListing;
use crate::input::plan::{SplitRules, plan_splits};
use crate::input::{Blocks, InputLimits, LocalFiles, Split, open_split};
use crate::segment::{SegmentOrder, SegmentReader, SpillCompression, SpillDirs};
use gristmill_scheduler::ids::JobId;
use std::path::Path;

fn keys_of(output: &MapOutput) -> Vec<Vec<u8>> {
    let mut reader = SegmentReader::open(output.segment(0).unwrap()).unwrap();
    let mut keys = Vec::new();
    while reader.advance().unwrap() {
        keys.push(reader.key().to_vec());
    }
    keys
}

/// Returns settings for one partition, spilled to this directory.
fn setting(directory: &Path) -> WriteSetting {
    WriteSetting {
        job: JobId(1),
        map: 0,
        epoch: 0,
        partitions: 1,
        order: SegmentOrder::Key,
        spill: SpillDirs::new(vec![directory.to_owned()]),
        compression: SpillCompression::None,
    }
}

/// Writes 20,000 lines of nine bytes, and makes one split of them.
fn split_of_lines(path: &Path) -> Vec<Split> {
    std::fs::write(path, (0..20_000).map(|line| format!("{line:08}\n")).collect::<String>()).unwrap();
    let input = Input::lines([path.to_str().unwrap()]);
    let rules = SplitRules { split_bytes: 1 << 20, pieces_max: 1, ..SplitRules::default() };
    plan_splits(std::slice::from_ref(&input), &LocalListing, rules).unwrap()
}

#[test]
fn a_collector_writes_pairs_of_a_file_first_when_copying_them_would_pass_its_limit() {
    const LIMIT_BYTES: usize = 64 << 10;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lines");
    let splits = split_of_lines(&path);
    let mut blocks = open_split(&splits[0], &LocalFiles, &InputLimits::default());
    let block = blocks.next_block().unwrap().unwrap();
    let setting = setting(dir.path());

    let progress = Arc::new(Progress::default());
    let mut sorting = Sorting::new(LIMIT_BYTES, SortMemory::default());
    sorting.start_block(&block);
    // Overlapping slices: 100 entries of 1,000 bytes each far exceed the limit once they are copied.
    let slices: Vec<&[u8]> = (0..100).map(|at| &block.bytes()[9 * at..][..1000]).collect();
    for slice in &slices {
        assert_eq!(
            sorting.add(0, slice, b"").unwrap(),
            TableRoom::Left,
            "in the file it costs its entry alone"
        );
    }
    assert_eq!(sorting.add(0, b"elsewhere", b"").unwrap(), TableRoom::Full);
    let mut writer = SegmentsWriter::on_disk(setting.clone()).unwrap();
    sorting.drain(&mut writer, &progress).unwrap();
    assert_eq!(keys_of(&writer.finish().unwrap()), slices, "ascending as they stand in the file");
    assert_eq!((sorting.len(), sorting.is_empty()), (1, false), "the other pair was not lost");
    assert!(sorting.arena.capacity() < LIMIT_BYTES, "{} bytes", sorting.arena.capacity());

    assert_eq!(sorting.add(0, b"before", b"").unwrap(), TableRoom::Left);
    let mut writer = SegmentsWriter::on_disk(setting).unwrap();
    sorting.drain(&mut writer, &progress).unwrap();
    assert_eq!(keys_of(&writer.finish().unwrap()), [&b"before"[..], b"elsewhere"]);
    assert!(sorting.is_empty());
}

#[test]
fn a_collector_whose_file_is_cut_short_before_it_is_written_fails_for_the_inputs_sake() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lines");
    let splits = split_of_lines(&path);
    let mut blocks = open_split(&splits[0], &LocalFiles, &InputLimits::default());
    let block = blocks.next_block().unwrap().unwrap();
    let mut sorting = Sorting::new(1 << 20, SortMemory::default());
    sorting.start_block(&block);
    for line in block.bytes().chunks(9) {
        assert_eq!(sorting.add(0, line, b"").unwrap(), TableRoom::Left);
    }
    std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    let mut writer = SegmentsWriter::on_disk(setting(dir.path())).unwrap();
    let failure = sorting.drain(&mut writer, &Arc::new(Progress::default())).unwrap_err();
    assert_eq!(failure.class(), Fault::Input, "{failure}");
    assert_eq!(block.bytes().last(), Some(&0), "it was there all the same");
}
