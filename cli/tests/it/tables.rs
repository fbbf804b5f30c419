//! Parquet and Arrow files as inputs of the standard jobs, on disk and in a store.

use crate::stores::server::StoreServer;
use crate::support::Sandbox;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

const ROWS: i64 = 3000;

/// Numbers in no order, with a text for each.
fn table() -> RecordBatch {
    let number = |row: i64| row * 1237 % ROWS;
    let columns: [(&str, ArrayRef); 2] = [
        ("number", Arc::new((0..ROWS).map(number).collect::<Int64Array>())),
        ("text", Arc::new((0..ROWS).map(|row| Some(text(number(row)))).collect::<StringArray>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn text(number: i64) -> String {
    format!("mill {} of\nthe \"{number}\"", number % 7)
}

fn parquet(table: &RecordBatch) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(100))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties)).unwrap();
    writer.write(table).unwrap();
    writer.close().unwrap();
    bytes
}

fn arrow(table: &RecordBatch) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &table.schema()).unwrap();
    writer.write(table).unwrap();
    writer.into_inner().unwrap()
}

/// Runs a job on both kinds of files in small splits; returns both outputs.
fn on_both(
    sandbox: &Sandbox,
    job: &[&str],
    input: &dyn Fn(String) -> Vec<String>,
    flags: &[&str],
) -> [String; 2] {
    [("t.parquet", parquet(&table())), ("t.arrow", arrow(&table()))].map(|(name, bytes)| {
        let path = sandbox.write(name, bytes);
        let mut words: Vec<String> = ["run"].iter().chain(job).map(|&word| word.to_owned()).collect();
        words.extend(input(path));
        words.extend(["--quiet", "--split-size", "20KiB"].iter().chain(flags).map(|&word| word.to_owned()));
        sandbox.run_well(words).stdout_text()
    })
}

#[test]
fn rows_are_lines_of_the_columns_that_are_read() {
    let sandbox = Sandbox::new();
    let mut expected: Vec<String> =
        (0..ROWS).map(|number| format!("{}\t{number}\n", text(number).replace('\n', "\\n"))).collect();
    expected.sort_unstable();
    for sorted in
        on_both(&sandbox, &["sort"], &|path| vec![path], &["--read-columns", "text,number", "--reduces", "2"])
    {
        assert!(sorted == expected.concat(), "{}", &sorted[..200]);
    }
    // The lines of a column of texts are lines of the input.
    for counted in
        on_both(&sandbox, &["grep", "^the"], &|path| vec![path], &["--read-columns", "text", "--count"])
    {
        assert_eq!(counted.trim(), ROWS.to_string());
    }
    for counted in
        on_both(&sandbox, &["wordcount"], &|path| vec![path], &["--read-columns", "text", "--top", "2"])
    {
        assert_eq!(counted, format!("mill\t{ROWS}\nof\t{ROWS}\n"));
    }
}

#[test]
fn join_finds_the_columns_of_tables_by_their_names() {
    let sandbox = Sandbox::new();
    let right = sandbox.write("right.csv", "id,name\n2999,last\n5,five\n5000,none\n");
    let input =
        |path: &str| ["--left", &right, "--right", path, "--on", "id=number"].map(str::to_owned).to_vec();
    for strategy in ["repartition", "broadcast"] {
        for joined in
            on_both(&sandbox, &["join"], &|path| input(&path), &["--strategy", strategy, "--reduces", "1"])
        {
            let quoted = |number| text(number).replace('"', "\"\"");
            let mut expected =
                [(5, "five"), (2999, "last")].map(|(n, name)| format!("{n},{name},{n},\"{}\"\n", quoted(n)));
            assert_eq!(joined.len(), expected.concat().len());
            expected.sort_unstable();
            assert!(expected.iter().all(|row| joined.contains(row)), "{strategy}: {joined}");
        }
    }
    let path = sandbox.write("t.parquet", parquet(&table()));
    let refused =
        sandbox.gristmill(["run", "join", "--left", &path, "--right", &path, "--on", "1", "--header", "no"]);
    refused.finish().expect_code(4).expect_words(&["t.parquet have names", "--header yes"]);
}

#[test]
fn tables_in_a_store_are_read_by_ranges() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let bytes = parquet(&table());
    let input = server.put("in/t.parquet", &bytes);
    let counting = sandbox.gristmill([
        "run",
        "grep",
        "^the",
        &input,
        "--read-columns",
        "text",
        "--count",
        "--quiet",
        "--split-size",
        "20KiB",
    ]);
    let counting = server.variables().into_iter().fold(counting, |run, (name, value)| run.env(name, value));
    assert_eq!(counting.finish().expect_code(0).stdout_text().trim(), ROWS.to_string());
    let ranges = server.asked().into_iter().filter(|asked| asked.range.is_some()).count();
    // Data fetched with the header of a page is not requested again.
    assert!(5 < ranges && ranges < 60, "{ranges}");
}

#[test]
fn table_that_cannot_be_read_says_why() {
    let sandbox = Sandbox::new();
    let whole = parquet(&table());
    let path = sandbox.write("t.parquet", &whole);
    let run = |words: &[&str]| sandbox.gristmill([&["run"], words].concat()).finish();
    run(&["wordcount", &path, "--read-columns", "nope"])
        .expect_code(4)
        .expect_words(&["has no column `nope`", "it has number, text"]);
    let packed = sandbox.write("t.parquet.gz", &whole);
    run(&["grep", "x", &packed]).expect_code(4).expect_words(&["t.parquet.gz", "unpack it first"]);
    let cut = sandbox.write("cut.parquet", &whole[..whole.len() / 2]);
    run(&["wordcount", &cut])
        .expect_code(4)
        .expect_words(&["could not decode input", "cut.parquet as Parquet"]);
    let text = sandbox.write("plain", "a b\n");
    run(&["wordcount", &text, "--read-columns", "a"])
        .expect_code(4)
        .expect_words(&["no Parquet or Arrow file"]);
    let joined =
        run(&["join", "--left", &path, "--right", &path, "--on", "number", "--read-columns", "text"]);
    joined.expect_code(2).expect_words(&["--read-columns is for jobs that read lines"]);
}

#[test]
fn column_with_a_comma_in_its_name_is_read_by_it() {
    let sandbox = Sandbox::new();
    let columns: [(&str, ArrayRef); 2] = [
        ("last, first", Arc::new(StringArray::from(vec!["stone, mill"]))),
        ("id", Arc::new(Int64Array::from(vec![7]))),
    ];
    let path = sandbox.write("t.parquet", parquet(&RecordBatch::try_from_iter(columns).unwrap()));
    let run =
        |names: &str| sandbox.gristmill(["run", "sort", &path, "--quiet", "--read-columns", names]).finish();
    assert_eq!(run(r"id,last\, first").expect_code(0).stdout_text(), "7\tstone, mill\n");
    run("last, first").expect_code(4).expect_words(&["has no column `last`", r"it has last\, first, id"]);
}

#[test]
fn tables_that_jobs_write_are_inputs_of_the_next_and_say_no_where_lines_are_no_rows() {
    let sandbox = Sandbox::new();
    let text = sandbox.write("text", "the mill the\nmill a\n");
    for format in ["parquet", "arrow"] {
        let [out, again, joined] =
            ["out", "again", "joined"].map(|name| sandbox.text(&format!("{name}-{format}")));
        let shape = ["--output-format", format, "--reduces", "2", "--quiet"];
        let run = |words: &[&str]| sandbox.run_well([&["run"], words, &shape].concat());
        run(&["wordcount", &text, "--output", &out]);
        run(&["wordcount", &text, "--output", &again]);
        for part in ["part-00000", "part-00001"] {
            let [one, other] = [&out, &again]
                .map(|directory| std::fs::read(format!("{directory}/{part}.{format}")).unwrap());
            assert!(one == other, "the same job writes the same files");
        }
        let sorted =
            sandbox.run_well(["run", "sort", &out, "--quiet", "--read-columns", "count,word"]).stdout_text();
        assert_eq!(sorted, "1\ta\n2\tmill\n2\tthe\n");
        // Its columns are found by their names, and those of the join have names too.
        run(&["join", "--left", &out, "--right", &again, "--on", "word", "--output", &joined]);
        let sums = sandbox
            .run_well(["run", "sort", &joined, "--quiet", "--read-columns", "word,count_2"])
            .stdout_text();
        assert_eq!(sums, "a\t1\nmill\t2\nthe\t2\n");
    }
    let out = sandbox.text("refused");
    let refused = |words: &[&str]| {
        let refused =
            sandbox.gristmill([&["run"], words, &["--output", &out, "--output-format", "parquet"]].concat());
        let refused = refused.finish();
        assert!(!sandbox.path("refused").exists(), "nothing is left");
        refused
    };
    let bytes = sandbox.write("bytes", b"good\n\xff\n");
    refused(&["wordcount", &bytes]).expect_code(2).expect_words(&["its Parquet file", "is not UTF-8"]);
    refused(&["sort", &text, "--record-length", "1"])
        .expect_code(2)
        .expect_words(&["records of fixed length are no lines"]);
    refused(&["wordcount", &text, "--narrate"])
        .expect_code(2)
        .expect_words(&["a story needs parts that are text"]);
    let nowhere = sandbox.gristmill(["run", "wordcount", &text, "--output-format", "parquet"]).finish();
    nowhere.expect_code(2).expect_words(&["--output"]);
}

#[test]
fn tables_are_written_to_a_store() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let text = sandbox.write("text", "the mill the\n");
    let out = crate::stores::server::url("out");
    let with_store = |words: &[&str]| {
        let run = sandbox.gristmill(words);
        server
            .variables()
            .into_iter()
            .fold(run, |run, (name, value)| run.env(name, value))
            .finish()
            .expect_code(0)
    };
    with_store(&[
        "run",
        "wordcount",
        &text,
        "--output",
        &out,
        "--output-format",
        "parquet",
        "--reduces",
        "1",
        "--quiet",
    ]);
    let sorted = with_store(&["run", "sort", &out, "--quiet"]).stdout_text();
    assert_eq!(sorted, "mill\t1\nthe\t2\n");
}
