//! Reads a split block by block: every record whose first byte is in a piece, whole, exactly once.
//!
//! A piece of lines that does not start at the beginning of its file reads the byte before it, to detect
//! if a line starts with the piece. The last line is read beyond the end of the piece. Pieces of the
//! other formats start and end at record boundaries.

mod piece;

use super::bad_records::BadRecords;
use super::content::recognized;
use super::error::InputError;
use super::format::RecordFormat;
use super::limits::InputLimits;
use super::mapped::MappedFile;
use super::record::{Block, Blocks, Source};
use super::source::FileAccess;
use super::split::{Piece, Place, Split};
use piece::{FoundRange, PieceBlocks};
use std::sync::Arc;

pub(super) use piece::BYTE_ORDER_MARK;

/// Opens a split for reading. Files are opened one at a time, when they are reached.
///
/// Blocks hold about [`InputLimits::block_bytes`], more only for a longer record, and belong to one file
/// each.
pub fn open_split<'a>(split: &'a Split, access: &'a dyn FileAccess, limits: &InputLimits) -> SplitBlocks<'a> {
    SplitBlocks {
        split,
        access,
        limits: *limits,
        pieces_opened: 0,
        pieces_end: split.pieces.len(),
        current: None,
        source: Source { path: String::new(), input: split.input as usize },
        mapping: None,
        is_remote: false,
        local_bytes: 0,
        remote_bytes: 0,
        bad: BadRecords::up_to(limits.bad_records_max),
    }
}

/// Part of what is left to read that an attempt keeps when its split is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeptPart {
    /// About half.
    Half,
    /// As little as possible.
    Least,
}

/// Blocks of one split.
pub struct SplitBlocks<'a> {
    split: &'a Split,
    access: &'a dyn FileAccess,
    limits: InputLimits,
    pieces_opened: usize,
    /// Number of pieces that are read; fewer than in the split once it was divided.
    pieces_end: usize,
    current: Option<PieceBlocks>,
    source: Source,
    /// Mapping of the current file, if its blocks are in one.
    mapping: Option<Arc<MappedFile>>,
    /// True if the current file is fetched from another process.
    is_remote: bool,
    local_bytes: u64,
    remote_bytes: u64,
    bad: BadRecords,
}

impl SplitBlocks<'_> {
    /// Returns the bytes of the pieces opened so far that were read from this machine's file system.
    #[must_use]
    pub fn local_bytes(&self) -> u64 {
        self.local_bytes
    }

    /// Returns the bytes of the pieces opened so far that were fetched from another process.
    #[must_use]
    #[cfg(test)]
    pub(crate) fn remote_bytes(&self) -> u64 {
        self.remote_bytes
    }

    /// Returns the records that its mapper skips.
    #[must_use]
    pub fn bad_records(&self) -> &BadRecords {
        &self.bad
    }

    /// True if the first file is open. Before, nothing is known of what there is to give up.
    pub(crate) fn has_started(&self) -> bool {
        self.current.is_some() || 1 < self.pieces_opened
    }

    /// Keeps this part of what is left to read and gives up the rest. Returns the number of bytes of the split that are
    /// kept, as for [`Split::divide`]; `None` if nothing can be given up, or less than a quarter of a block, which is
    /// read sooner than another map starts. A piece is cut only while it is read, when its contents
    /// are known, so a split is divided in its current piece or between later ones.
    pub(crate) fn divide(&mut self, part: KeptPart) -> Option<u64> {
        let pieces = &self.split.pieces[..self.pieces_end];
        let index = self.pieces_opened.checked_sub(1)?;
        let lengths = |pieces: &[Piece]| pieces.iter().map(|piece| piece.length).sum::<u64>();
        let here = self.current.as_ref().and_then(PieceBlocks::left);
        let left_here = here.map_or(0, |(at, end)| end - at);
        let left = left_here + lengths(&pieces[index + 1..]);
        let keeps = match part {
            KeptPart::Half => left / 2,
            KeptPart::Least => 0,
        };
        let least = if pieces[index].place == Place::Steps { 1 } else { self.limits.block_bytes as u64 / 4 };
        if left - keeps < least {
            return None;
        }
        if let (Some((at, end)), Some(current)) = (here, &mut self.current)
            && keeps < left_here
        {
            let piece = &pieces[index];
            let mut kept = at + keeps.max(1) - piece.offset;
            if let RecordFormat::Fixed { length } = self.split.format {
                kept = kept.next_multiple_of(u64::from(length.max(1)));
            }
            let offset = piece.offset + kept;
            if at < offset && offset < end && piece.may_be_cut(self.split.format, kept) {
                current.end_at(offset);
                let kept = lengths(&pieces[..index]) + kept;
                self.pieces_end = index + 1;
                *self.bytes_by_place() -= end - offset;
                return Some(kept);
            }
        }
        // The first border before which enough is kept, but not the end.
        let mut before = left_here;
        let border = (index + 1..pieces.len()).find(|&border| {
            let there = keeps <= before;
            before += pieces[border].length;
            there
        });
        self.pieces_end = border.or_else(|| (index + 1 < pieces.len()).then(|| pieces.len() - 1))?;
        Some(lengths(&self.split.pieces[..self.pieces_end]))
    }

    fn bytes_by_place(&mut self) -> &mut u64 {
        if self.is_remote { &mut self.remote_bytes } else { &mut self.local_bytes }
    }

    /// Opens the next piece; `None` if there is none.
    fn open_next(&mut self) -> Result<Option<PieceBlocks>, InputError> {
        let Some(piece) = self.split.pieces[..self.pieces_end].get(self.pieces_opened) else {
            return Ok(None);
        };
        self.pieces_opened += 1;
        let file = self.access.open(piece)?;
        self.is_remote = file.is_remote();
        *self.bytes_by_place() += piece.length;
        self.source.path = piece.name.to_text();
        let was_cut = piece.length < piece.stamp.size && !piece.is_decoded();
        let (piece, file) = recognized(piece, self.split.format, file)?;
        if was_cut && piece.is_decoded() {
            let table = piece.table.as_ref().map(|table| table.kind.suffix());
            let suffix = table.unwrap_or(piece.compression.suffix());
            return Err(InputError::CutBeforeKnown { path: piece.name.clone(), suffix });
        }
        self.mapping = file.mapping().filter(|_| !piece.is_decoded()).cloned();
        PieceBlocks::open(&piece, self.split.format, file, &self.limits).map(Some)
    }

    /// Finds the next block; `None` after the last one of the last piece.
    fn find(&mut self) -> Result<Option<FoundRange>, InputError> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some(found) = current.find()? {
                    return Ok(Some(found));
                }
                current.window.verify_unchanged()?;
                self.current = None;
            }
            match self.open_next()? {
                Some(next) => self.current = Some(next),
                None => return Ok(None),
            }
        }
    }
}

impl Blocks for SplitBlocks<'_> {
    fn next_block(&mut self) -> Result<Option<Block<'_>>, InputError> {
        let found = self.find();
        // The error is a consequence of the zeros that replace lost bytes, so it is not reported.
        if let Some(file) = self.mapping.as_ref().filter(|file| file.is_lost()) {
            file.verify_unchanged()?;
        }
        let Some(found) = found? else { return Ok(None) };
        let current = self.current.as_mut().expect("the block was just found in it");
        let bytes = current.window.view(found.offset, found.length)?;
        let (mapping, after_mark) = (self.mapping.as_ref(), current.after_mark == Some(found.offset));
        Ok(Some(Block {
            mapping,
            after_mark,
            ..Block::new(bytes, found.offset, self.split.format, &self.source)
        }))
    }
}
