//! `sort`: the records of the input in order; the concatenation of the parts is sorted.

mod arguments;
mod byte_range;
mod number;
mod order;
#[cfg(test)]
mod tests;

pub use arguments::Sort;
pub use byte_range::{ByteRange, ByteRangeError};
use gristmill_worker::prelude::*;
pub use number::push_number;
pub(crate) use order::{KeyBuffers, RecordOrder};

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

    fn groups_are_independent(&self) -> bool {
        true
    }
}
