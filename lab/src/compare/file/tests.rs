//! Mistakes in workload files, each reported with its line.

use super::*;
use crate::compare::workload::DrawnJob;

fn parsed(text: &str) -> WorkloadFile {
    parse("w.toml", "w", text, Path::new("/directory")).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    gristmill_runtime::chain(&parse("w.toml", "w", text, Path::new("/directory")).unwrap_err())
}

const WHOLE: &str = r#"
name = "mixed"
seed = 7
[cluster]
workers = 3
speed = [1, 0.5]
nic-rate = "50MB/s"
[arrivals]
kind = "poisson"
mean-interval = "250ms"
[[data]]
name = "text"
kind = "text"
size = "1MiB"
[[job]]
name = "wordcount"
inputs = ["{data}/text", "other.txt"]
count = 2
deadline = "3s"
weight = 2
pool = "people"
priority = -1
[[job]]
name = "synthetic"
label = "sleep"
args = ["--maps", "4", "--seed", "{seed}"]
reduces = 2
"#;

#[test]
fn workload_file_says_jobs_arrivals_data_and_cluster() {
    let file = parsed(WHOLE);
    let workload = &file.workload;
    assert_eq!((workload.name.as_str(), workload.seed, workload.kinds.len()), ("mixed", 7, 2));
    assert_eq!(workload.arrivals, Arrivals::Poisson(0.25));
    assert_eq!(workload.order, Order::Shuffled);
    assert_eq!(workload.data[0].bytes, 1 << 20);
    let first = &workload.kinds[0];
    assert_eq!(first.arguments, ["{data}/text", "/directory/other.txt"]);
    assert_eq!((first.deadline, first.weight, first.priority), (Some(3.0), 2.0, -1));
    assert_eq!(file.inputs.len(), 1, "what is generated need not be there yet");
    let expected = [("workers", "3"), ("speed", "1,0.5"), ("nic-rate", "50MB/s")];
    assert_eq!(file.cluster, expected.map(|(key, value)| (key, value.to_owned())));
    let jobs: Vec<DrawnJob> = workload.draw(0).unwrap();
    assert_eq!(jobs.len(), 3);
}

#[test]
fn misspelt_key_is_named_with_its_line_and_those_that_there_are() {
    let words = refused("[[job]]\nname = \"sort\"\nwieght = 2\n");
    assert!(
        words.starts_with("w.toml, line 3, column 1: unknown field `wieght`, expected one of"),
        "{words}"
    );
    assert!(words.contains("`weight`"), "{words}");
    let words = refused("[clustr]\nworkers = 2\n[[job]]\nname = \"sort\"\n");
    assert!(words.contains("line 1") && words.contains("`cluster`"), "{words}");
    let words = refused("[cluster]\nworker = 2\n[[job]]\nname = \"sort\"\n");
    assert!(words.contains("line 2") && words.contains("did you mean `workers`?"), "{words}");
}

#[test]
fn values_that_make_no_sense_are_refused_with_their_line() {
    let job = |line: &str| refused(&format!("[[job]]\nname = \"sort\"\n{line}\n"));
    for (line, words) in [
        ("weight = 0", "line 3, column 10: `0` is not a number above 0"),
        ("weight = nan", "is not a number above 0"),
        ("count = 0", "0 is not a whole number from 1"),
        ("count = 2.5", "invalid type: floating point `2.5`"),
        ("deadline = \"0s\"", "line 3, column 12: `0s` is not a time above 0"),
        ("deadline = \"-3s\"", "is not a time above 0 with its unit"),
        ("deadline = \"3 parsecs\"", "is not a time above 0 with its unit"),
        ("deadline = 5", "line 3, column 12: invalid type: integer `5`"),
        ("inputs = [\"{data}/txt\"]", "`{data}/txt` is not a path of a [[data]] (there is none)"),
        ("share = 2", "unknown field `share`, expected one of"),
        ("args = \"--maps\"", "invalid type: string"),
        ("split-size = \"4 elephants\"", "is not a size"),
        ("map-seconds = [1]", "unknown field `map-seconds`, expected one of"),
    ] {
        let refused = job(line);
        assert!(refused.contains("w.toml, line ") && refused.contains(words), "{line}: {refused}");
    }
    let arrivals = |line: &str| refused(&format!("[arrivals]\n{line}\n[[job]]\nname = \"sort\"\n"));
    for (line, words) in [
        ("kind = \"poison\"", "unknown variant `poison`, expected one of `batch`, `poisson`, `times`"),
        ("kind = \"poisson\"", "poisson needs `mean-interval`"),
        ("kind = \"poisson\"\nmean-interval = \"250\"", "is not a time above 0 with its unit"),
        ("kind = \"times\"\ntimes = [\"2s\", \"1s\"]", "a list that never falls"),
        ("kind = \"times\"\ntimes = [\"0s\", \"1s\"]", "jobs (1) and of arrival times (2)"),
        ("times = [\"0s\"]", "`times` the kind times"),
    ] {
        let refused = arrivals(line);
        assert!(refused.contains(words), "{line}: {refused}");
    }
    assert!(refused("").contains("at least one [[job]]"));
    assert!(refused("[[job]\n").contains("w.toml, line 1"));
}

#[test]
fn times_are_read_in_all_units() {
    let cases = [("200ms", Some(0.2)), ("1.5s", Some(1.5)), ("2min", Some(120.0)), ("3", None), ("x", None)];
    for (text, seconds) in cases {
        assert_eq!(values::parse_seconds(text), seconds, "{text}");
    }
}
