//! Tests that random jobs with random resources give the results of a plain map, and the same bytes for all resources.

use super::runner::{Means, MemorySplit, prints, run_job};
use crate::api::{Combiner, Input, JobPlan, Mapper, Partitioner, Reducer, Sum, TaskResult, WriteTotal};
use crate::collect::Emitter;
use crate::input::Record;
use crate::key::ByteString;
use crate::merge::Values;
use crate::output::Output;
use crate::segment::SpillCompression;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// `word number` lines: number by word.
pub struct Numbers;
impl Mapper for Numbers {
    type Key = String;
    type Value = u64;
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<String, u64>) -> TaskResult {
        let text = record.text();
        let (word, number) = text.split_once(' ').ok_or_else(|| crate::api::TaskError::new("no blank"))?;
        out.emit(word, number.parse()?);
        Ok(())
    }
}

/// `word rest` lines: rest by word, as bytes.
struct Rests(&'static str);
impl Mapper for Rests {
    type Key = ByteString;
    type Value = ByteString;
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        let at = record.iter().position(|byte| *byte == b' ').unwrap();
        let value = [self.0.as_bytes(), &record[at + 1..]].concat();
        out.emit(&record[..at], &value);
        Ok(())
    }
}

/// `word number` lines: the pair as key, to be grouped by word.
struct Pairs;
impl Mapper for Pairs {
    type Key = (String, u32);
    type Value = u8;
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<(String, u32), u8>) -> TaskResult {
        let text = record.text();
        let (word, number) = text.split_once(' ').unwrap();
        let number: u32 = number.parse()?;
        out.emit((word.to_owned(), number / 4), number as u8);
        Ok(())
    }
}

/// `word number` lines: a set with the number, by word. Values that own memory.
struct Sets;
impl Mapper for Sets {
    type Key = String;
    type Value = BTreeSet<u16>;
    fn map(&mut self, record: Record<'_>, out: &mut Emitter<String, BTreeSet<u16>>) -> TaskResult {
        let text = record.text();
        let (word, number) = text.split_once(' ').unwrap();
        out.emit(word, BTreeSet::from([number.parse()?]));
        Ok(())
    }
}

struct Union;
impl Combiner for Union {
    type Value = BTreeSet<u16>;
    fn combine(&mut self, total: &mut BTreeSet<u16>, mut value: BTreeSet<u16>) {
        total.append(&mut value);
    }
}

struct WriteSets;
impl Reducer for WriteSets {
    type Key = String;
    type Value = BTreeSet<u16>;
    fn reduce(
        &mut self,
        key: &str,
        values: &mut Values<'_, String, BTreeSet<u16>>,
        out: &mut Output,
    ) -> TaskResult {
        let all: Vec<_> = values.iter().collect();
        assert_eq!(all.len(), 1, "with a combiner there is one value for each key");
        out.line(format!("{key} {:?}", all[0]).as_bytes());
        Ok(())
    }
}

/// Writes the values of each group in their order.
struct WriteRests;
impl Reducer for WriteRests {
    type Key = ByteString;
    type Value = ByteString;
    fn reduce(
        &mut self,
        key: &[u8],
        values: &mut Values<'_, ByteString, ByteString>,
        out: &mut Output,
    ) -> TaskResult {
        out.write(key);
        while let Some(value) = values.next()? {
            out.write(b",");
            out.write(value);
        }
        out.line(b"");
        Ok(())
    }
}

/// Writes each word once, with the second components and values in their order.
struct WriteGroups;
impl Reducer for WriteGroups {
    type Key = (String, u32);
    type Value = u8;
    fn reduce(
        &mut self,
        first: (String, u32),
        values: &mut Values<'_, (String, u32), u8>,
        out: &mut Output,
    ) -> TaskResult {
        assert_eq!(values.key()?, first);
        out.field(&first.0);
        while let Some(value) = values.next()? {
            let key = values.key()?;
            assert_eq!(key.0, first.0);
            out.field(format_args!(" {}:{value}", key.1));
        }
        out.line(b"");
        Ok(())
    }
}

/// Partitions by the last byte of the key.
struct ByLastByte;
impl Partitioner for ByLastByte {
    type Key = String;
    fn partition(&self, key: &str, partitions: u32) -> u32 {
        u32::from(key.bytes().last().unwrap_or(0)) % partitions
    }
}

#[derive(Clone, Copy, Debug)]
enum Spread {
    Hash,
    User,
    Total,
}

/// Words with many duplicates, some longer than a table holds in its slots.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![6 => "[a-c]{0,2}", 3 => "[a-z]{1,3}", 2 => "(long){3,6}[xy]{0,2}", 1 => "[\u{0}-\u{ff}&&[^ \n]]{0,9}"]
}

fn splits(inputs: usize) -> impl Strategy<Value = Vec<MemorySplit>> {
    let line = (word(), 0..1000u32).prop_map(|(word, number)| format!("{word} {number}\n"));
    let block = proptest::collection::vec(line, 0..120).prop_map(|lines| lines.concat());
    let split = (0..inputs, proptest::collection::vec(block, 0..3));
    proptest::collection::vec(split, 0..7).prop_map(|splits| {
        let mut splits: Vec<_> =
            splits.into_iter().map(|(input, blocks)| MemorySplit { input, blocks }).collect();
        splits.sort_by_key(|split| split.input);
        splits
    })
}

fn means() -> impl Strategy<Value = Means> {
    let bytes = || prop_oneof![Just(1usize), 1..30_000usize, Just(1 << 20)];
    (bytes(), bytes(), 2..5usize, bytes(), any::<bool>()).prop_map(
        |(collector_bytes, merge_bytes, fan_in_max, budget_bytes, lz4)| Means {
            collector_bytes,
            merge_bytes,
            fan_in_max,
            budget_bytes,
            compression: if lz4 { SpillCompression::Lz4 } else { SpillCompression::None },
        },
    )
}

fn spread() -> impl Strategy<Value = Spread> {
    prop_oneof![Just(Spread::Hash), Just(Spread::User), Just(Spread::Total)]
}

fn input() -> Input {
    Input::lines(["memory"])
}

/// Returns every `word number` of the splits, in order.
fn lines(splits: &[MemorySplit]) -> impl Iterator<Item = (usize, String, u32)> {
    splits.iter().flat_map(|split| {
        let lines = split.blocks.iter().flat_map(|block| block.split_terminator('\n'));
        lines.map(|line| {
            let (word, number) = line.split_once(' ').unwrap();
            (split.input, word.to_owned(), number.parse().unwrap())
        })
    })
}

/// Checks that the parts are the same for all resources, and contain the expected lines, each part sorted by the result
/// of `key` for a line. Returns the parts.
fn check(
    plan: &JobPlan,
    splits: &[MemorySplit],
    partitions: u32,
    means: Means,
    expected: &[String],
) -> Vec<String> {
    let parts = run_job(plan, splits, partitions, means);
    let of_maps = prints(plan, splits, partitions, means);
    for other in [Means::PLENTY, Means::NOTHING] {
        assert_eq!(run_job(plan, splits, partitions, other), parts, "{means:?} and {other:?}");
        for (one, two) in of_maps.iter().zip(prints(plan, splits, partitions, other)) {
            // Missing hashes are not compared. There are fewer pairs where more were combined at once.
            let combines = one.keys.is_some();
            assert!(combines || one.frames == two.frames, "{means:?} and {other:?}: {one:?} and {two:?}");
            assert!(one.keys == two.keys, "{means:?} and {other:?}: {one:?} and {two:?}");
            assert!(one.pairs == two.pairs, "{means:?} and {other:?}: {one:?} and {two:?}");
        }
    }
    let mut all = Vec::new();
    for part in &parts {
        let mut lines: Vec<&str> = part.split_terminator('\n').collect();
        let position =
            |line: &&str| expected.iter().position(|expected| expected == line).expect("an expected line");
        assert!(lines.iter().map(position).is_sorted(), "{lines:?} are not in the order of {expected:?}");
        all.append(&mut lines);
    }
    assert_eq!(all.len(), expected.len());
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), expected.iter().map(String::as_str).collect());
    parts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sums_are_those_of_a_map(
        splits in splits(1), partitions in 1u32..7, means in means(), spread in spread(), combine: bool,
    ) {
        let mut plan = JobPlan::map(input(), || Numbers);
        if combine {
            plan = plan.combine(Sum::<u64>::new);
        }
        plan = match spread {
            Spread::Hash => plan,
            Spread::User => plan.partition(ByLastByte),
            Spread::Total => plan.total_order(),
        };
        let plan = plan.reduce(|| WriteTotal::<String, _>::new(Sum::<u64>::new()));
        let mut oracle = BTreeMap::new();
        for (_, word, number) in lines(&splits) {
            *oracle.entry(word).or_insert(0u64) += u64::from(number);
        }
        let expected: Vec<_> = oracle.iter().map(|(word, sum)| format!("{word}\t{sum}")).collect();
        let parts = check(&plan, &splits, partitions, means, &expected);
        match spread {
            Spread::Hash => {}
            Spread::Total => prop_assert_eq!(parts.concat(), expected.iter().map(|line| format!("{line}\n")).collect::<String>()),
            Spread::User => for (partition, part) in parts.iter().enumerate() {
                for line in part.split_terminator('\n') {
                    let (word, _) = line.rsplit_once('\t').unwrap();
                    prop_assert_eq!(u32::from(word.bytes().last().unwrap_or(0)) % partitions, partition as u32);
                }
            }
        }
    }

    #[test]
    fn values_of_equal_keys_come_in_the_order_of_inputs_maps_and_positions(
        splits in splits(2), partitions in 1u32..7, means in means(), total: bool,
    ) {
        let mut plan = JobPlan::map(input(), || Rests("L")).map(input(), || Rests("R"));
        if total {
            plan = plan.total_order();
        }
        let plan = plan.reduce(|| WriteRests);
        let mut oracle: BTreeMap<_, String> = BTreeMap::new();
        for (input, word, number) in lines(&splits) {
            oracle.entry(word).or_default().push_str(&format!(",{}{number}", ["L", "R"][input]));
        }
        let expected: Vec<_> = oracle.iter().map(|(word, numbers)| format!("{word}{numbers}")).collect();
        check(&plan, &splits, partitions, means, &expected);
    }

    #[test]
    fn groups_by_a_part_of_the_key_see_all_values_sorted_by_the_whole_key(
        splits in splits(1), partitions in 1u32..7, means in means(), total: bool,
    ) {
        let mut plan = JobPlan::map(input(), || Pairs).group_by_first();
        if total {
            plan = plan.total_order();
        }
        let plan = plan.reduce(|| WriteGroups);
        let mut oracle: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for (_, word, number) in lines(&splits) {
            oracle.entry(word).or_default().push(number);
        }
        let expected: Vec<_> = oracle
            .into_iter()
            .map(|(word, mut numbers)| {
                numbers.sort_by_key(|number| number / 4);
                let all: Vec<_> = numbers.iter().map(|number| format!(" {}:{}", number / 4, *number as u8)).collect();
                format!("{word}{}", all.concat())
            })
            .collect();
        check(&plan, &splits, partitions, means, &expected);
    }

    #[test]
    fn values_that_own_memory_combine_like_others(splits in splits(1), partitions in 1u32..4, means in means()) {
        let plan = JobPlan::map(input(), || Sets).combine(|| Union).reduce(|| WriteSets);
        let mut oracle: BTreeMap<_, BTreeSet<u32>> = BTreeMap::new();
        for (_, word, number) in lines(&splits) {
            oracle.entry(word).or_default().insert(number);
        }
        let expected: Vec<_> = oracle.iter().map(|(word, set)| format!("{word} {set:?}")).collect();
        check(&plan, &splits, partitions, means, &expected);
    }
}
