//! A job of Hadoop Streaming as it is submitted: its commands, shipped files, fields of keys and input.

use super::fields::FieldRule;
use super::key_specs::KeySpecs;
use super::keys::PartRule;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Format of the input for the mapper.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum LineInput {
    /// The line alone (`TextInputFormat`).
    Text,
    /// The text before the first separator is the key, the text after it the value
    /// (`KeyValueTextInputFormat`).
    KeyValue,
    /// Offset of the line in its file as key, and the line (`NLineInputFormat`).
    Numbered,
    /// No lines: pairs with lengths, as written by another job; see [`StreamingJob::has_lengths`].
    Pairs,
}

/// File that tasks find in their working directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShippedFile {
    /// Name in the working directory.
    pub name: String,
    /// Absolute path, seen by every worker.
    pub path: PathBuf,
}

/// Job of Hadoop Streaming.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StreamingJob {
    /// Files and directories, named as in this system.
    pub inputs: Vec<String>,
    /// Format of the input for the mapper.
    pub line_input: LineInput,
    /// True if the commands run functions of another language: except for lines of the input, they read and
    /// write pairs with lengths, as parts hold them, and report their end.
    pub has_lengths: bool,
    /// True if the key of a line is omitted from the mapper's input; `None` for the default of the input
    /// format.
    pub ignore_key: Option<bool>,
    /// Separator of key and value where both are written to the mapper.
    pub map_input_separator: String,
    /// Command of the mapper: program and arguments; `None` to pass pairs on unchanged, as for the others.
    pub mapper: Option<Vec<String>>,
    /// Combiner of the output of each map, before it is sent.
    pub combiner: Option<Vec<String>>,
    /// Reducer, if there are reduces.
    pub reducer: Option<Vec<String>>,
    /// Number of parts; 0 if the output of the maps is the output.
    pub reduces: u32,
    /// Rule that splits the mapper's lines into key and value.
    pub map_output: FieldRule,
    /// Separator of key and value where they are written to the reducer and the combiner.
    pub reduce_input_separator: String,
    /// Rule that splits the reducer's lines into key and value.
    pub reduce_output: FieldRule,
    /// Separator of key and value in the output.
    pub output_separator: String,
    /// Rule for the part of a key.
    pub partition: PartRule,
    /// Parts of keys by which they are sorted and grouped; `None` for their bytes.
    pub order: Option<KeySpecs>,
    /// True if a nonzero exit status of a command fails its task.
    pub non_zero_exit_fails: bool,
    /// Number of lines after which a command may close its input early; `None` if it never may.
    pub early_close_after: Option<u64>,
    /// Timeout of a command that neither reads nor writes, in milliseconds; `None` for no timeout.
    pub timeout_ms: Option<u64>,
    /// Properties of the job, which commands receive as variables.
    pub properties: BTreeMap<String, String>,
    /// Further variables of commands.
    pub variables: BTreeMap<String, String>,
    /// Files that tasks find in their working directory, if every worker sees their paths.
    pub files: Vec<ShippedFile>,
    /// File written by [`write_bundle`](crate::write_bundle) with the files that are sent with the job, named as in this system.
    pub bundle: Option<String>,
    /// First number of the job's name in Hadoop's format, `job_STAMP_0001`.
    pub stamp: u64,
    /// Directory that `hdfs:///` stands for, used for the file name that a map receives.
    pub hdfs_root: Option<PathBuf>,
}
