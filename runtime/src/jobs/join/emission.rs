//! Which rows a join writes, given a row of one side and its partners on the other.
//!
//! Not here: how partners are found.

use super::columns::{Prepared, Side};
use crate::prelude::*;
use clap::ValueEnum;
use std::fmt;

/// Which rows a join writes.
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
    /// Whether rows of this side are written also without a match, with empty fields for the partner.
    pub(super) fn keeps(self, side: Side) -> bool {
        match self {
            JoinType::Left => side == Side::Left,
            JoinType::Right => side == Side::Right,
            JoinType::Full => true,
            JoinType::Inner | JoinType::Semi | JoinType::Anti => false,
        }
    }

    /// Whether only left rows are written, and right rows matter only for their keys.
    pub(super) fn is_left_alone(self) -> bool {
        matches!(self, JoinType::Semi | JoinType::Anti)
    }

    /// The table that may be broadcast. No task sees all rows of the other one, so none can tell that a row of
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
pub(super) struct Emission {
    join_type: JoinType,
    streamed: Side,
    delimiter: u8,
    /// As many empty fields as a left row has, and as a right row has.
    left_empty: Vec<u8>,
    right_empty: Vec<u8>,
    line: Vec<u8>,
}

impl Emission {
    pub(super) fn new(join_type: JoinType, delimiter: u8, prepared: &Prepared, streamed: Side) -> Self {
        let empty = |side| vec![delimiter; prepared.table(side).width - 1];
        let (left_empty, right_empty) = (empty(Side::Left), empty(Side::Right));
        Self { join_type, streamed, delimiter, left_empty, right_empty, line: Vec::new() }
    }

    /// A row of the streamed side with all its partners.
    pub(super) fn streamed_row<'a>(
        &mut self,
        row: &[u8],
        partners: impl IntoIterator<Item = &'a [u8]>,
        out: &mut Output,
    ) {
        let mut partners = partners.into_iter().peekable();
        let matched = partners.peek().is_some();
        match self.join_type {
            JoinType::Semi if matched => out.line(row),
            JoinType::Anti if !matched => out.line(row),
            JoinType::Semi | JoinType::Anti => {}
            _ if matched => partners.for_each(|partner| self.pair(row, partner, out)),
            _ => self.lone_row(self.streamed, row, out),
        }
    }

    /// A row without a partner, which is written only if the type of join keeps those of its side.
    pub(super) fn lone_row(&mut self, side: Side, row: &[u8], out: &mut Output) {
        match side {
            _ if !self.join_type.keeps(side) => {}
            Side::Left => self.line(Some(row), None, out),
            Side::Right => self.line(None, Some(row), out),
        }
    }

    fn pair(&mut self, row: &[u8], partner: &[u8], out: &mut Output) {
        match self.streamed {
            Side::Left => self.line(Some(row), Some(partner), out),
            Side::Right => self.line(Some(partner), Some(row), out),
        }
    }

    fn line(&mut self, left: Option<&[u8]>, right: Option<&[u8]>, out: &mut Output) {
        let Self { line, left_empty, right_empty, delimiter, .. } = self;
        line.clear();
        line.extend_from_slice(left.unwrap_or(left_empty));
        line.push(*delimiter);
        line.extend_from_slice(right.unwrap_or(right_empty));
        out.line(line);
    }
}
