//! Open-addressing table from key bytes to values, optimised for counting.
//!
//! A slot holds keys up to 15 bytes itself; longer ones are in a side arena. With an eight-byte value a slot has 32
//! bytes, half a cache line: an empty slot is known by its hash, which is otherwise never zero. The home of a key is
//! given by the top bits of its hash times `spread`, so that a scan of the table finds hashes nearly in order.
//!
//! Invariant: `used` slots are full, fewer than all; between a key's home and its slot there is no empty one.

use crate::key::hash::{Packed, hash_share};
use crate::memory::use_huge_pages;
use crate::prefetch::prefetch;
use std::cmp::Ordering;
use std::num::NonZeroU64;

/// One key with its value, or with one more value on its way into the table. Aligned so that a counter's slot is in one
/// cache line.
#[repr(align(32))]
pub(crate) struct Slot<V> {
    pub key: Packed,
    pub hash: NonZeroU64,
    pub value: V,
}

/// Table from keys to values.
pub(crate) struct CombineTable<V> {
    slots: Vec<Option<Slot<V>>>,
    shift: u32,
    spread: u64,
    used: usize,
    /// Bytes of long keys, one after another.
    long: Vec<u8>,
}

impl<V> CombineTable<V> {
    /// Minimum slots, so that a batch always fits above the fill limit.
    pub(crate) const SLOTS_MIN: usize = 128;

    /// Creates a table of at least `slots` slots. `spread` is odd, or the number of partitions of whose share of the
    /// hash space the keys are: then they spread over the whole table.
    pub fn new(slots: usize, spread: u64) -> Self {
        Self::with_memory(Vec::new(), slots, spread)
    }

    /// Creates it in the memory of an earlier table, if that suffices.
    pub(crate) fn with_memory(memory: TableMemory<V>, slots: usize, spread: u64) -> Self {
        let slots = slots.max(Self::SLOTS_MIN).next_power_of_two();
        Self {
            slots: empty_slots(memory, slots),
            shift: 64 - slots.ilog2(),
            spread,
            used: 0,
            long: Vec::new(),
        }
    }

    /// Returns the slots that suffice for `keys` different keys.
    pub(crate) fn slots_for(keys: usize) -> usize {
        (keys.saturating_mul(8) / 5 + 1).max(Self::SLOTS_MIN).checked_next_power_of_two().unwrap_or(1 << 62)
    }

    /// Number of different keys.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Number of bytes of slots and long keys.
    pub fn bytes(&self) -> usize {
        Self::bytes_of(self.slots.len()) + self.long.len()
    }

    /// Number of bytes of long keys.
    pub(crate) fn long_bytes(&self) -> usize {
        self.long.len()
    }

    /// Returns the bytes of this many slots.
    pub(crate) fn bytes_of(slots: usize) -> usize {
        slots.saturating_mul(size_of::<Option<Slot<V>>>())
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of different keys with which this many slots are full: five of eight.
    pub(crate) fn keys_of(slots: usize) -> usize {
        slots / 8 * 5
    }

    /// True if the table has to grow.
    pub(crate) fn is_full(&self) -> bool {
        Self::keys_of(self.slots.len()) <= self.used
    }

    #[inline]
    fn home(&self, hash: NonZeroU64) -> usize {
        (hash.get().wrapping_mul(self.spread) >> self.shift) as usize
    }

    /// Prefetches the home of a hash.
    #[inline]
    pub fn prefetch(&self, hash: NonZeroU64) {
        prefetch(&self.slots, self.home(hash));
    }

    /// Adds a value under a key. `long` is the arena of a long key of `item`.
    #[inline]
    pub fn add(&mut self, item: Slot<V>, long: &[u8], combine: impl FnOnce(&mut V, V)) {
        if item.key.is_long() {
            return self.add_long(item, long, combine);
        }
        let mask = self.slots.len() - 1;
        let mut index = self.home(item.hash);
        loop {
            match &mut self.slots[index] {
                Some(slot) if slot.key == item.key => return combine(&mut slot.value, item.value),
                Some(_) => index = (index + 1) & mask,
                empty => {
                    *empty = Some(item);
                    self.used += 1;
                    return;
                }
            }
        }
    }

    #[inline(never)]
    fn add_long(&mut self, mut item: Slot<V>, long: &[u8], combine: impl FnOnce(&mut V, V)) {
        let length = item.key.long_length();
        let at = |key: Packed| key.low as usize..key.low as usize + length;
        let key = &long[at(item.key)];
        let mask = self.slots.len() - 1;
        let mut index = self.home(item.hash);
        loop {
            match &mut self.slots[index] {
                Some(slot)
                    if slot.hash == item.hash
                        && slot.key.high == item.key.high
                        && &self.long[at(slot.key)] == key =>
                {
                    return combine(&mut slot.value, item.value);
                }
                Some(_) => index = (index + 1) & mask,
                empty => {
                    item.key = Packed::long(self.long.len(), length);
                    self.long.extend_from_slice(key);
                    *empty = Some(item);
                    self.used += 1;
                    return;
                }
            }
        }
    }

    /// Grows the table by `factor`, a power of two.
    pub(crate) fn grow(&mut self, factor: usize) {
        let slots = self.slots.len() * factor;
        let old = std::mem::replace(&mut self.slots, empty_slots(Vec::new(), slots));
        self.shift = 64 - slots.ilog2();
        for slot in old.into_iter().flatten() {
            let mut index = self.home(slot.hash);
            while self.slots[index].is_some() {
                index = (index + 1) & (slots - 1);
            }
            self.slots[index] = Some(slot);
        }
    }

    /// Returns the key of a slot: from the arena, or from `buffer`, into which a short one is unpacked.
    #[inline]
    pub fn key<'a>(&'a self, slot: &Slot<V>, buffer: &'a mut [u8; 16]) -> &'a [u8] {
        key_bytes(&self.long, slot.key, buffer)
    }

    /// Returns the full slots in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = &Slot<V>> {
        self.slots.iter().flatten()
    }

    /// Returns the values, in no particular order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|slot| &slot.value)
    }

    /// Visits the slots share by share of the hash space (of `shares` equal ones). A plain scan does not: near a
    /// boundary, a probe run mixes keys of two shares, and the last run continues at the start. Requires a table with a
    /// spread of 1.
    pub(crate) fn for_each_by_share<E>(
        &self,
        shares: u32,
        mut visit: impl FnMut(u32, &Slot<V>) -> Result<(), E>,
    ) -> Result<(), E> {
        let slots = self.slots.len();
        let first_home = |share: u32| {
            // The smallest hash of a share is the boundary rounded up.
            let least = (u128::from(share) << 64).div_ceil(u128::from(shares));
            u64::try_from(least).map_or(slots, |least| (least >> self.shift) as usize)
        };
        for share in 0..shares {
            let (mut index, end) = (first_home(share), first_home(share + 1));
            // Keys are at or after their homes, with no empty slot between. So the share ends with the first empty slot
            // at or after the next share's first home, possibly beyond the end of the table.
            loop {
                let place = index & (slots - 1);
                match &self.slots[place] {
                    Some(slot) => {
                        let beyond_the_end = place < self.home(slot.hash);
                        let visited_now = beyond_the_end == (slots <= index);
                        if visited_now && hash_share(slot.hash, shares) == share {
                            visit(share, slot)?;
                        }
                    }
                    None if end <= index => break,
                    None => {}
                }
                index += 1;
            }
        }
        Ok(())
    }

    /// Converts the table to a list, sorted by key.
    pub(crate) fn into_sorted_by_key(self) -> SortedTable<V> {
        let mut sorted = SortedTable::new(self);
        let long = &sorted.long;
        if long.is_empty() {
            sorted
                .slots
                .sort_unstable_by(|a, b| by_slots(a, b, |a, b| a.key.short_rank().cmp(&b.key.short_rank())));
        } else {
            sorted.slots.sort_unstable_by(|a, b| by_slots(a, b, |a, b| compare_keys(long, a.key, b.key)));
        }
        sorted
    }

    /// Converts the table to a list, sorted by hash and then by key.
    pub(crate) fn into_sorted_by_hash(mut self) -> SortedTable<V> {
        let beyond_the_end = self.take_beyond_the_end();
        let mut sorted = SortedTable::new(self);
        sorted.slots.extend(beyond_the_end.into_iter().map(Some));
        let (slots, long) = (&mut sorted.slots, &sorted.long[..]);
        let compare = |a: &Option<Slot<V>>, b: &Option<Slot<V>>| {
            by_slots(a, b, |a, b| a.hash.cmp(&b.hash).then_with(|| compare_keys(long, a.key, b.key)))
        };
        if !settle_nearly_sorted(slots, compare) {
            slots.sort_unstable_by(compare);
        }
        sorted
    }

    /// Removes the slots that belong to the end of the table and are at its start, because the end was full.
    fn take_beyond_the_end(&mut self) -> Vec<Slot<V>> {
        let mut taken = Vec::new();
        for place in 0..self.slots.len() {
            let Some(slot) = &self.slots[place] else { break };
            if place < self.home(slot.hash) {
                taken.extend(self.slots[place].take());
            }
        }
        self.used -= taken.len();
        taken
    }

    /// Drops all slots and keeps their memory for another table.
    pub(crate) fn into_memory(self) -> TableMemory<V> {
        let mut slots = self.slots;
        slots.clear();
        slots
    }
}

/// Slots of a table, in order, in the memory of the table.
pub(crate) struct SortedTable<V> {
    /// Invariant: all are full.
    slots: Vec<Option<Slot<V>>>,
    /// Bytes of long keys.
    pub long: Vec<u8>,
}

impl<V> SortedTable<V> {
    fn new(table: CombineTable<V>) -> Self {
        let CombineTable { mut slots, long, .. } = table;
        slots.retain(Option::is_some);
        Self { slots, long }
    }

    /// Returns the slots in order.
    pub fn iter(&self) -> impl Iterator<Item = &Slot<V>> {
        self.slots.iter().flatten()
    }

    /// Removes all slots, in order. The memory and the bytes of long keys are left.
    pub(crate) fn take_slots(&mut self) -> (impl Iterator<Item = Slot<V>>, &[u8]) {
        (self.slots.drain(..).flatten(), &self.long)
    }

    /// Drops all slots and keeps their memory for another table.
    pub(crate) fn into_memory(self) -> TableMemory<V> {
        let mut slots = self.slots;
        slots.clear();
        slots
    }
}

/// Memory of a table, without any slots in it.
pub(crate) type TableMemory<V> = Vec<Option<Slot<V>>>;

/// Mean number of moves per item up to which a list counts as nearly sorted. A scan of a full table of counters needs
/// one.
const MOVES_EACH_MAX: usize = 4;

/// Sorts a nearly sorted list: each item moves forward past the few that belong after it. Returns `false`, with the
/// items in another order, if that would take long.
fn settle_nearly_sorted<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) -> bool {
    let mut moves_left = items.len().saturating_mul(MOVES_EACH_MAX);
    for number in 1..items.len() {
        let mut at = number;
        while 0 < at && compare(&items[at], &items[at - 1]).is_lt() {
            if moves_left == 0 {
                return false;
            }
            moves_left -= 1;
            items.swap(at, at - 1);
            at -= 1;
        }
    }
    true
}

#[inline]
fn by_slots<V>(
    a: &Option<Slot<V>>,
    b: &Option<Slot<V>>,
    compare: impl Fn(&Slot<V>, &Slot<V>) -> Ordering,
) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    }
}

fn empty_slots<V>(memory: TableMemory<V>, count: usize) -> Vec<Option<Slot<V>>> {
    let mut slots = memory;
    slots.clear();
    if slots.capacity() < count {
        slots = Vec::with_capacity(count);
        use_huge_pages(&slots);
    }
    slots.resize_with(count, || None);
    slots
}

/// Returns the bytes of a packed key; those of a long key are in `long`.
#[inline]
pub(crate) fn key_bytes<'a>(long: &'a [u8], key: Packed, buffer: &'a mut [u8; 16]) -> &'a [u8] {
    if key.is_long() {
        let from = key.low as usize;
        return &long[from..from + key.long_length()];
    }
    let (bytes, length) = key.unpack();
    *buffer = bytes;
    &buffer[..length]
}

/// Compares packed keys by their bytes.
#[inline]
fn compare_keys(long: &[u8], a: Packed, b: Packed) -> Ordering {
    if !a.is_long() && !b.is_long() {
        return a.short_rank().cmp(&b.short_rank());
    }
    let (mut x, mut y) = ([0; 16], [0; 16]);
    key_bytes(long, a, &mut x).cmp(key_bytes(long, b, &mut y))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::hash::{INLINE_BYTES_MAX, key_hash};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn item(key: &[u8], value: u64) -> Slot<u64> {
        let packed = match key.len() {
            ..=INLINE_BYTES_MAX => Packed::short(key),
            length => Packed::long(0, length),
        };
        Slot { key: packed, hash: key_hash(key), value }
    }

    fn table_of(keys: &[Vec<u8>], spread: u64) -> (CombineTable<u64>, BTreeMap<Vec<u8>, u64>) {
        let mut table = CombineTable::new(0, spread);
        let mut oracle = BTreeMap::new();
        for (number, key) in keys.iter().enumerate() {
            if table.is_full() {
                table.grow(2);
            }
            table.add(item(key, number as u64), key, |total, value| *total += value);
            *oracle.entry(key.clone()).or_insert(0) += number as u64;
        }
        (table, oracle)
    }

    fn found(long: &[u8], slot: &Slot<u64>) -> (Vec<u8>, u64) {
        (key_bytes(long, slot.key, &mut [0; 16]).to_vec(), slot.value)
    }

    /// Returns keys of 8 to 15 bytes with equal hashes: their first half mixes to zero.
    fn colliding(tail: u8) -> Vec<u8> {
        let mut key = 0x6A09_E667_F3BC_C909_u64.to_le_bytes().to_vec();
        key.push(tail);
        key
    }

    fn keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let key = prop_oneof![
            6 => proptest::collection::vec(any::<u8>(), 0..20),
            2 => proptest::collection::vec(0u8..2, 0..18),
            1 => any::<u8>().prop_map(colliding),
        ];
        proptest::collection::vec(key, 0..400)
    }

    proptest! {
        #[test]
        fn table_totals_what_a_map_totals_and_sorts_like_it(keys in keys(), spread in prop_oneof![Just(1u64), Just(3)]) {
            let (table, oracle) = table_of(&keys, spread);
            prop_assert_eq!(table.len(), oracle.len());
            let sorted = table.into_sorted_by_key();
            let sorted: Vec<_> = sorted.iter().map(|slot| found(&sorted.long, slot)).collect();
            prop_assert_eq!(sorted, oracle.into_iter().collect::<Vec<_>>());
            let (table, oracle) = table_of(&keys, spread);
            let sorted = table.into_sorted_by_hash();
            let ranks: Vec<_> = sorted.iter().map(|slot| (slot.hash, found(&sorted.long, slot).0)).collect();
            prop_assert!(ranks.is_sorted());
            let mut sorted: Vec<_> = sorted.iter().map(|slot| found(&sorted.long, slot)).collect();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, oracle.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn table_scan_by_share_meets_each_key_once_in_its_share(keys in keys(), shares in 1u32..300) {
            let (table, oracle) = table_of(&keys, 1);
            let mut seen = Vec::new();
            let mut last = 0;
            table.for_each_by_share(shares, |share, slot| {
                assert!(last <= share);
                last = share;
                let (key, value) = found(&table.long, slot);
                assert_eq!(hash_share(key_hash(&key), shares), share);
                seen.push((key, value));
                Ok::<(), ()>(())
            }).unwrap();
            seen.sort_unstable();
            prop_assert_eq!(seen, oracle.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn slots_of_counters_are_half_a_cache_line() {
        assert_eq!(size_of::<Option<Slot<u64>>>(), 32);
    }

    /// Returns keys whose home is the last slot of the smallest table.
    fn keys_at_the_end(count: usize) -> Vec<Vec<u8>> {
        let keys = (0u64..).map(|number| number.to_be_bytes().to_vec());
        keys.filter(|key| key_hash(key).get() >> 57 == 127).take(count).collect()
    }

    #[test]
    fn nearly_sorted_lists_are_settled_and_others_given_up() {
        let mut nearly: Vec<u32> = (0..1000).map(|number| number ^ 1).collect();
        assert!(settle_nearly_sorted(&mut nearly, u32::cmp));
        assert!(nearly.is_sorted());
        let mut backwards: Vec<u32> = (0..1000).rev().collect();
        assert!(!settle_nearly_sorted(&mut backwards, u32::cmp));
        backwards.sort_unstable();
        assert_eq!(backwards, nearly, "nothing was lost");
    }

    #[test]
    fn table_sorted_by_hash_ends_with_keys_that_wrapped_around_its_end() {
        let mut keys = keys_at_the_end(10);
        // A key with its home at the start is inserted between them, and displaces the later ones.
        let mut others = (0u64..).map(|number| number.to_be_bytes().to_vec());
        let first = others.find(|key| key_hash(key).get() >> 57 == 0).unwrap();
        keys.insert(5, first.clone());
        let sorted = table_of(&keys, 1).0.into_sorted_by_hash();
        assert_eq!(sorted.slots.len(), keys.len());
        assert!(sorted.iter().is_sorted_by_key(|slot| slot.hash));
        assert_eq!(found(&sorted.long, sorted.iter().next().unwrap()).0, first);
    }

    #[test]
    fn table_scan_by_share_meets_keys_that_wrapped_around_the_end() {
        // Many of them: the run continues at the start.
        let (table, oracle) = table_of(&keys_at_the_end(40), 1);
        assert_eq!(table.slots(), CombineTable::<u64>::SLOTS_MIN);
        for shares in [1, 2, 5, 128, 1000] {
            let mut count = 0;
            let visit = |_, _: &Slot<u64>| {
                count += 1;
                Ok::<(), ()>(())
            };
            table.for_each_by_share(shares, visit).unwrap();
            assert_eq!(count, oracle.len(), "{shares} shares");
        }
    }
}
