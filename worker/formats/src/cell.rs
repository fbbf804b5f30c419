//! Formats the values of a column of a Parquet or Arrow file as text, row by row. Null is empty, timestamps are in UTC,
//! and a value without a text form is an error.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryType, Int16Type, Int32Type, Int64Type, LargeBinaryType, LargeUtf8Type, RunEndIndexType, Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, FixedSizeBinaryArray, GenericByteArray, StringViewArray,
    downcast_integer_array, make_array,
};
use arrow_buffer::ArrowNativeType;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, FieldRef};
use std::sync::Arc;

/// Format of all but text and bytes: numbers in full, dates and times as in ISO 8601, lists and
/// structures in brackets.
const FORMAT: FormatOptions<'static> = FormatOptions::new().with_display_error(false);

/// Time zone in which timestamps are written.
const UTC: &str = "+00:00";

/// Returns a column as it is written. Timestamps are in UTC, including those within lists and structures,
/// whatever their display zone. The tables of all time zones would cost each process more at its start
/// than everything else that reads such files.
pub(crate) fn as_written(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let Some(kind) = in_utc(column.data_type()) else { return Ok(column.clone()) };
    let data = column.to_data();
    let inner = |inner| Ok(as_written(&make_array(inner))?.to_data());
    let within: Result<_, ArrowError> = data.child_data().iter().cloned().map(inner).collect();
    Ok(make_array(data.into_builder().data_type(kind).child_data(within?).build()?))
}

/// Returns the same type with its timestamps in UTC; `None` if it is that already.
fn in_utc(kind: &DataType) -> Option<DataType> {
    let field = |field: &FieldRef| {
        let kind = in_utc(field.data_type())?;
        Some(Arc::new(field.as_ref().clone().with_data_type(kind)))
    };
    Some(match kind {
        DataType::Timestamp(unit, Some(zone)) if &**zone != UTC => {
            DataType::Timestamp(*unit, Some(UTC.into()))
        }
        DataType::List(items) => DataType::List(field(items)?),
        DataType::LargeList(items) => DataType::LargeList(field(items)?),
        DataType::ListView(items) => DataType::ListView(field(items)?),
        DataType::LargeListView(items) => DataType::LargeListView(field(items)?),
        DataType::FixedSizeList(items, count) => DataType::FixedSizeList(field(items)?, *count),
        DataType::Map(entries, sorted) => DataType::Map(field(entries)?, *sorted),
        DataType::Dictionary(keys, values) => DataType::Dictionary(keys.clone(), Box::new(in_utc(values)?)),
        DataType::RunEndEncoded(ends, values) => DataType::RunEndEncoded(ends.clone(), field(values)?),
        DataType::Struct(fields) if fields.iter().any(|inner| field(inner).is_some()) => DataType::Struct(
            fields.iter().map(|inner| field(inner).unwrap_or_else(|| inner.clone())).collect(),
        ),
        DataType::Union(fields, mode) if fields.iter().any(|(_, inner)| field(inner).is_some()) => {
            let new = |(id, inner): (i8, &FieldRef)| (id, field(inner).unwrap_or_else(|| inner.clone()));
            DataType::Union(fields.iter().map(new).collect(), *mode)
        }
        _ => return None,
    })
}

/// Index of the value of a row among values shared by several rows.
type PlaceOf<'a> = Box<dyn Fn(usize) -> usize + 'a>;

/// Returns the values of a column that are shared by several rows, and the index of each row's value.
fn shared<'a>(array: &'a dyn Array) -> Option<(&'a ArrayRef, PlaceOf<'a>)> {
    fn run<T: RunEndIndexType>(array: &dyn Array) -> Option<(&ArrayRef, PlaceOf<'_>)> {
        let runs = array.as_run_opt::<T>()?;
        Some((runs.values(), Box::new(|row| runs.get_physical_index(row))))
    }
    if let Some(coded) = array.as_any_dictionary_opt() {
        let keys = coded.keys();
        let place: PlaceOf<'a> = downcast_integer_array!(
            keys => Box::new(move |row| keys.value(row).as_usize()),
            _ => return None,
        );
        return Some((coded.values(), place));
    }
    run::<Int16Type>(array).or_else(|| run::<Int32Type>(array)).or_else(|| run::<Int64Type>(array))
}

/// Number of bytes of a UUID.
const UUID_BYTES: i32 = 16;

/// Writes the bytes of a UUID as hexadecimal digits with dashes.
fn write_uuid(out: &mut String, bytes: &[u8]) {
    use std::fmt::Write as _;
    for (place, byte) in bytes.iter().enumerate() {
        let dash = if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" };
        let _ = write!(out, "{dash}{byte:02x}");
    }
}

/// Column of a batch.
pub(crate) enum Cells<'a> {
    Text(&'a GenericByteArray<Utf8Type>),
    LargeText(&'a GenericByteArray<LargeUtf8Type>),
    TextView(&'a StringViewArray),
    Bytes(&'a GenericByteArray<BinaryType>),
    LargeBytes(&'a GenericByteArray<LargeBinaryType>),
    BytesView(&'a BinaryViewArray),
    FixedBytes(&'a FixedSizeBinaryArray),
    Uuid(&'a FixedSizeBinaryArray),
    /// Values shared by several rows, and the index of each row's value.
    Shared(&'a dyn Array, PlaceOf<'a>, Box<Cells<'a>>),
    Other(&'a dyn Array, ArrayFormatter<'a>),
}

impl<'a> Cells<'a> {
    /// Creates the cells of a column. Its values may be UUIDs if they have the right length.
    pub fn new(array: &'a dyn Array, is_uuid: bool) -> Result<Self, ArrowError> {
        if let Some((values, place)) = shared(array) {
            return Ok(Self::Shared(array, place, Box::new(Self::new(values.as_ref(), is_uuid)?)));
        }
        Ok(match array.data_type() {
            DataType::Utf8 => Self::Text(array.as_bytes()),
            DataType::LargeUtf8 => Self::LargeText(array.as_bytes()),
            DataType::Utf8View => Self::TextView(array.as_string_view()),
            DataType::Binary => Self::Bytes(array.as_bytes()),
            DataType::LargeBinary => Self::LargeBytes(array.as_bytes()),
            DataType::BinaryView => Self::BytesView(array.as_binary_view()),
            DataType::FixedSizeBinary(UUID_BYTES) if is_uuid => Self::Uuid(array.as_fixed_size_binary()),
            DataType::FixedSizeBinary(_) => Self::FixedBytes(array.as_fixed_size_binary()),
            _ => Self::Other(array, ArrayFormatter::try_new(array, &FORMAT)?),
        })
    }

    /// Passes the text of a row to `take`, using `scratch` for text that must be formatted first. A null
    /// is empty.
    ///
    /// # Errors
    /// A value without a text form, such as a day outside of the calendar.
    pub fn with<T>(
        &self,
        row: usize,
        scratch: &mut String,
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
            Self::Shared(array, _, _) if array.is_null(row) => &[],
            Self::Shared(_, place, values) => return values.with(place(row), scratch, take),
            Self::Uuid(array) => {
                scratch.clear();
                if array.is_valid(row) {
                    write_uuid(scratch, array.value(row));
                }
                scratch.as_bytes()
            }
            Self::Other(array, formatter) => {
                scratch.clear();
                if !array.is_null(row) {
                    // `Display` does not report why there is no text.
                    formatter.value(row).write(scratch)?;
                }
                scratch.as_bytes()
            }
        };
        Ok(take(text))
    }
}
