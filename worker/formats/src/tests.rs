//! Tests of Parquet and Arrow files as inputs and outputs: cuts, rows as text, columns, and damaged files.

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression as Codec, ZstdLevel};
use ::parquet::data_type::{FixedLenByteArray, FixedLenByteArrayType};
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use arrow_array::{
    Array as _, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Float64Array,
    Int32Array, Int64Array, ListArray, RecordBatch, RecordBatchOptions, RunArray, StringArray, StructArray,
    TimestampSecondArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::writer::FileWriter;
use arrow_schema::DataType::{self, Binary, Int32, UInt8};
use arrow_schema::{Field, Schema};
use gristmill_worker::error_text;
use gristmill_worker::input::list::LocalListing;
use gristmill_worker::input::plan::{SplitRules, first_records, plan_splits};
use gristmill_worker::input::{
    Blocks, ByteSource, FileAccess, Input, InputError, InputLimits, LocalFiles, Piece, RecordFormat, Split,
    open_split,
};
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// A record as it came out: where it began and what it held.
type Seen = (u64, Vec<u8>);

/// A directory with files in it.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), bytes).unwrap();
        self.text(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }
}

fn input(paths: &[String], format: RecordFormat) -> Input {
    Input { paths: paths.to_vec(), format, columns: Vec::new(), bare_tasks: 0, steps: 0 }
}

fn plan(input: &Input, split_bytes: u64) -> Result<Vec<Split>, InputError> {
    crate::plug_in();
    plan_splits(
        std::slice::from_ref(input),
        &LocalListing,
        SplitRules { split_bytes, ..SplitRules::default() },
    )
}

/// Serves the files of this machine as if they were another's.
struct AsRemote;

impl FileAccess for AsRemote {
    fn open(&self, piece: &Piece) -> Result<Box<dyn ByteSource>, InputError> {
        Ok(Box::new(Ranges(std::fs::read(piece.path.to_path()).unwrap())))
    }
}

struct Ranges(Vec<u8>);

impl ByteSource for Ranges {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), InputError> {
        buffer.copy_from_slice(&self.0[offset as usize..][..buffer.len()]);
        Ok(())
    }
}

/// Limits under which even small files need several blocks.
fn limits(block_bytes: usize) -> InputLimits {
    InputLimits { block_bytes, ..InputLimits::default() }
}

/// The records of these splits, one after another.
fn read(splits: &[Split], access: &dyn FileAccess, limits: &InputLimits) -> Result<Vec<Seen>, InputError> {
    let mut seen = Vec::new();
    for split in splits {
        let mut blocks = open_split(split, access, limits);
        while let Some(block) = blocks.next_block()? {
            assert!(!block.bytes().is_empty(), "an empty block at {}", block.offset());
            seen.extend(block.records().map(|record| (record.offset(), record.bytes().to_vec())));
        }
    }
    Ok(seen)
}

const CSV: RecordFormat = RecordFormat::Csv { delimiter: b',', header: true };

/// Row: a number, a text that may be missing, bytes.
type Row = (i64, Option<String>, Vec<u8>);

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        ("number", Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>())),
        ("text, or not", Arc::new(rows.iter().map(|row| row.1.clone()).collect::<StringArray>())),
        ("bytes", Arc::new(rows.iter().map(|row| Some(&row.2)).collect::<BinaryArray>())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

fn parquet(batch: &RecordBatch, codec: Codec, group_rows: usize) -> Vec<u8> {
    let properties =
        WriterProperties::builder().set_compression(codec).set_max_row_group_row_count(Some(group_rows));
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties.build())).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

fn arrow(batch: &RecordBatch, batch_rows: usize) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    for from in (0..batch.num_rows()).step_by(batch_rows) {
        writer.write(&batch.slice(from, batch_rows.min(batch.num_rows() - from))).unwrap();
    }
    writer.into_inner().unwrap()
}

/// Returns both kinds of files with these rows.
fn files(rows: &[Row], group_rows: usize) -> [(&'static str, Vec<u8>); 3] {
    let batch = batch(rows);
    [
        ("t.parquet", parquet(&batch, Codec::ZSTD(ZstdLevel::default()), group_rows)),
        ("t.PARQUET", parquet(&batch, Codec::UNCOMPRESSED, group_rows)),
        ("t.arrow", arrow(&batch, group_rows)),
    ]
}

fn lines_of(
    path: &str,
    columns: &[&str],
    split_bytes: u64,
    block_bytes: usize,
) -> Result<Vec<u8>, InputError> {
    let splits = plan(&Input::lines([path]).with_columns(columns.iter().copied()), split_bytes)?;
    let (limits, mut text) = (limits(block_bytes), Vec::new());
    let here = read(&splits, &LocalFiles, &limits)?;
    assert_eq!(here, read(&splits, &AsRemote, &limits)?);
    assert!(here.is_sorted_by(|one, next| one.0 < next.0), "rows lie in their order");
    for (_, line) in here {
        text.extend_from_slice(&line);
        text.push(b'\n');
    }
    Ok(text)
}

fn escaped(text: &[u8]) -> Vec<u8> {
    let escape = |byte: &u8| match byte {
        b'\\' => b"\\\\".to_vec(),
        b'\t' => b"\\t".to_vec(),
        b'\n' => b"\\n".to_vec(),
        b'\r' => b"\\r".to_vec(),
        other => vec![*other],
    };
    text.iter().flat_map(escape).collect()
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let text = prop::option::of("[a-c\\\\\t\r\n\", é]{0,6}");
    prop::collection::vec((any::<i64>(), text, prop::collection::vec(any::<u8>(), 0..4)), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_of_a_table_are_lines_with_tabs_however_it_is_cut(
        rows in rows(), group_rows in 1_usize..20, split_bytes in 40_u64..20_000, block_bytes in 1_usize..300,
    ) {
        let directory = Files::new();
        let mut expected = Vec::new();
        for (number, text, bytes) in &rows {
            let text = text.as_deref().unwrap_or("");
            expected.extend(escaped(bytes));
            expected.extend(format!("\t{number}\t").bytes());
            expected.extend(escaped(text.as_bytes()));
            expected.push(b'\n');
        }
        for (name, bytes) in files(&rows, group_rows) {
            let path = directory.write(name, bytes);
            let seen = lines_of(&path, &["bytes", "number", "text, or not"], split_bytes, block_bytes).unwrap();
            prop_assert_eq!(&seen, &expected, "{}", name);
        }
    }

    #[test]
    fn table_is_the_csv_with_a_header_that_it_stands_for(
        rows in rows(), group_rows in 1_usize..20, split_bytes in 40_u64..20_000,
    ) {
        let directory = Files::new();
        for (name, bytes) in files(&rows, group_rows) {
            let path = directory.write(name, bytes);
            let input = input(&[path], CSV);
            crate::plug_in();
            let first = first_records(&input, &LocalListing, &LocalFiles, &limits(64)).unwrap();
            prop_assert_eq!(first[0].bytes.as_slice(), b"number,\"text, or not\",bytes".as_slice());
            let splits = plan(&input, split_bytes).unwrap();
            let mut seen = Vec::new();
            for (_, row) in read(&splits, &LocalFiles, &limits(64)).unwrap() {
                let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(row.as_slice());
                let fields = reader.byte_records().next().unwrap().unwrap();
                let field = |place: usize| fields[place].to_vec();
                seen.push((field(0), field(1), field(2)));
            }
            let expected: Vec<_> = rows.iter().map(|(number, text, bytes)| {
                (number.to_string().into_bytes(), text.clone().unwrap_or_default().into_bytes(), bytes.clone())
            }).collect();
            prop_assert_eq!(seen, expected, "{}", name);
        }
    }
}

#[test]
fn only_column_that_is_read_is_taken_as_it_is() {
    let directory = Files::new();
    let rows = [
        (1, Some("two\nlines\t\\".to_owned()), vec![]),
        (2, None, vec![]),
        (3, Some("é".to_owned()), vec![]),
    ];
    for (name, bytes) in files(&rows, 2) {
        let path = directory.write(name, bytes);
        let seen = lines_of(&path, &["text, or not"], 1000, 64).unwrap();
        assert_eq!(seen, "two\nlines\t\\\n\né\n".as_bytes(), "{name}");
        let twice = lines_of(&path, &["number", "number"], 1000, 64).unwrap();
        assert_eq!(twice, b"1\t1\n2\t2\n3\t3\n", "{name}");
    }
}

#[test]
fn numbers_truth_and_moments_are_written_in_full() {
    let moments = TimestampSecondArray::from(vec![0, 1_600_000_000, 1, 2]).with_timezone("Europe/Berlin");
    let columns: [(&str, ArrayRef); 3] = [
        ("x", Arc::new(Float64Array::from(vec![0.1, -2.0, 1e300, f64::NAN]))),
        ("ok", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]))),
        ("at", Arc::new(moments)),
    ];
    let directory = Files::new();
    let path = directory.write("t.arrow", arrow(&RecordBatch::try_from_iter(columns).unwrap(), 3));
    let seen = lines_of(&path, &[], 1000, 64).unwrap();
    assert_eq!(
        String::from_utf8(seen).unwrap(),
        [
            "0.1\ttrue\t1970-01-01T00:00:00Z\n-2.0\t\t2020-09-13T12:26:40Z\n",
            "1e300\tfalse\t1970-01-01T00:00:01Z\nNaN\ttrue\t1970-01-01T00:00:02Z\n",
        ]
        .concat()
    );
}

#[test]
fn moments_of_named_zones_are_written_in_utc_within_lists_and_structures_too() {
    let moments = |count| TimestampSecondArray::from_iter_values(0..count).with_timezone("Europe/Berlin");
    let kind = moments(1).data_type().clone();
    let field = Arc::new(Field::new("at", kind, true));
    let within: ArrayRef = Arc::new(moments(2));
    let keys = Int32Array::from(vec![1, 0]);
    let columns: [(&str, ArrayRef); 4] = [
        (
            "lists",
            Arc::new(ListArray::new(
                field.clone(),
                OffsetBuffer::from_lengths([2, 1]),
                Arc::new(moments(3)),
                None,
            )),
        ),
        ("structures", Arc::new(StructArray::from(vec![(field, within.clone())]))),
        ("coded", Arc::new(DictionaryArray::new(keys, within.clone()))),
        ("bare", within),
    ];
    let table = RecordBatch::try_from_iter(columns).unwrap();
    let directory = Files::new();
    for (name, bytes) in
        [("t.arrow", arrow(&table, 2)), ("t.parquet", parquet(&table, Codec::UNCOMPRESSED, 9))]
    {
        let seen = lines_of(&directory.write(name, bytes), &[], 1000, 64).unwrap();
        let moment = |second| format!("1970-01-01T00:00:0{second}Z");
        let row = |list: &str, structure, coded, bare| {
            format!("[{list}]\t{{at: {}}}\t{}\t{}\n", moment(structure), moment(coded), moment(bare))
        };
        let first = row(&format!("{}, {}", moment(0), moment(1)), 0, 1, 0);
        assert_eq!(String::from_utf8(seen).unwrap(), first + &row(&moment(2), 1, 0, 1), "{name}");
    }
}

#[test]
fn value_without_a_text_is_named_by_column_and_row() {
    let columns: [(&str, ArrayRef); 2] = [
        ("number", Arc::new((0..5).collect::<Int64Array>())),
        ("at", Arc::new(TimestampSecondArray::from(vec![0, 0, 0, i64::MAX, 0]))),
    ];
    let table = RecordBatch::try_from_iter(columns).unwrap();
    let directory = Files::new();
    for (name, bytes) in
        [("t.arrow", arrow(&table, 2)), ("t.parquet", parquet(&table, Codec::UNCOMPRESSED, 2))]
    {
        let path = directory.write(name, bytes);
        let error = lines_of(&path, &[], 1000, 64).unwrap_err();
        assert!(error.is_input_fault());
        let (said, why) = (error.to_string(), std::error::Error::source(&error).unwrap().to_string());
        assert!(said.contains("row 4 of column `at`") && said.contains(name), "{said}");
        assert!(why.contains("9223372036854775807"), "{why}");
        assert_eq!(lines_of(&path, &["number"], 1000, 64).unwrap(), b"0\n1\n2\n3\n4\n");
    }
}

#[test]
fn bytes_are_the_same_text_whether_they_lie_once_for_each_row_or_for_many() {
    let values: [Option<&[u8]>; 5] =
        [Some(b"\xff\x00mill"), None, Some(b"\xff\x00mill"), Some(b"mill"), Some(b"mill")];
    let plain: ArrayRef = Arc::new(BinaryArray::from_iter(values));
    let mut columns = vec![("plain", plain.clone())];
    for (name, kind) in [("coded", Int32), ("narrowly coded", UInt8)] {
        let kind = DataType::Dictionary(Box::new(kind), Box::new(Binary));
        columns.push((name, arrow_cast::cast(&plain, &kind).unwrap()));
    }
    let fixed: ArrayRef =
        Arc::new(FixedSizeBinaryArray::try_from_iter([b"\xff\x00", b"\xff\x00", b"as"].into_iter()).unwrap());
    let runs = Int32Array::from(vec![3, 4, 5]);
    let texts = BinaryArray::from_iter([values[0], None, values[3]]);
    let none = DictionaryArray::new(
        Int32Array::from(vec![None; 5]),
        Arc::new(BinaryArray::from_iter_values([[0; 0]; 0])),
    );
    columns.push(("runs", Arc::new(RunArray::try_new(&runs, &texts).unwrap())));
    columns.push(("runs of fixed", Arc::new(RunArray::try_new(&runs, &fixed).unwrap())));
    columns.push(("none", Arc::new(none)));
    let table = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    );
    let directory = Files::new();
    let path = directory.write("t.arrow", arrow(&table.unwrap(), 5));
    let mill: &[u8] = b"\xff\x00mill\n";
    for name in ["plain", "coded", "narrowly coded"] {
        let expected = [mill, b"\n", mill, b"mill\nmill\n"].concat();
        assert_eq!(lines_of(&path, &[name], 1000, 64).unwrap(), expected, "{name}");
    }
    let expected = [mill, mill, mill, b"\nmill\n"].concat();
    assert_eq!(lines_of(&path, &["runs"], 1000, 64).unwrap(), expected);
    let expected = b"\xff\x00\n\xff\x00\n\xff\x00\n\xff\x00\nas\n";
    assert_eq!(lines_of(&path, &["runs of fixed"], 1000, 64).unwrap(), expected);
    assert_eq!(lines_of(&path, &["none"], 1000, 64).unwrap(), b"\n\n\n\n\n");
}

#[test]
fn uuids_are_written_with_dashes_and_other_bytes_as_they_are() {
    let bytes: [u8; 16] = *b"\x55\x0e\x84\x00\xe2\x9b\x41\xd4\xa7\x16\x44\x66\x55\x44\x00\x0a";
    let column =
        FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some(bytes), None].into_iter(), 16).unwrap();
    let column: ArrayRef = Arc::new(column);
    let uuid = Field::new("uuid", column.data_type().clone(), true)
        .with_metadata([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())]);
    let other = Field::new("other", column.data_type().clone(), true);
    let columns = vec![column.clone(), column.clone()];
    let table = RecordBatch::try_new(Arc::new(Schema::new(vec![other, uuid])), columns).unwrap();
    let schema = "message m { optional fixed_len_byte_array(16) other; optional fixed_len_byte_array(16) uuid (UUID); }";
    let schema = Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    while let Some(mut column) = group.next_column().unwrap() {
        let bytes = FixedLenByteArray::from(bytes.to_vec());
        column.typed::<FixedLenByteArrayType>().write_batch(&[bytes], Some(&[1, 0]), None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    let directory = Files::new();
    for (name, file) in [("t.parquet", writer.into_inner().unwrap()), ("t.arrow", arrow(&table, 2))] {
        let path = directory.write(name, file);
        let seen = lines_of(&path, &["uuid"], 1000, 64).unwrap();
        assert_eq!(seen, b"550e8400-e29b-41d4-a716-44665544000a\n\n", "{name}");
        let uuid_and_other = lines_of(&path, &["uuid", "other"], 1000, 64).unwrap();
        assert!(uuid_and_other.starts_with(b"550e8400-e29b-41d4-a716-44665544000a\t\x55\x0e"), "{name}");
    }
}

#[test]
fn row_without_columns_is_an_empty_line() {
    let options = RecordBatchOptions::new().with_row_count(Some(5));
    let table = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    let directory = Files::new();
    // Writers of Parquet omit such rows, so this is a hand-made group of five.
    let group = b"PAR1\x15\x04\x19\x1c5\x00\x18\x06schema\x15\x00\x00\x16\x0a\x19\x1c\x19\x0c\x16\x00\x16\x0a&\x00\x16\x00\x00\x00\x21\x00\x00\x00PAR1";
    for (name, bytes) in [("t.arrow", arrow(&table, 2)), ("t.parquet", group.to_vec())] {
        let path = directory.write(name, bytes);
        for split_bytes in [40, 1 << 20] {
            assert_eq!(lines_of(&path, &[], split_bytes, 64).unwrap(), b"\n\n\n\n\n", "{name}");
        }
    }
}

#[test]
fn column_is_refused_by_name_when_several_have_it() {
    let number: ArrayRef = Arc::new((0..2).collect::<Int64Array>());
    let fields = ["id", "at", "id"].map(|name| Field::new(name, number.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let table = RecordBatch::try_new(schema, vec![number.clone(), number.clone(), number]).unwrap();
    let directory = Files::new();
    for (name, bytes) in
        [("t.arrow", arrow(&table, 2)), ("t.parquet", parquet(&table, Codec::UNCOMPRESSED, 2))]
    {
        let path = directory.write(name, bytes);
        let refused = lines_of(&path, &["at", "id"], 1000, 64).unwrap_err();
        assert!(refused.to_string().contains(&format!("{name} has 2 columns `id`")), "{refused}");
        assert_eq!(lines_of(&path, &["at"], 1000, 64).unwrap(), b"0\n1\n");
        assert_eq!(lines_of(&path, &[], 1000, 64).unwrap(), b"0\t0\t0\n1\t1\t1\n");
    }
}

#[test]
fn what_cannot_be_read_as_a_table_says_why() {
    let directory = Files::new();
    let bytes = parquet(&batch(&[(1, None, vec![])]), Codec::SNAPPY, 10);
    let path = directory.write("t.parquet", &bytes);
    let said = |columns: &[&str], path: &str| lines_of(path, columns, 1000, 64).unwrap_err().to_string();
    let missing = said(&["nope"], &path);
    assert!(
        missing.contains("has no column `nope`") && missing.contains("number, text\\, or not, bytes"),
        "{missing}"
    );
    let text = directory.write("t.txt", "a\n");
    assert!(said(&["a"], &text).contains("no Parquet or Arrow file by its name"));
    let wrong = directory.write("wrong.arrow", &bytes);
    assert!(said(&[], &wrong).contains("as Arrow"));
    let without =
        plan(&input(std::slice::from_ref(&path), RecordFormat::Csv { delimiter: b',', header: false }), 1000);
    assert!(without.unwrap_err().to_string().contains("--header yes"));
    for name in ["t.parquet.gz", "t.ARROW.zst", "t.feather.bz2"] {
        let packed = said(&[], &directory.write(name, &bytes));
        assert!(packed.contains(name) && packed.contains("unpack it first"), "{packed}");
    }
    // Whole files are passed unchanged.
    let whole = plan(&input(&[path], RecordFormat::WholeFile), 1000).unwrap();
    assert_eq!(read(&whole, &LocalFiles, &limits(64)).unwrap(), [(0, bytes)]);
}

#[test]
fn transport_that_fails_is_no_fault_of_the_table() {
    struct Breaks(Vec<u8>);
    impl ByteSource for Breaks {
        fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), InputError> {
            // The end of the file is readable, most rows are not.
            if offset < self.0.len() as u64 / 2 {
                let source = "the way is gone".into();
                return Err(InputError::Remote { path: "t.parquet".into(), offset, source });
            }
            buffer.copy_from_slice(&self.0[offset as usize..][..buffer.len()]);
            Ok(())
        }
    }
    struct Far(Vec<u8>);
    impl FileAccess for Far {
        fn open(&self, _: &Piece) -> Result<Box<dyn ByteSource>, InputError> {
            Ok(Box::new(Breaks(self.0.clone())))
        }
    }
    let random = |n: u64| (0..64).map(|k| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15 + k) >> 56) as u8).collect();
    let rows: Vec<Row> = (0..1000).map(|n| (n, None, random(n as u64))).collect();
    for (name, bytes) in files(&rows, 50) {
        let directory = Files::new();
        let splits = plan(&Input::lines([directory.write(name, &bytes)]), 1 << 20).unwrap();
        let failed = read(&splits, &Far(bytes), &limits(64)).unwrap_err();
        assert!(
            matches!(failed, InputError::Remote { .. }) && !failed.is_input_fault(),
            "{name}: {failed:?}"
        );
    }
}

/// File whose page has its checksum, as pyarrow writes it with `write_page_checksum=True`; its page's bytes.
const CHECKED: &[u8] =
    b"PAR1\x15\x00\x15\x88\x04\x15\x88\x04\x15\xa7\x8f\xaf\x93\x03\x1c\x15\x18\x15\x00\x15\x06\x15\x06\
    \x1c\x00\x00\x00\x02\x00\x00\x00\x18\x01\x11\x00\x00\x00the mill of row 0\x11\x00\x00\x00the mil\
    l of row 1\x11\x00\x00\x00the mill of row 2\x11\x00\x00\x00the mill of row 3\x11\x00\x00\x00the \
    mill of row 4\x11\x00\x00\x00the mill of row 5\x11\x00\x00\x00the mill of row 6\x11\x00\x00\x00t\
    he mill of row 7\x11\x00\x00\x00the mill of row 8\x11\x00\x00\x00the mill of row 9\x12\x00\x00\
    \x00the mill of row 10\x12\x00\x00\x00the mill of row 11\x15\x04\x19,5\x00\x18\x06schema\x15\x02\
    \x00\x15\x0c%\x02\x18\x04text%\x00L\x1c\x00\x00\x00\x16\x18\x19\x1c\x19\x1c&\x00\x1c\x15\x0c\x19\
    %\x06\x00\x19\x18\x04text\x15\x00\x16\x18\x16\xbe\x04\x16\xbe\x04&\x08I\x1c\x15\x00\x15\x00\x15\
    \x02\x00<\x16\x9c\x03\x19\x06\x19&\x00\x18\x00\x00\x00\x16\xbe\x04\x16\x18&\x08\x16\xbe\x04\x00(\
    \x20parquet-cpp-arrow version 26.0.1\x19\x1c\x1c\x00\x00\x00\x8d\x00\x00\x00PAR1";
const CHECKED_PAGE: std::ops::Range<usize> = 31..291;

#[test]
fn damaged_page_of_parquet_is_an_error_when_it_has_a_checksum() {
    let directory = Files::new();
    let path = directory.write("t.parquet", CHECKED);
    let rows: String = (0..12).map(|row| format!("the mill of row {row}\n")).collect();
    assert_eq!(lines_of(&path, &[], 1000, 64).unwrap(), rows.as_bytes());
    for at in CHECKED_PAGE {
        let mut bytes = CHECKED.to_vec();
        bytes[at] ^= 1;
        directory.write("t.parquet", &bytes);
        let error = lines_of(&path, &[], 1000, 64).unwrap_err();
        assert!(matches!(error, InputError::Table { .. }) && error.is_input_fault(), "byte {at}: {error:?}");
        assert!(error.to_string().contains("t.parquet as Parquet"), "byte {at}: {error}");
    }
}

#[test]
fn compression_that_is_not_unpacked_here_is_refused() {
    let directory = Files::new();
    // The path of the column, and after it its compression.
    let field = b"\x19\x18\x04text\x15";
    let at = CHECKED.windows(field.len()).position(|bytes| bytes == field).unwrap() + field.len();
    for (number, name) in [(6, "LZO"), (8, "brotli")] {
        let mut bytes = CHECKED.to_vec();
        bytes[at] = number;
        let path = directory.write("t.parquet", &bytes);
        let error = lines_of(&path, &[], 1000, 64).unwrap_err();
        assert!(error.is_input_fault() && error_text::chain(&error).contains(name), "{error:?}");
    }
}
