//! Offsets at which a CSV file can be cut: ends of rows outside quotes.

use crate::input::blocks::{BYTE_ORDER_MARK, sound_cuts};
use crate::input::border::{QUOTE, RowCuts};
use crate::input::error::InputError;
use crate::input::format::RecordFormat;
use crate::input::limits::InputLimits;
use crate::input::path::FilePath;
use crate::input::private::open_regular;
use crate::input::split::{FileStamp, Piece};
use memchr::memchr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Number of bytes read at once when a CSV file is searched for rows.
const SCAN_BYTES: usize = 256 << 10;

/// Maximum number of threads that search for quotes. More would only wait for memory.
const SCAN_THREADS_MAX: usize = 8;

/// Does the same as [`row_cuts`], for a file of which bad rows are skipped.
pub(super) fn sound_row_cuts(
    file: &Piece,
    format: RecordFormat,
    split_bytes: u64,
    limits: &InputLimits,
) -> Result<Vec<u64>, InputError> {
    let failed = |source| InputError::from_io(&file.name, source);
    let open = open_regular(file.path.to_path()).map_err(failed)?;
    if holds_quotes(&open, file.length).map_err(failed)? {
        return sound_cuts(file, format, split_bytes, limits);
    }
    plain_cuts(&open, file.length, split_bytes).map_err(failed)
}

/// Reads a CSV file once to find rows that end near multiples of the split size.
///
/// It uses plain reads instead of a map: a file that shrinks meanwhile then causes an error, not a signal.
pub(super) fn row_cuts(file: &Piece, delimiter: u8, split_bytes: u64) -> Result<Vec<u64>, InputError> {
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

/// True if the file contains a quote. Several threads search, each in its own range.
fn holds_quotes(file: &File, length: u64) -> std::io::Result<bool> {
    let threads =
        std::thread::available_parallelism().map_or(1, usize::from).clamp(1, SCAN_THREADS_MAX) as u64;
    let stretch = length.div_ceil(threads).max(SCAN_BYTES as u64);
    let found = AtomicBool::new(false);
    let look = &|from: u64| -> std::io::Result<()> {
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
        let begin = |from: &u64| {
            let from = *from;
            // If no thread can be started, this one searches itself.
            std::thread::Builder::new().spawn_scoped(scope, move || look(from)).map_err(|_| look(from))
        };
        let others: Vec<_> = starts.iter().skip(1).map(begin).collect();
        let mut looked = starts.first().map_or(Ok(()), |from| look(*from));
        for other in others {
            let other =
                other.map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            looked = looked.and(other.unwrap_or_else(|looked_here| looked_here));
        }
        looked
    });
    looked.map(|()| found.into_inner())
}

/// Returns the cuts of a CSV file without quotes: line ends, of which only those near the wanted offsets
/// are read.
pub(in crate::input) fn plain_cuts(file: &File, length: u64, split_bytes: u64) -> std::io::Result<Vec<u64>> {
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
    // The first row that is not blank may be a header, and stays with the following rows.
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

/// Reads the rows of a CSV file from its start to its end.
pub(in crate::input) fn scan_rows(
    mut file: impl Read,
    delimiter: u8,
    split_bytes: u64,
) -> std::io::Result<RowCuts> {
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
