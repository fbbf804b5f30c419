//! Files that are mapped, and those that cannot be.

use super::*;
use crate::input::local::open;
use crate::input::maps::MappedFiles;

/// Access to files of this machine, with maps of its own.
struct With(MappedFiles);

impl FileAccess for With {
    fn open(&self, piece: &Piece) -> Result<Box<dyn ByteSource>, InputError> {
        open(piece, &self.0)
    }
}

fn lines(count: usize) -> String {
    (0..count).map(|line| format!("{line:08} of them\n")).collect()
}

fn records(split: &Split, access: &dyn FileAccess) -> Vec<Seen> {
    let (mut blocks, mut seen) = (open_split(split, access, &limits(10_000)), Vec::new());
    while let Some(block) = blocks.next_block().unwrap() {
        seen.extend(block.records().map(|record| (record.offset(), record.bytes().to_vec())));
    }
    seen
}

#[test]
fn a_file_is_mapped_once_however_many_splits_hold_on_to_it() {
    let files = Files::new();
    let path = files.write("lines", lines(20_000));
    let splits = plan(&input(&[path], RecordFormat::Lines), 10_000).unwrap();
    assert!(30 < splits.len());
    let access = With(MappedFiles::new(u64::MAX));
    let held: Vec<_> = splits.iter().map(|split| access.open(&split.pieces[0]).unwrap()).collect();
    assert!(held.iter().all(|file| file.bytes().is_some()));
    assert_eq!(access.0.mapped(), 1);
    drop(held);
    assert_eq!(access.0.mapped(), 0, "nobody needs it any more");
}

/// Returns the bytes of a mapped file that are in the memory of this process.
fn resident_bytes(path: &str) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let of_file = maps.lines().skip_while(|line| !line.ends_with(path));
    let resident = of_file.into_iter().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    resident.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn pieces_that_nobody_holds_take_no_memory_though_their_file_stays_mapped() {
    let files = Files::new();
    let path = files.write("lines", lines(200_000));
    let splits = plan(&input(std::slice::from_ref(&path), RecordFormat::Lines), 400_000).unwrap();
    assert!(8 < splits.len());
    let access = With(MappedFiles::new(u64::MAX));
    let limits = limits(10_000);
    let mut held: Vec<_> = splits.iter().map(|split| open_split(split, &access, &limits)).collect();
    for blocks in &mut held {
        while blocks.next_block().unwrap().is_some() {}
    }
    let all = resident_bytes(&path);
    assert!(3_000_000 < all, "{all} bytes: it was not read through its map");
    let first = held.into_iter().next();
    let rest = resident_bytes(&path);
    assert!(rest < all / 2, "{rest} bytes of {all} are still there");
    drop(first);
}

#[test]
fn maps_forget_files_that_nobody_holds() {
    let files = Files::new();
    let access = With(MappedFiles::new(u64::MAX));
    let content = lines(5_000);
    for number in 0..300 {
        let piece = files.piece(&format!("file-{number}"), &content);
        drop(access.open(&piece).unwrap());
    }
    assert!(access.0.entries() < 100, "{} entries", access.0.entries());
}

#[test]
fn a_file_that_cannot_be_mapped_is_read_with_the_same_result() {
    let files = Files::new();
    let path = files.write("lines", lines(20_000));
    let splits = plan(&input(&[path], RecordFormat::Lines), 100_000).unwrap();
    let (mapping, reading) = (With(MappedFiles::new(u64::MAX)), With(MappedFiles::new(100_000)));
    assert!(reading.open(&splits[1].pieces[0]).unwrap().bytes().is_none());
    for split in &splits {
        assert_eq!(records(split, &reading), records(split, &mapping));
    }
    let mut blocks = open_split(&splits[0], &reading, &InputLimits::default());
    assert!(blocks.next_block().unwrap().is_some());
    assert_eq!((blocks.local_bytes(), blocks.remote_bytes()), (100_000, 0), "no other process was asked");
}

#[test]
fn a_file_that_is_read_and_changes_meanwhile_is_noticed() {
    let files = Files::new();
    let piece = files.piece("lines", lines(20_000));
    let mut file = open(&piece, &MappedFiles::new(0)).unwrap();
    files.write("lines", "short");
    assert!(matches!(file.read_at(100_000, &mut [0; 100]), Err(InputError::Changed { .. })));
    assert!(matches!(file.verify_unchanged(), Err(InputError::Changed { .. })));
}

#[test]
fn a_record_that_has_no_room_is_refused_where_it_must_be_held_and_nowhere_else() {
    let files = Files::new();
    let path = files.write("lines", format!("short\n{}\n", "x".repeat(200_000)));
    let splits = plan(&input(&[path], RecordFormat::Lines), 1 << 20).unwrap();
    let limits = InputLimits { buffered_record_max: 100_000, block_bytes: 10_000, ..InputLimits::default() };
    let all = |access: &dyn FileAccess| {
        let mut blocks = open_split(&splits[0], access, &limits);
        let mut bytes = 0;
        while let Some(block) = blocks.next_block()? {
            bytes += block.bytes().len();
        }
        Ok(bytes)
    };
    assert_eq!(all(&With(MappedFiles::new(u64::MAX))).unwrap(), 200_007);
    let error: InputError = all(&With(MappedFiles::new(0))).unwrap_err();
    assert!(error.to_string().starts_with("record of more than 100000 bytes at byte 6 of"), "{error}");
    assert!(error.to_string().contains("what a slot of this worker has room for"), "{error}");
}
