//! Recorders of the records and pairs of an attempt, for `run --narrate`, which displays a small job step by step. Each
//! attempt has a limit of items and of bytes; items beyond it are only counted.

use super::story::{GroupTold, PlainPair, ReadPair, ReduceStory, StoryRecord, Told};
use super::{ITEMS_MAX, TEXT_BYTES_MAX, bounded, words_of};

/// Formats the keys and values of a job for display.
#[derive(Clone, Copy)]
pub(crate) struct PairWords {
    pub key: fn(&[u8]) -> String,
    pub value: fn(&[u8]) -> String,
}

/// Remaining capacity of one attempt's record.
pub(crate) struct Room {
    items: usize,
    bytes: usize,
}

impl PairWords {
    /// Returns the text of a pair, bounded regardless of its size.
    pub(crate) fn format(&self, key: &[u8], value: &[u8]) -> (String, String) {
        (bounded(&(self.key)(key)), bounded(&(self.value)(value)))
    }
}

impl Default for Room {
    fn default() -> Self {
        Self { items: ITEMS_MAX, bytes: TEXT_BYTES_MAX }
    }
}

impl Room {
    /// Appends an item with this much text if there is capacity, else counts it. After the first omitted item, all
    /// later ones are omitted: the list has no gaps. Returns true if it was appended.
    pub(crate) fn keep<T>(&mut self, list: &mut Told<T>, bytes: usize, item: T) -> bool {
        if 0 < list.omitted || self.items == 0 || self.bytes < bytes {
            list.omitted += 1;
            return false;
        }
        self.items -= 1;
        self.bytes -= bytes;
        list.kept.push(item);
        true
    }

    fn is_full(&self) -> bool {
        self.items == 0 || self.bytes == 0
    }
}

/// Records the input records of a map.
#[derive(Default)]
pub(crate) struct RecordNarrator {
    room: Room,
    pub records: Told<StoryRecord>,
}

impl RecordNarrator {
    pub(crate) fn record(&mut self, offset: u64, bytes: &[u8]) {
        if self.room.is_full() {
            self.records.omitted += 1;
            return;
        }
        let text = words_of(bytes);
        self.room.keep(&mut self.records, text.len(), StoryRecord { offset, text });
    }
}

/// Records the pairs that a mapper emits.
pub(crate) struct MapNarrator {
    pub words: PairWords,
    pub room: Room,
    pub emitted: Told<PlainPair>,
}

impl MapNarrator {
    pub(crate) fn new(words: PairWords) -> Self {
        Self { words, room: Room::default(), emitted: Told::default() }
    }

    /// Records an emitted pair.
    pub(crate) fn emitted(&mut self, key: &[u8], value: &[u8]) {
        if self.room.is_full() {
            self.emitted.omitted += 1;
            return;
        }
        let (key, value) = self.words.format(key, value);
        self.room.keep(&mut self.emitted, key.len() + value.len(), PlainPair { key, value });
    }
}

/// Records what a reduce reads, and its groups.
pub(crate) struct ReduceNarrator {
    words: PairWords,
    room: Room,
    story: ReduceStory,
    /// Current group of the reducer.
    group: Option<GroupTold>,
}

impl ReduceNarrator {
    pub(crate) fn new(words: PairWords, story: ReduceStory) -> Self {
        Self { words, room: Room::default(), story, group: None }
    }

    /// Records a pair read from the segment of this map; with a merge, for the reducer's current group.
    pub(crate) fn read(&mut self, map: u32, key: &[u8], value: &[u8]) {
        let mut kept = None;
        if self.room.is_full() {
            self.story.read.omitted += 1;
        } else {
            let (key, value) = self.words.format(key, value);
            let words = value.clone();
            let bytes = key.len() + value.len();
            kept = self.room.keep(&mut self.story.read, bytes, ReadPair { map, key, value }).then_some(words);
        }
        // A group has the values of recorded pairs, so it is bounded by the same limit.
        if let Some(group) = &mut self.group {
            match kept {
                Some(words) => group.values.push(words),
                None => group.omitted += 1,
            }
        }
    }

    /// Starts a group of the reducer; `value` is its only one if it was totalled before.
    pub(crate) fn start_group(&mut self, key: &[u8], value: Option<&[u8]>, from: u64) {
        let (key, total) = self.words.format(key, value.unwrap_or_default());
        let values = value.map(|_| total).into_iter().collect();
        self.group = Some(GroupTold { key, values, omitted: 0, from, until: from });
    }

    pub(crate) fn end_group(&mut self, until: u64) {
        let Some(group) = self.group.take() else { return };
        // The values were counted when they were read.
        let values = if self.story.combines { group.values.iter().map(String::len).sum() } else { 0 };
        let bytes = group.key.len() + values;
        self.room.keep(&mut self.story.groups, bytes, GroupTold { until, ..group });
    }

    pub(crate) fn into_story(self) -> ReduceStory {
        self.story
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> PairWords {
        PairWords { key: words_of, value: words_of }
    }

    #[test]
    fn what_does_not_fit_is_counted_and_nothing_behind_it_is_kept() {
        let mut narrator = MapNarrator::new(words());
        narrator.room.bytes = 10;
        for key in [&b"four"[..], b"four", b"four", b""] {
            narrator.emitted(key, b"");
        }
        assert_eq!((narrator.emitted.kept.len(), narrator.emitted.omitted), (2, 2));
        let mut records = RecordNarrator::default();
        for offset in 0..ITEMS_MAX as u64 + 3 {
            records.record(offset, b"");
        }
        assert_eq!((records.records.kept.len(), records.records.omitted), (ITEMS_MAX, 3));
    }

    #[test]
    fn a_group_beyond_the_room_is_told_with_how_many_of_its_values_are_not() {
        let mut narrator = ReduceNarrator::new(words(), ReduceStory::default());
        narrator.room.bytes = 10;
        narrator.start_group(b"k", None, 0);
        for _ in 0..5 {
            narrator.read(0, b"k", b"one");
        }
        narrator.end_group(1);
        narrator.start_group(b"l", None, 1);
        narrator.read(0, b"l", b"two");
        narrator.end_group(2);
        let ReduceStory { groups, read, .. } = narrator.into_story();
        let told: Vec<_> = groups.kept.iter().map(|group| (group.values.len(), group.omitted)).collect();
        assert_eq!((told, read.kept.len(), read.omitted), (vec![(2, 3), (0, 1)], 2, 4));
    }

    #[test]
    fn a_merged_group_has_the_values_that_were_read_for_it_and_its_bytes_of_the_part() {
        let mut narrator = ReduceNarrator::new(words(), ReduceStory::default());
        narrator.start_group(b"a", None, 0);
        narrator.read(0, b"a", b"1");
        narrator.read(2, b"a", b"2");
        narrator.end_group(4);
        narrator.start_group(b"b", Some(b"3"), 4);
        narrator.end_group(8);
        let story = narrator.into_story();
        let groups: Vec<_> = story
            .groups
            .kept
            .iter()
            .map(|group| (group.key.as_str(), group.values.join(" "), group.from, group.until))
            .collect();
        assert_eq!(groups, [("a", "1 2".to_owned(), 0, 4), ("b", "3".to_owned(), 4, 8)]);
        assert_eq!(story.read.kept.iter().map(|pair| pair.map).collect::<Vec<_>>(), [0, 2]);
    }
}
