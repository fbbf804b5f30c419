//! The columns of a batch of rows as text.

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, FixedSizeBinaryArray, GenericByteArray, StringViewArray, make_array,
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType};
use std::io::Write;

/// How all but text and bytes are written: numbers in full, dates and times as in ISO 8601, lists and structures in brackets.
const FORMAT: FormatOptions<'static> = FormatOptions::new().with_display_error(false);

/// A column as it is to be written. Moments are in UTC, whatever zone they are to be shown in: the tables of all zones would
/// cost each process of the program more at its start than all else that reads such files.
pub(super) fn as_written(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match column.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            let utc = DataType::Timestamp(*unit, Some("+00:00".into()));
            Ok(make_array(column.to_data().into_builder().data_type(utc).build()?))
        }
        _ => Ok(column.clone()),
    }
}

/// A column of a batch.
pub(super) enum Cells<'a> {
    Text(&'a GenericByteArray<Utf8Type>),
    LargeText(&'a GenericByteArray<LargeUtf8Type>),
    TextView(&'a StringViewArray),
    Bytes(&'a GenericByteArray<BinaryType>),
    LargeBytes(&'a GenericByteArray<LargeBinaryType>),
    BytesView(&'a BinaryViewArray),
    FixedBytes(&'a FixedSizeBinaryArray),
    Other(&'a dyn Array, ArrayFormatter<'a>),
}

impl<'a> Cells<'a> {
    pub fn new(array: &'a dyn Array) -> Result<Self, ArrowError> {
        Ok(match array.data_type() {
            DataType::Utf8 => Self::Text(array.as_bytes()),
            DataType::LargeUtf8 => Self::LargeText(array.as_bytes()),
            DataType::Utf8View => Self::TextView(array.as_string_view()),
            DataType::Binary => Self::Bytes(array.as_bytes()),
            DataType::LargeBinary => Self::LargeBytes(array.as_bytes()),
            DataType::BinaryView => Self::BytesView(array.as_binary_view()),
            DataType::FixedSizeBinary(_) => Self::FixedBytes(array.as_fixed_size_binary()),
            _ => Self::Other(array, ArrayFormatter::try_new(array, &FORMAT)?),
        })
    }

    /// Hands the text of a row to `take`; `scratch` is room for what has to be written first. A null is empty.
    pub fn with<T>(
        &self,
        row: usize,
        scratch: &mut Vec<u8>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, ArrowError> {
        fn valid<'b>(array: &dyn Array, row: usize, value: impl FnOnce() -> &'b [u8]) -> &'b [u8] {
            if array.is_null(row) { &[] } else { value() }
        }
        let text = match self {
            Self::Text(array) => valid(array, row, || array.value(row).as_bytes()),
            Self::LargeText(array) => valid(array, row, || array.value(row).as_bytes()),
            Self::TextView(array) => valid(array, row, || array.value(row).as_bytes()),
            Self::Bytes(array) => valid(array, row, || array.value(row)),
            Self::LargeBytes(array) => valid(array, row, || array.value(row)),
            Self::BytesView(array) => valid(array, row, || array.value(row)),
            Self::FixedBytes(array) => valid(array, row, || array.value(row)),
            Self::Other(array, formatter) => {
                scratch.clear();
                if !array.is_null(row) {
                    write!(scratch, "{}", formatter.value(row)).map_err(|error| {
                        ArrowError::CastError(format!(
                            "row {row} of a batch cannot be written as text: {error}"
                        ))
                    })?;
                }
                scratch
            }
        };
        Ok(take(text))
    }
}
