//! Tests of columns, rows and strategies. Whole joins are compared with a database by the tests of the program.

use super::held::HeldTable;
use super::rows::RowReader;
use super::*;
use clap::{Args, FromArgMatches};
use gristmill_worker::input::plan::FirstRecord;
use gristmill_worker::record::{RecordFormat, Source};
use proptest::prelude::*;

/// Tables as a submitter would see them: the first row and the size of each side. A second file of the left table
/// starts behind a `|`.
struct Tables {
    left: (&'static str, u64),
    right: (&'static str, u64),
}

const NAMED: Tables = Tables { left: ("id,city,\"na,me\"", 1000), right: ("key,town", 10) };

impl Submitter for Tables {
    fn size(&self, input: &Input) -> Result<u64, PlanError> {
        Ok(if input.paths == ["l"] { self.left.1 } else { self.right.1 })
    }

    fn first_records(&self, input: &Input) -> Result<Vec<FirstRecord>, PlanError> {
        let rows = if input.paths == ["l"] { self.left.0 } else { self.right.0 };
        let record = |(number, row): (usize, &str)| FirstRecord {
            path: format!("{}{number}", input.paths[0]).as_str().into(),
            bytes: row.as_bytes().to_vec(),
        };
        Ok(rows.split('|').filter(|row| !row.is_empty()).enumerate().map(record).collect())
    }
}

fn parse(flags: &str) -> Result<Join, clap::Error> {
    let command = Join::augment_args(clap::Command::new("join").no_binary_name(true));
    let fixed = ["--left", "l", "--right", "r"].into_iter();
    Join::from_arg_matches(&command.try_get_matches_from(fixed.chain(flags.split_whitespace()))?)
}

fn prepare(flags: &str, tables: &Tables) -> Result<Join, PlanError> {
    let mut join = parse(flags).unwrap();
    join.prepare(tables)?;
    join.plan()?;
    Ok(join)
}

/// Places of the join columns on both sides.
fn places(flags: &str, tables: &Tables) -> Result<(Vec<usize>, Vec<usize>), PlanError> {
    let prepared = prepare(flags, tables)?.prepared.unwrap();
    Ok((prepared.left.keys, prepared.right.keys))
}

fn reason(result: Result<impl std::fmt::Debug, PlanError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn columns_are_found_by_name_and_by_number() {
    assert_eq!(places("--on id=key", &NAMED).unwrap(), (vec![0], vec![0]));
    assert_eq!(places("--on city=town,id=key", &NAMED).unwrap(), (vec![1, 0], vec![1, 0]));
    assert_eq!(places("--on city=2", &NAMED).unwrap(), (vec![1], vec![1]));
    assert_eq!(places("--on 3=1", &NAMED).unwrap(), (vec![2], vec![0]));
    assert_eq!(places("--on 2", &NAMED).unwrap(), (vec![1], vec![1]));
}

#[test]
fn column_called_by_a_number_goes_before_the_one_at_that_place_which_is_written_with_a_number_sign() {
    let months = Tables { left: ("name,2,1", 9), right: ("0,07", 9) };
    let left = |on: &str| places(&format!("--on {on} --header yes"), &months).unwrap().0[0];
    let right = |on: &str| places(&format!("--on {on} --header yes"), &months).unwrap().1[0];
    assert_eq!(["name=0", "1=0", "2=0", "3=0", "#1=0", "#2=0", "#3=0"].map(left), [0, 2, 1, 2, 0, 1, 2]);
    assert_eq!(["1=0", "1=1", "1=#1", "1=07", "1=2"].map(right), [0, 0, 0, 1, 1]);
    assert_eq!(places("--on 1=2 --header no", &months).unwrap(), (vec![0], vec![1]), "no names, only places");
    assert_eq!(places("--on #3", &Tables { left: ("a,b,c", 9), right: ("", 9) }).unwrap().0, [2]);
    assert!(
        reason(places("--on 7=0 --header yes", &months)).contains("there are 3 columns in the left table")
    );
    let twice = Tables { left: ("1,1", 9), right: ("a", 9) };
    assert!(reason(places("--on 1=a", &twice)).contains("several columns"));
    let joined = prepare("--on name=0 --columns left.1,left.#1,right.07", &months).unwrap();
    assert_eq!(joined.columns().unwrap(), ["1", "name", "07"]);
}

#[test]
fn columns_that_do_not_exist_are_refused_with_those_that_do() {
    assert!(
        reason(places("--on id=id", &NAMED))
            .ends_with("there are only the columns key, town in the right table, by the first row of r0")
    );
    assert!(reason(places("--on 1=3", &NAMED)).contains("there are 2 columns in the right table"));
    assert!(reason(places("--on id=key --header no", &NAMED)).contains("without a header"));
    let twice = Tables { left: ("a,a", 9), right: ("a", 9) };
    assert!(reason(places("--on a=a", &twice)).contains("several columns"));
    for flags in ["--on =a", "--on a=", "--on =", "--on a=b=", "--on ,"] {
        // A name may contain `=` only on the right side, where it is part of the name.
        assert!(flags == "--on a=b=" || parse(flags).is_err(), "{flags}");
    }
}

#[test]
fn files_of_a_table_with_other_columns_are_refused_by_name() {
    for (rows, listed) in
        [("a,b|b,c", "b, c"), ("a,b|a,b|a", "a"), ("a,b|a,b,c", "a, b, c"), ("a,b|b,a", "b, a")]
    {
        let tables = Tables { left: (rows, 9), right: ("a", 9) };
        let number = rows.matches('|').count();
        let error = reason(places("--on a", &tables));
        let expected =
            format!("cannot use input l{number}: its header has the columns {listed}, but that of l0");
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.contains("the first file of the left table, has a, b;"), "{error}");
    }
    let quoted = Tables { left: ("user,x|\"user\",x", 9), right: ("user", 9) };
    assert!(prepare("--on user", &quoted).is_ok());
}

#[test]
fn a_header_is_assumed_exactly_if_a_column_is_named() {
    let header = |flags| prepare(flags, &NAMED).unwrap().prepared.unwrap().header;
    assert!(header("--on id=key"));
    assert!(!header("--on 1=1"));
    assert!(header("--on 1=1 --header yes"));
}

#[test]
fn output_columns_are_named_only_with_a_header() {
    let columns = |flags| prepare(flags, &NAMED).unwrap().columns();
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>());
    assert_eq!(columns("--on id=key"), names(&["id", "city", "na,me", "key", "town"]));
    assert_eq!(columns("--on id=key --type semi"), names(&["id", "city", "na,me"]));
    assert_eq!(columns("--on 1=1"), None);
}

#[test]
fn an_empty_table_is_refused_only_if_it_needs_a_header() {
    let empty = Tables { left: ("", 0), right: ("a,b", 9) };
    assert_eq!(places("--on 2=1", &empty).unwrap(), (vec![1], vec![0]));
    assert!(matches!(places("--on a=a", &empty), Err(PlanError::Input { .. })));
}

#[test]
fn the_larger_table_streams_in_a_repartition_join() {
    let swapped = Tables { left: ("id", 10), right: ("key", 1000) };
    let remark = |flags, tables| prepare(flags, tables).unwrap().remarks().concat();
    assert_eq!(
        remark("--on id=key --strategy repartition", &NAMED),
        "repartition join (as asked); the left table streams"
    );
    assert_eq!(
        remark("--on id=key --strategy repartition", &swapped),
        "repartition join (as asked); the right table streams"
    );
    assert_eq!(
        remark("--on id=key", &swapped),
        "broadcast join (the left table has 10 bytes); the right table streams"
    );
    assert!(
        remark("--on id=key --type semi --strategy repartition", &swapped)
            .ends_with("the left table streams")
    );
}

#[test]
fn auto_broadcasts_a_small_table_where_the_type_allows_it() {
    let swapped = Tables { left: ("id", 10), right: ("key", 1000) };
    let broadcast = |flags: &str, tables| {
        let flags = format!("--on id=key --strategy auto --broadcast-max 100 --type {flags}");
        prepare(&flags, tables).unwrap().prepared.unwrap().broadcast
    };
    for (join_type, small_right, small_left) in [
        ("inner", Some(Side::Right), Some(Side::Left)),
        ("left", Some(Side::Right), None),
        ("right", None, Some(Side::Left)),
        ("full", None, None),
        ("semi", Some(Side::Right), None),
        ("anti", Some(Side::Right), None),
    ] {
        assert_eq!(broadcast(join_type, &NAMED), small_right, "{join_type}, small right table");
        assert_eq!(broadcast(join_type, &swapped), small_left, "{join_type}, small left table");
    }
}

#[test]
fn a_broadcast_that_cannot_be_is_refused_with_the_reason() {
    let refused = |flags: &str| reason(prepare(&format!("--on id=key --strategy broadcast {flags}"), &NAMED));
    assert!(refused("--type full").contains("a broadcast cannot serve a full join"));
    assert!(refused("--broadcast-max 9").contains("the right table has 10 bytes, and --broadcast-max is 9"));
}

fn reader(keys: &[usize], width: usize) -> RowReader {
    RowReader::new(
        &columns::JoinTable { keys: keys.to_vec(), width, names: None, first_file: String::new(), bytes: 0 },
        b',',
        None,
    )
}

fn read(keys: &[usize], width: usize, text: &str) -> Result<(Vec<u8>, String), String> {
    let source = Source { path: "file".to_owned(), input: 0 };
    let mut reader = reader(keys, width);
    let record = Record::new(text.as_bytes(), 7, &source);
    let row = reader.read(record).map_err(|error| error.to_string())?;
    Ok((row.key.to_vec(), String::from_utf8(row.text.to_vec()).unwrap()))
}

#[test]
fn rows_keep_quotes_only_where_fields_need_them() {
    for (text, key, normal) in [
        ("a,b", "b", "a,b"),
        ("\"a\",\"b\"", "b", "a,b"),
        ("\"a,1\",\"say \"\"b\"\"\"", "say \"b\"", "\"a,1\",\"say \"\"b\"\"\""),
        ("\"two\nlines\",", "", "\"two\nlines\","),
        ("5\" disk,x", "x", "\"5\"\" disk\",x"),
        ("a,\"open", "open", "a,open"),
        ("a,b\r", "b\r", "a,\"b\r\""),
    ] {
        assert_eq!(read(&[1], 2, text), Ok((key.as_bytes().to_vec(), normal.to_owned())), "{text:?}");
    }
    // It needs quotes only if it is a whole line, which is determined where lines are assembled.
    assert_eq!(read(&[0], 1, "\"\""), Ok((Vec::new(), String::new())));
}

#[test]
fn rows_of_another_width_are_refused() {
    let error = read(&[0], 3, "a,b").unwrap_err();
    assert_eq!(error, "it has 2 fields, the first row of that table has 3");
}

#[test]
fn keys_of_several_columns_do_not_run_together() {
    let key = |text| read(&[0, 1], 2, text).unwrap().0;
    assert_ne!(key("ab,c"), key("a,bc"));
    assert_eq!(key("a,b"), key("\"a\",\"b\""));
}

#[test]
fn a_held_table_gives_the_partners_of_a_key_in_its_order() {
    let source = Source { path: "file".to_owned(), input: 0 };
    let format = RecordFormat::Csv { delimiter: b',', header: false };
    let files = [&b"a,1\nb,2\r\na,3"[..], b"a,4\n"].map(|bytes| Block::new(bytes, 0, format, &source));
    let table = HeldTable::build(&files, b',', &mut reader(&[0], 2), &|_, error| Err(error)).unwrap();
    assert_eq!(table.partners(b"a").collect::<Vec<_>>(), [b"a,1", b"a,3", b"a,4"]);
    assert_eq!(table.partners(b"b").collect::<Vec<_>>(), [b"b,2"]);
    assert_eq!(table.partners(b"c").count(), 0);
}

#[test]
fn output_columns_are_found_and_refused_with_the_reason() {
    let output = |flags: &str| prepare(flags, &NAMED).map(|join| join.prepared.unwrap().output.unwrap());
    let places = vec![(Side::Right, 1), (Side::Left, 2), (Side::Right, 0)];
    assert_eq!(output("--on id=key --columns right.town,left.3,right.1").unwrap(), places);
    let columns = |flags: &str| prepare(flags, &NAMED).unwrap().columns().unwrap();
    assert_eq!(columns("--on id=key --columns right.town,left.1"), ["town", "id"]);
    let refused = |flags: &str| reason(output(&format!("--on id=key --columns {flags}")));
    assert!(refused("left.street").contains("only the columns id, city, na,me in the left table"));
    assert!(refused("right.3").contains("there are 2 columns in the right table"));
    assert!(refused("right.1 --type semi").contains("writes left rows alone"));
    for text in ["street", "middle.1", "left.", "left.0x"] {
        assert_eq!(parse(&format!("--on 1 --columns {text}")).is_err(), text != "left.0x", "{text}");
    }
}

#[test]
fn plain_rows_and_rows_read_one_by_one_have_the_same_keys_and_text() {
    let source = Source { path: "file".to_owned(), input: 0 };
    let format = RecordFormat::Csv { delimiter: b',', header: false };
    let bytes = b"1,x,\n,y,2\n\n3,,z";
    for selected in [None, Some(vec![2, 0]), Some(vec![])] {
        let table =
            columns::JoinTable { keys: vec![1], width: 3, names: None, first_file: String::new(), bytes: 0 };
        let mut reader = RowReader::new(&table, b',', selected);
        let block = Block::new(bytes, 0, format, &source);
        let key = reader.plain_key(&block).unwrap();
        let mut plain = Vec::new();
        text::for_each_plain_row(bytes, b',', |row| {
            let mut pieces = Vec::new();
            reader.plain_row(row, |piece| pieces.push(piece))?;
            plain.push((row.field(key).to_vec(), pieces.join(&b',')));
            TaskResult::Ok(())
        })
        .unwrap();
        let one_by_one: Vec<_> = block
            .records()
            .map(|record| {
                let row = reader.read(record).unwrap();
                (row.key.to_vec(), row.text.to_vec())
            })
            .collect();
        assert_eq!(plain, one_by_one);
    }
}

proptest! {
    #[test]
    fn a_held_table_finds_what_a_map_finds(
        rows in proptest::collection::vec((0u8..40, 0u8..250), 0..300), quoted: bool,
    ) {
        let mut bytes = Vec::new();
        let mut oracle = std::collections::BTreeMap::<Vec<u8>, Vec<Vec<u8>>>::new();
        for (key, value) in &rows {
            let line = format!("k{key},{value}");
            oracle.entry(format!("k{key}").into_bytes()).or_default().push(line.clone().into_bytes());
            let end = if quoted { "\r\n" } else { "\n" };
            bytes.extend_from_slice(format!("{line}{end}").as_bytes());
        }
        let source = Source { path: "file".to_owned(), input: 0 };
        let format = RecordFormat::Csv { delimiter: b',', header: false };
        let file = Block::new(&bytes, 0, format, &source);
        let table = HeldTable::build(&[file], b',', &mut reader(&[0], 2), &|_, error| Err(error)).unwrap();
        for key in (0..45).map(|key| format!("k{key}").into_bytes()) {
            let found: Vec<Vec<u8>> = table.partners(&key).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(found, oracle.remove(&key).unwrap_or_default());
        }
    }

    #[test]
    fn rows_read_back_as_the_same_fields(
        fields in proptest::collection::vec("[a,\"\r\n ]{0,4}", 1..4),
    ) {
        let mut row = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                row.push(b',');
            }
            row.extend_from_slice(format!("\"{}\"", field.replace('"', "\"\"")).as_bytes());
        }
        let (key, normal) = read(&[0], fields.len(), std::str::from_utf8(&row).unwrap()).unwrap();
        prop_assert_eq!(key, fields[0].as_bytes());
        let back: Vec<String> = text::csv_fields(normal.as_bytes(), b',')
            .map(|field| String::from_utf8(field.into_owned()).unwrap())
            .collect();
        prop_assert_eq!(back, fields);
    }
}

#[test]
fn prepared_join_with_a_place_that_no_row_has_is_refused() {
    let prepared =
        || prepare("--on id=key --columns left.city,right.town", &NAMED).unwrap().prepared.unwrap();
    prepared().check().unwrap();
    type Change = fn(&mut PreparedJoin);
    let changes: [(&str, Change); 5] = [
        ("no columns", |it| it.left.width = 0),
        ("too many columns", |it| it.right.width = usize::MAX),
        ("a key beyond the row", |it| it.left.keys = vec![3]),
        ("a column to write beyond the row", |it| it.output = Some(vec![(Side::Right, 2)])),
        ("a short header", |it| drop(it.right.names.as_mut().unwrap().pop())),
    ];
    for (what, change) in changes {
        let mut changed = prepared();
        change(&mut changed);
        assert!(reason(changed.check()).contains("a place is beyond"), "{what}");
    }
}
