//! Files of tables with some bytes changed are read or refused: nothing panics, and nothing takes more memory than the limits
//! of reading allow.
//!
//! A run prints its seed; `TABLES_SEED=N` repeats it. `GRISTMILL_SLOW_TESTS=1` goes on a hundred times as long.

use crate::counting::peak_of;
use arrow_array::builder::{FixedSizeListBuilder, Int32Builder, ListBuilder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, NullArray, RecordBatch, StringArray, StringViewArray, StructArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::{DataType, Field, Schema};
use gristmill_worker::input::list::LocalListing;
use gristmill_worker::input::plan::{SplitRules, plan_splits};
use gristmill_worker::input::{Blocks, Input, InputError, InputLimits, LocalFiles, open_split};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

/// Times that each file is changed.
const CHANGES: usize = 500;

/// Bytes that may come out of the small files of these tests.
const FLOOR: u64 = 1 << 20;

/// What reading them may take: what comes out of a block, as it lies and as text, and a batch of rows.
const HELD_BYTES_MAX: usize = 24 << 20;

const ROWS: i64 = 40;

fn random() -> ChaCha8Rng {
    let given = std::env::var("TABLES_SEED").ok().map(|seed| seed.parse().expect("TABLES_SEED is a number"));
    let seed: u64 = given.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    eprintln!("TABLES_SEED={seed}");
    ChaCha8Rng::seed_from_u64(seed)
}

fn text(row: i64) -> Option<String> {
    (row % 3 != 0).then(|| format!("mill {row}"))
}

/// Columns that lie in both kinds of files.
fn columns() -> Vec<(&'static str, ArrayRef)> {
    let mut coded = StringDictionaryBuilder::<Int32Type>::new();
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut pairs = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    for row in 0..ROWS as i32 {
        coded.append_value(["a", "b", "the mill"][row as usize % 3]);
        lists.append_value((0..row % 4).map(Some));
        pairs.values().append_slice(&[row, -row]);
        pairs.append(row % 5 != 0);
    }
    let numbers: ArrayRef = Arc::new((0..ROWS).collect::<Int64Array>());
    let texts: ArrayRef = Arc::new((0..ROWS).map(text).collect::<StringArray>());
    let nested = StructArray::try_from(vec![("x", numbers.clone()), ("y", texts.clone())]).unwrap();
    vec![
        ("number", numbers),
        ("text", texts),
        ("view", Arc::new((0..ROWS).map(text).collect::<StringViewArray>())),
        ("truth", Arc::new((0..ROWS).map(|row| Some(row % 2 == 0)).collect::<BooleanArray>())),
        ("coded", Arc::new(coded.finish())),
        ("lists", Arc::new(lists.finish())),
        ("pairs", Arc::new(pairs.finish())),
        ("nested", Arc::new(nested)),
    ]
}

fn arrow(packed: Option<CompressionType>) -> Vec<u8> {
    let mut columns = columns();
    columns.push(("nothing", Arc::new(NullArray::new(ROWS as usize))));
    let table = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    let options = IpcWriteOptions::default().try_with_compression(packed).unwrap();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &table.schema(), options).unwrap();
    writer.write(&table.slice(0, 30)).unwrap();
    writer.write(&table.slice(30, 10)).unwrap();
    writer.into_inner().unwrap()
}

fn parquet(packed: Compression, version: WriterVersion) -> Vec<u8> {
    let table = RecordBatch::try_from_iter_with_nullable(
        columns().into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    let properties = WriterProperties::builder()
        .set_compression(packed)
        .set_writer_version(version)
        .set_dictionary_enabled(version == WriterVersion::PARQUET_1_0);
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties.build())).unwrap();
    writer.write(&table).unwrap();
    writer.close().unwrap();
    bytes
}

/// Reads all rows; answers the bytes of their text.
fn read(path: &str) -> Result<u64, InputError> {
    read_within(path, &InputLimits { expansion_floor: FLOOR, ..InputLimits::default() })
}

fn read_within(path: &str, limits: &InputLimits) -> Result<u64, InputError> {
    let mut text_bytes = 0;
    for split in plan_splits(&[Input::lines([path])], &LocalListing, SplitRules::default())? {
        let mut blocks = open_split(&split, &LocalFiles, limits);
        while let Some(block) = blocks.next_block()? {
            text_bytes += block.bytes().len() as u64;
        }
    }
    Ok(text_bytes)
}

/// Changes some bytes: a bit, a byte, or a whole number of four or eight bytes as lengths are.
fn change(bytes: &mut [u8], random: &mut ChaCha8Rng) {
    for _ in 0..random.random_range(1..=2) {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..4) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.random_range(0..5)],
            kind => {
                let width = if kind == 2 { 4 } else { 8 };
                let at = (at / width * width).min(bytes.len() - width);
                let number = random.next_u64() >> random.random_range(0..64);
                bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
            }
        }
    }
}

fn check(name: &str, valid: &[u8]) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name).to_str().unwrap().to_owned();
    let mut random = random();
    std::fs::write(&path, valid).unwrap();
    assert!(0 < read(&path).unwrap());
    let slow = std::env::var_os("GRISTMILL_SLOW_TESTS").is_some();
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..if slow { 100 * CHANGES } else { CHANGES } {
        let mut bytes = valid.to_vec();
        change(&mut bytes, &mut random);
        std::fs::write(&path, &bytes).unwrap();
        let (result, held) = peak_of(|| read(&path));
        assert!(held <= HELD_BYTES_MAX, "{held} bytes were held for {result:?}");
        match result {
            Ok(_) => taken += 1,
            Err(error) => {
                refused += 1;
                assert!(error.is_input_fault(), "{error:?}");
                assert!(error.to_string().contains(name), "{error}");
            }
        }
    }
    // Otherwise the changes would be too small or too large to find anything.
    assert!(0 < taken && 0 < refused, "{taken} changed files were taken, {refused} refused");
}

#[test]
fn changed_arrow_files_are_read_or_refused_within_memory() {
    for packed in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        check("t.arrow", &arrow(packed));
    }
}

#[test]
fn changed_parquet_files_are_read_or_refused_within_memory() {
    for packed in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            check("t.parquet", &parquet(packed, version));
        }
    }
}

#[test]
fn parquet_file_with_a_bit_flipped_has_all_its_rows_or_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet").to_str().unwrap().to_owned();
    let rows = 8;
    let numbers: ArrayRef = Arc::new((0..rows).collect::<Int64Array>());
    let texts: ArrayRef = Arc::new((0..rows).map(text).collect::<StringArray>());
    let number = ("number", numbers, false);
    let one = RecordBatch::try_from_iter_with_nullable([number.clone()]).unwrap();
    let two = RecordBatch::try_from_iter_with_nullable([number, ("text", texts, true)]).unwrap();
    use WriterVersion::{PARQUET_1_0, PARQUET_2_0};
    for (table, version, coded) in
        [(&one, PARQUET_1_0, false), (&one, PARQUET_2_0, true), (&two, PARQUET_1_0, false)]
    {
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_dictionary_enabled(coded)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_max_row_group_row_count(Some(4));
        let options =
            ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
        let mut valid = Vec::new();
        let mut writer = ArrowWriter::try_new_with_options(&mut valid, table.schema(), options).unwrap();
        writer.write(table).unwrap();
        writer.close().unwrap();
        // All bits, those of values too: a row is a line whatever is in it.
        for bit in 0..valid.len() * 8 {
            let mut bytes = valid.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &bytes).unwrap();
            match lines(&path) {
                Ok(lines) => assert_eq!(lines, rows as usize, "bit {bit}"),
                Err(error) => assert!(error.is_input_fault(), "bit {bit}: {error:?}"),
            }
        }
    }
}

/// Reads all rows in pieces of a few; answers how many there are.
fn lines(path: &str) -> Result<usize, InputError> {
    let mut lines = 0;
    let rules = SplitRules { split_bytes: 200, ..SplitRules::default() };
    for split in plan_splits(&[Input::lines([path])], &LocalListing, rules)? {
        let mut blocks = open_split(&split, &LocalFiles, &InputLimits::default());
        while let Some(block) = blocks.next_block()? {
            lines += block.bytes().iter().filter(|byte| **byte == b'\n').count();
        }
    }
    Ok(lines)
}

/// Bytes of a large value.
const LARGE: usize = 1 << 20;

/// What reading a few of them at once may take: a batch, pages and dictionaries as they lie and decoded, and blocks of text.
const LARGE_HELD_BYTES_MAX: usize = 64 << 20;

/// Writes a column of texts, reads it under limits that nothing passes, and compares the length of the text; answers the bytes
/// that reading took.
fn held_for(texts: &[&str], properties: WriterProperties) -> usize {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet").to_str().unwrap().to_owned();
    let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, true)]));
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), schema.clone(), Some(properties))
            .unwrap();
    for texts in texts.chunks(64) {
        let column: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        writer.write(&RecordBatch::try_new(schema.clone(), vec![column]).unwrap()).unwrap();
    }
    writer.close().unwrap();
    let limits = InputLimits { expansion_max: u32::MAX, ..InputLimits::default() };
    let (text_bytes, held) = peak_of(|| read_within(&path, &limits).unwrap());
    assert_eq!(text_bytes, texts.iter().map(|text| text.len() as u64 + 1).sum::<u64>());
    held
}

fn check_large(texts: &[&str], properties: WriterPropertiesBuilder) {
    let held = held_for(texts, properties.set_compression(Compression::SNAPPY).build());
    assert!(held <= LARGE_HELD_BYTES_MAX, "{held} bytes");
}

#[test]
fn batches_stay_small_when_one_large_value_is_repeated() {
    let large = "x".repeat(LARGE);
    let texts = vec![large.as_str(); 300];
    // By a dictionary, and by what a value has of the one before.
    check_large(&texts, WriterProperties::builder().set_dictionary_page_size_limit(4 * LARGE));
    let deltas = WriterProperties::builder().set_dictionary_enabled(false);
    check_large(&texts, deltas.set_writer_version(WriterVersion::PARQUET_2_0));
}

#[test]
fn batches_become_smaller_when_large_values_come_late() {
    let large = "x".repeat(LARGE);
    let mut texts = vec!["mill"; 100_000];
    texts.extend(vec![large.as_str(); 200]);
    texts.extend(vec!["the"; 1000]);
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let plain = WriterProperties::builder().set_dictionary_enabled(false).set_writer_version(version);
        check_large(&texts, plain.set_data_page_size_limit(64 << 10).set_write_batch_size(16));
    }
}

#[test]
fn row_longer_than_a_record_may_be_is_refused_before_all_of_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.arrow").to_str().unwrap().to_owned();
    let mut lists = ListBuilder::new(StringDictionaryBuilder::<Int32Type>::new());
    for count in [1, 1000] {
        (0..count).for_each(|_| lists.values().append_value("x".repeat(LARGE)));
        lists.append(true);
    }
    let table = RecordBatch::try_from_iter([("lists", Arc::new(lists.finish()) as ArrayRef)]).unwrap();
    let mut writer = FileWriter::try_new(std::fs::File::create(&path).unwrap(), &table.schema()).unwrap();
    writer.write(&table).unwrap();
    writer.finish().unwrap();
    let limits = InputLimits { expansion_max: u32::MAX, record_max: 8 << 20, ..InputLimits::default() };
    let (result, held) = peak_of(|| read_within(&path, &limits));
    let error = result.unwrap_err();
    let behind_the_first = LARGE as u64 + 3;
    assert!(
        matches!(error, InputError::RecordTooLong { offset, limit: 0x80_0000, .. } if offset == behind_the_first),
        "{error:?}"
    );
    assert!(held <= LARGE_HELD_BYTES_MAX, "{held} bytes");
}

#[test]
fn table_that_grows_beyond_the_limit_is_refused_as_packed_files_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet").to_str().unwrap().to_owned();
    let large = "x".repeat(LARGE);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![large.as_str(); 100]));
    let table = RecordBatch::try_from_iter([("text", texts)]).unwrap();
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(4 * LARGE).build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, table.schema(), Some(properties)).unwrap();
    writer.write(&table).unwrap();
    writer.close().unwrap();
    let limits = InputLimits { expansion_max: 10, ..InputLimits::default() };
    let error = read_within(&path, &limits).unwrap_err();
    assert!(matches!(error, InputError::Expansion { ratio_max: 10, .. }), "{error:?}");
    assert!(error.to_string().contains("t.parquet grows more than 10 times"), "{error}");
    assert!(read_within(&path, &InputLimits { expansion_max: 1000, ..limits }).is_ok());
}

#[test]
fn page_of_many_equal_lengths_is_held_to_the_limit_before_there_is_room_for_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet").to_str().unwrap().to_owned();
    // As lengths that are encoded together, they take a few bytes.
    let table =
        RecordBatch::try_from_iter([("text", Arc::new(StringArray::from(vec![""; 200_000])) as ArrayRef)])
            .unwrap();
    let one_page = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_data_page_row_count_limit(usize::MAX)
        .build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, table.schema(), Some(one_page)).unwrap();
    writer.write(&table).unwrap();
    writer.close().unwrap();
    let error = read(&path).unwrap_err();
    assert!(matches!(error, InputError::Expansion { .. }), "{error:?}");
    assert_eq!(read_within(&path, &InputLimits::default()).unwrap(), 200_000);
}
