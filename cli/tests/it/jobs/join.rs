//! `join` equals the result of sqlite for all six types, and nested loops on small tables with quotes in
//! them.

use crate::support::Sandbox;
use crate::support::data::{Random, rounds, shared, tool};
use crate::support::oracle::{self, csv_rows};

type Row = Vec<Vec<u8>>;

/// The six types, and the strategies that support them.
const TYPES: [(&str, &[&str]); 6] = [
    ("inner", &["repartition", "broadcast", "auto"]),
    ("left", &["repartition", "broadcast", "auto"]),
    ("right", &["repartition", "broadcast", "auto"]),
    ("full", &["repartition", "auto"]),
    ("semi", &["repartition", "broadcast", "auto"]),
    ("anti", &["repartition", "broadcast", "auto"]),
];

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

#[test]
fn join_of_weather_and_airports_equals_sqlite() {
    let Some(tables) = shared("tables", "join of weather and airports") else { return };
    if !tool("sqlite3", "join against sqlite") {
        return;
    }
    let (weather, airports) = (tables.join("weather.csv"), tables.join("airports.csv"));
    let (weather, airports) = (weather.to_str().unwrap(), airports.to_str().unwrap());
    let sandbox = Sandbox::new();
    for (join_type, strategies) in TYPES {
        let query = match join_type {
            "semi" => "select w.* from w where exists (select 1 from a where a.faa = w.origin)".to_owned(),
            "anti" => {
                "select w.* from w where not exists (select 1 from a where a.faa = w.origin)".to_owned()
            }
            other => format!("select w.*, a.* from w {other} join a on w.origin = a.faa"),
        };
        let script =
            r#"sqlite3 :memory: '.mode csv' ".import $1 w" ".import $2 a" 'create index i on a(faa)' "$3;""#;
        let expected = sorted(csv_rows(&oracle::shell(script, &[weather, airports, &query])));
        for strategy in strategies {
            let out = sandbox.path(&format!("{join_type}-{strategy}"));
            sandbox.run_well([
                "run",
                "join",
                "--left",
                weather,
                "--right",
                airports,
                "--on",
                "origin=faa",
                "--type",
                join_type,
                "--strategy",
                strategy,
                "--split-size",
                "400KiB",
                "--reduces",
                "3",
                "--output",
                out.to_str().unwrap(),
            ]);
            let rows = sorted(csv_rows(&oracle::whole(&out)));
            assert_eq!(rows.len(), expected.len(), "{join_type} {strategy}");
            assert!(rows == expected, "{join_type} {strategy} differs from sqlite");
            let columns = oracle::success(&out)["columns"].as_array().unwrap().len();
            assert!(rows.iter().all(|row| row.len() == columns), "{join_type} {strategy}");
        }
    }
}

/// A small table whose fields need every kind of quoting.
fn table(random: &mut Random, rows: usize, name: &str) -> Vec<Row> {
    const KEYS: [&str; 7] = ["k1", "k2", "k,3", "k\"4", "k\n5", "", "\u{e9}"];
    const TEXTS: [&str; 5] = ["plain", "with, comma", "with \"quotes\"", "two\nlines", "\r\nodd"];
    (0..rows)
        .map(|number| {
            let key = random.pick(&KEYS).as_bytes().to_vec();
            vec![format!("{name}{number}").into_bytes(), key, random.pick(&TEXTS).as_bytes().to_vec()]
        })
        .collect()
}

fn to_csv(rows: &[Row]) -> String {
    let quoted = |field: &Vec<u8>| format!("\"{}\"", String::from_utf8_lossy(field).replace('"', "\"\""));
    let line = |row: &Row| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
    rows.iter().map(line).collect()
}

/// The join by nested loops on the second column of both.
fn nested_loops(left: &[Row], right: &[Row], join_type: &str) -> Vec<Row> {
    let (both, absent) = (|l: &Row, r: &Row| [l.clone(), r.clone()].concat(), vec![Vec::new(); 3]);
    let mut out = Vec::new();
    for l in left {
        let partners: Vec<&Row> = right.iter().filter(|r| r[1] == l[1]).collect();
        match join_type {
            "semi" if !partners.is_empty() => out.push(l.clone()),
            "anti" if partners.is_empty() => out.push(l.clone()),
            "semi" | "anti" => {}
            "left" | "full" if partners.is_empty() => out.push(both(l, &absent)),
            _ => out.extend(partners.iter().map(|r| both(l, r))),
        }
    }
    if ["right", "full"].contains(&join_type) {
        let alone = right.iter().filter(|r| left.iter().all(|l| l[1] != r[1]));
        out.extend(alone.map(|r| both(&absent, r)));
    }
    out
}

#[test]
fn join_of_quoted_rows_equals_nested_loops() {
    let sandbox = Sandbox::new();
    let mut random = Random::seeded(31);
    let (mut left, mut right) = (table(&mut random, 60, "l"), table(&mut random, 25, "r"));
    left.retain(|row| row[1] != b"k1");
    right.retain(|row| row[1] != b"k2");
    let (left_file, right_file) =
        (sandbox.write("left.csv", to_csv(&left)), sandbox.write("right.csv", to_csv(&right)));
    for (join_type, strategies) in TYPES {
        let expected = sorted(nested_loops(&left, &right, join_type));
        for strategy in strategies {
            let finished = sandbox.run_well([
                "run",
                "join",
                "--left",
                &left_file,
                "--right",
                &right_file,
                "--on",
                "2=2",
                "--type",
                join_type,
                "--strategy",
                strategy,
                "--split-size",
                "300",
                "--reduces",
                "2",
            ]);
            assert_eq!(sorted(csv_rows(&finished.stdout)), expected, "{join_type} {strategy}");
        }
    }
}

/// Writes the rows as several files with the same header, cut anywhere. Each file has its own kind of line
/// break. Its last row may lack the break or end in a lone carriage return. Returns the paths, and all rows
/// including those added.
fn to_files(sandbox: &Sandbox, random: &mut Random, rows: &[Row], name: &str) -> (Vec<String>, Vec<Row>) {
    let (mut paths, mut read) = (Vec::new(), Vec::new());
    let mut rest = rows;
    while !rest.is_empty() {
        let (here, behind) = rest.split_at(1 + random.below(rest.len()));
        rest = behind;
        let (mark, line_break) =
            (*random.pick(&["", "\u{feff}", "\n", "\r\n"]), *random.pick(&["\n", "\r\n"]));
        let line = |row: &Row| to_csv(std::slice::from_ref(row)).strip_suffix('\n').unwrap().to_owned();
        let lines: Vec<String> = here.iter().map(line).collect();
        let end = match random.below(3) {
            0 => "",
            1 => line_break,
            _ => &format!("{line_break}{name}-last,k1,open\r"),
        };
        let body = lines.join(line_break) + end;
        read.extend(csv_rows(body.as_bytes()));
        let text = format!("{mark}id,\"key\",text{line_break}{body}");
        paths.push(sandbox.write(&format!("{name}-{}.csv", paths.len()), text));
    }
    (paths, read)
}

#[test]
fn join_of_tables_in_several_files_equals_nested_loops() {
    let sandbox = Sandbox::new();
    for round in 0..rounds() {
        let mut random = Random::seeded(33 + round);
        let (left, right) = (table(&mut random, 40, "l"), table(&mut random, 15, "r"));
        let (left_files, left) = to_files(&sandbox, &mut random, &left, "left");
        let (right_files, right) = to_files(&sandbox, &mut random, &right, "right");
        let split_size = *random.pick(&["40", "300", "1MiB"]);
        for (join_type, strategies) in TYPES {
            let expected = sorted(nested_loops(&left, &right, join_type));
            for strategy in strategies.iter().filter(|strategy| **strategy != "auto") {
                let flags = ["run", "join", "--on", "key", "--type", join_type, "--strategy", strategy];
                let flags = flags.into_iter().chain(["--split-size", split_size, "--left"]);
                let flags = flags.chain(left_files.iter().map(String::as_str)).chain(["--right"]);
                let finished = sandbox.run_well(flags.chain(right_files.iter().map(String::as_str)));
                assert_eq!(
                    sorted(csv_rows(&finished.stdout)),
                    expected,
                    "{join_type} {strategy} {split_size}"
                );
            }
        }
    }
}

#[test]
fn join_refuses_a_quote_that_is_never_closed_whichever_table_has_it() {
    let sandbox = Sandbox::new();
    let rows: String = (0..2000).map(|number| format!("{number},x\n")).collect();
    let good = sandbox.write("good.csv", &rows);
    let bad = sandbox.write("bad.csv", rows.replacen("1000,x", "1000,\"x", 1));
    let at = rows.find("1000,x").unwrap() + "1000,".len();
    let named = format!("byte {at} of {bad} is never closed");
    for strategy in ["repartition", "broadcast"] {
        for split_size in ["2KiB", "1MiB"] {
            for (left, right) in [(&good, &bad), (&bad, &good)] {
                let right = [&good, right, &good];
                let flags = ["run", "join", "--on", "1", "--strategy", strategy, "--split-size", split_size];
                let flags = flags.into_iter().chain(["--left", left, "--right"]);
                let flags = flags.chain(right.into_iter().map(String::as_str));
                sandbox.run(flags).expect_code(4).expect_words(&[&named]);
            }
        }
    }
}

#[test]
fn join_refuses_what_is_wrong_with_one_table_also_when_the_other_is_empty() {
    let sandbox = Sandbox::new();
    let empty = sandbox.write("empty.csv", "");
    let join = |strategy: &str, right: &str| {
        let flags = ["run", "join", "--on", "1", "--type", "left", "--strategy", strategy];
        sandbox.run(flags.into_iter().chain(["--left", &empty, "--right", right]))
    };
    for strategy in ["repartition", "broadcast"] {
        for (rows, words) in [("1,a\n2,\"b\n", "is never closed"), ("1,a\n2\n", "has 1 fields")] {
            let wrong = sandbox.write("wrong.csv", rows);
            join(strategy, &wrong).expect_code(4).expect_words(&[&wrong, words]);
        }
        let right = sandbox.write("right.csv", "1,a\n");
        assert!(join(strategy, &right).expect_code(0).stdout.is_empty(), "{strategy}");
    }
}

#[test]
fn join_refuses_files_of_one_table_whose_columns_differ() {
    let sandbox = Sandbox::new();
    let (one, two) = (sandbox.write("1.csv", "user,name\n1,a\n"), sandbox.write("2.csv", "nick,user\nb,2\n"));
    let other = sandbox.write("other.csv", "user\n1\n2\n");
    for strategy in ["repartition", "broadcast"] {
        let flags = ["run", "join", "--on", "user", "--strategy", strategy, "--left", &one, &two];
        let finished = sandbox.run(flags.into_iter().chain(["--right", &other])).expect_code(4);
        finished.expect_words(&[&one, &two, "nick, user", "user, name", "left table"]);
    }
}

#[test]
fn join_refuses_files_of_a_table_whose_columns_are_in_another_order() {
    let sandbox = Sandbox::new();
    let (one, two) = (sandbox.write("1.csv", "user,name\n1,a\n"), sandbox.write("2.csv", "name,user\nb,2\n"));
    let other = sandbox.write("other.csv", "user,more of it\n1,x\n2,y\n");
    for tables in [["--left", &one, &two, "--right", &other], ["--right", &one, &two, "--left", &other]] {
        let refused = sandbox.run(["run", "join", "--on", "user"].into_iter().chain(tables));
        refused.expect_code(4).expect_words(&["2.csv", "name, user", "user, name"]);
    }
}

#[test]
fn join_writes_the_columns_asked_for_in_their_order() {
    let sandbox = Sandbox::new();
    let mut random = Random::seeded(32);
    let plain = |name: &str, random: &mut Random| -> Vec<Row> {
        let text = |number: usize| format!("{number}").into_bytes();
        let row = |number| vec![format!("{name}{number}").into_bytes(), text(random.below(9)), text(number)];
        (0..70).map(row).collect()
    };
    for quoted in [true, false] {
        let mut rows = |name| if quoted { table(&mut random, 50, name) } else { plain(name, &mut random) };
        let (left, right) = (rows("l"), rows("r"));
        let csv = |rows: &[Row]| {
            let text = to_csv(rows);
            if quoted { text } else { text.replace('"', "") }
        };
        let (left_file, right_file) =
            (sandbox.write("left.csv", csv(&left)), sandbox.write("right.csv", csv(&right)));
        for (join_type, strategies) in TYPES {
            let alone = ["semi", "anti"].contains(&join_type);
            let choices: &[(&str, &[usize])] = if alone {
                &[("left.3,left.1", &[2, 0]), ("left.2", &[1])]
            } else {
                &[
                    ("right.1,left.3,left.1", &[3, 2, 0]),
                    ("left.3,right.1,left.1", &[2, 3, 0]),
                    ("right.3", &[5]),
                ]
            };
            for (columns, places) in choices {
                let project = |row: Row| places.iter().map(|place| row[*place].clone()).collect::<Row>();
                let expected = nested_loops(&left, &right, join_type).into_iter().map(project).collect();
                for strategy in strategies {
                    let flags = [
                        "run",
                        "join",
                        "--left",
                        &left_file,
                        "--right",
                        &right_file,
                        "--on",
                        "2=2",
                        "--type",
                        join_type,
                        "--strategy",
                        strategy,
                        "--columns",
                        columns,
                        "--split-size",
                        "300",
                    ];
                    let finished = sandbox.run_well(flags);
                    let found = sorted(csv_rows(&finished.stdout));
                    assert_eq!(found, sorted(Vec::clone(&expected)), "{join_type} {strategy} {columns}");
                }
            }
        }
    }
}

#[test]
fn join_quotes_an_empty_field_only_where_it_is_the_whole_line() {
    let sandbox = Sandbox::new();
    let (left, right) = (sandbox.write("left.csv", "\"\"\n"), sandbox.write("right.csv", "\"\",y\n"));
    for strategy in ["repartition", "broadcast"] {
        for (join_type, expected) in [("inner", ",,y\n"), ("semi", "\"\"\n")] {
            let flags = ["--on", "1", "--type", join_type, "--strategy", strategy];
            let finished = sandbox
                .run_well(["run", "join", "--left", &left, "--right", &right].into_iter().chain(flags));
            assert_eq!(finished.stdout_text(), expected, "{join_type} {strategy}");
        }
    }
}

#[test]
fn join_says_in_its_summary_which_strategy_it_chose() {
    let sandbox = Sandbox::new();
    let (left, right) = (sandbox.write("left.csv", "id,a\n1,x\n"), sandbox.write("right.csv", "id,b\n1,y\n"));
    let with = |strategy: &'static str| {
        sandbox.run_well([
            "run",
            "join",
            "--left",
            &left,
            "--right",
            &right,
            "--on",
            "id",
            "--strategy",
            strategy,
        ])
    };
    let chosen = with("auto").expect_words(&["broadcast join"]);
    assert_eq!(chosen.stdout_text(), "1,x,1,y\n", "parts carry no header");
    with("repartition").expect_words(&["repartition join"]);
}

#[test]
fn join_refuses_a_broadcast_that_would_lose_rows() {
    let sandbox = Sandbox::new();
    let (left, right) = (sandbox.write("left.csv", "1,x\n"), sandbox.write("right.csv", "1,y\n"));
    let arguments =
        ["--left", &left, "--right", &right, "--on", "1=1", "--type", "full", "--strategy", "broadcast"];
    let finished = sandbox.run(["run", "join"].into_iter().chain(arguments)).expect_code(2);
    finished.expect_words(&["--strategy", "full"]);
}
