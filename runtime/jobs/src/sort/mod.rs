//! `sort`: the records of the input in order; the concatenation of the parts is sorted.

mod number;
mod order;
#[cfg(test)]
mod tests;

use super::delimiter::parse_delimiter;
use gristmill_worker::prelude::*;
pub use number::push_number;
pub use order::{ByteRange, ByteRangeError};
pub(crate) use order::{KeyBuffers, RecordOrder};
use serde::{Deserialize, Serialize};

/// Sorts lines or records of fixed length
///
/// The concatenation of the parts equals the output of `LC_ALL=C sort` with the matching flags. Records with equal keys
/// are in the order of their bytes, or with --stable in that of the input.
#[derive(clap::Args, Serialize, Deserialize, Clone, Debug)]
pub struct Sort {
    /// Files, or directories of them
    #[arg(required = true, value_name = "INPUT")]
    pub inputs: Vec<String>,
    /// Records of exactly this many bytes instead of lines
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub record_length: Option<u32>,
    /// Use bytes A to B of the record as key, counted from 0, without byte B; without B, to the end
    #[arg(long, value_name = "A..B", conflicts_with = "field")]
    pub key_bytes: Option<ByteRange>,
    /// Use field N of the line as key, counted from 1; empty if there are fewer
    #[arg(long, value_name = "N", conflicts_with = "record_length",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub field: Option<u32>,
    /// Field delimiter; a tab by default
    #[arg(long, value_name = "CHAR", requires = "field", value_parser = parse_delimiter)]
    pub delimiter: Option<u8>,
    /// Treat keys as decimal numbers of any length, such as -12.50; a key without a number counts as 0
    #[arg(long)]
    pub numeric: bool,
    /// Sort in descending order
    #[arg(short, long)]
    pub reverse: bool,
    /// Keep only the first record of the input for each key
    #[arg(short, long)]
    pub unique: bool,
    /// Keep records with equal keys in the order of the input
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

    /// No state is kept between keys.
    fn save(&self) -> Option<Vec<u8>> {
        Some(Vec::new())
    }
}
