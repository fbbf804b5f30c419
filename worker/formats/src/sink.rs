//! Collects lines into batches of rows and writes them with the crates of Apache Arrow.

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::Compression;
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use arrow_array::builder::{Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use gristmill_worker::input::TableKind;
use gristmill_worker::output::{ColumnKind, NoRow, OutputColumn, RowLayout, RowSeparator, Stored, TableSink};
use gristmill_worker::text::csv_fields;
use memchr::memchr;
use std::io::{self, Write};
use std::sync::Arc;

/// Rows of a batch, and the bytes of text that end one earlier.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 1 << 20;

/// Maximum bytes of a row. It limits a line with a quote that is never closed.
const ROW_BYTES_MAX: usize = 64 << 20;

/// Bytes of a row group of Parquet, encoded: the minimum that a later map reads.
const GROUP_BYTES: usize = 16 << 20;

/// Starts a file of a table.
pub(crate) fn open(kind: TableKind, layout: &RowLayout, stored: Stored) -> io::Result<Box<dyn TableSink>> {
    Ok(Box::new(RowSink::new(kind, layout, stored)?))
}

/// Writes lines as rows.
struct RowSink {
    kind: TableKind,
    separator: RowSeparator,
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    /// Start of an incomplete line.
    begun: Vec<u8>,
    /// Number of complete lines.
    lines: u64,
    rows: usize,
    bytes: usize,
    writer: TableWriter,
}

enum ColumnBuilder {
    Text(StringBuilder),
    Integer(Int64Builder),
}

enum TableWriter {
    Parquet(Box<ArrowWriter<Stored>>),
    Arrow(Box<FileWriter<Stored>>),
}

impl TableSink for RowSink {
    fn stored(&self) -> (u64, u32) {
        match &self.writer {
            TableWriter::Parquet(writer) => writer.inner().sum(),
            TableWriter::Arrow(writer) => writer.get_ref().sum(),
        }
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            if self.begun.is_empty() {
                self.row(line)?;
            } else {
                self.begun.extend_from_slice(line);
                let begun = std::mem::take(&mut self.begun);
                // Within quotes of CSV a line continues.
                if self.is_open(&begun) {
                    self.begun = begun;
                    self.begun.push(b'\n');
                } else {
                    self.row(&begun)?;
                }
            }
        }
        self.begun.extend_from_slice(bytes);
        if ROW_BYTES_MAX < self.begun.len() {
            return Err(self.no_row(format!("it has more than {ROW_BYTES_MAX} bytes")));
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.begun.is_empty() {
            let begun = std::mem::take(&mut self.begun);
            self.row(&begun)?;
            if !self.begun.is_empty() {
                return Err(self.no_row("its last field has a quote that is not closed".to_owned()));
            }
        }
        self.write_batch()?;
        match &mut self.writer {
            TableWriter::Parquet(writer) => {
                writer.finish().map_err(parquet_failed)?;
                writer.inner_mut().flush()
            }
            TableWriter::Arrow(writer) => {
                writer.finish().map_err(arrow_failed)?;
                writer.get_mut().flush()
            }
        }
    }
}

impl RowSink {
    fn new(kind: TableKind, layout: &RowLayout, stored: Stored) -> io::Result<Self> {
        let field = |column: &OutputColumn| {
            let data = match column.kind {
                ColumnKind::Text => DataType::Utf8,
                ColumnKind::Integer => DataType::Int64,
            };
            Field::new(&column.name, data, false)
        };
        let schema = Arc::new(Schema::new(layout.columns.iter().map(field).collect::<Vec<_>>()));
        let builder = |column: &OutputColumn| match column.kind {
            ColumnKind::Text => ColumnBuilder::Text(StringBuilder::new()),
            ColumnKind::Integer => ColumnBuilder::Integer(Int64Builder::new()),
        };
        let writer = match kind {
            TableKind::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_created_by("gristmill".to_owned())
                    .build();
                let writer = ArrowWriter::try_new(stored, schema.clone(), Some(properties));
                TableWriter::Parquet(Box::new(writer.map_err(parquet_failed)?))
            }
            TableKind::Arrow => {
                TableWriter::Arrow(Box::new(FileWriter::try_new(stored, &schema).map_err(arrow_failed)?))
            }
        };
        let columns = layout.columns.iter().map(builder).collect();
        let (separator, begun) = (layout.separator, Vec::new());
        Ok(Self { kind, separator, schema, columns, begun, lines: 0, rows: 0, bytes: 0, writer })
    }

    /// Returns the error for the line after the complete ones.
    fn no_row(&self, why: String) -> io::Error {
        let no_row = NoRow { line: self.lines + 1, kind: self.kind, why };
        io::Error::new(io::ErrorKind::InvalidData, no_row)
    }

    fn is_open(&self, line: &[u8]) -> bool {
        matches!(self.separator, RowSeparator::Csv(_)) && memchr::memchr_iter(b'"', line).count() % 2 == 1
    }

    fn row(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_open(line) {
            self.begun.extend_from_slice(line);
            self.begun.push(b'\n');
            return Ok(());
        }
        let columns = self.columns.len();
        let mut put = 0;
        let mut field = |field: &[u8]| {
            let column =
                self.columns.get_mut(put).ok_or_else(|| format!("it has more than {columns} fields"))?;
            put += 1;
            column.put(field)
        };
        let done = match self.separator {
            RowSeparator::Tab => line.splitn(columns.max(1), |byte| *byte == b'\t').try_for_each(&mut field),
            RowSeparator::Csv(delimiter) => csv_fields(line, delimiter).try_for_each(|text| field(&text)),
        };
        let done = done.and_then(|()| match put {
            _ if put == columns => Ok(()),
            _ => Err(format!("it has {put} fields, and not {columns}")),
        });
        done.map_err(|why| self.no_row(why))?;
        self.lines += 1;
        self.rows += 1;
        self.bytes += line.len();
        if BATCH_ROWS <= self.rows || BATCH_BYTES <= self.bytes {
            self.write_batch()?;
        }
        Ok(())
    }

    fn write_batch(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns: Vec<ArrayRef> = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), columns).map_err(arrow_failed)?;
        (self.rows, self.bytes) = (0, 0);
        match &mut self.writer {
            TableWriter::Parquet(writer) => {
                writer.write(&batch).map_err(parquet_failed)?;
                if GROUP_BYTES <= writer.in_progress_size() {
                    writer.flush().map_err(parquet_failed)?;
                }
                Ok(())
            }
            TableWriter::Arrow(writer) => writer.write(&batch).map_err(arrow_failed),
        }
    }
}

impl ColumnBuilder {
    fn put(&mut self, field: &[u8]) -> Result<(), String> {
        let shown = || String::from_utf8_lossy(&field[..field.len().min(40)]).escape_debug().to_string();
        match self {
            Self::Text(builder) => {
                let text = str::from_utf8(field).map_err(|_| format!("`{}` is not UTF-8", shown()))?;
                builder.append_value(text);
            }
            Self::Integer(builder) => {
                let number = str::from_utf8(field).ok().and_then(|text| text.parse().ok());
                builder.append_value(
                    number.ok_or_else(|| format!("`{}` is no whole number of 64 bits", shown()))?,
                );
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(builder) => Arc::new(builder.finish()),
            Self::Integer(builder) => Arc::new(builder.finish()),
        }
    }
}

/// Converts an error of the crate, and unwraps an error of writing the file.
fn parquet_failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

fn arrow_failed(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_worker::input::list::LocalListing;
    use gristmill_worker::input::plan::{SplitRules, plan_splits};
    use gristmill_worker::input::{Blocks, Input, InputLimits, LocalFiles, RecordFormat, open_split};
    use proptest::prelude::*;
    use std::fs::File;

    const KINDS: [(TableKind, &str); 2] = [(TableKind::Parquet, "t.parquet"), (TableKind::Arrow, "t.arrow")];

    /// Writes this text in pieces of this many bytes. Returns the sum of the part, and the rows read back
    /// from its file.
    fn written(
        kind: TableKind,
        layout: &RowLayout,
        text: &[u8],
        step: usize,
        format: RecordFormat,
    ) -> io::Result<(Vec<u8>, Vec<u8>)> {
        crate::plug_in();
        let directory = tempfile::tempdir().unwrap();
        let (_, name) = KINDS.into_iter().find(|(other, _)| *other == kind).unwrap();
        let path = directory.path().join(name);
        let file = Box::new(File::create(&path).unwrap());
        let mut out = open(kind, layout, Stored::new(file))?;
        text.chunks(step).try_for_each(|piece| out.write_all(piece))?;
        out.finish()?;
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(out.stored(), (bytes.len() as u64, crc32c::crc32c(&bytes)));
        let mut read = Vec::new();
        let input = Input { format, ..Input::lines([path.to_str().unwrap()]) };
        for split in plan_splits(&[input], &LocalListing, SplitRules::default()).unwrap() {
            let limits = InputLimits::default();
            let mut blocks = open_split(&split, &LocalFiles, &limits);
            while let Some(block) = blocks.next_block().unwrap() {
                read.extend_from_slice(block.bytes());
            }
        }
        Ok((bytes, read))
    }

    fn words() -> RowLayout {
        RowLayout::tabs([("word", ColumnKind::Text), ("count", ColumnKind::Integer)])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn lines_are_rows_that_are_read_back_however_they_came(
            rows in prop::collection::vec(("[a-zé ]{0,9}", any::<i64>()), 0..300), step in 1_usize..500,
        ) {
            let text: String = rows.iter().map(|(word, count)| format!("{word}\t{count}\n")).collect();
            for (kind, _) in KINDS {
                let (bytes, read) = written(kind, &words(), text.as_bytes(), step, RecordFormat::Lines).unwrap();
                prop_assert_eq!(String::from_utf8(read).unwrap(), text.clone());
                let again = written(kind, &words(), text.as_bytes(), text.len().max(1), RecordFormat::Lines).unwrap();
                prop_assert_eq!(bytes, again.0, "the same lines give the same file");
            }
        }

        #[test]
        fn rows_of_csv_are_taken_apart_and_put_together(
            rows in prop::collection::vec(prop::collection::vec("[a\",\n\t]{0,5}", 3), 0..60), step in 1_usize..50,
        ) {
            let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
            writer.write_record(["x", "y", "x_2"]).unwrap();
            rows.iter().for_each(|row| writer.write_record(row).unwrap());
            let whole = writer.into_inner().unwrap();
            let text = &whole[b"x,y,x_2\n".len()..];
            let layout = RowLayout::csv(b',', ["x", "y", "x"]);
            let format = RecordFormat::Csv { delimiter: b',', header: true };
            for (kind, _) in KINDS {
                let (_, read) = written(kind, &layout, text, step, format).unwrap();
                let fields = |text: &[u8]| -> Vec<csv::StringRecord> {
                    csv::ReaderBuilder::new().has_headers(false).from_reader(text).records().map(Result::unwrap).collect()
                };
                prop_assert_eq!(fields(&read), fields(text));
            }
        }
    }

    #[test]
    fn many_rows_make_several_batches_and_row_groups() {
        let text: String =
            (0..40_000_u64).map(|n| format!("{:x}\t{n}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        for (kind, _) in KINDS {
            let (_, read) = written(kind, &words(), text.as_bytes(), 5000, RecordFormat::Lines).unwrap();
            assert!(read == text.as_bytes(), "{kind}");
        }
    }

    #[test]
    fn line_that_is_no_row_is_the_jobs_fault_and_named() {
        for (text, why) in [
            (
                "a\t1\nb\n",
                "line 2 of the part cannot be a row of its Parquet file: it has 1 fields, and not 2",
            ),
            ("a\tx\n", "`x` is no whole number of 64 bits"),
            ("a\t9223372036854775808\n", "is no whole number"),
            ("last", "line 1 of the part"),
        ] {
            let refused =
                written(TableKind::Parquet, &words(), text.as_bytes(), 3, RecordFormat::Lines).unwrap_err();
            assert!(refused.get_ref().unwrap().is::<NoRow>(), "{refused:?}");
            assert!(refused.to_string().contains(why), "{text:?}: {refused}");
        }
        let refused = written(TableKind::Arrow, &words(), b"\xff\t1\n", 3, RecordFormat::Lines).unwrap_err();
        assert!(refused.to_string().contains("is not UTF-8"), "{refused}");
        let layout = RowLayout::csv(b',', ["x", "y"]);
        for (text, why) in [("1,2,3\n", "more than 2 fields"), ("1,\"2\n", "a quote that is not closed")] {
            let refused =
                written(TableKind::Arrow, &layout, text.as_bytes(), 3, RecordFormat::Lines).unwrap_err();
            assert!(refused.to_string().contains(why), "{refused}");
        }
    }
}
