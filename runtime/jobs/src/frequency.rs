//! The most frequent keys first: the reducer of `wordcount --top` and `grep --count-matches`.

use gristmill_worker::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum bytes of keys and bookkeeping held by one reducer.
const HELD_BYTES_MAX: usize = 512 << 20;
/// Overhead of a held key in addition to its own bytes, while the heap doubles.
const HELD_KEY_BYTES: usize = 72;

/// Order of the columns of an output line.
#[derive(Clone, Copy)]
pub(super) enum CountColumns {
    KeyCount,
    CountKey,
}

/// Holds the most frequent keys until all have been seen. Ties go to the key with the smaller bytes.
pub(super) struct MostFrequent {
    keys_max: Option<usize>,
    columns: CountColumns,
    /// The worst of the held keys is on top.
    held: BinaryHeap<(Reverse<u64>, Box<[u8]>)>,
    held_bytes: usize,
    held_bytes_max: usize,
}

impl MostFrequent {
    /// Creates a reducer that writes at most `keys_max` keys, or all.
    pub(super) fn new(keys_max: Option<usize>, columns: CountColumns) -> Self {
        Self { keys_max, columns, held: BinaryHeap::new(), held_bytes: 0, held_bytes_max: HELD_BYTES_MAX }
    }

    /// Considers a key. Keys must come in ascending order.
    fn offer(&mut self, key: &[u8], count: u64) -> TaskResult {
        if self.keys_max.is_some_and(|keys_max| self.held.len() >= keys_max) {
            match self.held.peek() {
                Some((Reverse(least), _)) if count > *least => {}
                // A key as frequent as the worst held one is worse, because it comes later.
                _ => return Ok(()),
            }
            if let Some((_, dropped)) = self.held.pop() {
                self.held_bytes -= dropped.len() + HELD_KEY_BYTES;
            }
        }
        self.held.push((Reverse(count), key.into()));
        self.held_bytes += key.len() + HELD_KEY_BYTES;
        if self.held_bytes > self.held_bytes_max {
            return Err(TaskError::config(format!(
                "putting {} different strings in order of frequency takes over {} MiB of memory, which is what a slot \
                 of this worker has room for; give it more memory (--memory) or fewer slots",
                self.held.len(),
                self.held_bytes_max >> 20
            )));
        }
        Ok(())
    }
}

impl Reducer for MostFrequent {
    type Key = ByteString;
    type Value = u64;

    fn setup(&mut self, task: &TaskContext, _out: &mut Output) -> TaskResult {
        self.held_bytes_max = task.held_bytes_max().min(HELD_BYTES_MAX);
        Ok(())
    }

    fn reduce(
        &mut self,
        key: &[u8],
        counts: &mut Values<'_, ByteString, u64>,
        _out: &mut Output,
    ) -> TaskResult {
        let mut total: u64 = 0;
        while let Some(count) = counts.next()? {
            total = total.saturating_add(count);
        }
        self.offer(key, total)
    }

    fn finish(&mut self, out: &mut Output) -> TaskResult {
        for (Reverse(count), key) in std::mem::take(&mut self.held).into_sorted_vec() {
            match self.columns {
                CountColumns::KeyCount => out.pair(&*key, count),
                CountColumns::CountKey => out.pair(count, &*key),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn most_frequent_keys_are_held_and_ties_go_to_the_smaller_key(
            counts in proptest::collection::btree_map("[a-c]{1,3}", 1_u64..4, 0..20),
            keys_max in proptest::option::of(0_usize..6),
        ) {
            let counts: BTreeMap<String, u64> = counts;
            let mut reducer = MostFrequent::new(keys_max, CountColumns::KeyCount);
            for (key, count) in &counts {
                reducer.offer(key.as_bytes(), *count).unwrap();
            }
            let mut expected: Vec<(Reverse<u64>, Box<[u8]>)> =
                counts.iter().map(|(key, count)| (Reverse(*count), key.as_bytes().into())).collect();
            expected.sort();
            expected.truncate(keys_max.unwrap_or(usize::MAX));
            prop_assert_eq!(reducer.held.into_sorted_vec(), expected);
        }
    }
}
