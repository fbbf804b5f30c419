//! Table that a broadcast join holds in memory: the rows of one side, found by their join key. For each row of the
//! other side, map tasks look up its partners here.
//!
//! Places in an open-addressed index point to rows that are stored one after another, each with its key. A lookup takes
//! two memory accesses, and both can be started before they are needed.

use super::rows::{self, RowReader};
use gristmill_worker::memory::use_huge_pages;
use gristmill_worker::prefetch::prefetch;
use gristmill_worker::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

/// Value of an empty index entry.
const NOWHERE: RowPlace = RowPlace { tag: 0, row: u32::MAX };
/// Alignment of rows in bytes, with which 32 bits address 32 GiB of them.
const ALIGNMENT: usize = 8;
/// Bytes in front of each row: the place of the next row with its key, the length of the key and that of the text.
const HEAD_BYTES: usize = 12;

/// Cache line: the unit in which memory is loaded.
const LINE_BYTES: usize = 64;

/// Hash with which a key is looked up. Only used within one process.
#[inline]
pub(super) fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// Place of the first row of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RowPlace {
    /// The upper half of the key's hash: distinguishes most keys without access to the row.
    tag: u32,
    row: u32,
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The rows of a table by their keys.
#[derive(Default)]
pub(super) struct HeldTable {
    /// A power of two of them, at most half of them used; the first place of a key is given by the top bits of its
    /// hash.
    index: Vec<RowPlace>,
    rows: Vec<u8>,
}

/// Number of rows whose place in the index is loaded before they are entered.
const AHEAD: usize = 16;

impl HeldTable {
    /// Reads the rows of all files, in order. `refuse` skips bad ones, or returns an error.
    pub(super) fn build(
        files: &[Block<'_>],
        delimiter: u8,
        reader: &mut RowReader,
        refuse: &dyn Fn(Record<'_>, TaskError) -> TaskResult,
    ) -> TaskResult<Self> {
        // The last row of a file may have no line break.
        let rows = |file: &Block<'_>| memchr::memchr_iter(b'\n', file.bytes()).count() + 1;
        let count: usize = files.iter().map(rows).sum();
        let bytes: usize = files.iter().map(|file| file.bytes().len()).sum();
        let mut building = Building { rows: Vec::new(), entered: Vec::with_capacity(count) };
        building.rows.reserve(bytes + count * (HEAD_BYTES + ALIGNMENT));
        use_huge_pages(&building.rows);
        for file in files {
            building.add_file(file, delimiter, reader, refuse)?;
        }
        Ok(building.into_table())
    }
}

/// Rows that are not yet in the index.
struct Building {
    rows: Vec<u8>,
    /// Hash of each row's key, and the place of the row.
    entered: Vec<(u64, u32)>,
}

impl Building {
    fn add_file(
        &mut self,
        file: &Block<'_>,
        delimiter: u8,
        reader: &mut RowReader,
        refuse: &dyn Fn(Record<'_>, TaskError) -> TaskResult,
    ) -> TaskResult {
        let Some(key) = reader.plain_key(file) else {
            return file.records().try_for_each(|record| match reader.read(record) {
                Ok(row) => self.add(row.key, row.text),
                Err(error) => refuse(record, error),
            });
        };
        let mut text = Vec::new();
        text::for_each_plain_row(file.bytes(), delimiter, |row| {
            text.clear();
            let mut first = true;
            let read = reader.plain_row(row, |piece| {
                if !std::mem::take(&mut first) {
                    text.push(delimiter);
                }
                text.extend_from_slice(piece);
            });
            match read {
                Ok(()) => self.add(row.field(key), &text),
                Err(error) => refuse(rows::record(row, file), error),
            }
        })
    }

    fn add(&mut self, key: &[u8], text: &[u8]) -> TaskResult {
        let too_large = || TaskError::config("the table to broadcast has over 32 GiB, or a field over 4 GiB");
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(|_| too_large());
        let row = u32::try_from(self.rows.len() / ALIGNMENT).ok().filter(|row| *row != NOWHERE.row);
        let row = row.ok_or_else(too_large)?;
        let (key_length, text_length) = (length(key)?, length(text)?);
        self.rows.extend_from_slice(&NOWHERE.row.to_le_bytes());
        self.rows.extend_from_slice(&key_length.to_le_bytes());
        self.rows.extend_from_slice(&text_length.to_le_bytes());
        self.rows.extend_from_slice(key);
        self.rows.extend_from_slice(text);
        self.rows.resize(self.rows.len().next_multiple_of(ALIGNMENT), 0);
        self.entered.push((key_hash(key), row));
        Ok(())
    }

    /// Enters the rows from last to first: each then precedes the later ones of its key.
    fn into_table(self) -> HeldTable {
        let places = (2 * self.entered.len()).next_power_of_two().max(2);
        let mut index = Vec::with_capacity(places);
        use_huge_pages(&index);
        index.resize(places, NOWHERE);
        let mut table = HeldTable { index, rows: self.rows };
        for (number, (hash, row)) in self.entered.iter().enumerate().rev() {
            if let Some((ahead, _)) = number.checked_sub(AHEAD).map(|ahead| self.entered[ahead]) {
                table.load_place(ahead);
            }
            match table.find(table.row(*row).0, *hash) {
                Ok(place) => {
                    let after = table.index[place].row.to_le_bytes();
                    table.rows[*row as usize * ALIGNMENT..][..4].copy_from_slice(&after);
                    table.index[place].row = *row;
                }
                Err(empty) => table.index[empty] = RowPlace { tag: tag(*hash), row: *row },
            }
        }
        table
    }
}

impl HeldTable {
    #[inline]
    fn home(&self, hash: u64) -> usize {
        (hash >> (64 - self.index.len().ilog2())) as usize
    }

    /// Key and text of a row, and the next row with its key.
    #[inline]
    fn row(&self, row: u32) -> (&[u8], &[u8], u32) {
        let head = &self.rows[row as usize * ALIGNMENT..];
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (key, text) = (number(4) as usize, number(8) as usize);
        let (key, rest) = head[HEAD_BYTES..].split_at(key);
        (key, &rest[..text], number(0))
    }

    /// The place of a key, or the empty place for it.
    #[inline]
    fn find(&self, key: &[u8], hash: u64) -> Result<usize, usize> {
        let mut at = self.home(hash);
        loop {
            let place = self.index[at];
            if place == NOWHERE {
                return Err(at);
            }
            if place.tag == tag(hash) && self.row(place.row).0 == key {
                return Ok(at);
            }
            at = (at + 1) & (self.index.len() - 1);
        }
    }

    /// Starts to load the place of a key.
    #[inline]
    pub(super) fn load_place(&self, hash: u64) {
        if !self.index.is_empty() {
            prefetch(&self.index, self.home(hash));
        }
    }

    /// The row with the tag of a hash, which mostly is the first one of that key. Starts to load it.
    #[inline]
    pub(super) fn load_row(&self, hash: u64) -> LikelyRow {
        if self.index.is_empty() {
            return LikelyRow(NOWHERE.row);
        }
        let mut at = self.home(hash);
        loop {
            let place = self.index[at];
            if place == NOWHERE {
                return LikelyRow(NOWHERE.row);
            }
            if place.tag == tag(hash) {
                let row = place.row as usize * ALIGNMENT;
                prefetch(&self.rows, row);
                // Most rows that do not end in the first cache line end in the next.
                prefetch(&self.rows, row + LINE_BYTES);
                return LikelyRow(place.row);
            }
            at = (at + 1) & (self.index.len() - 1);
        }
    }

    /// The rows with this key, in the order of the table.
    pub(super) fn partners(&self, key: &[u8]) -> impl Iterator<Item = &[u8]> {
        let hash = key_hash(key);
        self.partners_from(key, hash, self.load_row(hash))
    }

    /// The same, with the key's hash and the row that was found by it.
    #[inline]
    pub(super) fn partners_from(
        &self,
        key: &[u8],
        hash: u64,
        likely: LikelyRow,
    ) -> impl Iterator<Item = &[u8]> {
        let mut next = likely.0;
        // Two keys with the same tag, one case in four thousand million.
        if next != NOWHERE.row && self.row(next).0 != key {
            next = self.find(key, hash).map_or(NOWHERE.row, |place| self.index[place].row);
        }
        std::iter::from_fn(move || {
            if next == NOWHERE.row {
                return None;
            }
            let (_, text, after) = self.row(next);
            next = after;
            Some(text)
        })
    }
}

/// See [`HeldTable::load_row`].
#[derive(Clone, Copy)]
pub(super) struct LikelyRow(u32);

#[cfg(test)]
mod tests {
    //! Lookups of keys whose hashes have the same upper half, which tests of whole joins do not cover.

    use super::*;

    fn table(rows: &[(&str, &str, u64)]) -> HeldTable {
        let mut building = Building { rows: Vec::new(), entered: Vec::new() };
        for (key, text, hash) in rows {
            building.add(key.as_bytes(), text.as_bytes()).unwrap();
            building.entered.last_mut().unwrap().0 = *hash;
        }
        building.into_table()
    }

    fn partners(table: &HeldTable, key: &str, hash: u64) -> Vec<String> {
        let found = table.partners_from(key.as_bytes(), hash, table.load_row(hash));
        found.map(|text| String::from_utf8(text.to_vec()).unwrap()).collect()
    }

    #[test]
    fn keys_with_the_same_tag_are_told_apart_by_their_bytes() {
        let (one, other) = (7 << 32, 7 << 32 | 1);
        let table = table(&[("a", "1", one), ("b", "2", other), ("a", "3", one), ("c", "4", 9 << 60)]);
        assert_eq!(partners(&table, "a", one), ["1", "3"]);
        assert_eq!(partners(&table, "b", other), ["2"]);
        assert_eq!(partners(&table, "c", 9 << 60), ["4"]);
        assert!(partners(&table, "d", one).is_empty() && partners(&table, "d", 1 << 40).is_empty());
    }

    #[test]
    fn table_without_rows_has_no_partners() {
        assert!(partners(&HeldTable::default(), "a", 7).is_empty());
        assert!(partners(&table(&[]), "a", 7).is_empty());
    }
}
