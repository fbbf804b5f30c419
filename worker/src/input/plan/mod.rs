//! Plans the splits of files, where a job is submitted.
//!
//! A file larger than a split is cut at multiples of the split size. Smaller ones are packed, in order,
//! into one split. Splits are in the order of inputs, then files, then offsets: the index of a split in
//! the list is its map index. CSV files that are cut are read once, because only that shows where rows
//! end. Several threads check for quotes, and if there are any, all rows are parsed. Of
//! other files that are cut the first bytes are read, which show if they can be cut. Files that are not
//! cut are not opened. Parquet files are cut anywhere: a piece has the row groups that start in it.

mod line_cuts;
mod packing;
mod rows;
mod rules;

use super::blocks::open_split;
use super::error::InputError;
use super::format::RecordFormat;
use super::limits::InputLimits;
use super::list::{Input, list_input, list_into};
use super::listed::Listing;
use super::path::FilePath;
use super::record::Blocks;
use super::source::FileAccess;
use super::split::{Piece, Split};
use packing::Packing;

pub use rules::{FileCuts, SplitGoal, SplitRules};

/// Maximum number of splits that an input is cut into by bytes. A smaller split size is raised.
const CUT_SPLITS_MAX: u64 = 100_000;

/// Bytes of a file that are read for its first record; more only if they are blank.
const HEAD_BYTES: u64 = 64 << 10;

/// Plans the splits of a job's inputs, in map order.
///
/// # Errors
/// All unusable paths, in one error; a CSV file that cannot be read; too many splits.
pub fn plan_splits(
    inputs: &[Input],
    listing: &dyn Listing,
    rules: SplitRules,
) -> Result<Vec<Split>, InputError> {
    let pieces_max = if rules.cuts.alone { 1 } else { rules.pieces_max.max(1) };
    let lists = list_all(inputs, listing)?;
    let total: u64 = lists.iter().flatten().map(|file| file.length).sum();
    let aimed_at = |goal: SplitGoal| goal.bytes_min.max(goal.bytes_max.min(total / goal.maps.max(1)));
    let split_bytes = rules.cuts.goal.map_or(rules.split_bytes, aimed_at);
    let split_bytes = split_bytes.max(total.div_ceil(CUT_SPLITS_MAX)).max(1);
    let rules = SplitRules { split_bytes, pieces_max, ..rules };
    refuse_without_header(inputs, &lists)?;
    let mut splits = Vec::new();
    for (index, (input, files)) in inputs.iter().zip(lists).enumerate() {
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

/// Plans the side inputs of a job, each a split that holds its files whole.
///
/// # Errors
/// The errors of [`plan_splits`].
pub fn plan_side(side: &[Input], listing: &dyn Listing) -> Result<Vec<Split>, InputError> {
    let files = list_all(side, listing)?;
    refuse_without_header(side, &files)?;
    let number = |index| u32::try_from(index).unwrap_or(u32::MAX);
    Ok(side
        .iter()
        .zip(files)
        .enumerate()
        .map(|(index, (input, pieces))| Split { input: number(index), format: input.format, pieces })
        .collect())
}

/// Returns the bytes of all files of an input. Compressed files count with their compressed size.
///
/// # Errors
/// The errors of [`list_input`].
pub fn input_bytes(input: &Input, listing: &dyn Listing) -> Result<u64, InputError> {
    Ok(list_input(input, listing)?.iter().map(|piece| piece.length).sum())
}

/// Returns the first record of each file of an input that has one, without its line end, also if it is a
/// header.
///
/// # Errors
/// The errors of [`plan_splits`], and of reading those records.
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

/// First record of a file, without its line end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FirstRecord {
    /// Path of the file as the user named it.
    pub path: FilePath,
    /// Content of the record.
    pub bytes: Vec<u8>,
}

/// Reads the head of the file, or the whole file if that is blank.
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
        loop {
            match blocks.next_block() {
                Ok(Some(block)) => {
                    if let Some(record) = block.records().next() {
                        return Ok(Some(record.bytes().to_vec()));
                    }
                }
                // The whole file can be read.
                Ok(None) | Err(InputError::CutBeforeKnown { .. }) => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(None)
}

/// Refuses tables without a header, because their column names would be treated as a row.
fn refuse_without_header(inputs: &[Input], files: &[Vec<Piece>]) -> Result<(), InputError> {
    let without = inputs
        .iter()
        .zip(files)
        .filter(|(input, _)| matches!(input.format, RecordFormat::Csv { header: false, .. }));
    match without.flat_map(|(_, files)| files).find(|file| file.table.is_some()) {
        Some(file) => Err(InputError::has_header(&file.name)),
        None => Ok(()),
    }
}

fn list_all(inputs: &[Input], listing: &dyn Listing) -> Result<Vec<Vec<Piece>>, InputError> {
    let mut bad = Vec::new();
    let files = inputs.iter().map(|input| list_into(input, listing, &mut bad)).collect();
    if bad.is_empty() { Ok(files) } else { Err(InputError::collected(bad)) }
}
