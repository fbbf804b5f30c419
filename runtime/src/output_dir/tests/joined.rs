//! Parts of divided reduces: the files of several attempts become one file.

use super::*;
use data_encoding::HEXLOWER;
use gristmill_scheduler::ids::AttemptId;
use gristmill_worker::output::open_part;
use std::io::{Read, Seek, SeekFrom, Write};

/// Number of partitions of the jobs here. Rests of divided reduces have higher indices.
const PARTITIONS: u32 = 2;

/// Files of an attempt: the content of its main part and of its named outputs.
#[derive(Clone, Copy)]
struct Piece<'a> {
    attempt: AttemptId,
    main: &'a [u8],
    named: &'a [(&'a str, &'a str)],
}

fn piece<'a>(index: u32, main: &'a str, named: &'a [(&'a str, &'a str)]) -> Piece<'a> {
    Piece { attempt: TaskId::reduce(JobId(1), index).attempt(0), main: main.as_bytes(), named }
}

/// File of an attempt, and that of a named output if one is given.
fn path(out: &Path, attempt: AttemptId, output: Option<&str>) -> PathBuf {
    let name = built_name(&"probe-1".parse().unwrap(), attempt);
    let name = output.map_or_else(|| name.clone(), |output| format!("{name}.{output}"));
    out.join(TEMPORARY).join(name)
}

/// Writes the files of these attempts. Returns the part that they are together.
fn part_of(out: &Path, name: &str, pieces: &[Piece<'_>]) -> (Part, BuiltPart) {
    let report = |piece: &Piece<'_>| {
        let main = path(out, piece.attempt, None);
        fs::write(&main, piece.main).unwrap();
        for (output, content) in piece.named {
            fs::write(path(out, piece.attempt, Some(output)), content).unwrap();
        }
        let part = Part {
            name: name.to_owned(),
            bytes: piece.main.len() as u64,
            records: 1,
            crc32c: crc32c::crc32c(piece.main),
            named: piece.named.iter().map(|(output, content)| named(output, content)).collect(),
        };
        let stamp = FileStamp::from_metadata(&fs::metadata(&main).unwrap());
        (part, BuiltPart::new(piece.attempt, stamp))
    };
    join_parts(pieces.iter().map(report).collect()).unwrap()
}

fn claim(out: &Path) -> OutputDirectory {
    OutputDirectory::claim(out, false, false, "1").unwrap()
}

#[test]
fn part_of_a_divided_reduce_is_the_files_of_its_attempts_in_order() {
    for sync in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = claim(&out);
        // The front was divided twice, and its second rest once more.
        let pieces = [piece(0, "a\nb\n", &[]), piece(2, "c\n", &[]), piece(4, "", &[]), piece(3, "e\n", &[])];
        let (parts, built): (Vec<_>, Vec<_>) =
            [part_of(&out, "part-00000", &pieces), part_of(&out, "part-00001", &[piece(1, "z\n", &[])])]
                .into_iter()
                .unzip();
        drop(claimed.finish(&Success { parts: parts.clone(), ..success() }, &built, sync).unwrap());
        assert_eq!(names(&out), [SUCCESS, "part-00000", "part-00001"]);
        let published = fs::read(out.join("part-00000")).unwrap();
        assert_eq!(published, b"a\nb\nc\ne\n");
        assert_eq!(fs::read_to_string(out.join("part-00001")).unwrap(), "z\n");
        let listed = Success::read(&out).unwrap().parts;
        assert_eq!((listed[0].bytes, listed[0].crc32c), (8, crc32c::crc32c(&published)));
        assert_eq!(listed, parts, "as many as partitions");
    }
}

#[test]
fn joined_part_of_each_compression_is_read_as_the_text_of_all_attempts() {
    // "front\nmore\n", nothing, and "rest\n", compressed by gzip, zstd and bzip2.
    for (suffix, files) in [
        (
            ".gz",
            [
                "1f8b08000000000000034b2bcacf2be1cacd2f4ae50200fb0d90730b000000",
                "1f8b080000000000000303000000000000000000",
                "1f8b08000000000000032b4a2d2ee1020066c0f9b405000000",
            ],
        ),
        (
            ".zst",
            [
                "28b52ffd045859000066726f6e740a6d6f72650ae86dbd1a",
                "28b52ffd240001000099e9d851",
                "28b52ffd0458290000726573740a2fc2eb73",
            ],
        ),
        (
            ".bz2",
            [
                "425a6839314159265359d4374f59000001c1800010030394002000310c0820d19a981b428a1e2ee48a70a121a86e9eb2",
                "425a683917724538509000000000",
                "425a68393141592653597e2d3d4d0000014180001002001c0020002186819a0c5371772453850907e2d3d4d0",
            ],
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = claim(&out);
        let files = files.map(|file| HEXLOWER.decode(file.as_bytes()).unwrap());
        let pieces: Vec<Piece<'_>> = [0, PARTITIONS, PARTITIONS + 1]
            .into_iter()
            .zip(&files)
            .map(|(index, main)| Piece { main, ..piece(index, "", &[]) })
            .collect();
        let name = format!("part-00000{suffix}");
        let (part, built) = part_of(&out, &name, &pieces);
        drop(claimed.finish(&Success { parts: vec![part], ..success() }, &[built], false).unwrap());
        assert_eq!(fs::read(out.join(&name)).unwrap(), files.concat());
        let mut text = String::new();
        open_part(&out.join(&name)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "front\nmore\nrest\n", "{suffix}");
    }
}

#[test]
fn named_output_starts_with_the_first_attempt_that_has_written_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let claimed = claim(&out);
    let pieces = [
        piece(0, "a\n", &[("first", "1\n"), ("outer", "1\n")]),
        piece(2, "b\n", &[("inner", "2\n")]),
        piece(3, "c\n", &[("inner", "3\n"), ("last", "3\n"), ("outer", "3\n")]),
    ];
    let (part, built) = part_of(&out, "part-00000", &pieces);
    drop(claimed.finish(&Success { parts: vec![part], ..success() }, &[built], true).unwrap());
    assert_eq!(names(&out), [SUCCESS, "first", "inner", "last", "outer", "part-00000"]);
    for (file, expected) in [
        ("part-00000", "a\nb\nc\n"),
        ("first/part-00000", "1\n"),
        ("inner/part-00000", "2\n3\n"),
        ("last/part-00000", "3\n"),
        ("outer/part-00000", "1\n3\n"),
    ] {
        assert_eq!(fs::read_to_string(out.join(file)).unwrap(), expected, "{file}");
    }
}

/// Appends to a file, as a process does that dies before it has appended all.
fn append(path: &Path, content: &[u8]) {
    File::options().append(true).open(path).unwrap().write_all(content).unwrap();
}

#[test]
fn file_of_any_attempt_that_is_not_as_it_was_left_is_refused_and_leaves_no_output() {
    let pieces = [piece(0, "front\n", &[]), piece(2, "rest\n", &[("errors", "bad\n")])];
    let files = [(0, None), (2, None), (2, Some("errors"))];
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("longer", |path| append(path, b"x")),
        ("shorter", |path| File::options().write(true).open(path).unwrap().set_len(2).unwrap()),
        ("of other content", |path| {
            let length = fs::metadata(path).unwrap().len() as usize;
            fs::write(path, "x".repeat(length)).unwrap();
        }),
        ("missing", |path| fs::remove_file(path).unwrap()),
    ];
    for ((index, output), (how, change)) in
        files.into_iter().flat_map(|file| changes.map(|change| (file, change)))
    {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = claim(&out);
        let (part, built) = part_of(&out, "part-00000", &pieces);
        change(&path(&out, piece(index, "", &[]).attempt, output));
        let finished = claimed.finish(&Success { parts: vec![part], ..success() }, &[built], false);
        let error = finished.unwrap_err();
        let expected = match how {
            "missing" => matches!(error, OutputError::Gone { .. }),
            _ => matches!(error, OutputError::Changed { .. }),
        };
        assert!(expected, "{index} {output:?} {how}: {error}");
        assert!(!out.exists(), "{index} {output:?} {how}: no output is left");
    }
}

#[test]
fn files_that_do_not_make_up_their_part_are_refused() {
    type Change = fn(&mut Part, &mut BuiltPart);
    let changes: [(&str, Change); 9] = [
        ("its first file is not that of", |_, built| built.pieces.reverse()),
        ("its first file is not that of", |_, built| built.pieces[0].stamp.inode += 1),
        ("the file of an attempt twice", |_, built| built.pieces[1].attempt = built.attempt),
        ("not in the order of names", |_, built| {
            let twice = built.pieces[1].part.named[0].clone();
            built.pieces[1].part.named.push(twice);
        }),
        ("its sizes and sums", |part, _| part.bytes += 1),
        ("its sizes and sums", |part, _| part.crc32c += 1),
        ("its sizes and sums", |part, _| part.named.clear()),
        ("its sizes and sums", |_, built| built.pieces.truncate(1)),
        ("files of its format cannot be joined", |part, _| part.name += ".parquet"),
    ];
    for (expected, change) in changes {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = claim(&out);
        let pieces = [piece(0, "front\n", &[]), piece(2, "rest\n", &[("errors", "bad\n")])];
        let (mut part, mut built) = part_of(&out, "part-00000", &pieces);
        change(&mut part, &mut built);
        let error = claimed.finish(&Success { parts: vec![part], ..success() }, &[built], false).unwrap_err();
        let OutputError::Io { action: "publish", source, .. } = &error else { panic!("{error}") };
        assert!(source.to_string().contains(expected), "{source}");
        assert!(!out.exists(), "no output is left");
    }
}

#[test]
fn output_whose_closer_died_while_it_joined_files_is_completed() {
    let rests = "second\nthird\n".as_bytes();
    let tails = (0..=rests.len()).map(|length| rests[..length].to_vec());
    // After a power failure, the appended bytes may be any.
    for tail in tails.chain([vec![0; 5], vec![0; 50]]) {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let dead = claim(&out);
        let pieces = [
            piece(0, "first\n", &[("errors", "one\n")]),
            piece(2, "second\n", &[]),
            piece(3, "third\n", &[("errors", "three\n")]),
        ];
        let (parts, built): (Vec<_>, Vec<_>) =
            [part_of(&out, "part-00000", &pieces), part_of(&out, "part-00001", &[piece(1, "z\n", &[])])]
                .into_iter()
                .unzip();
        dead.take_claim(claim::CLOSING).unwrap();
        append(&path(&out, pieces[0].attempt, None), &tail);
        append(&path(&out, pieces[0].attempt, Some("errors")), &tail);
        let success = Success { parts, ..success() };
        drop(dead.complete(&success, &built, true).unwrap());
        assert_eq!(names(&out), [SUCCESS, "errors", "part-00000", "part-00001"]);
        assert_eq!(fs::read_to_string(out.join("part-00000")).unwrap(), "first\nsecond\nthird\n");
        assert_eq!(fs::read_to_string(out.join("errors/part-00000")).unwrap(), "one\nthree\n");
    }
}

#[test]
fn joined_part_that_was_published_when_its_closer_died_is_not_joined_again() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let dead = claim(&out);
    let pieces = [piece(0, "first\n", &[("errors", "one\n")]), piece(2, "second\n", &[("errors", "two\n")])];
    let (part, built) = part_of(&out, "part-00000", &pieces);
    dead.take_claim(claim::CLOSING).unwrap();
    append(&path(&out, pieces[0].attempt, Some("errors")), b"two\n");
    fs::create_dir(out.join("errors")).unwrap();
    fs::rename(path(&out, pieces[0].attempt, Some("errors")), out.join("errors/part-00000")).unwrap();
    let inode = |path: &Path| FileStamp::from_metadata(&fs::metadata(path).unwrap()).inode;
    let before = inode(&out.join("errors/part-00000"));
    drop(dead.complete(&Success { parts: vec![part], ..success() }, &[built], false).unwrap());
    assert_eq!(inode(&out.join("errors/part-00000")), before);
    assert_eq!(fs::read_to_string(out.join("errors/part-00000")).unwrap(), "one\ntwo\n");
    assert_eq!(fs::read_to_string(out.join("part-00000")).unwrap(), "first\nsecond\n");
}

#[test]
fn damaged_file_is_refused_after_the_death_of_a_closer_too() {
    for index in [0, 2] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let dead = claim(&out);
        let pieces = [piece(0, "first\n", &[]), piece(2, "second\n", &[])];
        let (part, built) = part_of(&out, "part-00000", &pieces);
        dead.take_claim(claim::CLOSING).unwrap();
        append(&path(&out, pieces[0].attempt, None), b"sec");
        let damaged = path(&out, piece(index, "", &[]).attempt, None);
        File::options().write(true).open(&damaged).unwrap().write_all(b"X").unwrap();
        let error = dead.complete(&Success { parts: vec![part], ..success() }, &[built], false).unwrap_err();
        assert!(matches!(error, OutputError::Changed { .. }), "{error}");
        assert!(!out.exists(), "no output is left");
    }
}

#[test]
fn next_job_finds_nothing_of_a_job_that_died_while_it_joined_files() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let dead = claim(&out);
    let pieces = [piece(0, "first\n", &[]), piece(PARTITIONS, "second\n", &[])];
    part_of(&out, "part-00000", &pieces);
    dead.take_claim(claim::CLOSING).unwrap();
    append(&path(&out, pieces[0].attempt, None), b"sec");
    dies(dead);
    let next = claim(&out);
    assert_eq!(names(&out.join(TEMPORARY)), ["probe-1"]);
    next.abandon();
    assert!(!out.exists());
}

/// Makes a file as long as its file system allows, without data. Returns its length.
fn lengthen(path: &Path) -> u64 {
    let file = File::options().write(true).open(path).unwrap();
    let (mut fits, mut exceeds) = (0, 1 << 63);
    while exceeds - fits > 1 {
        let length = fits + (exceeds - fits) / 2;
        match file.set_len(length) {
            Ok(()) => fits = length,
            Err(_) => exceeds = length,
        }
    }
    file.set_len(fits).unwrap();
    fits
}

#[test]
fn file_system_that_cannot_store_the_joined_file_fails_the_output_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let claimed = claim(&out);
    let first = part_of(&out, "part-00000", &[piece(1, "z\n", &[("errors", "bad\n")])]);
    let pieces = [piece(0, "", &[]), piece(2, "rest\n", &[])];
    part_of(&out, "part-00001", &pieces);
    // The report is that of the long file, so it is not read.
    let long = path(&out, pieces[0].attempt, None);
    let bytes = lengthen(&long);
    let stamp = FileStamp::from_metadata(&fs::metadata(&long).unwrap());
    let report = |bytes, content: &[u8]| Part {
        name: "part-00001".to_owned(),
        bytes,
        records: 1,
        crc32c: crc32c::crc32c(content),
        named: Vec::new(),
    };
    let rest = path(&out, pieces[1].attempt, None);
    let rest_stamp = FileStamp::from_metadata(&fs::metadata(&rest).unwrap());
    let second = join_parts(vec![
        (report(bytes, b""), BuiltPart::new(pieces[0].attempt, stamp)),
        (report(5, b"rest\n"), BuiltPart::new(pieces[1].attempt, rest_stamp)),
    ]);
    let (parts, built): (Vec<_>, Vec<_>) = [first, second.unwrap()].into_iter().unzip();
    let error = claimed.finish(&Success { parts, ..success() }, &built, false).unwrap_err();
    let OutputError::Io { action, path, .. } = &error else { panic!("{error}") };
    assert_eq!((*action, path), ("join the files of the part in", &long));
    assert!(!out.exists(), "no output is left, not even of the part that was published before");
}

#[test]
fn joining_again_after_an_error_appends_once() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let claimed = claim(&out);
    let (part, built) = part_of(&out, "part-00000", &[piece(0, "first\n", &[]), piece(2, "second\n", &[])]);
    let file = part_file::files_of(&claimed.probe, &part, &built).pop().unwrap();
    for _ in 0..3 {
        file.join(&claimed.temporary, true).unwrap();
    }
    let mut first = claimed.temporary.open_file(file.first()).unwrap();
    assert_eq!(first.seek(SeekFrom::End(0)).unwrap(), part.bytes);
    assert_eq!(fs::read_to_string(file.first_path(&claimed.temporary)).unwrap(), "first\nsecond\n");
}
