//! Reads the menu (`MENU.md`): the matrix must have rows for its entries, and the tests it names must exist.

use super::phase::PHASES;
use super::row::Row;
use super::{disks, masters, memory, network, processes};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Name in the menu for entries that the matrix covers.
const MATRIX: &str = "matrix";

/// Directories that contain the named tests.
const DIRECTORIES: [&str; 5] = ["cli/tests", "worker/src", "worker/tests", "runtime/src", "scheduler/src"];

/// Number of lines of each letter of the menu.
const LINES: [(char, usize); 7] = [('F', 18), ('N', 17), ('D', 13), ('T', 8), ('O', 5), ('I', 12), ('U', 16)];

/// All rows of the matrix, by file.
const FILES: [(&str, &[Row]); 5] = [
    ("masters", masters::ROWS),
    ("processes", processes::ROWS),
    ("network", network::ROWS),
    ("disks", disks::ROWS),
    ("memory", memory::ROWS),
];

fn rows() -> impl Iterator<Item = &'static Row> {
    FILES.iter().flat_map(|(_, rows)| *rows)
}

/// One line of the menu.
struct Item<'a> {
    id: &'a str,
    tried_by: &'a str,
}

impl<'a> Item<'a> {
    /// Returns the names of tests in it.
    fn tests(&self) -> impl Iterator<Item = &'a str> {
        let names = self.tried_by.split('`').skip(1).step_by(2);
        names.filter(|name| {
            name.bytes().all(|byte| byte.is_ascii_lowercase() || b"_0123456789".contains(&byte))
        })
    }

    fn is_in_the_matrix(&self) -> bool {
        self.tried_by.split(", ").any(|by| by == MATRIX)
    }
}

/// Returns the lines of the menu.
fn items(menu: &str) -> Vec<Item<'_>> {
    let rows = menu.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    let rows = rows.filter(|row| row[0] != "id");
    rows.map(|row| match row[..] {
        [id, fault, tried_by] if !fault.is_empty() && !tried_by.is_empty() => Item { id, tried_by },
        _ => panic!("not a line of the menu: {row:?}"),
    })
    .collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn menu() -> String {
    fs::read_to_string(root().join("cli/tests/it/faults/MENU.md")).unwrap()
}

/// Adds the names of all tests in Rust files below a directory.
fn add_tests(directory: &Path, tests: &mut BTreeSet<String>) {
    for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            add_tests(&path, tests);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(path).unwrap();
            let marked = text.split("#[test]\n").skip(1).chain(text.split("#[tokio::test").skip(1));
            let names = marked.filter_map(|rest| rest.split_once("fn ")?.1.split('(').next());
            tests.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn menu_has_every_line_once() {
    let menu = menu();
    let ids: Vec<&str> = items(&menu).iter().map(|item| item.id).collect();
    let expected =
        LINES.iter().flat_map(|(letter, count)| (1..=*count).map(move |line| format!("{letter}{line:02}")));
    assert_eq!(ids, expected.collect::<Vec<_>>());
}

#[test]
fn menu_names_tests_that_there_are() {
    let mut tests = BTreeSet::new();
    DIRECTORIES.iter().for_each(|directory| add_tests(&root().join(directory), &mut tests));
    let menu = menu();
    let named = items(&menu)
        .into_iter()
        .flat_map(|item| item.tests().map(move |test| (item.id, test)).collect::<Vec<_>>());
    let missing: Vec<_> = named.filter(|(_, test)| !tests.contains(*test)).collect();
    assert_eq!(missing, []);
}

#[test]
fn menu_says_matrix_where_the_matrix_has_rows_and_nowhere_else() {
    let menu = menu();
    let items = items(&menu);
    for item in &items {
        let has_rows = rows().any(|row| row.menu.contains(&item.id));
        assert_eq!(item.is_in_the_matrix(), has_rows, "{}", item.id);
    }
    for row in rows() {
        let unknown = row.menu.iter().find(|id| items.iter().all(|item| item.id != **id));
        assert_eq!(unknown, None, "{} covers what is not on the menu", row.test);
    }
}

#[test]
fn rows_of_the_matrix_have_each_phase_once_or_say_why_not() {
    for row in rows() {
        let names: BTreeSet<&str> = row.phases.iter().map(|phase| phase.name()).collect();
        assert_eq!(names.len(), row.phases.len(), "{} has a phase twice", row.test);
        assert_eq!(names.len() == PHASES.len(), row.otherwise.is_empty(), "{}", row.test);
    }
    if let Some(directory) = std::env::var_os("GRISTMILL_MATRIX").map(PathBuf::from) {
        fs::write(
            directory.join("rows.jsonl"),
            FILES.iter().flat_map(|(file, rows)| rows.iter().map(|row| line(file, row))).collect::<String>(),
        )
        .unwrap();
    }
}

/// Returns a row for `tests/faults/matrix`.
fn line(file: &str, row: &Row) -> String {
    let names = |phases: &[super::phase::Phase]| phases.iter().map(|phase| phase.name()).collect::<Vec<_>>();
    let line = json!({
        "file": file, "subject": format!("{:?}", row.subject).to_lowercase(), "test": row.test, "menu": row.menu,
        "phases": names(row.phases), "all": names(&PHASES), "otherwise": row.otherwise,
        "bound": row.bound.as_secs(),
    });
    format!("{line}\n")
}
