//! `join`: the rows of two tables that agree in some columns.
//!
//! There are two strategies. *Repartition* uses one key for both sides, as in most implementations of MapReduce: both
//! tables are shuffled, and each reducer gets the rows of one key. The engine delivers values in the order of inputs,
//! so the rows of the smaller side come first and are held while those of the larger side stream. *Broadcast*: the
//! smaller table is held by every worker, the larger one is read by map tasks, and there is no shuffle. It supports
//! only join types that keep no unmatched rows of the held table.

mod arguments;
mod broadcast;
mod columns;
mod emission;
mod find;
mod held;
mod repartition;
mod rows;
#[cfg(test)]
mod tests;

pub use arguments::{Header, Join, Strategy};
use columns::PreparedJoin;
pub use columns::{JoinColumn, JoinedColumn, OnError, OutputColumnError, Side};
pub use emission::JoinType;
use gristmill_worker::prelude::*;

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
        let (left, left_rows) = find::find(self, Side::Left, header, submitter)?;
        let (right, right_rows) = find::find(self, Side::Right, header, submitter)?;
        let bytes = |side| match side {
            Side::Left => left.bytes,
            Side::Right => right.bytes,
        };
        let (broadcast, reason) = self.choose_strategy(bytes, submitter.memory_bytes())?;
        let left_alone = self.join_type.is_left_alone();
        let output = find::find_output(&self.columns, header, &left, &right, left_alone)?;
        if header {
            find::check_headers(Side::Left, &left_rows, self.delimiter)?;
            find::check_headers(Side::Right, &right_rows, self.delimiter)?;
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
