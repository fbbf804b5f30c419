//! `sort`: the records of the input in order; the parts one after another are the sorted whole.

mod number;
mod order;
#[cfg(test)]
mod tests;

use super::delimiter::parse_delimiter;
use gristmill_worker::prelude::*;
pub(crate) use number::push_number;
pub use order::{ByteRange, ByteRangeError};
pub(crate) use order::{KeyBuffers, RecordOrder};
use serde::{Deserialize, Serialize};

/// Sorts lines or records of fixed length
///
/// The parts one after another are the sorted whole, equal to what `LC_ALL=C
/// sort` writes with the matching flags. Records with equal keys are put in the
/// order of their bytes, or with --stable in that of the input.
#[derive(clap::Args, Serialize, Deserialize, Clone, Debug)]
pub struct Sort {
    /// Files, or directories of them
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// Records of exactly this many bytes instead of lines
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub record_length: Option<u32>,
    /// The key is bytes A to B of the record, counted from 0, without byte B; no
    /// B means to the end
    #[arg(long, value_name = "A..B", conflicts_with = "field")]
    pub key_bytes: Option<ByteRange>,
    /// The key is field N of the line, counted from 1; empty if there are fewer
    #[arg(long, value_name = "N", conflicts_with = "record_length",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub field: Option<u32>,
    /// What stands between fields; a tab by default
    #[arg(long, value_name = "CHAR", requires = "field", value_parser = parse_delimiter)]
    pub delimiter: Option<u8>,
    /// Keys are decimal numbers of any length, such as -12.50; a key that does
    /// not begin with one counts as 0
    #[arg(long)]
    pub numeric: bool,
    /// Largest first
    #[arg(short, long)]
    pub reverse: bool,
    /// Of records with equal keys only the first of the input
    #[arg(short, long)]
    pub unique: bool,
    /// Records with equal keys stay in the order of the input
    #[arg(long)]
    pub stable: bool,
}

impl Sort {
    /// The inputs with their record format.
    pub(crate) fn input(&self) -> Input {
        match self.record_length {
            Some(length) => Input::fixed(&self.inputs, length),
            None => Input::lines(&self.inputs),
        }
    }
}

impl Job for Sort {
    const NAME: &'static str = "sort";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        if let Some(range) = self.key_bytes
            && range.is_empty()
        {
            return Err(PlanError::Parameter {
                parameter: "--key-bytes".to_owned(),
                value: range.to_string(),
                reason: "the range holds no byte".to_owned(),
            });
        }
        let order = RecordOrder::new(self);
        let (unique, lines) = (self.unique, self.record_length.is_none());
        Ok(JobPlan::map(self.input(), move || SortMapper { order, scratch: KeyBuffers::default() })
            .total_order()
            .reduce(move || SortReducer { order, unique, lines, scratch: KeyBuffers::default() }))
    }
}

struct SortMapper {
    order: RecordOrder,
    scratch: KeyBuffers,
}

impl Mapper for SortMapper {
    type Key = ByteString;
    type Value = ByteString;

    fn map(&mut self, record: Record<'_>, out: &mut Emitter<ByteString, ByteString>) -> TaskResult {
        let (key, value) = self.order.pair(record.bytes(), &mut self.scratch);
        out.emit(key, value);
        Ok(())
    }
}

struct SortReducer {
    order: RecordOrder,
    unique: bool,
    lines: bool,
    scratch: KeyBuffers,
}

impl Reducer for SortReducer {
    type Key = ByteString;
    type Value = ByteString;

    fn reduce(
        &mut self,
        key: &[u8],
        values: &mut Values<'_, ByteString, ByteString>,
        out: &mut Output,
    ) -> TaskResult {
        while let Some(value) = values.next()? {
            let record = self.order.record(key, value, &mut self.scratch);
            if self.lines {
                out.line(record);
            } else {
                out.record(record);
            }
            if self.unique {
                break;
            }
        }
        Ok(())
    }

    /// Nothing is kept between keys.
    fn save(&self) -> Option<Vec<u8>> {
        Some(Vec::new())
    }
}
