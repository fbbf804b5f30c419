//! `sort` equals `LC_ALL=C sort`, and `verify-sort` distinguishes a sorted output from one that was changed.

use crate::support::Sandbox;
use crate::support::data::{Random, files_of, shared, tool};
use crate::support::oracle;
use std::fs;

/// Flags of the job and the equivalent flags of the system's sort.
const SAME: [(&[&str], &[&str]); 9] = [
    (&[], &[]),
    (&["-r"], &["-r"]),
    (&["-u"], &["-u"]),
    (&["-r", "-u"], &["-r", "-u"]),
    (&["--field", "2", "--delimiter", " "], &["-t", " ", "-k2,2"]),
    (&["--field", "2", "--delimiter", " ", "--stable"], &["-s", "-t", " ", "-k2,2"]),
    (&["--field", "3", "--delimiter", " ", "--numeric"], &["-t", " ", "-k3,3n"]),
    (&["--field", "3", "--delimiter", " ", "--numeric", "-u"], &["-u", "-t", " ", "-k3,3n"]),
    (&["--field", "3", "--delimiter", " ", "--numeric", "-r", "--stable"], &["-s", "-t", " ", "-k3,3nr"]),
];

/// Sorts the files with both programs and compares.
fn equals_system_sort(sandbox: &Sandbox, inputs: &[String], split_size: &str) {
    for (number, (flags, system_flags)) in SAME.iter().enumerate() {
        let out = sandbox.path(&format!("out-{number}"));
        let mut arguments = vec!["run", "sort", "--split-size", split_size, "--reduces", "3"];
        arguments.extend(inputs.iter().map(String::as_str));
        arguments.extend_from_slice(flags);
        arguments.extend(["--output", out.to_str().unwrap()]);
        sandbox.run_well(&arguments);
        let mut system: Vec<&str> = system_flags.to_vec();
        system.extend(inputs.iter().map(String::as_str));
        let expected = oracle::shell(r#"sort "$@""#, &system);
        assert!(oracle::whole(&out) == expected, "sort {flags:?} differs from sort {system_flags:?}");
        sandbox.gristmill(["verify-sort", out.to_str().unwrap()]).finish().expect_code(0);
    }
}

#[test]
fn sort_of_books_equals_the_system_sort() {
    let Some(books) = shared("books", "sort of books") else { return };
    let files: Vec<String> =
        files_of(&books).iter().take(3).map(|path| path.to_str().unwrap().to_owned()).collect();
    equals_system_sort(&Sandbox::new(), &files, "100KiB");
}

#[test]
fn sort_of_a_sorted_compressed_file_has_parts_of_like_size() {
    let sandbox = Sandbox::new();
    let lines: String = (0..60_000).map(|number| format!("{number:08} and what follows\n")).collect();
    let plain = sandbox.write("lines", &lines);
    for (name, script) in [("lines.gz", r#"gzip -c "$1""#), ("lines.zst", r#"zstd -qc "$1""#)] {
        if name.ends_with("zst") && !tool("zstd", "sort of a sorted .zst file") {
            continue;
        }
        let input = sandbox.write(name, oracle::shell(script, &[&plain]));
        let out = sandbox.path(&format!("{name}-sorted"));
        sandbox.run_well(["run", "sort", &input, "--reduces", "8", "--output", out.to_str().unwrap()]);
        let parts = oracle::parts(&out);
        assert!(parts.concat() == lines.as_bytes(), "{name}");
        let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
        let fair = lines.len() / 8;
        assert!(
            sizes.iter().all(|size| (fair / 2..2 * fair).contains(size)),
            "{name}: parts of {sizes:?} bytes"
        );
    }
}

#[test]
fn sort_of_generated_lines_equals_the_system_sort() {
    let sandbox = Sandbox::new();
    let mut random = Random::seeded(21);
    let mut text = Vec::new();
    for _ in 0..4_000 {
        let (word, other) = (random.below(60), random.below(9));
        let number = random.below(4000) as f64 / 8.0 - 200.0;
        text.extend_from_slice(format!("w{word} f{other} {number} \u{e9}{}\n", random.below(3)).as_bytes());
    }
    let inputs = [sandbox.write("a", &text), sandbox.write("b", b"w1 f1\n\n-5\nw1 f2 -0\nw1 f3 0\n")];
    equals_system_sort(&sandbox, &inputs, "6KiB");
}

#[test]
fn sort_of_records_orders_them_by_the_bytes_of_their_key() {
    let sandbox = Sandbox::new();
    let records = Random::seeded(22).bytes(100 * 3_000);
    let input = sandbox.write("records", &records);
    let out = sandbox.text("out");
    sandbox.run_well([
        "run",
        "sort",
        &input,
        "--record-length",
        "100",
        "--key-bytes",
        "0..2",
        "--stable",
        "--split-size",
        "20KiB",
        "--reduces",
        "4",
        "--output",
        &out,
    ]);
    let mut expected: Vec<&[u8]> = records.chunks(100).collect();
    expected.sort_by_key(|record| &record[..2]);
    assert!(oracle::whole(&sandbox.path("out")) == expected.concat());
}

#[test]
fn verify_sort_accepts_the_output_of_sort_and_names_a_swapped_record() {
    let sandbox = Sandbox::new();
    let input = sandbox.text("records");
    sandbox.gristmill(["gen", "records", &input, "--size", "300kB", "--seed", "7"]).finish().expect_code(0);
    let generated = fs::read(&input).unwrap();
    assert_eq!(generated.len(), 300_000, "records of 100 bytes");
    let out = sandbox.text("out");
    let arguments = ["run", "sort", &input, "--split-size", "50KiB", "--reduces", "2", "--output", &out];
    sandbox.run_well(arguments);
    let accepted = sandbox.gristmill(["verify-sort", &out]).finish().expect_code(0);
    assert!(accepted.stdout_text().starts_with("sorted: 3000 records"), "{}", accepted.stdout_text());

    let part = sandbox.path("out/part-00001");
    let sorted = fs::read(&part).unwrap();
    let mut swapped = sorted.clone();
    swapped[500..700].rotate_left(100);
    fs::write(&part, &swapped).unwrap();
    let refused = sandbox.gristmill(["verify-sort", &out]).finish().expect_code(1);
    let words = refused.stdout_text();
    assert!(
        words.contains("not sorted") && words.contains("byte 600") && words.contains("part-00001"),
        "{words}"
    );

    // In order, but a record was changed.
    let mut changed = sorted.clone();
    changed[98] ^= 1;
    fs::write(&part, &changed).unwrap();
    let refused = sandbox.gristmill(["verify-sort", &out]).finish().expect_code(1);
    assert!(refused.stdout_text().contains("other records"), "{}", refused.stdout_text());

    fs::write(&part, &sorted[100..]).unwrap();
    let refused = sandbox.gristmill(["verify-sort", &out]).finish().expect_code(1);
    assert!(refused.stdout_text().contains("2999 records, the input 3000"), "{}", refused.stdout_text());
}

#[test]
fn sort_writes_the_same_bytes_for_any_number_of_workers() {
    let sandbox = Sandbox::new();
    let text = Random::seeded(23).text(100_000, &["\n", "\n", " "]);
    let input = sandbox.write("text", &text);
    let outputs = ["1", "3"].map(|workers| {
        let out = sandbox.path(&format!("out-{workers}"));
        sandbox.run_well([
            "run",
            "sort",
            &input,
            "--workers",
            workers,
            "--reduces",
            "5",
            "--split-size",
            "5KiB",
            "--output",
            out.to_str().unwrap(),
        ]);
        oracle::parts(&out)
    });
    assert!(outputs[0] == outputs[1]);
    let spread = outputs[0].iter().filter(|part| !part.is_empty()).count();
    assert!(spread >= 4, "sampling put everything into {spread} part(s)");
}
