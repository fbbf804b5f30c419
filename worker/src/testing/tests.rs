//! Tests of trials against whole tasks, and of the errors that they must report.

use super::{Trial, TrialError, map, map_only, reduce, reduce_by_first};
use crate::api::{FailureKind, Input, JobPlan, MapOnly, Mapper, Reducer, Sum, TaskContext};
use crate::attempt::{TaskError, TaskResult};
use crate::collect::Emitter;
use crate::input::Record;
use crate::merge::Values;
use crate::output::Output;
use std::io::Write;

/// Mapper that also emits in `setup` and `finish`, and rejects the line `bad`.
struct Edges;

impl Mapper for Edges {
    type Key = (String, u8);
    type Value = Option<f64>;

    fn setup(&mut self, task: &TaskContext) -> TaskResult {
        assert_eq!((task.task().index, task.partitions()), (0, 1));
        Ok(())
    }

    fn map(&mut self, line: Record<'_>, out: &mut Emitter<Self::Key, Self::Value>) -> TaskResult {
        match &*line.text() {
            "bad" => Err(TaskError::bad_record("it is bad")),
            text => {
                out.emit((text.to_owned(), line.offset() as u8), Some(0.5));
                Ok(())
            }
        }
    }

    fn finish(&mut self, out: &mut Emitter<Self::Key, Self::Value>) -> TaskResult {
        out.emit(("end".to_owned(), 0), None);
        Ok(())
    }
}

#[test]
fn a_mapper_gives_its_pairs_in_the_order_in_which_it_emits_them_its_finish_last() {
    let pair = |key: &str, at, value| ((key.to_owned(), at), value);
    let expected = [pair("b", 0, Some(0.5)), pair("a", 2, Some(0.5)), pair("end", 0, None)];
    assert_eq!(map(Edges, "b\na").unwrap(), expected);
    assert_eq!(map(Edges, "").unwrap(), [pair("end", 0, None)]);
}

#[test]
fn a_record_that_a_mapper_refuses_is_named() {
    let error = map(Edges, "a\nbad\n").unwrap_err();
    assert_eq!(error.kind, FailureKind::Input);
    assert_eq!(error.to_string(), "the record at byte 2 of input is bad: it is bad");
}

/// Writes each line twice, and the number of lines.
#[derive(Default)]
struct Twice(u64);

impl MapOnly for Twice {
    fn map(&mut self, line: Record<'_>, out: &mut Output) -> TaskResult {
        (0..2).for_each(|_| out.line(&line));
        out.count("lines", 1);
        self.0 += 1;
        Ok(())
    }

    fn finish(&mut self, out: &mut Output) -> TaskResult {
        out.pair("lines", self.0);
        Ok(())
    }
}

#[test]
fn a_whole_file_is_a_record_however_long_it_is_and_however_it_is_cut() {
    let plan = || {
        JobPlan::map_only_each(Input::whole_files(["d"]), |file, out| {
            out.pair(&file.source().path, (file.len(), file.iter().filter(|byte| **byte == b'\n').count()));
            Ok(())
        })
    };
    let long = "a line\n".repeat(500_000);
    let mut packed = Vec::new();
    let mut encoder = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
    encoder.write_all(long.as_bytes()).and_then(|()| encoder.try_finish()).unwrap();
    drop(encoder);
    for split_bytes in [10, 1 << 20, 1 << 30] {
        let trial = Trial::from_plan(plan())
            .file("d/a", "no end")
            .file("d/b", &long)
            .file("d/c", "")
            .file("d/d", "x\n");
        let written = trial.file("d/e.gz", &packed).split_bytes(split_bytes).run().unwrap();
        let expected = ["d/a\t6\t0", "d/b\t3500000\t500000", "d/d\t2\t1", "d/e.gz\t3500000\t500000"];
        assert_eq!(written.lines(), expected, "{split_bytes}");
    }
}

#[test]
fn a_task_has_so_many_named_outputs_and_of_such_names() {
    let with = |names: Vec<String>| {
        let plan = JobPlan::map_only_each(Input::lines(["a"]), move |line, out| {
            names.iter().try_for_each(|name| {
                out.named(name)?.line(&line);
                Ok(())
            })
        });
        Trial::from_plan(plan).file("a", "a\n").run()
    };
    let names = |count: usize| (0..count).map(|number| format!("n{number}")).collect::<Vec<_>>();
    assert_eq!(with(names(16)).unwrap().named.len(), 16);
    assert_eq!(with(names(16)).unwrap().named_lines("n7"), ["a"]);
    for wrong in
        [names(17), vec!["_hidden".into()], vec!["part-1".into()], vec!["a/b".into()], vec![String::new()]]
    {
        let failed = with(wrong).unwrap_err().to_string();
        assert!(failed.contains("no output can be called"), "{failed}");
    }
}

#[test]
fn a_mapper_without_a_reduce_gives_what_it_writes_and_counts() {
    let written = map_only(Twice::default, "a\nb").unwrap();
    assert_eq!(written.lines(), ["a", "a", "b", "b", "lines\t2"]);
    assert_eq!((written.counter("lines"), written.counter("others")), (2, 0));
}

/// Writes the values of each group, and its keys.
struct Groups;

impl Reducer for Groups {
    type Key = (String, u64);
    type Value = char;

    fn reduce(
        &mut self,
        (key, _): (String, u64),
        values: &mut Values<'_, (String, u64), char>,
        out: &mut Output,
    ) -> TaskResult {
        let values: String = values.iter().collect();
        out.pair(key, values);
        Ok(())
    }
}

#[test]
fn a_reducer_gets_its_pairs_grouped_by_the_whole_key_or_by_its_first_component() {
    let pairs = || {
        [("b", 1, 'x'), ("a", 2, 'y'), ("a", 1, 'z'), ("a", 2, 'w')]
            .map(|(key, second, value)| ((key.to_owned(), second), value))
    };
    assert_eq!(reduce(|| Groups, pairs()).unwrap().lines(), ["a\tz", "a\tyw", "b\tx"]);
    assert_eq!(reduce_by_first(|| Groups, pairs()).unwrap().lines(), ["a\tzyw", "b\tx"]);
}

fn words(file: &str) -> JobPlan {
    let words = |line: Record<'_>, out: &mut Emitter<String, u64>| {
        out.count("lines", 1);
        line.text().split_whitespace().for_each(|word| out.emit(word, 1));
        Ok(())
    };
    let plan = JobPlan::map_each(Input::lines([file]), words).combine(Sum::new);
    plan.total_order().reduce_each(|word, counts, out| {
        out.pair((word, word.len()), counts.iter().sum::<u64>());
        Ok(())
    })
}

#[test]
fn a_trial_gives_the_same_lines_and_counters_for_any_number_of_parts_and_splits() {
    let text = "to be or\nnot to be\nthat is\n";
    for (parts, split_bytes) in [(1, 1000), (3, 1000), (3, 4), (1, 1)] {
        let trial = Trial::from_plan(words("in/a.txt")).file("in/a.txt", text).parts(parts);
        let written = trial.split_bytes(split_bytes).run().unwrap();
        let expected = ["be\t2\t2", "is\t2\t1", "not\t3\t1", "or\t2\t1", "that\t4\t1", "to\t2\t2"];
        assert_eq!(written.lines(), expected, "{parts} parts, splits of {split_bytes}");
        assert_eq!((written.parts.len(), written.counter("lines")), (parts as usize, 3));
    }
}

#[test]
fn a_trial_takes_a_directory_for_its_files_and_names_them_as_the_job_does() {
    let name = |line: Record<'_>, out: &mut Output| {
        out.pair(&line.source().path, &*line);
        Ok(())
    };
    let plan = JobPlan::map_only_each(Input::lines(["in"]), name);
    let written =
        Trial::from_plan(plan).file("in/b", "2").file("in/a", "1").file("in/_c", "3").run().unwrap();
    assert_eq!(written.lines(), ["in/a\t1", "in/b\t2"]);
}

#[test]
fn a_trial_without_a_file_that_the_job_reads_says_which() {
    let wrong = Trial::from_plan(words("no-such-file")).run().unwrap_err();
    assert!(matches!(&wrong, TrialError::Input { source } if source.to_string().contains("no-such-file")));
}

#[test]
fn values_survive_as_json_to_the_last_bit_and_what_is_none_is_refused() {
    let values: [(String, f64, Option<u64>); 2] = [
        ("tab\t\"quote\"\nline".to_owned(), 0.1 + 0.2, None),
        (String::new(), f64::MIN_POSITIVE, Some(u64::MAX)),
    ];
    let written =
        reduce(|| JsonOf, values.iter().enumerate().map(|(at, value)| (at as u64, value.clone()))).unwrap();
    let back = |line: Record<'_>, out: &mut Emitter<u64, (String, f64, Option<u64>)>| {
        out.emit(line.offset(), line.json()?);
        TaskResult::Ok(())
    };
    let source = crate::input::Source { path: "t".to_owned(), input: 0 };
    for (line, value) in written.lines().iter().zip(&values) {
        let record = Record::new(line.as_bytes(), 0, &source);
        let mut out = Emitter::in_memory();
        back(record, &mut out).unwrap();
        assert_eq!(out.into_pairs().unwrap(), [(0, value.clone())]);
        let wrong = record.json::<u64>().unwrap_err();
        assert_eq!(wrong.kind, FailureKind::BadRecord);
        assert!(wrong.to_string().starts_with("not a u64 in JSON: invalid type: sequence"), "{wrong}");
    }
}

/// Writes values as JSON.
struct JsonOf;

impl Reducer for JsonOf {
    type Key = u64;
    type Value = (String, f64, Option<u64>);

    fn reduce(&mut self, _: u64, values: &mut Values<'_, u64, Self::Value>, out: &mut Output) -> TaskResult {
        while let Some(value) = values.next()? {
            out.json(&value)?;
        }
        Ok(())
    }
}
