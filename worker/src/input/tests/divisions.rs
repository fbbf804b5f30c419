//! Tests that every record is read exactly once, in order, however a split is divided while it is read.

use super::*;
use proptest::prelude::*;

/// Reads a split, and divides it before each of the given blocks. Its own records come first, then those of the rests,
/// each of which is divided in the same way, last one first: the order of the input.
fn read_divided(
    split: &Split,
    access: &dyn FileAccess,
    block_bytes: usize,
    divisions: &mut impl Iterator<Item = (usize, KeptPart)>,
) -> Vec<Seen> {
    let limits = limits(block_bytes);
    let mut blocks = open_split(split, access, &limits);
    let (mut seen, mut rests, mut front) = (Vec::new(), Vec::new(), split.clone());
    let mut divide_at = divisions.next();
    for number in 0.. {
        while let Some((_, part)) = divide_at.filter(|(at, _)| *at == number) {
            if let Some(kept) = blocks.divide(part) {
                let (kept, rest) = front.divide(kept).expect("a reader divides where a split can be");
                front = kept;
                rests.push(rest);
            }
            divide_at = divisions.next();
        }
        let Some(block) = blocks.next_block().unwrap() else { break };
        seen.extend(block.records().map(|record| (record.offset(), record.bytes().to_vec())));
    }
    assert!(front.bytes() + rests.iter().map(Split::bytes).sum::<u64>() == split.bytes());
    for rest in rests.into_iter().rev() {
        seen.extend(read_divided(&rest, access, block_bytes, divisions));
    }
    seen
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let tokens = prop::sample::select(vec!["a", "bc", "\n", "\n", "\r\n", "a longer word ", "\u{feff}", "é"]);
    prop::collection::vec(tokens, 0..120).prop_map(|tokens| tokens.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_are_read_once_and_in_order_whatever_the_divisions(
        texts in prop::collection::vec(text(), 1..4),
        format in prop_oneof![
            Just(RecordFormat::Lines),
            Just(RecordFormat::Csv { delimiter: b',', header: false }),
            (1..6_u32).prop_map(|length| RecordFormat::Fixed { length }),
        ],
        packed: bool,
        remote: bool,
        split_bytes in 1_u64..400,
        block_bytes in 1_usize..60,
        divisions in prop::collection::vec((0_usize..12, prop::sample::select(vec![KeptPart::Half, KeptPart::Least])), 0..20),
    ) {
        let files = Files::new();
        let write = |(number, mut text): (usize, Vec<u8>)| {
            if let RecordFormat::Fixed { length } = format {
                text.truncate(text.len() - text.len() % length as usize);
            }
            files.write(&format!("file-{number}"), &text)
        };
        let paths: Vec<String> = texts.into_iter().enumerate().map(write).collect();
        let mut splits = plan(&input(&paths, format), split_bytes).unwrap();
        if packed && !splits.is_empty() {
            // All pieces in one split: divided within a piece, and between two.
            let pieces = splits.iter().flat_map(|split| split.pieces.clone()).collect();
            splits = vec![Split { pieces, ..splits[0].clone() }];
        }
        let access: &dyn FileAccess = if remote { &AsRemote } else { &LocalFiles };
        let whole = read(&splits, access, &limits(block_bytes)).unwrap();
        let mut divisions = divisions.into_iter();
        let divided: Vec<Seen> = splits
            .iter()
            .flat_map(|split| read_divided(split, access, block_bytes, &mut divisions))
            .collect();
        prop_assert_eq!(divided, whole);
    }
}

#[test]
fn reader_gives_up_half_of_what_is_left() {
    let files = Files::new();
    let text = "0123456\n".repeat(1000);
    let split = Split { input: 0, format: RecordFormat::Lines, pieces: vec![files.piece("file", &text)] };
    let limits = limits(800);
    let mut blocks = open_split(&split, &LocalFiles, &limits);
    assert_eq!(blocks.divide(KeptPart::Half), None, "nothing of the file is known yet");
    blocks.next_block().unwrap();
    assert_eq!(blocks.divide(KeptPart::Half), Some(4400));
    assert_eq!(blocks.divide(KeptPart::Half), Some(2600));
    while blocks.next_block().unwrap().is_some() {}
    assert_eq!((blocks.divide(KeptPart::Half), blocks.local_bytes()), (None, 2600));
    let (front, rest) = split.divide(4400).unwrap();
    assert_eq!((front.bytes(), rest.bytes(), rest.pieces[0].offset), (4400, 3600, 4400));
    assert_eq!((split.divide(0), split.divide(8000)), (None, None), "one part would have nothing");
}

#[test]
fn reader_that_makes_way_keeps_the_record_after_what_it_has_read() {
    let files = Files::new();
    let text = "0123456\n".repeat(1000);
    let pieces = vec![files.piece("one", &text), files.piece("two", &text)];
    let split = Split { input: 0, format: RecordFormat::Lines, pieces };
    let limits = limits(800);
    let mut blocks = open_split(&split, &LocalFiles, &limits);
    blocks.next_block().unwrap();
    assert_eq!(blocks.divide(KeptPart::Least), Some(801), "up to the end of the record that has byte 801");
    let last = blocks.next_block().unwrap().map(|block| block.bytes().len());
    assert_eq!((last, blocks.next_block().unwrap().is_none()), (Some(8), true));
    let (_, rest) = split.divide(801).unwrap();
    assert_eq!(read(&[rest], &LocalFiles, &limits).unwrap()[0].0, 808);
}

#[test]
fn reader_gives_up_nothing_that_is_read_sooner_than_another_map_starts() {
    let files = Files::new();
    let pieces = vec![files.piece("file", "0123456\n".repeat(1000))];
    let split = Split { input: 0, format: RecordFormat::Lines, pieces };
    let limits = limits(4000);
    for (blocks_read, part, kept) in
        [(1, KeptPart::Half, Some(6000)), (2, KeptPart::Half, None), (2, KeptPart::Least, None)]
    {
        let mut blocks = open_split(&split, &LocalFiles, &limits);
        (0..blocks_read).for_each(|_| assert!(blocks.next_block().unwrap().is_some()));
        assert_eq!(blocks.divide(part), kept, "{part:?} after {blocks_read} blocks");
    }
    let mut blocks = open_split(&split, &LocalFiles, &limits);
    blocks.next_block().unwrap();
    assert_eq!(blocks.divide(KeptPart::Half), Some(6000));
    assert_eq!(blocks.divide(KeptPart::Half), Some(5000), "a quarter of a block");
    assert_eq!(blocks.divide(KeptPart::Half), None, "an eighth");
    assert_eq!(blocks.divide(KeptPart::Least), Some(4001), "all that is left, a quarter");
}

#[test]
fn tables_and_packed_files_are_divided_between_files_only() {
    let files = Files::new();
    let rows = "a,b\n".repeat(50);
    let pieces: Vec<Piece> = (0..4).map(|number| files.piece(&format!("table-{number}"), &rows)).collect();
    let split = Split { input: 0, format: RecordFormat::Csv { delimiter: b',', header: false }, pieces };
    let limits = limits(40);
    let mut blocks = open_split(&split, &LocalFiles, &limits);
    blocks.next_block().unwrap();
    assert_eq!(
        blocks.divide(KeptPart::Half),
        Some(600),
        "of the three files that are not begun, one is given up"
    );
    assert_eq!(blocks.divide(KeptPart::Half), Some(400));
    assert_eq!(blocks.divide(KeptPart::Half), Some(200));
    assert_eq!(blocks.divide(KeptPart::Half), None);
    assert_eq!(split.divide(210), None, "within a row or not, a table is not cut");
}
