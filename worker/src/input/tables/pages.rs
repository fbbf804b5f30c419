//! The bytes of a Parquet file for the crate that decodes its pages: the header of each page is looked at on its way.
//!
//! The crate believes what a header says, and makes room for it; and how many rows it reads at once is decided before it has
//! seen any. So each header is compared with what is there before the page is handed on, and pages whose values are larger
//! than those before stop the reader ([`WatchedPages::take_fewer`]): it begins again at the row it has come to, with fewer rows
//! at once. Not seen are the values themselves, but of dictionaries, and of lengths that were encoded together.

use super::bytes::{TableBytes, TableReader};
use super::expansion::Expansion;
use super::thrift::{PageHeader, PageKind, varint, zigzag};
use crate::input::InputError;
use bytes::Bytes;
use parquet::basic::Type;
use parquet::column::page::{Page, PageReader as _};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that a batch of rows takes, about: it has as many rows as fit, and one if none does.
const BATCH_BYTES: u64 = 8 << 20;

/// Bytes of a value beside its text, and of a number.
const VALUE_BYTES: u64 = 16;

/// Bytes of a header that are read at first, and at most: some have the least and largest value of the page in them.
const HEADER_BYTES: usize = 64 << 10;
const HEADER_BYTES_MAX: usize = 64 << 20;

/// Encodings, by the numbers that `parquet.thrift` gives.
const PLAIN_DICTIONARY: i64 = 2;
const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
const DELTA_BYTE_ARRAY: i64 = 7;
const RLE_DICTIONARY: i64 = 8;

/// Bytes of a row group that are looked at on their way.
#[derive(Clone)]
pub(super) struct WatchedPages {
    bytes: TableBytes,
    watch: Arc<Mutex<PageWatch>>,
}

/// What is known of the columns of a row group that is being read.
struct PageWatch {
    expansion: Expansion,
    chunks: Vec<Chunk>,
    /// Rows that are read at once.
    rows: u64,
    /// Fewer of them, since the values have become too large for as many.
    fewer: Option<u64>,
}

/// A column of a row group.
struct Chunk {
    about: ColumnChunkMetaData,
    begins: u64,
    ends: u64,
    /// Values of a row, in the mean, rounded up.
    row_values: u64,
    /// Bytes of each value, if all have as many.
    fixed: u64,
    /// Bytes that a value takes now, at most or in the mean.
    value: u64,
    /// The same of one from the dictionary: the longest, and the mean.
    coded: (u64, u64),
    /// Bytes made of values that may be many in a row, as in lists.
    made: u64,
    /// Where the bytes of the last page begin whose header was looked at: they are asked for by the same call as headers.
    page_at: Option<u64>,
}

impl WatchedPages {
    /// Looks at what is read of these columns of a row group.
    ///
    /// # Errors
    /// A column whose dictionary cannot be read, or is larger than it may be.
    pub fn new(
        bytes: TableBytes,
        expansion: Expansion,
        group: &RowGroupMetaData,
        columns: impl Iterator<Item = usize>,
    ) -> Result<Self> {
        let rows = group.num_rows().max(1).cast_unsigned();
        let chunks: Vec<Chunk> = columns.map(|column| Chunk::new(group.column(column), rows)).collect();
        for chunk in &chunks {
            let length = chunk.ends - chunk.begins;
            expansion.expect(length, chunk.fixed).map_err(|failure| refused(&bytes, failure))?;
        }
        let watched = Self {
            bytes,
            watch: Arc::new(Mutex::new(PageWatch { expansion, chunks, rows: 1, fewer: None })),
        };
        watched.look_at_dictionaries()?;
        Ok(watched)
    }

    fn watch(&self) -> MutexGuard<'_, PageWatch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides how many rows are read at once, up to so many.
    pub fn set_rows(&self, rows_max: u64) -> u64 {
        let mut watch = self.watch();
        watch.rows = watch.fitting_rows().min(rows_max);
        watch.rows
    }

    /// How many rows may be read at once from where the reader was stopped, if that is why it was.
    pub fn take_fewer(&self) -> Option<u64> {
        self.watch().fewer.take()
    }

    /// The longest value of each dictionary is as long as each of its column may be.
    fn look_at_dictionaries(&self) -> Result<()> {
        let texts: Vec<ColumnChunkMetaData> = {
            let watch = self.watch();
            let coded = watch.chunks.iter().filter(|chunk| chunk.is_text() && chunk.may_be_coded());
            coded.map(|chunk| chunk.about.clone()).collect()
        };
        for about in texts {
            let mut pages = SerializedPageReader::new(Arc::new(self.clone()), &about, 0, None)?;
            if !pages.peek_next_page()?.is_some_and(|page| page.is_dict) {
                continue;
            }
            let Some(Page::DictionaryPage { buf, num_values, .. }) = pages.get_next_page()? else { continue };
            let (begins, _) = about.byte_range();
            let mut watch = self.watch();
            let chunk = watch.chunks.iter_mut().find(|chunk| chunk.begins == begins);
            if let Some(chunk) = chunk {
                let mean = buf.len() as u64 / u64::from(num_values.max(1));
                chunk.coded = (longest_plain(&buf), mean);
                chunk.value = chunk.coded.0;
            }
        }
        Ok(())
    }

    /// Looks at the header at this place, if it is one.
    fn look(&self, reader: &mut TableReader, at: u64) -> Result<()> {
        let mut watch = self.watch();
        let Some(index) = watch.chunks.iter().position(|chunk| (chunk.begins..chunk.ends).contains(&at))
        else {
            return Ok(());
        };
        if watch.chunks[index].page_at == Some(at) {
            return Ok(());
        }
        let mut wanted = HEADER_BYTES;
        let header = loop {
            let seen = reader.peek(wanted)?;
            match PageHeader::read(seen) {
                Some(header) => break header,
                None if seen.len() < wanted || HEADER_BYTES_MAX <= wanted => {
                    return Err(damaged("the header of a page is none"));
                }
                None => wanted *= 4,
            }
        };
        watch.page(index, at, header, &self.bytes)
    }
}

impl Length for WatchedPages {
    fn len(&self) -> u64 {
        self.bytes.len()
    }
}

impl ChunkReader for WatchedPages {
    type T = TableReader;

    fn get_read(&self, start: u64) -> Result<TableReader> {
        let mut reader = self.bytes.get_read(start)?;
        self.look(&mut reader, start)?;
        Ok(reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.bytes.get_bytes(start, length)
    }
}

impl PageWatch {
    /// As many rows as fit into a batch, at least one.
    fn fitting_rows(&self) -> u64 {
        (BATCH_BYTES / self.row_bytes().max(1)).max(1)
    }

    fn row_bytes(&self) -> u64 {
        let of = |chunk: &Chunk| chunk.value.saturating_add(VALUE_BYTES).saturating_mul(chunk.row_values);
        self.chunks.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Takes note of a page and says whether it may be read.
    fn page(&mut self, index: usize, at: u64, header: PageHeader, bytes: &TableBytes) -> Result<()> {
        let chunk = &mut self.chunks[index];
        let below_zero = || damaged("a page is said to have less than nothing");
        let sizes = [header.unpacked, header.packed, header.values];
        let [Ok(unpacked), Ok(packed), Ok(values)] = sizes.map(u64::try_from) else {
            return Err(below_zero());
        };
        let begins = at + header.length as u64;
        if chunk.ends.checked_sub(begins).is_none_or(|left| left < packed) {
            return Err(damaged("a page is said to be longer than its column"));
        }
        chunk.page_at = Some(begins).filter(|_| 0 < packed);
        let allowed = |packed, unpacked| {
            self.expansion.hold(packed, unpacked).map_err(|failure| refused(bytes, failure))
        };
        allowed(packed, unpacked)?;
        let mean = unpacked.div_ceil(values.max(1));
        let value = match (header.kind, header.encoding) {
            (PageKind::Index, _) => return Ok(()), // passed over by the crate, as the next one would be
            (PageKind::Other, _) => return Err(damaged("a page is of no kind that there is")),
            (PageKind::Dictionary, _) if unpacked < values => {
                return Err(damaged("a dictionary is said to have more values than bytes"));
            }
            (PageKind::Dictionary, _) => {
                if chunk.is_text() && chunk.coded == (0, 0) {
                    chunk.coded = (unpacked, mean);
                }
                return Ok(());
            }
            (PageKind::Data, DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY) => {
                // Equal lengths take no bytes in the file, however many they are said to be.
                allowed(packed, values.saturating_mul(VALUE_BYTES))?;
                let (longest, mean) = delta_values(&chunk.about, at, header, bytes)?;
                (longest.max(chunk.fixed), mean.max(chunk.fixed))
            }
            _ if !chunk.is_text() => (chunk.fixed, chunk.fixed),
            (PageKind::Data, PLAIN_DICTIONARY | RLE_DICTIONARY) => chunk.coded,
            (PageKind::Data, _) => (mean, mean),
        };
        chunk.value = value.0;
        if chunk.is_nested() {
            let made = values.saturating_mul(value.1.saturating_add(VALUE_BYTES));
            chunk.made = chunk.made.saturating_add(made);
            allowed(chunk.ends - chunk.begins, chunk.made)?;
        }
        let rows = self.fitting_rows();
        // Not for every page that is a little larger.
        if rows.saturating_mul(2) < self.rows {
            self.fewer = Some(rows);
            return Err(ParquetError::General(format!("only {rows} rows may be read at once")));
        }
        Ok(())
    }
}

impl Chunk {
    fn new(about: &ColumnChunkMetaData, rows: u64) -> Self {
        let (begins, length) = about.byte_range();
        let values = about.num_values().max(0).cast_unsigned();
        let (fixed, value) = match about.column_type() {
            Type::BYTE_ARRAY => (0, about.uncompressed_size().max(0).cast_unsigned().div_ceil(values.max(1))),
            Type::FIXED_LEN_BYTE_ARRAY => {
                let length = about.column_descr().type_length().max(0).unsigned_abs().into();
                (length, length)
            }
            _ => (0, 0),
        };
        let row_values =
            if 0 < about.column_descr().max_rep_level() { values.div_ceil(rows).max(1) } else { 1 };
        let ends = begins.saturating_add(length);
        Self {
            about: about.clone(),
            begins,
            ends,
            row_values,
            fixed,
            value,
            coded: (0, 0),
            made: 0,
            page_at: None,
        }
    }

    fn is_text(&self) -> bool {
        self.about.column_type() == Type::BYTE_ARRAY
    }

    fn is_nested(&self) -> bool {
        0 < self.about.column_descr().max_rep_level()
    }

    fn may_be_coded(&self) -> bool {
        use parquet::basic::Encoding::{PLAIN_DICTIONARY, RLE_DICTIONARY};
        self.about.encodings().any(|encoding| matches!(encoding, PLAIN_DICTIONARY | RLE_DICTIONARY))
    }
}

fn damaged(why: &str) -> ParquetError {
    ParquetError::General(why.to_owned())
}

/// Keeps our own error beside the crate, which would make text of it.
fn refused(bytes: &TableBytes, failure: InputError) -> ParquetError {
    bytes.fail(failure);
    damaged("more comes out of it than may")
}

/// Bytes of the longest of values that lie one after another, each behind its length.
fn longest_plain(mut values: &[u8]) -> u64 {
    let mut longest = 0;
    while let Some((length, rest)) = values.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        longest = longest.max(u64::from(length));
        values = rest.get(length as usize..).unwrap_or_default();
    }
    longest
}

/// Bytes of the longest value of a page whose lengths were encoded together, and in the mean. The decoder makes room for as many
/// lengths as they say to be, so they are counted first.
fn delta_values(
    about: &ColumnChunkMetaData,
    at: u64,
    header: PageHeader,
    bytes: &TableBytes,
) -> Result<(u64, u64)> {
    let (begins, _) = about.byte_range();
    let location = PageLocation {
        offset: i64::try_from(at)?,
        compressed_page_size: i32::try_from(header.packed + header.length as i64)?,
        first_row_index: 0,
    };
    let mut pages = SerializedPageReader::new(Arc::new(bytes.clone()), about, 0, Some(vec![location]))?;
    if begins != at {
        // What lies before it is taken for a dictionary.
        pages.skip_next_page()?;
    }
    let values = match pages.get_next_page()? {
        Some(Page::DataPage { buf, .. }) => {
            let descriptor = about.column_descr();
            let levels = [descriptor.max_rep_level(), descriptor.max_def_level()];
            let mut from = 0_usize;
            for _ in levels.into_iter().filter(|level| 0 < *level) {
                let length = buf.get(from..).and_then(|rest| rest.first_chunk()).copied();
                let length = length.ok_or_else(|| damaged("a page ends before its levels"))?;
                from = from.saturating_add(4).saturating_add(u32::from_le_bytes(length) as usize);
            }
            buf.get(from..).map(|_| buf.slice(from..))
        }
        Some(Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. }) => {
            let from = def_levels_byte_len as usize + rep_levels_byte_len as usize;
            buf.get(from..).map(|_| buf.slice(from..))
        }
        _ => None,
    };
    let values = values.ok_or_else(|| damaged("a page ends before its values"))?;
    if values.is_empty() {
        return Ok((0, 0));
    }
    let unsound = || damaged("the lengths in a page are not sound");
    let count_max = header.values.cast_unsigned();
    let mut at = 0;
    let mut lengths = delta_lengths(&values, &mut at, count_max).ok_or_else(unsound)?;
    if header.encoding == DELTA_BYTE_ARRAY {
        // As much of the value before, and as much behind that.
        let behind = delta_lengths(&values, &mut at, count_max).ok_or_else(unsound)?;
        lengths.iter_mut().zip(behind).for_each(|(length, behind)| *length += behind);
    }
    let total: u64 = lengths.iter().sum();
    let mean = total.div_ceil((lengths.len() as u64).max(1));
    Ok((lengths.into_iter().max().unwrap_or(0), mean))
}

/// Lengths as DELTA_BINARY_PACKED holds them, from a place on that goes behind them; `None` if they are more than so many, or
/// below zero, or cut.
fn delta_lengths(bytes: &[u8], at: &mut usize, count_max: u64) -> Option<Vec<u64>> {
    let block = varint(bytes, at)?;
    let minis = varint(bytes, at)?;
    let count = varint(bytes, at)?;
    let mut last = zigzag(varint(bytes, at)?);
    if count_max < count || minis == 0 || block % minis != 0 || (block / minis) % 32 != 0 || block == 0 {
        return None;
    }
    let (minis, mini_values) = (usize::try_from(minis).ok()?, usize::try_from(block / minis).ok()?);
    let mut left = usize::try_from(count).ok()?;
    let mut lengths = Vec::with_capacity(left);
    if 0 < left {
        lengths.push(u64::try_from(last).ok()?);
        left -= 1;
    }
    while 0 < left {
        let least = zigzag(varint(bytes, at)?);
        let widths = bytes.get(*at..at.checked_add(minis)?)?;
        *at += minis;
        for &width in widths {
            if left == 0 {
                break;
            }
            let width = usize::from(width);
            let length = mini_values.checked_mul(width)? / 8;
            let packed = bytes.get(*at..at.checked_add(length)?)?;
            *at += length;
            for index in 0..mini_values.min(left) {
                let delta = bits(packed, index * width, width)?;
                last = last.wrapping_add(least).wrapping_add(delta.cast_signed());
                // Lengths are numbers of 32 bits.
                last = i64::from(last as i32);
                lengths.push(u64::try_from(last).ok()?);
            }
            left -= mini_values.min(left);
        }
    }
    Some(lengths)
}

/// So many bits, at most 32, the lowest first.
fn bits(bytes: &[u8], from: usize, width: usize) -> Option<u64> {
    if 32 < width {
        return None;
    }
    let mut word = [0; 8];
    let first = from / 8;
    let taken = bytes.get(first..)?;
    let taken = &taken[..taken.len().min(8)];
    word[..taken.len()].copy_from_slice(taken);
    Some((u64::from_le_bytes(word) >> (from % 8)) & ((1 << width) - 1))
}
