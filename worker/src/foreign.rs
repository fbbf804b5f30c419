//! One task of a job under another MapReduce system, between two streams of bytes: lines are the input of a map, pairs
//! are transferred as raw bytes, and lines are the output of a reduce.
//!
//! A pair is its key and its value, each as four bytes of length (most significant first) and the bytes: the `rawbytes`
//! of Hadoop Streaming. The other system splits the input, sorts pairs by the bytes of their keys and transfers them to
//! reduces; a map combines its own output. The caller, and the submission to the other system, are in `gristmill
//! as-streaming`.

use crate::api::{JobPlan, KeyOrder, SideInputs};
use crate::attempt::{AttemptContext, Progress, TaskFailure, TaskSettings, TaskStats};
use crate::budget::Budget;
use crate::input::list::LocalListing;
use crate::input::plan::{SplitRules, plan_splits};
use crate::input::{Input, InputError, LocalFiles, RecordFormat, Split};
use crate::output::Output;
use crate::segment::{
    MapOutput, PAIR_BYTES_MAX, SegmentData, SegmentError, SegmentOrder, SegmentReader, SegmentsWriter,
    SpillDirs, WriteError, WriteSetting,
};
use crate::task::{run_map, run_map_only, run_reduce};
use gristmill_scheduler::ids::{JobId, TaskId};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const JOB: JobId = JobId(0);

/// Memory for the output of a map, or for the input of a reduce, bytes; larger data goes to a file in its directory.
const OUTPUT_BYTES_MAX: usize = 64 << 20;

/// Bytes read or buffered for writing at once.
const STREAM_BYTES: usize = 256 << 10;

/// File name of the input of a running map in its directory.
const INPUT_NAME: &str = "gristmill-input";

/// Error of a task under another system, or of a job that cannot run there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ForeignError {
    /// The plan requires features that streams of lines do not have.
    #[error("the job {what}, which cannot be had of lines on standard input")]
    Plan { what: &'static str },
    #[error("standard input could not be read")]
    Read {
        #[source]
        source: io::Error,
    },
    #[error("standard output could not be written")]
    Write {
        #[source]
        source: io::Error,
    },
    /// The directory of the task failed.
    #[error("could not write to {}", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the input cannot be used")]
    Input {
        #[source]
        source: InputError,
    },
    /// The input of a reduce does not consist of pairs, or is not in order.
    #[error(
        "pair {number} on standard input {what}: set stream.map.output and stream.reduce.input to rawbytes"
    )]
    Pair { number: u64, what: String },
    #[error("pairs could not be kept")]
    Keep {
        #[source]
        source: WriteError,
    },
    #[error("pairs that were kept could not be read")]
    Kept {
        #[source]
        source: SegmentError,
    },
    #[error("{failure}")]
    Task { failure: TaskFailure },
}

/// True if a job with a reduce is only correct with a single reduce: another system hashes whole keys, which keeps
/// neither the parts of a total order nor groups of several keys together.
#[must_use]
pub fn needs_one_reduce(plan: &JobPlan) -> bool {
    plan.order() == KeyOrder::Total || plan.reduces() == Some(1) || plan.groups_several_keys()
}

/// Checks that tasks of this job can run between streams of lines.
///
/// # Errors
/// The first unsupported feature.
pub fn check(plan: &JobPlan) -> Result<(), ForeignError> {
    let bare = plan.inputs().iter().any(|input| 0 < input.bare_tasks);
    let lines = plan.inputs().iter().all(|input| input.format == RecordFormat::Lines);
    let what = match plan.inputs().len() {
        _ if bare => "has maps without input",
        _ if !lines => "reads records that are no lines",
        _ if !plan.side_inputs().is_empty() => "reads side inputs",
        1 => return Ok(()),
        _ => "has several inputs with a mapper each",
    };
    Err(ForeignError::Plan { what })
}

/// Environment of tasks: their own directory, for data that exceeds the memory.
pub struct ForeignTasks<'a> {
    plan: &'a JobPlan,
    folder: &'a Path,
    settings: TaskSettings,
    budget: Budget,
    progress: Arc<Progress>,
}

impl<'a> ForeignTasks<'a> {
    /// Creates the environment of this job, in this directory.
    ///
    /// # Errors
    /// As [`check`].
    pub fn new(plan: &'a JobPlan, folder: &'a Path) -> Result<Self, ForeignError> {
        check(plan)?;
        let parts = u32::from(!plan.is_map_only());
        let settings = TaskSettings::new(JOB, parts, SpillDirs::new(vec![folder.to_owned()]));
        Ok(Self { plan, folder, settings, budget: Budget::new(OUTPUT_BYTES_MAX), progress: Arc::default() })
    }

    /// Runs a map over the lines of `from` and writes its pairs, sorted and combined, to `to`; or its output, if the
    /// job has no reduce.
    ///
    /// # Errors
    /// Failed streams, a full directory, and all failures of tasks.
    pub fn map(&self, from: &mut dyn Read, to: Box<dyn Write + Send>) -> Result<TaskStats, ForeignError> {
        let path = self.folder.join(INPUT_NAME);
        let stats = self.keep(from, &path).and_then(|()| self.map_file(&path, to));
        let removed = std::fs::remove_file(&path);
        let stats = stats?;
        removed.map_err(|source| ForeignError::Folder { path, source })?;
        Ok(stats)
    }

    /// Runs a reduce over the pairs of `from`, which must be sorted by their keys, and writes its output to `to`.
    ///
    /// # Errors
    /// As [`ForeignTasks::map`], and bytes that are not pairs in that order.
    pub fn reduce(&self, from: &mut dyn Read, to: Box<dyn Write + Send>) -> Result<TaskStats, ForeignError> {
        let given = self.take_in(from)?;
        let segments: Vec<SegmentData> =
            given.segment(0).into_iter().filter(|data| !data.is_empty()).collect();
        let attempt = TaskId::reduce(JOB, 0).attempt(0);
        let done = run_reduce(self.plan, self.context(attempt), segments, Output::new("standard output", to));
        Ok(done.map_err(|failure| ForeignError::Task { failure })?.stats)
    }

    fn context(&self, attempt: gristmill_scheduler::ids::AttemptId) -> AttemptContext<'_> {
        let side = Arc::new(SideInputs::new(Vec::new(), Arc::new(LocalFiles), self.settings.limits));
        AttemptContext {
            attempt,
            side,
            settings: &self.settings,
            budget: &self.budget,
            progress: &self.progress,
        }
    }

    /// Stores the stream in a file, since maps read files.
    fn keep(&self, from: &mut dyn Read, path: &Path) -> Result<(), ForeignError> {
        let failed = |source| ForeignError::Folder { path: path.to_owned(), source };
        let mut file = File::create(path).map_err(failed)?;
        let mut chunk = vec![0; STREAM_BYTES];
        loop {
            match from.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(got) => file.write_all(&chunk[..got]).map_err(failed)?,
                Err(source) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ForeignError::Read { source }),
            }
        }
    }

    fn map_file(&self, path: &Path, to: Box<dyn Write + Send>) -> Result<TaskStats, ForeignError> {
        let wrong = |source| ForeignError::Input { source };
        let name =
            path.to_str().ok_or(ForeignError::Plan { what: "is run in a folder whose name is no UTF-8" })?;
        let whole = SplitRules { split_bytes: u64::MAX, ..SplitRules::default() };
        let splits = plan_splits(&[Input::lines([name])], &LocalListing, whole).map_err(wrong)?;
        let nothing = Split { input: 0, format: RecordFormat::Lines, pieces: Vec::new() };
        let split = splits.into_iter().next().unwrap_or(nothing);
        let attempt = TaskId::map(JOB, 0).attempt(0);
        let failed = |failure| ForeignError::Task { failure };
        if self.plan.is_map_only() {
            let output = Output::new("standard output", to);
            let done = run_map_only(self.plan, &self.context(attempt), &split, &LocalFiles, output);
            return Ok(done.map_err(failed)?.stats);
        }
        let done = run_map(self.plan, self.context(attempt), &split, &LocalFiles).map_err(failed)?;
        if let Some(data) = done.output.segment(0).filter(|data| !data.is_empty()) {
            hand_out(data, to)?;
        }
        Ok(done.stats)
    }

    /// Reads the pairs of a stream as a map's output.
    fn take_in(&self, from: &mut dyn Read) -> Result<MapOutput, ForeignError> {
        let keep = |source| ForeignError::Keep { source };
        let setting = WriteSetting {
            job: JOB,
            map: 0,
            epoch: 0,
            partitions: 1,
            order: SegmentOrder::Key,
            spill: self.settings.spill.clone(),
            compression: self.settings.compression,
        };
        let mut writer = SegmentsWriter::in_memory(setting, &self.budget, 0).map_err(keep)?;
        let mut from = BufReader::with_capacity(STREAM_BYTES, from);
        let (mut key, mut value, mut before) = (Vec::new(), Vec::new(), Vec::new());
        for number in 1.. {
            let ends = from.fill_buf().map_err(|source| ForeignError::Read { source })?.is_empty();
            if ends {
                break;
            }
            let whole = field(&mut from, &mut key).and_then(|()| field(&mut from, &mut value));
            whole.map_err(|wrong| wrong.of(number))?;
            if 1 < number && key < before {
                return Err(ForeignError::Pair {
                    number,
                    what: "has a lower key than the one before".to_owned(),
                });
            }
            writer.pair(0, &key, &value).map_err(keep)?;
            std::mem::swap(&mut before, &mut key);
        }
        writer.finish().map_err(keep)
    }
}

/// Error of reading a field of a pair.
enum NoField {
    Broken(io::Error),
    Wrong(String),
}

impl NoField {
    fn of(self, number: u64) -> ForeignError {
        match self {
            Self::Broken(source) => ForeignError::Read { source },
            Self::Wrong(what) => ForeignError::Pair { number, what },
        }
    }
}

/// Reads four bytes of length and that many bytes.
fn field(from: &mut impl BufRead, field: &mut Vec<u8>) -> Result<(), NoField> {
    let cut_short = || NoField::Wrong("is cut short".to_owned());
    let mut length = [0; 4];
    from.read_exact(&mut length).map_err(|source| match source.kind() {
        io::ErrorKind::UnexpectedEof => cut_short(),
        _ => NoField::Broken(source),
    })?;
    let length = u32::from_be_bytes(length);
    if PAIR_BYTES_MAX < length as usize {
        return Err(NoField::Wrong(format!(
            "says that it has {length} bytes, over the {PAIR_BYTES_MAX} that it may have"
        )));
    }
    field.clear();
    // Memory is allocated as bytes arrive, not by the announced length.
    let got = from.take(u64::from(length)).read_to_end(field).map_err(NoField::Broken)?;
    if got < length as usize { Err(cut_short()) } else { Ok(()) }
}

/// Writes the pairs of a segment.
fn hand_out(data: SegmentData, to: Box<dyn Write + Send>) -> Result<(), ForeignError> {
    let kept = |source| ForeignError::Kept { source };
    let broken = |source| ForeignError::Write { source };
    let mut to = BufWriter::with_capacity(STREAM_BYTES, to);
    let mut reader = SegmentReader::open(data).map_err(kept)?;
    while reader.advance().map_err(kept)? {
        for field in [reader.key(), reader.value()] {
            // A pair is at most PAIR_BYTES_MAX long.
            let length = field.len() as u32;
            to.write_all(&length.to_be_bytes()).and_then(|()| to.write_all(field)).map_err(broken)?;
        }
    }
    to.flush().map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::TaskError;
    use crate::api::{Sum, WriteTotal};
    use crate::collect::Emitter;
    use crate::input::Record;
    use std::sync::Mutex;

    /// Output of a task.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Written {
        fn bytes(&self) -> Vec<u8> {
            self.0.lock().unwrap().clone()
        }
    }

    fn counts_words() -> JobPlan {
        let split = |line: Record<'_>, out: &mut Emitter<String, u64>| -> Result<(), TaskError> {
            line.text().split_whitespace().for_each(|word| out.emit(word, 1));
            Ok(())
        };
        JobPlan::map_each(Input::lines(["words"]), split)
            .combine(Sum::new)
            .reduce(WriteTotal::<String, Sum<u64>>::default)
    }

    fn ran(plan: &JobPlan, kind: &str, from: &[u8]) -> Result<Vec<u8>, ForeignError> {
        let folder = tempfile::tempdir().unwrap();
        let (tasks, written) = (ForeignTasks::new(plan, folder.path())?, Written::default());
        let to = Box::new(written.clone());
        match kind {
            "map" => tasks.map(&mut &*from, to)?,
            _ => tasks.reduce(&mut &*from, to)?,
        };
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the task left something behind");
        Ok(written.bytes())
    }

    /// Parses raw bytes as pairs of (key, value).
    fn pairs(mut bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut pairs = Vec::new();
        let field = |bytes: &mut &[u8]| {
            let (length, rest) = bytes.split_at(4);
            let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
            let (field, rest) = rest.split_at(length);
            *bytes = rest;
            field.to_vec()
        };
        while !bytes.is_empty() {
            let key = field(&mut bytes);
            pairs.push((key, field(&mut bytes)));
        }
        pairs
    }

    fn raw(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in pairs.iter().flat_map(|(key, value)| [key, value]) {
            bytes.extend((field.len() as u32).to_be_bytes());
            bytes.extend(field);
        }
        bytes
    }

    #[test]
    fn maps_and_a_reduce_between_streams_count_words_as_the_job_does() {
        let plan = counts_words();
        let mut emitted = Vec::new();
        for lines in ["to be\nor not to be\n", "that is\nthe question: to be", ""] {
            emitted.extend(pairs(&ran(&plan, "map", lines.as_bytes()).unwrap()));
        }
        // Each map has combined its own.
        assert_eq!(emitted.len(), 4 + 6);
        emitted.sort();
        let counted = ran(&plan, "reduce", &raw(&emitted)).unwrap();
        let counted = String::from_utf8(counted).unwrap();
        assert_eq!(counted, "be\t3\nis\t1\nnot\t1\nor\t1\nquestion:\t1\nthat\t1\nthe\t1\nto\t3\n");
        assert!(ran(&plan, "reduce", b"").unwrap().is_empty());
    }

    #[test]
    fn job_without_a_reduce_writes_its_output() {
        let shout = |line: Record<'_>, out: &mut Output| {
            out.line(line.text().to_uppercase().as_bytes());
            Ok(())
        };
        let plan = JobPlan::map_only_each(Input::lines(["words"]), shout);
        assert_eq!(ran(&plan, "map", b"to be\nor not").unwrap(), b"TO BE\nOR NOT\n");
    }

    #[test]
    fn bytes_that_are_no_pairs_in_order_are_refused_with_their_number() {
        let plan = counts_words();
        let refused = |bytes: &[u8]| ran(&plan, "reduce", bytes).unwrap_err().to_string();
        let pair = |key: &str| (key.as_bytes().to_vec(), vec![1]);
        let falling = refused(&raw(&[pair("b"), pair("b"), pair("a")]));
        assert!(falling.starts_with("pair 3 on standard input has a lower key"), "{falling}");
        let cut = raw(&[pair("a"), pair("b")]);
        assert!(refused(&cut[..cut.len() - 1]).starts_with("pair 2 on standard input is cut short"));
        assert!(refused(&cut[..3]).starts_with("pair 1 on standard input is cut short"));
        let long = refused(&[0xff, 0xff, 0xff, 0xff, 0]);
        assert!(long.starts_with("pair 1 on standard input says that it has 4294967295 bytes"), "{long}");
    }

    #[test]
    fn jobs_that_do_not_read_lines_of_one_input_are_refused() {
        let wrong = |plan: &JobPlan| check(plan).unwrap_err().to_string();
        let nothing = |_: Record<'_>, _: &mut Output| Ok(());
        let fixed = JobPlan::map_only_each(Input::fixed(["records"], 100), nothing);
        assert!(wrong(&fixed).contains("records that are no lines"));
        let side = JobPlan::map_only_each(Input::lines(["words"]), nothing).side(Input::lines(["table"]));
        assert!(wrong(&side).contains("side inputs"));
        let bare = JobPlan::map_only_each(Input::bare_tasks(3), nothing);
        assert!(wrong(&bare).contains("without input"));
        check(&counts_words()).unwrap();
    }

    #[test]
    fn total_orders_need_one_reduce_and_counts_do_not() {
        let order = |line: Record<'_>, out: &mut Emitter<String, u64>| -> Result<(), TaskError> {
            out.emit(&line.text(), 1);
            Ok(())
        };
        let plan = JobPlan::map_each(Input::lines(["words"]), order)
            .total_order()
            .reduce(WriteTotal::<String, Sum<u64>>::default);
        assert!(needs_one_reduce(&plan));
        assert!(!needs_one_reduce(&counts_words()));
    }
}
