//! Oracles and readers of outputs: simple, single-threaded, in memory, and no code shared with the product.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Counts by word or by matching string.
pub type Counts = BTreeMap<Vec<u8>, u64>;

/// Number of occurrences of each piece.
pub fn counts<T: AsRef<[u8]>>(pieces: impl IntoIterator<Item = T>) -> Counts {
    let mut counts = Counts::new();
    for piece in pieces {
        *counts.entry(piece.as_ref().to_vec()).or_default() += 1;
    }
    counts
}

/// Number of occurrences of each word; words are separated by the six white-space bytes of ASCII.
pub fn word_counts(text: &[u8]) -> Counts {
    counts(text.split(|byte| b" \t\n\x0b\x0c\r".contains(byte)).filter(|word| !word.is_empty()))
}

/// Lines without their line breaks; the last line may lack its break.
pub fn lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
}

/// The contents of the parts of an output, in order.
pub fn parts(output: &Path) -> Vec<Vec<u8>> {
    part_names(output).iter().map(|name| fs::read(output.join(name)).unwrap()).collect()
}

/// The names of the parts in a directory, in order.
pub fn part_names(output: &Path) -> Vec<String> {
    names(output).into_iter().filter(|name| name.starts_with("part-")).collect()
}

/// All names in a directory, in order.
pub fn names(directory: &Path) -> Vec<String> {
    let listed = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut names: Vec<String> =
        listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The parts of an output, concatenated.
pub fn whole(output: &Path) -> Vec<u8> {
    parts(output).concat()
}

/// Returns the contents of `_SUCCESS`.
pub fn success(output: &Path) -> Value {
    serde_json::from_slice(&fs::read(output.join("_SUCCESS")).unwrap()).unwrap()
}

/// Returns the counts in parts of lines `string TAB count`. Strings must ascend within each part and be in
/// one part only.
pub fn counts_of_parts(parts: &[Vec<u8>]) -> Counts {
    let mut counts = Counts::new();
    for part in parts {
        let mut before: Option<&[u8]> = None;
        for line in lines(part) {
            let tab = line.iter().rposition(|byte| *byte == b'\t').unwrap();
            let (word, count) = (&line[..tab], std::str::from_utf8(&line[tab + 1..]).unwrap());
            assert!(before.is_none_or(|before| before < word), "{:?} is out of order", word.escape_ascii());
            before = Some(word);
            let twice = counts.insert(word.to_vec(), count.parse().unwrap());
            assert_eq!(twice, None, "{} stands in two parts", word.escape_ascii());
        }
    }
    counts
}

/// Returns the output of a shell command in the C locale; it must succeed.
pub fn shell(script: &str, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script, "oracle"]).args(arguments).env("LC_ALL", "C");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Rows of fields as RFC 4180 reads them; rows end with a line feed, or a carriage return and a line feed.
pub fn csv_rows(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), Vec::new());
    let (mut quoted, mut any) = (false, false);
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        any = true;
        match (quoted, byte) {
            (true, b'"') if bytes.peek() == Some(&b'"') => {
                bytes.next();
                field.push(b'"');
            }
            (true, b'"') => quoted = false,
            (false, b'"') if field.is_empty() => quoted = true,
            (false, b',') => row.push(std::mem::take(&mut field)),
            (false, b'\r') if bytes.peek() == Some(&b'\n') => {}
            (false, b'\n') => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
                any = false;
            }
            (_, byte) => field.push(byte),
        }
    }
    if any {
        row.push(field);
        rows.push(row);
    }
    rows
}
