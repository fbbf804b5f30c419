//! Fields, separators and order of keys.

use super::*;

#[test]
fn fields_of_the_key_and_separators_are_those_that_properties_name() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "b.2.x\na.1.y\na.0.z\n");
    let map = ["-D", "stream.map.output.field.separator=.", "-D", "stream.num.map.output.key.fields=2"];
    let rest = ["-D", "mapred.textoutputformat.separator=|", "-mapper", "cat", "-reducer", "cat"];
    stream(&sandbox, &[&map[..], &rest].concat()).expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"a.0|z\na.1|y\nb.2|x\n");
}

#[test]
fn comparator_sorts_by_fields_of_the_key_and_partitioner_keeps_those_together() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "11.12.1.2\n11.14.2.3\n11.11.4.1\n11.12.1.1\n11.14.2.2\n");
    let order = [
        "-D",
        "mapreduce.job.output.key.comparator.class=org.apache.hadoop.mapred.lib.KeyFieldBasedComparator",
        "-D",
        "stream.map.output.field.separator=.",
        "-D",
        "stream.num.map.output.key.fields=4",
        "-D",
        "mapred.text.key.comparator.options=-k2,2nr -k4,4n",
        "-D",
        "map.output.key.field.separator=.",
        "-D",
        "mapred.text.key.partitioner.options=-k1,2",
        "-partitioner",
        "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner",
        "-numReduceTasks",
        "12",
        "-mapper",
        "cat",
        "-reducer",
        "cat",
    ];
    stream(&sandbox, &order).expect_code(0);
    let parts: Vec<Vec<u8>> =
        oracle::parts(&sandbox.path("out")).into_iter().filter(|part| !part.is_empty()).collect();
    let expected: [&[u8]; 3] =
        [b"11.11.4.1\t\n", b"11.12.1.1\t\n11.12.1.2\t\n", b"11.14.2.2\t\n11.14.2.3\t\n"];
    let mut sorted = parts.clone();
    sorted.sort();
    assert_eq!(sorted, expected);
}

/// Partitions and order by fields of keys as Hadoop documents them, in Python.
const PYTHON_FIELDS: &str = "
import sys
def partition(key, parts):
    h = 0
    for byte in key.split(b'.')[0]:
        h = (31 * h + (byte - 256 if byte > 127 else byte)) & 0xffffffff
    return (h & 0x7fffffff) % parts
parts = [[] for _ in range(int(sys.argv[2]))]
for key in open(sys.argv[1], 'rb').read().split():
    parts[partition(key, len(parts))].append(key)
for number, keys in enumerate(parts):
    # -k2,2nr -k1: the second field as a number, largest first, then the rest from the first.
    keys.sort(key=lambda key: (-float(key.split(b'.')[1]), key))
    with open(f'{sys.argv[3]}-{number:05}', 'wb') as part:
        part.writelines(key + b'\\t\\n' for key in keys)
";

#[test]
fn parts_by_fields_of_keys_are_those_of_python() {
    if !has_python("parts by fields beside those of Python") {
        return;
    }
    let sandbox = Sandbox::new();
    let mut random = crate::support::data::Random::seeded(8);
    let mut keys = std::collections::BTreeSet::new();
    for _ in 0..500 {
        let word = *random.pick(&["a", "bb", "ccc", "d\u{e9}", ""]);
        let number = *random.pick(&["0", "7", "-7", "10", "007", "-12", "123456789012345"]);
        keys.insert(format!("{word}.{number}.{}", random.below(50)));
    }
    let lines: String = keys.iter().map(|key| format!("{key}\n")).collect();
    let input = sandbox.write("in", lines);
    let script = sandbox.write("fields.py", PYTHON_FIELDS);
    let asked = Command::new("python3").args([&script, &input, "5", &sandbox.text("expected")]).status();
    assert!(asked.unwrap().success());
    let order = [
        "-D",
        "mapred.output.key.comparator.class=org.apache.hadoop.mapreduce.lib.partition.KeyFieldBasedComparator",
        "-D",
        "mapreduce.map.output.key.field.separator=.",
        "-D",
        "mapreduce.partition.keycomparator.options=-k2,2nr -k1",
        "-D",
        "mapreduce.partition.keypartitioner.options=-k1,1",
        "-partitioner",
        "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner",
        "-numReduceTasks",
        "5",
        "-mapper",
        "cat",
        "-reducer",
        "cat",
    ];
    stream(&sandbox, &order).expect_code(0);
    for (number, part) in oracle::parts(&sandbox.path("out")).iter().enumerate() {
        let expected = fs::read(sandbox.path(&format!("expected-{number:05}"))).unwrap();
        let (found, expected) = (String::from_utf8_lossy(part), String::from_utf8_lossy(&expected));
        assert_eq!(found, expected, "part {number}");
    }
}
