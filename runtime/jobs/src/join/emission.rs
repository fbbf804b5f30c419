//! Rows written by a join, given a row of one side and its partners on the other.

use super::columns::{PreparedJoin, Side};
use clap::ValueEnum;
use gristmill_worker::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Rows that a join writes.
#[derive(ValueEnum, Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum JoinType {
    /// Each pair of rows that match
    Inner,
    /// Also left rows without a match
    Left,
    /// Also right rows without a match
    Right,
    /// Also rows of both sides without a match
    Full,
    /// Left rows that have a match, once each
    Semi,
    /// Left rows that have none
    Anti,
}

impl fmt::Display for JoinType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JoinType::Inner => "inner",
            JoinType::Left => "left",
            JoinType::Right => "right",
            JoinType::Full => "full",
            JoinType::Semi => "semi",
            JoinType::Anti => "anti",
        })
    }
}

impl JoinType {
    /// True if rows of this side are also written without a match, with empty fields for the partner.
    pub(super) fn keeps(self, side: Side) -> bool {
        match self {
            JoinType::Left => side == Side::Left,
            JoinType::Right => side == Side::Right,
            JoinType::Full => true,
            JoinType::Inner | JoinType::Semi | JoinType::Anti => false,
        }
    }

    /// True if only left rows are written, and right rows matter only for their keys.
    pub(super) fn is_left_alone(self) -> bool {
        matches!(self, JoinType::Semi | JoinType::Anti)
    }

    /// The table that may be broadcast. No task sees all rows of the other one, so no task can determine that a row of
    /// the broadcast table has no match.
    pub(super) fn broadcast_side(self, smaller: Side) -> Option<Side> {
        match self {
            JoinType::Inner => Some(smaller),
            JoinType::Left | JoinType::Semi | JoinType::Anti => Some(Side::Right),
            JoinType::Right => Some(Side::Left),
            JoinType::Full => None,
        }
    }
}

/// Writes the rows of a join, one row of the streamed side at a time.
///
/// The text of a row consists of pieces, which are separated by delimiters.
pub(super) struct Emission {
    join_type: JoinType,
    streamed: Side,
    delimiter: u8,
    /// The empty fields of a left row, and of a right row.
    left_empty: Vec<u8>,
    right_empty: Vec<u8>,
    layout: LineLayout,
    line: Vec<u8>,
}

/// Order of the columns of a line.
enum LineLayout {
    /// Those of one side, then those of the other, if any.
    Sides(Vec<Side>),
    /// One by one.
    Mixed(Vec<Side>),
}

impl LineLayout {
    fn new(prepared: &PreparedJoin) -> Self {
        let Some(output) = &prepared.output else { return Self::Sides(vec![Side::Left, Side::Right]) };
        let columns: Vec<Side> = output.iter().map(|(side, _)| *side).collect();
        let mut sides = columns.clone();
        sides.dedup();
        if sides.len() <= 2 { Self::Sides(sides) } else { Self::Mixed(columns) }
    }
}

/// The text of a row, in pieces.
type Pieces<'a> = &'a [&'a [u8]];

impl Emission {
    pub(super) fn new(join_type: JoinType, delimiter: u8, prepared: &PreparedJoin, streamed: Side) -> Self {
        let empty = |side| vec![delimiter; prepared.written(side).saturating_sub(1)];
        let (left_empty, right_empty) = (empty(Side::Left), empty(Side::Right));
        let layout = LineLayout::new(prepared);
        Self { join_type, streamed, delimiter, left_empty, right_empty, layout, line: Vec::new() }
    }

    /// Writes a row of the streamed side with all its partners.
    #[inline]
    pub(super) fn streamed_row<'a>(
        &mut self,
        row: Pieces<'_>,
        partners: impl IntoIterator<Item = &'a [u8]>,
        out: &mut Output,
    ) {
        let mut partners = partners.into_iter().peekable();
        let matched = partners.peek().is_some();
        match self.join_type {
            JoinType::Semi if matched => self.alone(row, out),
            JoinType::Anti if !matched => self.alone(row, out),
            JoinType::Semi | JoinType::Anti => {}
            _ if matched => partners.for_each(|partner| match self.streamed {
                Side::Left => self.line(row, &[partner], out),
                Side::Right => self.line(&[partner], row, out),
            }),
            _ => self.lone_row(self.streamed, row, out),
        }
    }

    /// Writes a row without a partner, if the type of join keeps those of its side.
    pub(super) fn lone_row(&mut self, side: Side, row: Pieces<'_>, out: &mut Output) {
        if !self.join_type.keeps(side) {
            return;
        }
        match side {
            Side::Left => {
                let empty = std::mem::take(&mut self.right_empty);
                self.line(row, &[&empty], out);
                self.right_empty = empty;
            }
            Side::Right => {
                let empty = std::mem::take(&mut self.left_empty);
                self.line(&[&empty], row, out);
                self.left_empty = empty;
            }
        }
    }

    /// Writes a left row by itself.
    fn alone(&mut self, row: Pieces<'_>, out: &mut Output) {
        self.line.clear();
        push_pieces(row, self.delimiter, &mut self.line);
        out.line(if self.line.is_empty() { b"\"\"" } else { &self.line });
    }

    #[inline]
    fn line(&mut self, left: Pieces<'_>, right: Pieces<'_>, out: &mut Output) {
        let Self { line, layout, delimiter, .. } = self;
        match layout {
            LineLayout::Sides(sides) => {
                let before = out.bytes();
                for (number, side) in sides.iter().enumerate() {
                    if 0 < number {
                        out.write(&[*delimiter]);
                    }
                    write_pieces(if *side == Side::Left { left } else { right }, *delimiter, out);
                }
                // A single empty field is quoted: an empty line would not be a row.
                out.write(if out.bytes() == before { b"\"\"\n" } else { b"\n" });
                out.end_record();
            }
            LineLayout::Mixed(columns) => {
                line.clear();
                push_mixed(columns, left, right, *delimiter, line);
                out.line(if line.is_empty() { b"\"\"" } else { line });
            }
        }
    }
}

#[inline]
fn write_pieces(pieces: Pieces<'_>, delimiter: u8, out: &mut Output) {
    for (number, piece) in pieces.iter().enumerate() {
        if 0 < number {
            out.write(&[delimiter]);
        }
        out.write(piece);
    }
}

#[inline]
fn push_pieces(pieces: Pieces<'_>, delimiter: u8, line: &mut Vec<u8>) {
    for (number, piece) in pieces.iter().enumerate() {
        if 0 < number {
            line.push(delimiter);
        }
        line.extend_from_slice(piece);
    }
}

/// Takes fields from both sides in turn. Those of each side are in output order.
fn push_mixed(columns: &[Side], left: Pieces<'_>, right: Pieces<'_>, delimiter: u8, line: &mut Vec<u8>) {
    let (mut left_text, mut right_text) = (Vec::new(), Vec::new());
    push_pieces(left, delimiter, &mut left_text);
    push_pieces(right, delimiter, &mut right_text);
    let mut left = text::csv_fields(&left_text, delimiter);
    let mut right = text::csv_fields(&right_text, delimiter);
    for (number, side) in columns.iter().enumerate() {
        if 0 < number {
            line.push(delimiter);
        }
        let field = if *side == Side::Left { left.next_raw() } else { right.next_raw() };
        line.extend_from_slice(field.unwrap_or_default());
    }
}
