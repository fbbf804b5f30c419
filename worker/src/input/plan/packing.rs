//! Cuts files into pieces, and packs pieces into splits.

use super::line_cuts::line_cuts;
use super::rows::row_cuts;
use super::rules::{EXPANSION_TYPICAL, SplitRules};
use crate::input::content::recognized_whole;
use crate::input::error::InputError;
use crate::input::format::RecordFormat;
use crate::input::local::LocalFiles;
use crate::input::split::{Compression, Piece, Place, Split};
use crate::input::table::TableKind;
use gristmill_scheduler::units::MAPS_MAX;

/// Cuts and packs the files of one input.
pub(super) struct Packing<'a> {
    pub(super) input: u32,
    pub(super) format: RecordFormat,
    pub(super) rules: SplitRules,
    pub(super) splits: &'a mut Vec<Split>,
    /// Bytes in the last split, if it may take more files.
    pub(super) open_bytes: Option<u64>,
}

impl Packing<'_> {
    pub(super) fn add(&mut self, file: Piece) -> Result<(), InputError> {
        let expansion = if file.is_decoded() { EXPANSION_TYPICAL } else { 1 };
        let bytes = file.length.saturating_mul(expansion);
        let cuts = self.rules.cuts;
        let by_lines = cuts.lines.is_some() && self.format == RecordFormat::Lines;
        if !by_lines && bytes <= self.last_bytes_max(self.rules.split_bytes) {
            return self.pack(file, bytes);
        }
        self.open_bytes = None;
        let file = recognized_whole(file, self.format, &LocalFiles)?;
        let mut offset = 0;
        for end in self.cuts(&file)?.into_iter().chain([file.length]).filter(|&cut| cut <= file.length) {
            if offset < end {
                self.push(Piece { offset, length: end - offset, ..file.clone() })?;
            }
            offset = end;
        }
        Ok(())
    }

    /// Adds a small file to the last split if there is room, else to a new one.
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
        if self.splits.len() == MAPS_MAX as usize {
            return Err(InputError::too_many_splits(MAPS_MAX));
        }
        self.splits.push(Split { input: self.input, format: self.format, pieces: vec![piece] });
        Ok(())
    }

    /// Returns the maximum bytes of the last split of a file, where others have `step`.
    fn last_bytes_max(&self, step: u64) -> u64 {
        if self.rules.cuts.goal.is_some() { step.saturating_add(step / 10) } else { step }
    }

    /// Returns the offsets at which a large file is cut, ascending.
    fn cuts(&self, file: &Piece) -> Result<Vec<u64>, InputError> {
        let step = match self.format {
            _ if file.compression != Compression::None => return Ok(Vec::new()),
            // The positions of row groups are fixed: a piece has those that start in it, which may be none.
            _ if let Some(table) = &file.table => match table.kind {
                TableKind::Parquet => (self.rules.split_bytes / EXPANSION_TYPICAL).max(1),
                TableKind::Arrow => return Ok(Vec::new()),
            },
            RecordFormat::WholeFile => return Ok(Vec::new()),
            RecordFormat::Lines => {
                if let Some(lines) = self.rules.cuts.lines {
                    return if file.place == Place::Submitter {
                        line_cuts(file, lines)
                    } else {
                        Ok(Vec::new())
                    };
                }
                self.rules.split_bytes
            }
            RecordFormat::Fixed { length } => {
                let length = u64::from(length);
                (self.rules.split_bytes / length).max(1) * length
            }
            RecordFormat::Csv { delimiter, .. } => {
                return match file.place {
                    Place::Submitter => row_cuts(file, delimiter, self.rules.split_bytes),
                    // The planner cannot read it, or would have to fetch all of it, so its rows stay
                    // together.
                    Place::Worker(_) | Place::Store | Place::Steps => Ok(Vec::new()),
                };
            }
        };
        // The last piece is never longer than the allowed remainder.
        let left = self.last_bytes_max(step);
        let count = file.length.saturating_sub(left).div_ceil(step);
        if u64::from(MAPS_MAX) <= count {
            return Err(InputError::too_many_splits(MAPS_MAX));
        }
        Ok((1..=count).map(|index| index * step).collect())
    }
}
