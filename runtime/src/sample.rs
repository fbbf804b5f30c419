//! Which places of the input are looked into for a sample of keys, and the key ranges cut from it.
//!
//! Places are spread evenly over all bytes, so that input which is sorted already is cut as fairly as any other.
//! How much is read does not depend on the size of the input. Not here: which keys of those places are kept
//! (`gristmill_worker::task`).

use crate::submit::ClusterView;
use gristmill_worker::api::JobPlan;
use gristmill_worker::input::{
    Blocks, Compression, InputError, InputLimits, Piece, SideInputs, Split, open_split,
};
use gristmill_worker::record::{Block, RecordFormat};
use gristmill_worker::task::{KeySample, SAMPLE_KEYS_MAX, TaskFailure, cut_points, sample_keys};
use std::sync::Arc;

/// Places looked at for each partition: with a hundred records at each, sizes of parts differ by a few percent.
const PLACES_PER_PARTITION: usize = 8;
/// Fewest places, if there are as many bytes.
const PLACES_MIN: usize = 64;
/// Most places.
const PLACES_MAX: usize = 1024;
/// Bytes looked at from each place on.
const PLACE_BYTES: usize = 64 << 10;

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
    for place in places(splits, partitions) {
        let mut first = FirstBlock { blocks: open_split(&place, &*files, &limits), read: false };
        sample = sample_keys(plan, place.input as usize, &mut first, side.clone(), sample)?;
    }
    Ok(cut_points(sample, partitions, plan))
}

/// Where to look: splits of which the first block counts.
fn places(splits: &[Split], partitions: u32) -> Vec<Split> {
    let count = (PLACES_PER_PARTITION * partitions as usize).clamp(PLACES_MIN, PLACES_MAX) as u64;
    let pieces = || splits.iter().flat_map(|split| split.pieces.iter().map(move |piece| (split, piece)));
    let total: u64 = pieces().map(|(_, piece)| piece.length).sum();
    let mut places: Vec<Split> = Vec::new();
    let (mut before, mut number) = (0, 0);
    for (split, piece) in pieces() {
        let mut last = None;
        // Places within this piece, from its first byte on.
        while number < count && at(number, count, total) < before + piece.length {
            let skipped = skip(split.format, piece, at(number, count, total).saturating_sub(before));
            if last != Some(skipped) {
                let length = piece.length - skipped;
                let piece = Piece { offset: piece.offset + skipped, length, ..piece.clone() };
                places.push(Split { pieces: vec![piece], ..split.clone() });
                last = Some(skipped);
            }
            number += 1;
        }
        before += piece.length;
    }
    // Splits without bytes hold mappers that make their own records.
    places.extend(splits.iter().filter(|split| split.pieces.is_empty()).take(PLACES_MAX).cloned());
    places
}

/// Place `number` of `count` in `total` bytes.
fn at(number: u64, count: u64, total: u64) -> u64 {
    (u128::from(number) * u128::from(total) / u128::from(count)) as u64
}

/// Bytes of the piece to skip so that reading can begin there: about `wanted` where records can be found from
/// anywhere, none otherwise.
fn skip(format: RecordFormat, piece: &Piece, wanted: u64) -> u64 {
    match (piece.compression, format) {
        (Compression::None, RecordFormat::Lines) => wanted,
        (Compression::None, RecordFormat::Fixed { length }) => wanted - wanted % u64::from(length.max(1)),
        _ => 0,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_worker::input::{FilePath, FileStamp, Place};

    fn split(format: RecordFormat, pieces: &[(u64, u64)]) -> Split {
        let piece = |&(offset, length): &(u64, u64)| Piece {
            path: FilePath::from("/data"),
            name: FilePath::from("data"),
            place: Place::Submitter,
            offset,
            length,
            stamp: FileStamp { size: 1 << 40, modified_ns: 0, inode: 0 },
            compression: Compression::None,
        };
        Split { input: 0, format, pieces: pieces.iter().map(piece).collect() }
    }

    fn offsets(places: &[Split]) -> Vec<u64> {
        places.iter().map(|place| place.pieces[0].offset).collect()
    }

    #[test]
    fn places_are_spread_evenly_over_all_bytes() {
        let lines = [split(RecordFormat::Lines, &[(0, 6400)]), split(RecordFormat::Lines, &[(6400, 6400)])];
        let found = places(&lines, 2);
        assert_eq!(offsets(&found), (0..64).map(|number| number * 200).collect::<Vec<_>>());
        assert!(found.iter().all(|place| place.pieces[0].end() == 6400 || place.pieces[0].end() == 12800));
    }

    #[test]
    fn places_begin_at_borders_of_fixed_records_and_at_the_beginning_of_tables() {
        let fixed = [split(RecordFormat::Fixed { length: 1000 }, &[(0, 6_400_000)])];
        assert!(offsets(&places(&fixed, 1)).iter().all(|offset| offset.is_multiple_of(1000)));
        let table = RecordFormat::Csv { delimiter: b',', header: true };
        assert_eq!(offsets(&places(&[split(table, &[(0, 9000), (20_000, 9000)])], 1)), [0, 20_000]);
    }

    #[test]
    fn places_are_bounded_in_number_and_never_the_same_twice() {
        let tiny = [split(RecordFormat::Lines, &[(0, 3)])];
        assert_eq!(offsets(&places(&tiny, 1)), [0, 1, 2]);
        let large = [split(RecordFormat::Lines, &[(0, 1 << 40)])];
        assert_eq!(places(&large, 100_000).len(), PLACES_MAX);
    }
}
