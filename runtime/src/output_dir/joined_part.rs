//! Parts of divided reduces: several attempts build one file each, and the part is all of them in order.
//!
//! Here are sizes and sums; the files are joined in `part_file`.

use crate::api::{BuiltPart, BuiltPiece};
use gristmill_worker::protocol::{NamedPart, Part};

/// Returns the part that consists of these in order, under the name of the first. A single one is returned unchanged.
/// `None` if there are none.
pub(crate) fn join_parts(pieces: Vec<(Part, BuiltPart)>) -> Option<(Part, BuiltPart)> {
    let mut pieces = pieces.into_iter();
    let (mut whole, mut built) = pieces.next()?;
    for (part, rest) in pieces {
        if built.pieces.is_empty() {
            built.pieces.push(BuiltPiece { attempt: built.attempt, stamp: built.stamp, part: whole.clone() });
        }
        append(&mut whole, &part);
        match rest.pieces.is_empty() {
            true => built.pieces.push(BuiltPiece { attempt: rest.attempt, stamp: rest.stamp, part }),
            false => built.pieces.extend(rest.pieces),
        }
    }
    Some((whole, built))
}

/// Adds the sizes and sums of the rest of a part.
fn append(part: &mut Part, rest: &Part) {
    part.crc32c = joined_sum(part.crc32c, rest.crc32c, rest.bytes);
    part.bytes = part.bytes.saturating_add(rest.bytes);
    part.records = part.records.saturating_add(rest.records);
    for named in &rest.named {
        match part.named.binary_search_by(|there| there.output.cmp(&named.output)) {
            Ok(at) => append_named(&mut part.named[at], named),
            Err(at) => part.named.insert(at, named.clone()),
        }
    }
}

fn append_named(named: &mut NamedPart, rest: &NamedPart) {
    named.crc32c = joined_sum(named.crc32c, rest.crc32c, rest.bytes);
    named.bytes = named.bytes.saturating_add(rest.bytes);
    named.records = named.records.saturating_add(rest.records);
}

/// CRC-32C of a file that consists of two with these CRC-32Cs, the second of this length.
fn joined_sum(first: u32, second: u32, bytes: u64) -> u32 {
    crc32c::crc32c_combine(first, second, bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::super::part_file::check_joinable;
    use super::*;
    use gristmill_scheduler::ids::{JobId, TaskId};
    use gristmill_worker::input::FileStamp;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use std::collections::BTreeMap;
    use std::hash::{BuildHasher, RandomState};

    /// Content of the files of one attempt: the main one and those of named outputs.
    #[derive(Clone, Default)]
    struct Files {
        main: Vec<u8>,
        named: BTreeMap<&'static str, Vec<u8>>,
    }

    const OUTPUTS: [&str; 4] = ["a", "b", "errors", "z"];

    /// Report of an attempt with these files. Each line is a record.
    fn part(name: &str, files: &Files) -> Part {
        let lines = |content: &[u8]| content.iter().filter(|byte| **byte == b'\n').count() as u64;
        let named = files.named.iter().map(|(output, content)| NamedPart {
            output: output.parse().unwrap(),
            bytes: content.len() as u64,
            records: lines(content),
            crc32c: crc32c::crc32c(content),
        });
        Part {
            name: name.to_owned(),
            bytes: files.main.len() as u64,
            records: lines(&files.main),
            crc32c: crc32c::crc32c(&files.main),
            named: named.collect(),
        }
    }

    fn built(index: u32) -> BuiltPart {
        let stamp = FileStamp { size: u64::from(index), modified_ns: 1, inode: 2 };
        BuiltPart::new(TaskId::reduce(JobId(1), index).attempt(0), stamp)
    }

    fn draw(random: &mut ChaCha8Rng) -> Files {
        let mut content = || {
            let length = random.random_range(0..4) * random.random_range(0..3000);
            (0..length).map(|_| if random.random_ratio(1, 20) { b'\n' } else { random.random() }).collect()
        };
        let main = content();
        let contents = OUTPUTS.map(|_| content());
        let named = OUTPUTS.into_iter().zip(contents).filter(|_| random.random());
        Files { main, named: named.collect() }
    }

    #[test]
    fn joined_part_has_the_sizes_and_sums_of_the_joined_files() {
        let seed = RandomState::new().hash_one("joined parts");
        println!("seed {seed}");
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for _ in 0..200 {
            let pieces: Vec<Files> = (0..random.random_range(1..6)).map(|_| draw(&mut random)).collect();
            let mut whole = Files::default();
            for piece in &pieces {
                whole.main.extend(&piece.main);
                for (output, content) in &piece.named {
                    whole.named.entry(output).or_default().extend(content);
                }
            }
            let parts =
                (0..).zip(&pieces).map(|(index, piece)| (part(&format!("of {index}"), piece), built(index)));
            let (joined, place) = join_parts(parts.clone().collect()).unwrap();
            assert_eq!(joined, part("of 0", &whole));
            assert_eq!((place.attempt, place.stamp), (built(0).attempt, built(0).stamp));
            let expected: Vec<_> = parts.collect();
            if let [(_, single)] = &*expected {
                assert_eq!(place, *single, "a single one is as it was");
                continue;
            }
            let files = place
                .pieces
                .iter()
                .map(|piece| (piece.part.clone(), BuiltPart::new(piece.attempt, piece.stamp)));
            assert_eq!(files.collect::<Vec<_>>(), expected);
            assert_eq!(check_joinable(&joined, &place), Ok(()));
        }
    }

    #[test]
    fn joined_parts_are_joined_further_and_nothing_is_no_part() {
        assert_eq!(join_parts(Vec::new()), None);
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let [a, b, c, d]: [(Part, BuiltPart); 4] =
            std::array::from_fn(|index| (part("part-00000", &draw(&mut random)), built(index as u32)));
        let at_once = join_parts(vec![a.clone(), b.clone(), c.clone(), d.clone()]).unwrap();
        let (front, rest) = (join_parts(vec![a, b]).unwrap(), join_parts(vec![c, d]).unwrap());
        assert_eq!(join_parts(vec![front, rest]).unwrap(), at_once);
    }

    #[test]
    fn sums_that_no_file_has_are_not_passed() {
        let huge = Part { bytes: u64::MAX, records: u64::MAX, ..part("part-00000", &Files::default()) };
        let (joined, _) = join_parts(vec![(huge.clone(), built(0)), (huge, built(1))]).unwrap();
        assert_eq!((joined.bytes, joined.records), (u64::MAX, u64::MAX));
    }
}
