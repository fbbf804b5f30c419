//! Pairs in forms other than lines: typed bytes and raw bytes. An independent encoder in Python writes and
//! reads them, and partitions and sorts them by Hadoop's rules.

use super::{has_python, stream};
use crate::support::{Sandbox, oracle};
use std::fs;
use std::process::Command;

/// Typed bytes by the table in the documentation of `org.apache.hadoop.typedbytes`, and raw bytes; from a
/// stream, to a stream.
const CODEC: &str = r#"
import struct, sys
def write(value):
    if isinstance(value, bytes): return b'\0' + struct.pack('>i', len(value)) + value
    if isinstance(value, bool): return b'\2' + struct.pack('>b', value)
    if isinstance(value, int): return b'\3' + struct.pack('>i', value) if abs(value) < 2**31 else b'\4' + struct.pack('>q', value)
    if isinstance(value, float): return b'\6' + struct.pack('>d', value)
    if isinstance(value, str): return b'\7' + struct.pack('>i', len(value.encode())) + value.encode()
    if isinstance(value, tuple): return b'\10' + struct.pack('>i', len(value)) + b''.join(write(item) for item in value)
    if isinstance(value, list): return b'\11' + b''.join(write(item) for item in value) + b'\377'
    return b'\12' + struct.pack('>i', len(value)) + b''.join(write(part) for pair in value.items() for part in pair)
def take(stream, form):
    size = struct.calcsize(form)
    data = stream.read(size)
    assert len(data) == size, 'cut off'
    return struct.unpack(form, data)[0]
END = object()
def read(stream):
    code = stream.read(1)
    if not code or code == b'\377': return END
    code = code[0]
    if code == 0: return stream.read(take(stream, '>i'))
    if code == 7: return stream.read(take(stream, '>i')).decode()
    if code == 8: return tuple(read(stream) for _ in range(take(stream, '>i')))
    if code == 9: return list(iter(lambda: read(stream), END))
    if code == 10: return {read(stream): read(stream) for _ in range(take(stream, '>i'))}
    return {1: int, 2: bool, 3: int, 4: int, 5: float, 6: float}[code](take(stream, {1: '>b', 2: '>b', 3: '>i', 4: '>q', 5: '>f', 6: '>d'}[code]))
def pairs(stream):
    while True:
        key = read(stream)
        if key is END: return
        value = read(stream)
        assert value is not END
        yield key, value
def partition(key, parts):
    h = 1
    for byte in key:
        h = (31 * h + (byte - 256 if byte > 127 else byte)) & 0xffffffff
    return (h & 0x7fffffff) % parts
def raw(field): return struct.pack('>i', len(field)) + field
def raw_fields(stream):
    while (length := stream.read(4)):
        yield stream.read(struct.unpack('>i', length)[0])
out, stdin = sys.stdout.buffer, sys.stdin.buffer
"#;

/// Emits a key of the type that the line's number selects. The value contains the line's offset.
const MAPPER: &str = r#"
from codec import *
KEYS = [b'\xff\n\t', True, -7, 2**40, 0.5, 'é\n', (1, 'a', ()), [[], [False]], {'k': {1: 2.5}}]
for place, line in pairs(stdin):
    assert isinstance(place, int) and isinstance(line, str)
    key = KEYS[int(line) % len(KEYS)]
    out.write(write(key) + write([place, {line: (line,)}]))
"#;

/// Writes all values of equal adjacent keys as one.
const REDUCER: &str = r#"
from codec import *
import itertools
for key, group in itertools.groupby(pairs(stdin), key=lambda pair: (type(pair[0]), pair[0])):
    out.write(write(key[1]) + write(sorted((value[0], list(value[1].items())) for _, value in group)))
"#;

/// Expected output: the partition and position of a key follow from its bytes.
const EXPECTED: &str = r#"
import sys
sys.path.insert(0, sys.argv[4])
exec(open(sys.argv[4] + '/mapper.py').read().split('for place')[0])
parts, place = [{} for _ in range(int(sys.argv[2]))], 0
for line in open(sys.argv[1]):
    line = line.rstrip('\n')
    key = write(KEYS[int(line) % len(KEYS)])
    parts[partition(key, len(parts))].setdefault(key, []).append((place, [(line, (line,))]))
    place += len(line) + 1
for number, part in enumerate(parts):
    with open(f'{sys.argv[3]}-{number:05}', 'wb') as file:
        for key in sorted(part):
            file.write(key + write(sorted(part[key])))
"#;

fn python(sandbox: &Sandbox, arguments: &[&str]) {
    let done = Command::new("python3").args(arguments).current_dir(sandbox.path(".")).status().unwrap();
    assert!(done.success());
}

/// All parts of an output, as text.
fn text(sandbox: &Sandbox, output: &str) -> String {
    String::from_utf8(oracle::whole(&sandbox.path(output))).unwrap()
}

const TYPED: [&str; 8] = [
    "-io",
    "typedbytes",
    "-mapper",
    "python3 mapper.py",
    "-reducer",
    "python3 reducer.py",
    "-files",
    "codec.py,mapper.py,reducer.py",
];

fn with_codec(scripts: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("codec.py", CODEC);
    scripts.iter().for_each(|(name, script)| drop(sandbox.write(name, script)));
    sandbox
}

#[test]
fn typed_bytes_of_every_type_are_parted_and_sorted_by_their_bytes() {
    if !has_python("typed bytes beside an encoder in Python") {
        return;
    }
    let sandbox = with_codec(&[("mapper.py", MAPPER), ("reducer.py", REDUCER), ("expected.py", EXPECTED)]);
    let lines: String = (0..3_000).map(|number| format!("{}\n", number * 7)).collect();
    let input = sandbox.write("in", lines);
    for parts in ["1", "4"] {
        python(&sandbox, &["expected.py", &input, parts, "expected", "."]);
        let form = ["-outputformat", "TypedBytesOutputFormat", "-numReduceTasks", parts];
        stream(&sandbox, &[&TYPED[..], &form].concat()).expect_code(0);
        for (number, name) in oracle::part_names(&sandbox.path("out")).iter().enumerate() {
            let expected = fs::read(sandbox.path(&format!("expected-{number:05}"))).unwrap();
            let found = fs::read(sandbox.path("out").join(name)).unwrap();
            assert!(found == expected, "{name} of {parts} differs");
        }
        fs::remove_dir_all(sandbox.path("out")).unwrap();
    }
}

#[test]
fn typed_bytes_become_lines_as_java_writes_them_and_come_back_as_input() {
    if !has_python("typed bytes as lines") {
        return;
    }
    let again = "from codec import *\nfor key, value in pairs(stdin): out.write(write(value) + write(key))\n";
    let sandbox = with_codec(&[("mapper.py", MAPPER), ("reducer.py", again)]);
    sandbox.write("in", "4\n5\n6\n7\n8\n");
    let kept = ["-numReduceTasks", "0", "-outputformat", "TypedBytesOutputFormat"];
    stream(&sandbox, &[&TYPED[..], &kept].concat()).expect_code(0);
    // The parts of one job are the input of the next: with a mapper, and passed on without one.
    let read = |words: &[&str]| {
        let _ = fs::remove_dir_all(sandbox.path("lines"));
        let paths = ["streaming", "--workers", "1", "--no-sync", "-input", "out", "-output", "lines"];
        let typed = ["-inputformat", "TypedBytesInputFormat", "-io", "typedbytes", "-file", "codec.py"];
        sandbox.run([&paths[..], &typed, words].concat()).expect_code(0);
        let mut lines: Vec<String> = text(&sandbox, "lines").lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let handed_on = read(&[]);
    let swapped = read(&["-mapper", "python3 reducer.py", "-file", "reducer.py", "-numReduceTasks", "0"]);
    let expected = [
        "0.5\t[0, {4=[4]}]",
        "[1, a, []]\t[4, {6=[6]}]",
        "[[], [false]]\t[6, {7=[7]}]",
        "é",
        "\t[2, {5=[5]}]",
        "{k={1=2.5}}\t[8, {8=[8]}]",
    ];
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(handed_on, expected);
    assert!(swapped.contains(&"[8, {8=[8]}]\t{k={1=2.5}}".to_owned()), "{swapped:?}");
}

#[test]
fn raw_bytes_have_their_length_in_front_and_are_sorted_without_it() {
    if !has_python("raw bytes") {
        return;
    }
    // A line is stored as Hadoop stores a text: its own length comes first.
    let mapper = "from codec import *\nfields = raw_fields(stdin)\nfor place in fields:\n    line = next(fields)\n    assert len(place) == 8 and line[0] == len(line) - 1\n    out.write(raw(line[1:]) + raw(place[7:]))\n";
    let reducer = "from codec import *\nfields = raw_fields(stdin)\nfor key in fields: out.write(raw(key) + raw(next(fields) * 2))\n";
    let sandbox = with_codec(&[("mapper.py", mapper), ("reducer.py", reducer)]);
    sandbox.write("in", "b\nccc\nab\n");
    let words = [&["-io", "RawBytes"][..], &TYPED[2..]].concat();
    stream(&sandbox, &words).expect_code(0);
    assert_eq!(text(&sandbox, "out"), "61 62\t06 06\n62\t00 00\n63 63 63\t02 02\n");
    fs::remove_dir_all(sandbox.path("out")).unwrap();
    stream(&sandbox, &[&words[..], &["-outputformat", "TypedBytesOutputFormat"]].concat()).expect_code(0);
    let first = fs::read(sandbox.path("out/part-00000")).unwrap();
    assert!(first.starts_with(b"\0\0\0\0\x02ab\0\0\0\0\x02\x06\x06"), "{first:?}");
}

#[test]
fn each_way_of_pairs_may_have_a_form_of_its_own() {
    if !has_python("forms of their own") {
        return;
    }
    let reducer =
        "from codec import *\nfor key, value in pairs(stdin): print(key, type(value).__name__, value)\n";
    let sandbox = with_codec(&[("reducer.py", reducer)]);
    sandbox.write("in", "b\t1\na\t2\n");
    let forms = ["-D", "stream.reduce.input=typedbytes", "-D", "stream.reduce.output=keyonlytext"];
    let words = ["-mapper", "cat", "-reducer", "python3 reducer.py", "-files", "codec.py,reducer.py"];
    stream(&sandbox, &[&forms[..], &words].concat()).expect_code(0);
    // Without a value there is no separator.
    assert_eq!(text(&sandbox, "out"), "a str 2\nb str 1\n");
}

#[test]
fn output_that_is_not_in_its_form_fails_its_job_with_what_was_there() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "a\n");
    let text = ["-D", "stream.map.output=typedbytes", "-mapper", "printf '\\013oops'"];
    stream(&sandbox, &text).expect_code(1).expect_words(&["11 at byte 0 of it is no code of a type"]);
    let cut = ["-D", "stream.map.output=rawbytes", "-mapper", "printf '\\0\\0\\0\\5abc'"];
    stream(&sandbox, &cut)
        .expect_code(1)
        .expect_words(&["end in the middle of one: 7 bytes of it are there"]);
    let comparator =
        ["-io", "typedbytes", "-D", "mapred.output.key.comparator.class=KeyFieldBasedComparator"];
    stream(&sandbox, &comparator).expect_code(3).expect_words(&["keys that are text"]);
}
