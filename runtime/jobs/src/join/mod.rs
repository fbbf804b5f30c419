//! `join`: the rows of two tables that agree in some columns.
//!
//! There are two strategies. *Repartition* uses one key for both sides, as in most implementations of MapReduce: both
//! tables are shuffled, and each reducer gets the rows of one key. The engine delivers values in the order of inputs,
//! so the rows of the smaller side come first and are held while those of the larger side stream. *Broadcast*: the
//! smaller table is held by every worker, the larger one is read by map tasks, and there is no shuffle. It supports
//! only join types that keep no unmatched rows of the held table.

mod broadcast;
mod columns;
mod emission;
mod held;
mod repartition;
mod rows;
#[cfg(test)]
mod tests;

use super::delimiter::parse_delimiter;
use crate::size::parse_bytes;
use clap::ValueEnum;
pub use columns::{JoinColumn, JoinedColumn, OnError, OutputColumnError, Side};
use columns::{PreparedJoin, parse_on, parse_output_column};
pub use emission::JoinType;
use gristmill_worker::prelude::*;
use serde::{Deserialize, Serialize};

/// Joins two tables in CSV
///
/// Output rows are all columns of the left row, then all of the right one; semi and anti write only the left ones.
/// Fields of a missing partner are empty. An empty field in a join column is a value like any other: two of them match.
/// Quotes are read as in RFC 4180, and written only if a field needs them.
///
/// A repartition join writes each part in the order of the join columns; rows that agree in them are in the order of
/// the larger side, then of the other. A broadcast join writes rows in the order of the table that is not broadcast.
#[derive(clap::Args, Serialize, Deserialize, Clone, Debug)]
pub struct Join {
    /// Files of the left table, or directories of them
    #[arg(long, required = true, num_args = 1.., value_name = "F")]
    pub left: Vec<String>,
    /// Files of the right table, or directories of them
    #[arg(long, required = true, num_args = 1.., value_name = "F")]
    pub right: Vec<String>,
    /// Columns that must agree: left=right, several with commas. A column is, with a header, a name, or else a number
    /// from 1; '#1' is a number even if a column is called 1. A single word stands for the same column on both sides
    #[arg(long, required = true, value_delimiter = ',', value_parser = parse_on, value_name = "L=R")]
    pub on: Vec<(JoinColumn, JoinColumn)>,
    /// Rows to write
    #[arg(long = "type", value_enum, value_name = "TYPE", default_value_t = JoinType::Inner)]
    pub join_type: JoinType,
    /// Write only these columns, in this order: left.COLUMN or right.COLUMN, several with commas; a column is written
    /// as in --on
    #[arg(long, value_delimiter = ',', value_parser = parse_output_column, value_name = "SIDE.COLUMN")]
    #[serde(default)]
    pub columns: Vec<JoinedColumn>,
    /// Header row at the start of each file, the same in all files of a table; by default only if a column is named
    #[arg(long, value_enum)]
    pub header: Option<Header>,
    /// Field delimiter
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = parse_delimiter)]
    pub delimiter: u8,
    /// Join strategy
    #[arg(long, value_enum, default_value_t = Strategy::Auto)]
    pub strategy: Strategy,
    /// Maximum size of a table that is broadcast, bytes
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = parse_bytes)]
    pub broadcast_max: u64,
    /// Maximum bytes of rows with one key that a reducer holds: those of the smaller side
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = parse_bytes)]
    pub group_max: u64,
    /// Facts about the tables found at submission; `None` before.
    #[arg(skip)]
    pub prepared: Option<PreparedJoin>,
}

/// Presence of header rows.
#[derive(ValueEnum, Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Header {
    /// The first row of each file is its header
    Yes,
    /// The first row is a row like the others
    No,
}

/// Strategy of a join.
#[derive(ValueEnum, Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Broadcast if the type allows it and the table is small, else repartition
    Auto,
    /// Shuffle both tables by their keys
    Repartition,
    /// Hold one table in the memory of each worker
    Broadcast,
}

/// A table of short rows takes four times its bytes in memory when it is held by its keys.
const BROADCAST_MEMORY_PARTS: u64 = 4;

impl Join {
    fn input(&self, side: Side, header: bool) -> Input {
        let paths = match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        };
        Input::csv(paths, self.delimiter, header)
    }

    /// The table to hold in each worker's memory, if any, and the reason.
    fn choose_strategy(
        &self,
        bytes: impl Fn(Side) -> u64,
        memory_bytes: u64,
    ) -> Result<(Option<Side>, String), PlanError> {
        if self.strategy == Strategy::Repartition {
            return Ok((None, "as asked".to_owned()));
        }
        let smaller = if bytes(Side::Left) < bytes(Side::Right) { Side::Left } else { Side::Right };
        let reason = match self.join_type.broadcast_side(smaller) {
            None => format!("a broadcast cannot serve a {} join", self.join_type),
            Some(side) if bytes(side) > memory_bytes / BROADCAST_MEMORY_PARTS => format!(
                "the {side} table has {} bytes, and a quarter of a worker's {memory_bytes} bytes of memory is \
                 less: a larger --memory allows it",
                bytes(side)
            ),
            Some(side) if bytes(side) <= self.broadcast_max => {
                return Ok((Some(side), format!("the {side} table has {} bytes", bytes(side))));
            }
            Some(side) => {
                let (bytes, broadcast_max) = (bytes(side), self.broadcast_max);
                format!("the {side} table has {bytes} bytes, and --broadcast-max is {broadcast_max}")
            }
        };
        if self.strategy == Strategy::Auto {
            return Ok((None, reason));
        }
        let (parameter, value) = ("--strategy".to_owned(), "broadcast".to_owned());
        Err(PlanError::Parameter { parameter, value, reason })
    }
}

impl Job for Join {
    const NAME: &'static str = "join";

    fn prepare(&mut self, submitter: &dyn Submitter) -> Result<(), PlanError> {
        let named = self.on.iter().any(|(left, right)| left.is_name() || right.is_name())
            || self.columns.iter().any(|output| output.column.is_name());
        let header = self.header.map_or(named, |header| header == Header::Yes);
        let (left, left_rows) = columns::find(self, Side::Left, header, submitter)?;
        let (right, right_rows) = columns::find(self, Side::Right, header, submitter)?;
        let bytes = |side| match side {
            Side::Left => left.bytes,
            Side::Right => right.bytes,
        };
        let (broadcast, reason) = self.choose_strategy(bytes, submitter.memory_bytes())?;
        let left_alone = self.join_type.is_left_alone();
        let output = columns::find_output(&self.columns, header, &left, &right, left_alone)?;
        if header {
            columns::check_headers(Side::Left, &left_rows, self.delimiter)?;
            columns::check_headers(Side::Right, &right_rows, self.delimiter)?;
        }
        self.prepared = Some(PreparedJoin { header, left, right, output, broadcast, reason });
        Ok(())
    }

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let prepared = self.prepared.as_ref().ok_or_else(|| PlanError::Parameter {
            parameter: "prepared".to_owned(),
            value: "nothing".to_owned(),
            reason: "prepare has to look at the tables before the join can be planned".to_owned(),
        })?;
        prepared.check()?;
        let plan = match prepared.broadcast {
            Some(side) => broadcast::plan(self, prepared, side),
            None => repartition::plan(self, prepared),
        };
        let right = if self.join_type.is_left_alone() { 0 } else { prepared.written(Side::Right) };
        let numbers = 1..=prepared.written(Side::Left) + right;
        let names =
            self.columns().unwrap_or_else(|| numbers.map(|number| format!("column_{number}")).collect());
        Ok(plan.rows(RowLayout::csv(self.delimiter, names)))
    }

    fn columns(&self) -> Option<Vec<String>> {
        let prepared = self.prepared.as_ref()?;
        if let Some(output) = &prepared.output {
            let name =
                |(side, place): &(Side, usize)| prepared.table(*side).names.as_ref()?.get(*place).cloned();
            return output.iter().map(name).collect();
        }
        let mut names = prepared.left.names.clone()?;
        if !self.join_type.is_left_alone() {
            names.extend(prepared.right.names.clone()?);
        }
        Some(names)
    }

    fn remarks(&self) -> Vec<String> {
        self.prepared
            .iter()
            .map(|prepared| {
                let (strategy, streamed) = match prepared.broadcast {
                    Some(side) => ("broadcast", side.other()),
                    None => ("repartition", repartition::held_side(self, prepared).other()),
                };
                format!("{strategy} join ({}); the {streamed} table streams", prepared.reason)
            })
            .collect()
    }
}
