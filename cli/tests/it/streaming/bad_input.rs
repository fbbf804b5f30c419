//! Mistakes of users, and bytes that are not text: reported with a reason, or harmless.

use super::stream;
use crate::support::{Sandbox, oracle};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

#[test]
fn archives_that_are_none_are_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "x\n");
    for (name, content) in
        [("a.zip", "PK\x03\x04 and no more"), ("b.tar.gz", "no gzip"), ("c.tar", "no tar"), ("d.rar", "x")]
    {
        let path = sandbox.write(name, content);
        let finished = stream(&sandbox, &["-mapper", "cat", "-archives", &path]).expect_code(5);
        finished.expect_words(&["-archives", name, "Streaming Command Failed!"]);
        assert!(!sandbox.path("out").exists(), "{name}");
    }
    let finished = stream(&sandbox, &["-mapper", "cat", "-archives", "missing.zip"]).expect_code(1);
    finished.expect_words(&["missing.zip", "Streaming Command Failed!"]);
}

#[test]
fn combiner_has_no_say_where_there_are_no_reduces() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "b\na\nb\n");
    let words =
        ["-mapper", "cat", "-combiner", "no-such-command", "-reducer", "NONE", "-D", "mapred.map.tasks=1"];
    stream(&sandbox, &words).expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"b\t\na\t\nb\t\n");
}

#[test]
fn separators_within_keys_stay_where_they_are() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "b\t1\tx\na\t2\ty\na\t1\tz\n\t\t\n");
    let words = ["-D", "stream.num.map.output.key.fields=2", "-mapper", "cat", "-reducer", "cat"];
    stream(&sandbox, &words).expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"\t\t\na\t1\tz\na\t2\ty\nb\t1\tx\n");
    fs::remove_dir_all(sandbox.path("out")).unwrap();
    // The reducer's line is split at its own separator, whatever the mapper's key was.
    let other = ["-D", "stream.reduce.output.field.separator=x", "-D", "mapred.textoutputformat.separator=|"];
    stream(&sandbox, &[&words[..], &other].concat()).expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"\t\t|\na\t1\tz|\na\t2\ty|\nb\t1\t|\n");
}

#[test]
fn bytes_that_are_no_text_pass_through_names_lines_keys_and_talk() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("in")).unwrap();
    fs::write(sandbox.path("in").join(OsStr::from_bytes(b"f\xff")), b"\xffk\tv\xfe\n\xc3\t\x80\n").unwrap();
    // A command that prints invalid text, and counts under such a name.
    let script = b"cat; printf 'talk \\377\\n' >&2; printf 'reporter:counter:G\\377,n,2\\n' >&2; exit 0\n";
    let script = sandbox.write("job.sh", script);
    let mapper = format!("sh {script}");
    let words = ["-mapper", &mapper, "-reducer", "cat", "-D", "mapred.map.tasks=1"];
    let finished = stream(&sandbox, &words).expect_code(0);
    assert_eq!(oracle::whole(&sandbox.path("out")), b"\xc3\t\x80\n\xffk\tv\xfe\n");
    assert!(finished.stderr.contains("\tG\u{fffd}\n\t\tn=2\n"), "{}", finished.stderr);
    fs::remove_dir_all(sandbox.path("out")).unwrap();
    let failing = sandbox.write("fails.sh", "printf 'why \\377\\n' >&2; exit 1\n");
    let failing = format!("sh {failing}");
    let once = ["-mapper", &failing, "-D", "mapred.map.max.attempts=1", "-D", "mapred.map.tasks=1"];
    stream(&sandbox, &once).expect_code(1).expect_words(&["\nwhy \u{fffd}\n"]);
}

#[test]
fn forms_of_pairs_and_records_that_are_no_lines_are_refused_with_what_to_use() {
    let sandbox = Sandbox::new();
    sandbox.write("in", "a\n");
    for (words, said) in [
        (["-inputreader", "StreamXmlRecordReader,begin=a,end=b"], "so that each record is a line"),
        (["-io", "typedbytes"], "use the Python package"),
        (["-reducer", "aggregate"], "`awk` sums values"),
        (["-mapper", "FieldSelectionMapReduce"], "`cut`"),
        (["-D", "gristmill.streaming.pairs=pairs"], "a mapper is missing"),
    ] {
        stream(&sandbox, &words).expect_code(3).expect_words(&[said]);
    }
    let cut = ["-D", "gristmill.streaming.pairs=lines", "-mapper", "printf '\\0\\0\\0\\5abc'"];
    stream(&sandbox, &cut).expect_code(1).expect_words(&["reported no end of its task"]);
}
