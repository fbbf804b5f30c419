//! From files to splits: where a job is submitted.
//!
//! A file larger than a split is cut at multiples of the split size; smaller ones are packed, in order, into
//! one split. Splits are in the order of inputs, then files, then offsets: a split's place in the list is its
//! map index. CSV files that are cut are read once, because only that tells where rows end: by several threads to
//! learn whether there are quotes, and if there are, from the beginning to the end. All other files are not
//! even opened.
//!
//! Not here: finding files (`list`), reading splits (`open_split`).

use super::Input;
use super::blocks::BYTE_ORDER_MARK;
use super::border::{QUOTE, RowCuts};
use super::list::{Listing, list_input, list_into};
use super::local::open_regular;
use super::path::FilePath;
use super::record::RecordFormat;
use super::split::{Compression, FileStamp, Piece, Place, Split};
use super::{Blocks, FileAccess, InputError, InputLimits, open_split};
use memchr::memchr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Splits a job may have.
const SPLITS_MAX: usize = 1_000_000;

/// How much a compressed file counts for when files are packed: text commonly shrinks to a quarter.
const EXPANSION_TYPICAL: u64 = 4;

/// Bytes of a file that are looked at for its first record; more only if they are blank.
const HEAD_BYTES: u64 = 64 << 10;

/// Bytes read at once when a CSV file is searched for rows.
const SCAN_BYTES: usize = 256 << 10;

/// Threads that look for quotes: more only wait for memory.
const SCAN_THREADS_MAX: usize = 8;

/// How files are cut and packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SplitRules {
    /// Bytes of a split, at least 1; larger only where a compressed file or a row of CSV needs it.
    pub split_bytes: u64,
    /// Files packed into one split, at least 1.
    pub pieces_max: usize,
}

impl Default for SplitRules {
    /// 64 MiB, so that a task lasts a good part of a second; 1024 files, so that a split stays a short message.
    fn default() -> Self {
        Self { split_bytes: 64 << 20, pieces_max: 1024 }
    }
}

/// The splits of a job's inputs, in map order.
///
/// # Errors
/// All paths that cannot be used, in one error; a CSV file that cannot be read; too many splits.
pub fn plan_splits(
    inputs: &[Input],
    listing: &dyn Listing,
    rules: SplitRules,
) -> Result<Vec<Split>, InputError> {
    let rules = SplitRules { split_bytes: rules.split_bytes.max(1), pieces_max: rules.pieces_max.max(1) };
    let mut splits = Vec::new();
    for (index, (input, files)) in inputs.iter().zip(list_all(inputs, listing)?).enumerate() {
        let mut packing = Packing {
            input: u32::try_from(index).unwrap_or(u32::MAX),
            format: input.format,
            rules,
            splits: &mut splits,
            open_bytes: None,
        };
        for file in files {
            packing.add(file)?;
        }
    }
    Ok(splits)
}

/// The side inputs of a job, each a split that holds its files whole.
///
/// # Errors
/// As [`plan_splits`].
pub fn plan_side(side: &[Input], listing: &dyn Listing) -> Result<Vec<Split>, InputError> {
    let files = list_all(side, listing)?;
    let number = |index| u32::try_from(index).unwrap_or(u32::MAX);
    Ok(side
        .iter()
        .zip(files)
        .enumerate()
        .map(|(index, (input, pieces))| Split { input: number(index), format: input.format, pieces })
        .collect())
}

/// Bytes of all files of an input; compressed files count with their compressed size.
///
/// # Errors
/// As [`list_input`].
pub fn input_bytes(input: &Input, listing: &dyn Listing) -> Result<u64, InputError> {
    Ok(list_input(input, listing)?.iter().map(|piece| piece.length).sum())
}

/// The first record of each file of an input that has one, without its line end, also if it is a header.
///
/// # Errors
/// As [`plan_splits`], and what reading those records may bring.
pub fn first_records(
    input: &Input,
    listing: &dyn Listing,
    access: &dyn FileAccess,
    limits: &InputLimits,
) -> Result<Vec<FirstRecord>, InputError> {
    let format = match input.format {
        RecordFormat::Csv { delimiter, .. } => RecordFormat::Csv { delimiter, header: false },
        other => other,
    };
    let mut records = Vec::new();
    for piece in list_input(input, listing)? {
        let path = piece.name.clone();
        if let Some(bytes) = first_of(piece, format, access, limits)? {
            records.push(FirstRecord { path, bytes });
        }
    }
    Ok(records)
}

/// The first record of a file, without its line end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FirstRecord {
    /// The file as the user named it.
    pub path: FilePath,
    /// What the record holds.
    pub bytes: Vec<u8>,
}

/// Looks into the head of the file, and into the whole of it if that is blank.
fn first_of(
    whole: Piece,
    format: RecordFormat,
    access: &dyn FileAccess,
    limits: &InputLimits,
) -> Result<Option<Vec<u8>>, InputError> {
    let head = Piece { length: whole.length.min(HEAD_BYTES), ..whole.clone() };
    for piece in [head, whole] {
        let split = Split { input: 0, format, pieces: vec![piece] };
        let mut blocks = open_split(&split, access, limits);
        while let Some(block) = blocks.next_block()? {
            if let Some(record) = block.records().next() {
                return Ok(Some(record.bytes().to_vec()));
            }
        }
    }
    Ok(None)
}

fn list_all(inputs: &[Input], listing: &dyn Listing) -> Result<Vec<Vec<Piece>>, InputError> {
    let mut bad = Vec::new();
    let files = inputs.iter().map(|input| list_into(input, listing, &mut bad)).collect();
    if bad.is_empty() { Ok(files) } else { Err(InputError::collected(bad)) }
}

/// Cuts and packs the files of one input.
struct Packing<'a> {
    input: u32,
    format: RecordFormat,
    rules: SplitRules,
    splits: &'a mut Vec<Split>,
    /// Bytes in the last split, if it may take more files.
    open_bytes: Option<u64>,
}

impl Packing<'_> {
    fn add(&mut self, file: Piece) -> Result<(), InputError> {
        let bytes = match file.compression {
            Compression::None => file.length,
            Compression::Gzip | Compression::Zstd => file.length.saturating_mul(EXPANSION_TYPICAL),
        };
        if bytes <= self.rules.split_bytes {
            return self.pack(file, bytes);
        }
        self.open_bytes = None;
        let mut offset = 0;
        for end in self.cuts(&file)?.into_iter().chain([file.length]).filter(|&cut| cut <= file.length) {
            if offset < end {
                self.push(Piece { offset, length: end - offset, ..file.clone() })?;
            }
            offset = end;
        }
        Ok(())
    }

    /// Puts a small file into the last split if there is room, and into a new one if not.
    fn pack(&mut self, file: Piece, bytes: u64) -> Result<(), InputError> {
        if let (Some(open), Some(last)) = (self.open_bytes, self.splits.last_mut())
            && open + bytes <= self.rules.split_bytes
            && last.pieces.len() < self.rules.pieces_max
            && last.pieces.last().is_some_and(|piece| piece.place == file.place)
        {
            last.pieces.push(file);
            self.open_bytes = Some(open + bytes);
            return Ok(());
        }
        self.push(file)?;
        self.open_bytes = Some(bytes);
        Ok(())
    }

    fn push(&mut self, piece: Piece) -> Result<(), InputError> {
        if self.splits.len() == SPLITS_MAX {
            return Err(InputError::TooManySplits { limit: SPLITS_MAX });
        }
        self.splits.push(Split { input: self.input, format: self.format, pieces: vec![piece] });
        Ok(())
    }

    /// Where a large file is cut, ascending.
    fn cuts(&self, file: &Piece) -> Result<Vec<u64>, InputError> {
        if file.compression != Compression::None {
            return Ok(Vec::new());
        }
        let step = match self.format {
            RecordFormat::Lines => self.rules.split_bytes,
            RecordFormat::Fixed { length } => {
                let length = u64::from(length);
                (self.rules.split_bytes / length).max(1) * length
            }
            RecordFormat::Csv { delimiter, .. } => {
                return match file.place {
                    Place::Submitter => row_cuts(file, delimiter, self.rules.split_bytes),
                    // Whoever plans cannot read it, so its rows stay together.
                    Place::Worker(_) => Ok(Vec::new()),
                };
            }
        };
        let count = (file.length - 1) / step;
        if SPLITS_MAX as u64 <= count {
            return Err(InputError::TooManySplits { limit: SPLITS_MAX });
        }
        Ok((1..=count).map(|index| index * step).collect())
    }
}

/// Reads a CSV file once to find rows that end near multiples of the split size.
///
/// With plain reads and not through a map: a file that shrinks meanwhile is then an error, not a signal.
fn row_cuts(file: &Piece, delimiter: u8, split_bytes: u64) -> Result<Vec<u64>, InputError> {
    let failed = |source| InputError::from_io(&file.name, source);
    let open = open_regular(file.path.to_path()).map_err(failed)?;
    let (cuts, unclosed) = if holds_quotes(&open, file.length).map_err(failed)? {
        let rows = scan_rows(&open, delimiter, split_bytes).map_err(failed)?;
        let unclosed = rows.unclosed();
        (rows.cuts, unclosed)
    } else {
        (plain_cuts(&open, file.length, split_bytes).map_err(failed)?, None)
    };
    let now = FileStamp::of(&open.metadata().map_err(failed)?);
    let path = FilePath::clone(&file.name);
    match unclosed {
        _ if now != file.stamp => Err(InputError::Changed { path, was: file.stamp, now: Some(now) }),
        Some(offset) => Err(InputError::UnclosedQuote { path, offset }),
        None => Ok(cuts),
    }
}

/// Whether there is a quote in the file. Looked for by several threads, each in its own stretch.
fn holds_quotes(file: &File, length: u64) -> std::io::Result<bool> {
    let threads =
        std::thread::available_parallelism().map_or(1, usize::from).clamp(1, SCAN_THREADS_MAX) as u64;
    let stretch = length.div_ceil(threads).max(SCAN_BYTES as u64);
    let found = AtomicBool::new(false);
    let look = |from: u64| -> std::io::Result<()> {
        let end = (from + stretch).min(length);
        let (mut at, mut chunk) = (from, vec![0; SCAN_BYTES]);
        while at < end && !found.load(Relaxed) {
            let wanted = (end - at).min(SCAN_BYTES as u64) as usize;
            let count = read_some_at(file, &mut chunk[..wanted], at)?;
            if count == 0 {
                break;
            }
            if memchr(QUOTE, &chunk[..count]).is_some() {
                found.store(true, Relaxed);
            }
            at += count as u64;
        }
        Ok(())
    };
    let starts: Vec<u64> =
        (0..threads).map(|number| number * stretch).filter(|from| *from < length).collect();
    let looked = std::thread::scope(|scope| {
        let others: Vec<_> = starts.iter().skip(1).map(|from| scope.spawn(|| look(*from))).collect();
        let mut looked = starts.first().map_or(Ok(()), |from| look(*from));
        for other in others {
            looked = looked.and(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        looked
    });
    looked.map(|()| found.into_inner())
}

/// The cuts of a CSV file without quotes: line ends, of which only those near the wanted places are read.
pub(super) fn plain_cuts(file: &File, length: u64, split_bytes: u64) -> std::io::Result<Vec<u64>> {
    let mut chunk = vec![0; SCAN_BYTES.min(64 << 10)];
    let mut find = |mut at: u64, is_wanted: fn(u8) -> bool| -> std::io::Result<Option<u64>> {
        while at < length {
            let count = read_some_at(file, &mut chunk, at)?;
            if let Some(found) = chunk[..count].iter().position(|byte| is_wanted(*byte)) {
                return Ok(Some(at + found as u64));
            }
            if count == 0 {
                break;
            }
            at += count as u64;
        }
        Ok(None)
    };
    let mut cuts = Vec::new();
    // The first row that is not blank may be a header, and stays with what follows.
    let mut mark = [0; BYTE_ORDER_MARK.len()];
    let marked = read_some_at(file, &mut mark, 0)? == mark.len() && mark == BYTE_ORDER_MARK;
    let begin = if marked { mark.len() as u64 } else { 0 };
    let Some(mut from) = find(begin, |byte| !matches!(byte, b'\r' | b'\n'))? else { return Ok(cuts) };
    let mut wanted = split_bytes;
    while let Some(newline) = find(from.max(wanted - 1), |byte| byte == b'\n')? {
        cuts.push(newline + 1);
        from = newline + 1;
        wanted = (from / split_bytes + 1) * split_bytes;
    }
    Ok(cuts)
}

fn read_some_at(file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<usize> {
    loop {
        match file.read_at(buffer, at) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The rows of a CSV file read from its beginning to its end.
pub(super) fn scan_rows(mut file: impl Read, delimiter: u8, split_bytes: u64) -> std::io::Result<RowCuts> {
    let mut first = Vec::with_capacity(BYTE_ORDER_MARK.len());
    file.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut first)?;
    let mut rows = if first == BYTE_ORDER_MARK {
        RowCuts::new(delimiter, split_bytes, first.len() as u64)
    } else {
        let mut rows = RowCuts::new(delimiter, split_bytes, 0);
        rows.feed(&first);
        rows
    };
    let mut chunk = vec![0; SCAN_BYTES];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(rows),
            Ok(count) => rows.feed(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
