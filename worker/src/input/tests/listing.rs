//! Files of a path, and their packing.

use super::*;
use std::os::unix::fs::symlink;
use std::path::Path;

pub(super) fn make_pipe(path: &Path) {
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
}

fn names(files: &Files, paths: &[String]) -> Result<Vec<String>, InputError> {
    let base = files.text("");
    let pieces = list_input(&input(paths, RecordFormat::Lines), &LocalListing)?;
    Ok(pieces.iter().map(|piece| piece.name.to_text().replace(&base, "")).collect())
}

#[test]
fn directory_stands_for_its_files_in_the_order_of_names() {
    let files = Files::new();
    std::fs::create_dir(files.path("dir")).unwrap();
    for name in ["b", "a", "B", "é", "_SUCCESS", ".hidden", "empty"] {
        files.write(&format!("dir/{name}"), if name == "empty" { "" } else { "x" });
    }
    symlink("a", files.path("dir/link")).unwrap();
    std::fs::create_dir(files.path("dir/_temporary")).unwrap();
    let listed = names(&files, &[files.text("dir")]).unwrap();
    assert_eq!(listed, ["dir/B", "dir/a", "dir/b", "dir/link", "dir/é"]);
}

#[test]
fn empty_file_is_refused_by_name_when_it_should_hold_a_table() {
    let files = Files::new();
    std::fs::create_dir(files.path("dir")).unwrap();
    for name in ["a.parquet", "b.arrow", "c.FEATHER", "d.txt"] {
        files.write(&format!("dir/{name}"), "");
    }
    let said = names(&files, &[files.text("dir")]).unwrap_err();
    let InputError::Paths { first, total: 3 } = &said else { panic!("{said:?}") };
    for (error, name) in first.iter().zip(["a.parquet", "b.arrow", "c.FEATHER"]) {
        assert!(error.to_string().contains("is empty, and a") && error.is_input_fault(), "{error:?}");
        assert!(error.to_string().contains(name), "{error}");
    }
    // For jobs that do not read tables, every byte is present.
    let whole = input(&[files.text("dir")], RecordFormat::WholeFile);
    assert_eq!(list_input(&whole, &LocalListing).unwrap(), []);
}

#[test]
fn directory_of_many_files_is_listed_in_order_with_what_each_looks_like() {
    let files = Files::new();
    std::fs::create_dir(files.path("dir")).unwrap();
    // Enough for several threads.
    let count = 3 * list::LOOKS_EACH_MIN;
    for number in 0..count {
        files.write(&format!("dir/{number:05}"), "x".repeat(number % 7));
    }
    symlink("00006", files.path("dir/link")).unwrap();
    let pieces = list_input(&input(&[files.text("dir")], RecordFormat::Lines), &LocalListing).unwrap();
    let mut expected: Vec<(String, u64)> = (0..count)
        .filter(|number| number % 7 != 0)
        .map(|number| (files.text(&format!("dir/{number:05}")), number as u64 % 7))
        .collect();
    expected.push((files.text("dir/link"), 6));
    let listed: Vec<(String, u64)> =
        pieces.iter().map(|piece| (piece.path.to_text(), piece.stamp.size)).collect();
    assert!(listed == expected, "{} files", listed.len());
}

#[test]
fn output_that_is_not_complete_is_refused_as_long_as_somebody_has_claimed_it() {
    let files = Files::new();
    std::fs::create_dir_all(files.path("dir/_temporary")).unwrap();
    files.write("dir/part-00000", "x");
    assert_eq!(names(&files, &[files.text("dir")]).unwrap(), ["dir/part-00000"], "nobody has");
    files.write("dir/_temporary/probe-1", "{}");
    let error = names(&files, &[files.text("dir")]).unwrap_err();
    assert!(error.to_string().contains("is an output that a job is writing"), "{error}");
    assert!(error.is_input_fault());
    let part = names(&files, &[files.text("dir/part-00000")]).unwrap();
    assert_eq!(part, ["dir/part-00000"], "named itself");
    files.write("dir/_SUCCESS", "");
    assert_eq!(names(&files, &[files.text("dir")]).unwrap(), ["dir/part-00000"]);
}

#[test]
fn path_given_twice_is_read_twice_and_hidden_names_may_be_given() {
    let files = Files::new();
    let (one, hidden) = (files.write("one", "x"), files.write("_two", "y"));
    let listed = names(&files, &[one.clone(), hidden, one]).unwrap();
    assert_eq!(listed, ["one", "_two", "one"]);
}

#[test]
fn relative_path_keeps_its_name_and_is_opened_by_its_absolute_path() {
    let piece =
        list_input(&input(&["Cargo.toml".into()], RecordFormat::Lines), &LocalListing).unwrap().remove(0);
    assert_eq!(piece.name.to_text(), "Cargo.toml");
    assert_eq!(piece.path.to_path(), std::path::absolute("Cargo.toml").unwrap());
    for directory in
        ["src/input/tests", "src/input/tests/", "./src/input/tests/.", "src/input/../input/tests"]
    {
        let pieces = list_input(&input(&[directory.to_owned()], RecordFormat::Lines), &LocalListing).unwrap();
        assert!(!pieces.is_empty());
        for piece in pieces {
            assert_eq!(
                piece.path.to_path(),
                std::path::absolute(piece.name.to_path()).unwrap(),
                "{directory}"
            );
        }
    }
}

#[test]
fn listing_names_what_is_wrong_with_every_path() {
    let files = Files::new();
    make_pipe(&files.path("pipe"));
    symlink("nowhere", files.path("dangling")).unwrap();
    symlink("loop", files.path("loop")).unwrap();
    std::fs::create_dir_all(files.path("dir/nested")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(files.path("socket")).unwrap();
    let check = |path: &str, expected: fn(&InputError) -> bool| {
        let error = names(&files, &[path.to_owned()]).unwrap_err();
        assert!(expected(&error), "{path}: {error}");
        assert!(error.is_input_fault());
    };
    check(&files.text("missing"), |error| matches!(error, InputError::Missing { .. }));
    check("", |error| matches!(error, InputError::Missing { .. }));
    check(&files.text("dangling"), |error| matches!(error, InputError::Missing { .. }));
    check(&files.text("loop"), |error| matches!(error, InputError::Unreadable { .. }));
    check(&files.text("pipe"), |error| error.to_string().ends_with("is a pipe, not a regular file"));
    check(&files.text("socket"), |error| error.to_string().ends_with("is a socket, not a regular file"));
    check("/dev/null", |error| error.to_string().ends_with("is a device, not a regular file"));
    check("worker-3:relative", |error| error.to_string().contains("does not begin with /"));
    check("worker-3:/file", |error| error.to_string().contains("cannot be asked from here"));
    let error = names(&files, &[files.text("dir")]).unwrap_err();
    let nested = files.text("dir/nested");
    assert_eq!(
        error.to_string(),
        format!("input {nested} is a directory within another one; with --recursive its files are read too")
    );
}

#[test]
fn listing_collects_the_first_ten_bad_paths() {
    let files = Files::new();
    let mut paths: Vec<String> = (0..25).map(|index| files.text(&format!("missing-{index:02}"))).collect();
    paths.insert(3, files.write("good", "x"));
    let text = names(&files, &paths).unwrap_err().to_string();
    assert!(text.starts_with("25 paths cannot be used as input:"), "{text}");
    assert_eq!(text.lines().count(), 11);
    assert!(text.contains("missing-09") && !text.contains("missing-10") && !text.contains("good"), "{text}");
}

#[test]
fn small_files_are_packed_in_order_and_large_ones_stand_alone() {
    let files = Files::new();
    let paths: Vec<String> = [("a", 40), ("b", 60), ("c", 1), ("d", 250), ("e", 5), ("f", 0), ("g", 5)]
        .map(|(name, size)| files.write(name, vec![b'\n'; size]))
        .to_vec();
    let splits = plan(&input(&paths, RecordFormat::Lines), 100).unwrap();
    let shape: Vec<Vec<(String, u64, u64)>> = splits
        .iter()
        .map(|split| {
            let name = |piece: &Piece| piece.name.to_text().rsplit('/').next().unwrap().to_owned();
            split.pieces.iter().map(|piece| (name(piece), piece.offset, piece.length)).collect()
        })
        .collect();
    let of = |name: &str, offset, length| (name.to_owned(), offset, length);
    assert_eq!(
        shape,
        [
            vec![of("a", 0, 40), of("b", 0, 60)],
            vec![of("c", 0, 1)],
            vec![of("d", 0, 100)],
            vec![of("d", 100, 100)],
            vec![of("d", 200, 50)],
            vec![of("e", 0, 5), of("g", 0, 5)],
        ]
    );
}

#[test]
fn files_of_two_inputs_never_share_a_split_and_packs_are_limited() {
    let files = Files::new();
    let path = files.write("a", "x");
    let inputs = [input(&vec![path.clone(); 5], RecordFormat::Lines), input(&[path], RecordFormat::Lines)];
    let rules = SplitRules { split_bytes: 100, pieces_max: 2, ..SplitRules::default() };
    let splits = plan_splits(&inputs, &LocalListing, rules).unwrap();
    let shape: Vec<(u32, usize)> = splits.iter().map(|split| (split.input, split.pieces.len())).collect();
    assert_eq!(shape, [(0, 2), (0, 2), (0, 1), (1, 1)]);
}

#[test]
fn files_that_stand_alone_are_cut_as_in_hadoop() {
    let files = Files::new();
    // A last piece of up to a tenth more is not cut: 110 bytes are one split of 100, 111 are two.
    let paths = [("a", 1), ("b", 110), ("c", 111), ("d", 310)]
        .map(|(name, size)| files.write(name, "x".repeat(size)));
    let goal = Some(SplitGoal { maps: 1, bytes_min: 1, bytes_max: 100 });
    let cuts = FileCuts { alone: true, goal, lines: None };
    let rules = SplitRules { split_bytes: 100, cuts, ..SplitRules::default() };
    let splits = plan_splits(&[input(&paths, RecordFormat::Lines)], &LocalListing, rules).unwrap();
    let lengths: Vec<Vec<u64>> =
        splits.iter().map(|split| split.pieces.iter().map(|piece| piece.length).collect()).collect();
    assert_eq!(lengths, [[1], [110], [100], [11], [100], [100], [110]]);
}

#[test]
fn split_has_a_smallest_size_whatever_is_asked_for() {
    let files = Files::new();
    let paths = [files.write("a", "x\n".repeat(150_000))];
    for goal in [None, Some(SplitGoal { maps: 0, bytes_min: 0, bytes_max: 0 })] {
        let rules = SplitRules {
            split_bytes: 1,
            cuts: FileCuts { goal, ..FileCuts::default() },
            ..SplitRules::default()
        };
        let splits = plan_splits(&[input(&paths, RecordFormat::Lines)], &LocalListing, rules).unwrap();
        assert_eq!((splits.len(), splits[0].bytes()), (100_000, 3), "{goal:?}");
    }
}

#[test]
fn files_are_cut_behind_so_many_lines_if_asked() {
    let files = Files::new();
    let paths = [files.write("a", "1\n22\n333\n4\n5"), files.write("b", "6\n7\n")];
    let cuts = FileCuts { alone: true, goal: None, lines: Some(2) };
    let rules = SplitRules { cuts, ..SplitRules::default() };
    let splits = plan_splits(&[input(&paths, RecordFormat::Lines)], &LocalListing, rules).unwrap();
    let pieces: Vec<(u64, u64)> =
        splits.iter().map(|split| (split.pieces[0].offset, split.pieces[0].length)).collect();
    assert_eq!(pieces, [(0, 5), (5, 6), (11, 1), (0, 4)]);
    assert!(splits.iter().all(|split| split.pieces.len() == 1));
}

#[test]
fn input_of_empty_files_has_no_splits() {
    let files = Files::new();
    let paths = [files.write("a", ""), files.write("b.gz", "")];
    assert_eq!(plan(&input(&paths, RecordFormat::Lines), 100).unwrap(), []);
}

#[test]
fn files_of_size_0_that_have_content_are_refused() {
    let error = names(&Files::new(), &["/proc/self/status".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("says that its size is"), "{error}");
    assert!(error.is_input_fault());
    let expected =
        "input /proc/self/status says that its size is 0 but has content; copy it and give the copy";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn first_records_are_the_first_rows_that_are_not_blank() {
    let files = Files::new();
    let paths = [files.write("empty", "\n\r\n"), files.write("b", "\"a\nb\",c\r\n1,2\n")];
    let table = input(&paths, RecordFormat::Csv { delimiter: b',', header: true });
    let first = plan::first_records(&table, &LocalListing, &LocalFiles, &InputLimits::default()).unwrap();
    let expected = plan::FirstRecord { path: FilePath::from(&*paths[1]), bytes: b"\"a\nb\",c".to_vec() };
    assert_eq!(first, [expected]);
    assert_eq!(plan::input_bytes(&table, &LocalListing).unwrap(), 16);
}

#[test]
fn first_records_are_those_of_each_file_however_long_or_late() {
    let files = Files::new();
    let (blank, long) = ("\n".repeat(100_000), "x".repeat(100_000));
    let texts = ["a,b\n1,2\n".to_owned(), blank.clone() + "c\n", long.clone() + "\r\n3\n", blank];
    let paths: Vec<String> =
        texts.iter().enumerate().map(|(number, text)| files.write(&format!("{number}"), text)).collect();
    let table = input(&paths, RecordFormat::Csv { delimiter: b',', header: true });
    for access in [&LocalFiles as &dyn FileAccess, &AsRemote] {
        let first = plan::first_records(&table, &LocalListing, access, &InputLimits::default()).unwrap();
        let bytes: Vec<&[u8]> = first.iter().map(|record| &record.bytes[..]).collect();
        assert_eq!(bytes, [b"a,b", &b"c"[..], long.as_bytes()]);
        assert_eq!(first[2].path.to_text(), paths[2]);
    }
}

fn list_below(path: &str) -> Result<Vec<String>, InputError> {
    let listed = list::list_local_with(&FilePath::from(path), list::Subdirectories::Read)?;
    Ok(listed.iter().map(|file| file.path.to_text()).collect())
}

#[test]
fn link_that_leads_back_to_a_directory_in_which_it_lies_is_refused_and_named() {
    let files = Files::new();
    std::fs::create_dir_all(files.path("in/deep/er")).unwrap();
    files.write("in/a", "x");
    for link in ["one", "two"] {
        symlink("../..", files.path("in/deep/er").join(link)).unwrap();
    }
    let error = list_below(&files.text("in")).unwrap_err();
    let InputError::Paths { first, total: 2 } = &error else { panic!("{error}") };
    let is_named = |error: &InputError, link: &str| {
        let (path, to) = (files.text(&format!("in/deep/er/{link}")), files.text("in"));
        error.to_string().starts_with(&format!("input {path} leads back to {to}, in which it lies"))
    };
    assert!(is_named(&first[0], "one") && is_named(&first[1], "two"), "{error}");
    assert!(error.is_input_fault());
}

#[test]
fn link_to_a_directory_beside_it_is_followed() {
    let files = Files::new();
    std::fs::create_dir_all(files.path("in/a")).unwrap();
    files.write("in/a/x", "x");
    symlink("a", files.path("in/b")).unwrap();
    let listed = list_below(&files.text("in")).unwrap();
    assert_eq!(listed, [files.text("in/a/x"), files.text("in/b/x")]);
}

#[test]
fn directories_one_within_the_other_are_read_down_to_the_limit_and_refused_below_it() {
    let files = Files::new();
    let deep = |count: usize| files.path("in").join("d/".repeat(count - 1));
    std::fs::create_dir_all(deep(wildcards::DEPTH_MAX)).unwrap();
    std::fs::write(deep(wildcards::DEPTH_MAX).join("x"), "x").unwrap();
    assert_eq!(list_below(&files.text("in")).unwrap().len(), 1);
    std::fs::create_dir(deep(wildcards::DEPTH_MAX + 1)).unwrap();
    let error = list_below(&files.text("in")).unwrap_err();
    assert!(error.to_string().contains("lies 256 directories deep"), "{error}");
}

#[test]
fn links_that_make_many_names_of_few_end_at_a_limit() {
    let files = Files::new();
    std::fs::create_dir_all(files.path("in/20")).unwrap();
    files.write("in/20/x", "x");
    // Each directory leads to the next by two routes: a million names for one file.
    for level in 0..20 {
        std::fs::create_dir_all(files.path(&format!("in/{level}"))).unwrap();
        for link in ["a", "b"] {
            symlink(format!("../{}", level + 1), files.path(&format!("in/{level}/{link}"))).unwrap();
        }
    }
    let path = FilePath::from(&*files.text("in"));
    let error = list::list_within(&path, list::Subdirectories::Read, 1000).unwrap_err();
    assert!(error.to_string().contains("has more than 1000 files"), "{error}");
}
