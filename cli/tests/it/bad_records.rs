//! `--skip-bad-records`: exactly the rows that a test has corrupted are skipped, named and counted.
//!
//! The tests know which rows they have corrupted, and compare with a job over the others.

use crate::support::data::Random;
use crate::support::{Sandbox, oracle};
use crate::user_code::faulty_program;
use serde_json::{Value, json};

/// A table with corrupt rows.
struct Spoilt {
    /// The text with the corrupt rows.
    text: String,
    /// The text without them.
    sound: String,
    /// Offsets of the corrupt rows.
    places: Vec<usize>,
}

/// A table of this many rows. Every twentieth is corrupt: it has a column too many or too few.
fn spoilt(seed: u64, rows: usize) -> Spoilt {
    let mut random = Random::seeded(seed);
    let mut table = Spoilt { text: "k,v\n".to_owned(), sound: "k,v\n".to_owned(), places: Vec::new() };
    for number in 0..rows {
        let key = random.below(50);
        if number % 20 == 7 {
            table.places.push(table.text.len());
            table.text += &match random.below(2) {
                0 => format!("{key},row {number},more\n"),
                _ => format!("{key}\n"),
            };
        } else {
            let row = format!("{key},\"row, {number}\"\n");
            table.text += &row;
            table.sound += &row;
        }
    }
    table
}

/// The arguments of a join of a table with the keys, of many maps and three reduces.
fn join<'a>(table: &'a str, keys: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let arguments = [
        "run",
        "join",
        "--left",
        table,
        "--right",
        keys,
        "--on",
        "k=k",
        "--strategy",
        "repartition",
        "--reduces",
        "3",
        "--split-size",
        "2KiB",
        "--output",
        out,
    ];
    [&arguments, more].concat()
}

/// Returns file and offset of each record in the side file.
fn named(sandbox: &Sandbox, out: &str) -> Vec<(String, usize)> {
    let text = std::fs::read_to_string(sandbox.path(out).join("_BAD_RECORDS")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("file\tbyte\treason"));
    let record = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!(fields.len(), 3, "{line:?}");
        assert!(!fields[2].is_empty(), "{line:?}");
        (fields[0].to_owned(), fields[1].parse().unwrap())
    };
    lines.map(record).collect()
}

/// Two corrupted tables and keys in a sandbox, and the result of a join of their valid rows.
struct Stage {
    sandbox: Sandbox,
    tables: [Spoilt; 2],
    keys: String,
    expected: Vec<Vec<u8>>,
    seed: u64,
}

impl Stage {
    fn new(seed: u64) -> Self {
        let sandbox = Sandbox::new();
        let tables = [spoilt(seed, 600), spoilt(seed + 1, 600)];
        let keys: String =
            std::iter::once("k\n".to_owned()).chain((0..40).map(|k| format!("{k}\n"))).collect();
        let keys = sandbox.write("keys.csv", keys);
        for (number, table) in tables.iter().enumerate() {
            sandbox.write(&format!("sound/{number}.csv"), &table.sound);
            sandbox.write(&format!("spoilt/{number}.csv"), &table.text);
        }
        let sound = sandbox.text("sound");
        sandbox.run_well(join(&sound, &keys, &sandbox.text("expected"), &["--workers", "3"]));
        let expected = oracle::parts(&sandbox.path("expected"));
        Self { sandbox, tables, keys, expected, seed }
    }

    fn count(&self) -> usize {
        self.tables.iter().map(|table| table.places.len()).sum()
    }

    fn places(&self) -> Vec<(String, usize)> {
        let of = |(number, table): (usize, &Spoilt)| {
            let file = self.sandbox.text(&format!("spoilt/{number}.csv"));
            table.places.iter().map(|place| (file.clone(), *place)).collect::<Vec<_>>()
        };
        self.tables.iter().enumerate().flat_map(of).collect()
    }

    /// Checks that the job succeeded: the output is that of the valid rows, and all others are named and
    /// counted.
    fn check(&self, status: &Value) {
        let out = self.sandbox.path("out");
        let seed = self.seed;
        assert!(
            oracle::parts(&out) == self.expected,
            "seed {seed}: the output is not that of the sound rows"
        );
        assert_eq!(
            oracle::names(&out),
            ["_BAD_RECORDS", "_SUCCESS", "part-00000", "part-00001", "part-00002"]
        );
        assert_eq!(named(&self.sandbox, "out"), self.places(), "seed {seed}");
        assert_eq!(status["counters"]["bad records, left out"], self.count());
        assert_eq!(oracle::success(&out)["counters"]["bad records, left out"], self.count());
        let listed = status["bad_records"].as_array().unwrap();
        let place = |bad: &Value| {
            (bad["path"].as_str().unwrap().to_owned(), bad["offset"].as_u64().unwrap() as usize)
        };
        assert_eq!(listed.iter().map(place).collect::<Vec<_>>(), self.places());
    }
}

#[test]
fn spoilt_rows_are_left_out_named_and_counted_up_to_the_limit() {
    let stage = Stage::new(161);
    let (tables, out, count) = (stage.sandbox.text("spoilt"), stage.sandbox.text("out"), stage.count());
    let limit = count.to_string();
    let more = ["--skip-bad-records", &limit, "--json", "--workers", "3"];
    let finished = stage.sandbox.run_well(join(&tables, &stage.keys, &out, &more));
    stage.check(&finished.json()["status"]);
    let words = format!("{count}, named in {out}/_BAD_RECORDS");
    finished.expect_words(&[&words]);
}

#[test]
fn spoilt_rows_of_either_table_are_left_out_once_whatever_the_strategy() {
    let sandbox = Sandbox::new();
    let (table, sound) = (spoilt(167, 60), spoilt(168, 400));
    let held = sandbox.write("held.csv", &table.text);
    let streamed = sandbox.write("streamed.csv", &sound.text);
    let count = table.places.len() + sound.places.len();
    let mut results = Vec::new();
    for strategy in ["repartition", "broadcast"] {
        let out = sandbox.text(strategy);
        let tables = ["run", "join", "--left", &streamed, "--right", &held, "--on", "k=k", "--output", &out];
        let shape = ["--strategy", strategy, "--workers", "3", "--split-size", "2KiB", "--json"];
        let limit = ["--skip-bad-records", &count.to_string()];
        let status = sandbox.run_well([&tables[..], &shape, &limit].concat()).json()["status"].clone();
        assert_eq!(status["counters"]["bad records, left out"], count, "{strategy}");
        let mut rows = oracle::whole(&sandbox.path(strategy))
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>();
        rows.sort();
        results.push((rows, named(&sandbox, strategy)));
        let fewer = ["--skip-bad-records", &(count - 1).to_string(), "--overwrite"];
        sandbox
            .run([&tables[..], &shape, &fewer].concat())
            .expect_code(4)
            .expect_words(&["bad records (--skip-bad-records)"]);
    }
    assert!(results[0] == results[1], "{:?} {:?}", results[0].1, results[1].1);
}

#[test]
fn one_spoilt_row_more_than_the_limit_fails_the_job_and_names_it() {
    let stage = Stage::new(163);
    let (tables, out) = (stage.sandbox.text("spoilt"), stage.sandbox.text("out"));
    let limit = (stage.count() - 1).to_string();
    let more = ["--skip-bad-records", &limit, "--json", "--workers", "3"];
    let finished = stage.sandbox.run(join(&tables, &stage.keys, &out, &more)).expect_code(4);
    let report = finished.json();
    let detail = report["failure"]["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains(&format!("more than {limit} bad records (--skip-bad-records)")), "{detail}");
    let places = stage.places();
    let is_named =
        |(file, place): &(String, usize)| detail.contains(&format!("is at byte {place} of {file}: "));
    assert!(places.iter().any(is_named), "{detail}");
    // The message names all of them: only the last one exceeds the limit.
    let listed: Vec<Value> = places.iter().map(|(file, place)| json!([file, place])).collect();
    let told = report["bad_records"].as_array().unwrap().iter();
    assert_eq!(told.map(|bad| json!([bad["path"], bad["offset"]])).collect::<Vec<_>>(), listed);
    assert!(!stage.sandbox.path("out").exists());
    let (file, place) = &places[0];
    finished.expect_words(&[&format!("byte {place} of {file}: ")]);
}

#[test]
fn spoilt_rows_of_maps_that_run_again_count_once() {
    let stage = Stage::new(165);
    let (tables, out, limit) =
        (stage.sandbox.text("spoilt"), stage.sandbox.text("out"), stage.count().to_string());
    // The only worker holds the output of all maps.
    stage.sandbox.arm("reduce");
    let more = ["--skip-bad-records", &limit, "--json", "--workers", "1"];
    let running = stage.sandbox.gristmill(join(&tables, &stage.keys, &out, &more)).start();
    stage.sandbox.kill_at("reduce");
    let finished = running.finish().expect_code(0);
    let status = &finished.json()["status"];
    assert!(0 < status["attempts"]["maps_rerun"].as_u64().unwrap(), "no map ran again");
    stage.check(status);
    stage.sandbox.assert_nothing_left();
}

#[test]
fn a_spoilt_row_is_refused_where_none_may_be_left_out() {
    let sandbox = Sandbox::new();
    let keys = sandbox.write("keys.csv", "k\n1\n");
    let table = sandbox.write("table.csv", "k,v\n1,a\n2,b,c\n");
    let out = sandbox.text("out");
    let finished = sandbox.run(join(&table, &keys, &out, &["--workers", "2"])).expect_code(4);
    let words = format!("the record at byte 8 of {table} is bad: it has 3 fields");
    finished.expect_words(&[&words]);
    assert!(!sandbox.path("out").exists());
}

#[test]
fn records_that_a_mapper_refuses_are_left_out_unless_something_of_them_is_emitted() {
    let sandbox = Sandbox::new();
    let text = sandbox.write("text", "one\nbad two\nthree\nbad four\nfive\n");
    let out = sandbox.text("out");
    let run = |how: &str, limit: &str, more: &[&str]| {
        let arguments = [
            "run",
            "faulty",
            &text,
            "--how",
            how,
            "--skip-bad-records",
            limit,
            "--output",
            &out,
            "--reduces",
            "1",
        ];
        sandbox.program(&faulty_program(), [&arguments, more].concat()).finish()
    };
    run("refuse", "1", &[])
        .expect_code(4)
        .expect_words(&[&format!("is at byte 18 of {text}: the word is in it")]);
    run("refuse-late", "2", &[]).expect_code(1).expect_words(&["after it had emitted something of it"]);
    // Also in a job that samples keys first.
    for (more, parts) in [(&[][..], 1), (&["--total-order", "--overwrite"][..], 1)] {
        run("refuse", "2", more).expect_code(0);
        assert_eq!(oracle::parts(&sandbox.path("out")).len(), parts);
        assert_eq!(oracle::parts(&sandbox.path("out")).concat(), b"five\none\nthree\n");
        assert_eq!(named(&sandbox, "out"), [(text.clone(), 4), (text.clone(), 18)]);
    }
}
