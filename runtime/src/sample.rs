//! Places of the input that are sampled for keys, and the key ranges cut from the sample.
//!
//! Places are spread evenly over all bytes, so that sorted input is cut as fairly as any other. The amount of data read
//! does not depend on the size of the input. Records of compressed files and tables cannot be found from arbitrary
//! places. These files are read through, up to a limit, and the places are spread over the data read. The choice of
//! keys at those places is in `gristmill_worker::task`.

use crate::cluster_view::ClusterView;
use gristmill_worker::api::{JobPlan, SideInputs};
use gristmill_worker::input::{Blocks, InputError, InputLimits, Piece, Split, open_split, recognized_whole};
use gristmill_worker::record::{Block, RecordFormat, Source};
use gristmill_worker::task::{KeySample, SAMPLE_KEYS_MAX, TaskFailure, cut_points, sample_keys};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Number of places for each partition: with a hundred records at each, sizes of parts differ by a few percent.
const PLACES_PER_PARTITION: usize = 8;
/// Minimum number of places, if there are as many bytes.
const PLACES_MIN: usize = 64;
/// Maximum number of places.
const PLACES_MAX: usize = 1024;
/// Bytes read from each place on.
const PLACE_BYTES: usize = 64 << 10;
/// Bytes of all files together that are read through because places in them cannot be found otherwise, after
/// decompression: a few seconds of work.
const READ_THROUGH_BYTES_MAX: u64 = 1 << 30;
/// Bytes kept of one file that is read through.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Minimum number of blocks kept of such a file if it has them, so that even a single one is near the wanted place.
const KEPT_BLOCKS_MIN: usize = 16;

/// The first keys of all partitions but the first; see [`cut_points`].
///
/// # Errors
/// Input that cannot be read, or user code that fails on it.
pub(crate) fn cut_ranges(
    plan: &JobPlan,
    splits: &[Split],
    side: &[Split],
    cluster: &ClusterView,
    limits: &InputLimits,
    partitions: u32,
) -> Result<Vec<Vec<u8>>, TaskFailure> {
    let files = Arc::new(cluster.files());
    let side = Arc::new(SideInputs::new(side.to_vec(), files.clone(), *limits));
    let limits = InputLimits { block_bytes: limits.block_bytes.min(PLACE_BYTES), ..*limits };
    let mut sample = KeySample::new(SAMPLE_KEYS_MAX);
    let places = places(splits, partitions);
    let through = places.iter().filter(|place| !place.wanted.is_empty());
    let through_bytes: u64 = through.map(|place| place.split.bytes()).sum();
    for SamplePlace { split, wanted } in &places {
        let input = split.input as usize;
        // If only the first bytes of a file show that it is compressed, it is read from its start.
        let pieces = split.pieces.iter().cloned().map(|piece| match piece.offset {
            0 => Ok(piece),
            _ => recognized_whole(piece, split.format, &*files),
        });
        let split = &Split { pieces: pieces.collect::<Result<_, _>>()?, ..*split };
        let open = open_split(split, &*files, &limits);
        sample = if wanted.is_empty() {
            let mut first = FirstBlock { blocks: open, read: false };
            sample_keys(plan, input, &mut first, side.clone(), sample)?
        } else {
            let share = u128::from(READ_THROUGH_BYTES_MAX) * u128::from(split.bytes());
            let limits = SpreadLimits {
                read_max: (share / u128::from(through_bytes.max(1))) as u64,
                kept_max: KEPT_BYTES_MAX,
            };
            let mut spread = BlockSpread::read(open, wanted, split.bytes(), limits)?;
            sample_keys(plan, input, &mut spread, side.clone(), sample)?
        };
    }
    Ok(cut_points(sample, partitions, plan))
}

/// A place to sample.
struct SamplePlace {
    /// Its first block counts, or those at `wanted`.
    split: Split,
    /// Places in a file that has to be read through, as offsets of its stored bytes.
    wanted: Vec<u64>,
}

/// Places to sample.
fn places(splits: &[Split], partitions: u32) -> Vec<SamplePlace> {
    let count = (PLACES_PER_PARTITION * partitions as usize).clamp(PLACES_MIN, PLACES_MAX) as u64;
    let pieces = || splits.iter().flat_map(|split| split.pieces.iter().map(move |piece| (split, piece)));
    let total: u64 = pieces().map(|(_, piece)| piece.length).sum();
    let mut places: Vec<SamplePlace> = Vec::new();
    let (mut before, mut number) = (0, 0);
    for (split, piece) in pieces() {
        let mut last = None;
        // Places within this piece, from its first byte on.
        while number < count && at(number, count, total) < before + piece.length {
            let wanted = at(number, count, total).saturating_sub(before);
            let skipped = skip(split.format, piece, wanted);
            if last != Some(skipped) {
                let length = piece.length - skipped;
                let piece = Piece { offset: piece.offset + skipped, length, ..piece.clone() };
                places
                    .push(SamplePlace { split: Split { pieces: vec![piece], ..*split }, wanted: Vec::new() });
                last = Some(skipped);
            }
            if cannot_skip(split.format, piece)
                && let Some(place) = places.last_mut()
            {
                place.wanted.push(wanted);
            }
            number += 1;
        }
        before += piece.length;
    }
    // Splits without bytes hold mappers that generate their own records.
    let bare = splits.iter().filter(|split| split.pieces.is_empty()).take(PLACES_MAX);
    places.extend(bare.map(|split| SamplePlace { split: split.clone(), wanted: Vec::new() }));
    places
}

/// Place `number` of `count` in `total` bytes: within its interval of them, varied so that places are not all at the
/// start of files that are as long as an interval.
fn at(number: u64, count: u64, total: u64) -> u64 {
    // Multiples of the golden ratio fill the interval evenly; this is 2^64 divided by it.
    let within = (u128::from(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)) * u128::from(total)) >> 64;
    ((u128::from(number) * u128::from(total) + within) / u128::from(count)) as u64
}

/// Bytes of the piece to skip so that reading can start there: about `wanted` if records can be found from anywhere,
/// none otherwise.
fn skip(format: RecordFormat, piece: &Piece, wanted: u64) -> u64 {
    match format {
        _ if cannot_skip(format, piece) => 0,
        RecordFormat::Fixed { length } => wanted - wanted % u64::from(length.max(1)),
        _ => wanted,
    }
}

/// True if records can be found only from the start of the piece.
fn cannot_skip(format: RecordFormat, piece: &Piece) -> bool {
    let found_from_anywhere = matches!(format, RecordFormat::Lines | RecordFormat::Fixed { .. });
    piece.is_decoded() || !found_from_anywhere
}

/// The first block of a split and no other.
struct FirstBlock<B> {
    blocks: B,
    read: bool,
}

impl<B: Blocks> Blocks for FirstBlock<B> {
    fn next_block(&mut self) -> Result<Option<Block<'_>>, InputError> {
        if std::mem::replace(&mut self.read, true) { Ok(None) } else { self.blocks.next_block() }
    }
}

/// Blocks spread evenly over a split that was read through.
struct BlockSpread {
    kept: Vec<KeptBlock>,
    next: usize,
}

struct KeptBlock {
    bytes: Vec<u8>,
    offset: u64,
    format: RecordFormat,
    source: Source,
}

impl BlockSpread {
    /// Reads blocks of a file of `length` stored bytes and keeps those at `wanted`. Their number is unknown in advance:
    /// every second kept block is dropped whenever there are too many.
    fn read(
        mut blocks: impl Blocks,
        wanted: &[u64],
        length: u64,
        limits: SpreadLimits,
    ) -> Result<Self, InputError> {
        let count_max = 2 * wanted.len().max(KEPT_BLOCKS_MIN);
        let mut kept: Vec<KeptBlock> = Vec::new();
        let (mut number, mut step, mut read, mut kept_bytes) = (0_u64, 1, 0, 0);
        while let Some(block) = blocks.next_block()? {
            read += block.bytes().len() as u64;
            if number.is_multiple_of(step) {
                kept_bytes += block.bytes().len();
                kept.push(KeptBlock {
                    bytes: block.bytes().to_vec(),
                    offset: block.offset(),
                    format: block.format(),
                    source: block.source().clone(),
                });
            }
            number += 1;
            while 1 < kept.len() && (count_max < kept.len() || limits.kept_max < kept_bytes) {
                kept = kept.into_iter().step_by(2).collect();
                kept_bytes = kept.iter().map(|block| block.bytes.len()).sum();
                step *= 2;
            }
            if limits.read_max <= read {
                break;
            }
        }
        let place = |wanted: &u64| {
            let place = u128::from(*wanted) * kept.len() as u128 / u128::from(length.max(1));
            place as usize
        };
        let places: BTreeSet<usize> = wanted.iter().map(place).collect();
        let chosen = kept.into_iter().enumerate().filter(|(place, _)| places.contains(place));
        Ok(Self { kept: chosen.map(|(_, block)| block).collect(), next: 0 })
    }
}

impl Blocks for BlockSpread {
    fn next_block(&mut self) -> Result<Option<Block<'_>>, InputError> {
        let Some(block) = self.kept.get(self.next) else { return Ok(None) };
        self.next += 1;
        Ok(Some(Block::new(&block.bytes, block.offset, block.format, &block.source)))
    }
}

/// Bytes of a file that are read through, and bytes of those that are kept, after decompression.
#[derive(Clone, Copy)]
struct SpreadLimits {
    read_max: u64,
    kept_max: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_worker::input::{Compression, FilePath, FileStamp, Place as Whose};

    fn split(format: RecordFormat, pieces: &[(u64, u64)]) -> Split {
        let piece = |&(offset, length): &(u64, u64)| Piece {
            path: FilePath::from("/data"),
            name: FilePath::from("data"),
            place: Whose::Submitter,
            offset,
            length,
            stamp: FileStamp { size: 1 << 40, modified_ns: 0, inode: 0 },
            compression: Compression::None,
            table: None,
        };
        Split { input: 0, format, pieces: pieces.iter().map(piece).collect() }
    }

    fn offsets(places: &[SamplePlace]) -> Vec<u64> {
        places.iter().map(|place| place.split.pieces[0].offset).collect()
    }

    #[test]
    fn places_are_spread_evenly_over_all_bytes() {
        let lines = [split(RecordFormat::Lines, &[(0, 6400)]), split(RecordFormat::Lines, &[(6400, 6400)])];
        let found = places(&lines, 2);
        let begins: Vec<u64> = offsets(&found).iter().map(|offset| offset / 200).collect();
        assert_eq!(begins, (0..64).collect::<Vec<_>>());
        assert_eq!(offsets(&found)[0], 0);
        let end = |place: &SamplePlace| place.split.pieces[0].end();
        assert!(found.iter().all(|place| [6400, 12800].contains(&end(place)) && place.wanted.is_empty()));
    }

    #[test]
    fn places_begin_at_borders_of_fixed_records_and_at_the_beginning_of_tables() {
        let fixed = [split(RecordFormat::Fixed { length: 1000 }, &[(0, 6_400_000)])];
        assert!(offsets(&places(&fixed, 1)).iter().all(|offset| offset.is_multiple_of(1000)));
        let table = RecordFormat::Csv { delimiter: b',', header: true };
        let found = places(&[split(table, &[(0, 9000), (20_000, 9000)])], 1);
        assert_eq!(offsets(&found), [0, 20_000]);
        assert_eq!(found.iter().map(|place| place.wanted.len()).collect::<Vec<_>>(), [32, 32]);
    }

    /// Blocks of ten bytes that all equal their number.
    struct Numbered(u8, Vec<u8>, Source);

    impl Blocks for Numbered {
        fn next_block(&mut self) -> Result<Option<Block<'_>>, InputError> {
            let Some(next) = self.0.checked_sub(1) else { return Ok(None) };
            self.1 = vec![200 - self.0; 10];
            self.0 = next;
            Ok(Some(Block::new(&self.1, 0, RecordFormat::Lines, &self.2)))
        }
    }

    #[test]
    fn places_of_what_is_read_through_are_spread_over_all_of_it_within_the_limits() {
        let spread = |wanted: &[u64], read_max, kept_max| {
            let blocks = Numbered(200, Vec::new(), Source { path: String::new(), input: 0 });
            // Compressed to a tenth: a stored byte for each block.
            let mut spread =
                BlockSpread::read(blocks, wanted, 200, SpreadLimits { read_max, kept_max }).unwrap();
            let mut numbers = Vec::new();
            while let Some(block) = spread.next_block().unwrap() {
                numbers.push(block.bytes()[0]);
            }
            numbers
        };
        let each: Vec<u64> = (0..200).collect();
        assert_eq!(spread(&each, 1 << 20, 1 << 20), (0..200).collect::<Vec<u8>>());
        // Of thirty-two blocks to choose from, twenty-five remain at the end, each the eighth.
        assert_eq!(spread(&[0, 100, 150], 1 << 20, 1 << 20), [0, 96, 144]);
        assert_eq!(spread(&[199], 1 << 20, 1 << 20), [192]);
        assert_eq!(spread(&each, 1 << 20, 40), [0, 64, 128, 192]);
        assert_eq!(spread(&each, 1, 1 << 20), [0]);
        assert_eq!(spread(&[199], 500, 1 << 20), [48], "fifty blocks are read, every second is kept");
    }

    #[test]
    fn places_in_files_of_one_size_are_not_all_at_the_same_place_of_their_file() {
        let files: Vec<Split> = (0..2048)
            .map(|number| Split { input: number, ..split(RecordFormat::Lines, &[(0, 1000)]) })
            .collect();
        let mut offsets = offsets(&places(&files, 100_000));
        offsets.sort_unstable();
        let fair = |share: usize| offsets[offsets.len() * share / 4].abs_diff(250 * share as u64) < 50;
        assert!((0..4).all(fair), "{offsets:?}");
    }

    #[test]
    fn places_are_bounded_in_number_and_never_the_same_twice() {
        let tiny = [split(RecordFormat::Lines, &[(0, 3)])];
        assert_eq!(offsets(&places(&tiny, 1)), [0, 1, 2]);
        let large = [split(RecordFormat::Lines, &[(0, 1 << 40)])];
        assert_eq!(places(&large, 100_000).len(), PLACES_MAX);
    }
}
