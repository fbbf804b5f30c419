//! Hadoop Streaming: jobs whose mapper, combiner and reducer are commands that read lines and write lines.
//!
//! A [`StreamingJob`] is what a command line of Hadoop Streaming says, already understood; it travels to the workers as
//! any job's parameters do. A task starts its command ([`process`](self)), feeds it, and takes apart what it writes, all
//! on the thread of its slot. What is partitioned how, what is sorted how and which bytes reach a command is Hadoop's,
//! bit by bit; the book's chapter "Hadoop Streaming" has each rule with its test.
//!
//! Not here: the command line, paths of `hdfs:`, what drivers read of the log (all in `cli`), and the start of processes,
//! which is in `cluster`.

mod aggregate;
mod between_marks;
mod bundle;
mod combine;
mod command;
mod debug;
mod environment;
mod field_selection;
mod fields;
mod folder;
mod forms;
mod key_specs;
mod keys;
mod map;
mod pipes;
mod process;
mod reduce;
mod reported;
#[cfg(test)]
mod tests;
mod typed_bytes;

pub use aggregate::AggregateError;
pub use between_marks::Marks;
pub use bundle::{BUNDLE_BYTES_MAX, write_bundle};
pub use command::split_command;
pub use environment::variable_name;
pub use field_selection::{FieldListError, FieldSelection};
pub use fields::FieldRule;
pub use forms::{PairForm, PairForms, PartContent};
pub use key_specs::{KeySpecError, KeySpecs};
pub use keys::{PartRule, hash_bytes};
pub use reported::{CounterSum, counter_sums};

use gristmill_scheduler::ids::TaskKind;
use gristmill_worker::api::MapReducePlan;
use gristmill_worker::prelude::*;
use keys::{KeyCoding, KeyPartitioner};
use map::{StreamMapOnly, StreamMapper};
use reduce::StreamReducer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What a step of the job does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum StreamStep {
    /// Hands on what comes in.
    Identity,
    /// A program and its arguments, fed by lines or pairs.
    Command(Vec<String>),
    /// Hadoop's aggregators, for combiner and reducer: keys such as `LongValueSum:id` say what is done.
    Aggregate,
    /// Fields of what comes in (`FieldSelectionMapReduce`).
    Select(FieldSelection),
}

/// How lines of the input reach the mapper.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LineInput {
    /// The line alone (`TextInputFormat`).
    Text,
    /// What stands before the first separator is the key, what is behind it the value (`KeyValueTextInputFormat`).
    KeyValue,
    /// Where the line begins in its file, as key, and the line (`NLineInputFormat`).
    Numbered,
    /// No lines: pairs as typed bytes, one after another, as [`PartContent::TypedBytes`] has them.
    TypedBytes,
    /// What stands between two marks is the key, and there is no value (`StreamXmlRecordReader`). Files must not be cut.
    Between(Marks),
}

/// A file that tasks find in their working directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShippedFile {
    /// What it is called there.
    pub name: String,
    /// Where it lies: absolute, and seen by every worker.
    pub path: PathBuf,
}

/// A job of Hadoop Streaming.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StreamingJob {
    /// Files and directories, as this system names them.
    pub inputs: Vec<String>,
    /// How their lines reach the mapper.
    pub line_input: LineInput,
    /// In which forms commands read and write pairs.
    pub forms: PairForms,
    /// How pairs stand in the output.
    pub part_content: PartContent,
    /// Whether the key of a line is left out of what the mapper reads; `None`: as the input says.
    pub ignore_key: Option<bool>,
    /// Between key and value where both are written to the mapper.
    pub map_input_separator: String,
    /// The mapper.
    pub mapper: StreamStep,
    /// What is done with the output of each map before it travels.
    pub combiner: Option<StreamStep>,
    /// The reducer, if there are reduces.
    pub reducer: StreamStep,
    /// Number of parts; 0: the output of the maps is the output.
    pub reduces: u32,
    /// How the mapper's lines fall into key and value.
    pub map_output: FieldRule,
    /// Between key and value where they are written to the reducer and the combiner.
    pub reduce_input_separator: String,
    /// How the reducer's lines fall into key and value.
    pub reduce_output: FieldRule,
    /// Between key and value in the output.
    pub output_separator: String,
    /// The part of a key.
    pub partition: PartRule,
    /// By what keys are sorted and grouped; `None`: by their bytes.
    pub order: Option<KeySpecs>,
    /// A command that ends with another status than 0 fails its task.
    pub non_zero_exit_fails: bool,
    /// Lines after which a command may close its input before all of it was written; `None`: it never may.
    pub early_close_after: Option<u64>,
    /// How long a command may neither read nor write; milliseconds. `None`: for ever.
    pub timeout_ms: Option<u64>,
    /// Bytes of pairs that a combiner gets at once.
    pub combine_bytes: u64,
    /// Runs where a command of a map has failed, to look at what it left: a program and its arguments.
    pub map_debug: Option<Vec<String>>,
    /// The same of a reduce.
    pub reduce_debug: Option<Vec<String>>,
    /// What a line on standard error begins with that is meant for the framework.
    pub reporter_prefix: String,
    /// The job's properties, of which commands are told by variables.
    pub properties: BTreeMap<String, String>,
    /// Bytes of a property's value that commands are told; `None`: all.
    pub property_bytes_max: Option<u64>,
    /// Further variables of commands.
    pub variables: BTreeMap<String, String>,
    /// Files that tasks find in their working directory, if every worker sees them where they lie.
    pub files: Vec<ShippedFile>,
    /// The file that [`write_bundle`] has made of those that are to travel with the job, as this system names it.
    pub bundle: Option<String>,
    /// First number of the job's name in Hadoop's style, `job_STAMP_0001`.
    pub stamp: u64,
    /// Folder that `hdfs:///` stands for, by which a map is told the name of its file.
    pub hdfs_root: Option<PathBuf>,
}

impl StreamingJob {
    /// What looks at failed attempts of this kind.
    fn debug_of(&self, kind: TaskKind) -> Option<&[String]> {
        match kind {
            TaskKind::Map => self.map_debug.as_deref(),
            TaskKind::Reduce => self.reduce_debug.as_deref(),
        }
    }
}

impl Job for StreamingJob {
    const NAME: &'static str = "streaming";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let job = Arc::new(self.clone());
        let input = match self.line_input {
            LineInput::TypedBytes => Input::fixed(&self.inputs, 1),
            _ => Input::lines(&self.inputs),
        };
        // Bytes as they are: nothing is a record, nothing is unpacked by its name.
        let bundle = self.bundle.as_ref().map(|bundle| Input::fixed([bundle], 1));
        if self.reduces == 0 {
            let plan = JobPlan::map_only(input, move || StreamMapOnly::new(job.clone()));
            return Ok(bundle.into_iter().fold(plan, JobPlan::side));
        }
        let coding = Arc::new(KeyCoding::new(self.partition.clone(), self.order.clone()));
        let (of_map, of_reduce) = (coding.clone(), coding.clone());
        let for_reduce = job.clone();
        let plan = JobPlan::map(input, move || StreamMapper::new(job.clone(), of_map.clone()))
            .partition(KeyPartitioner(coding))
            .reduces(self.reduces);
        let plan = bundle.into_iter().fold(plan, MapReducePlan::side);
        Ok(plan.reduce(move || StreamReducer::new(for_reduce.clone(), of_reduce.clone())))
    }
}
