//! `gristmill verify-sort`: checks that the parts of a sort are in order and hold the records of its input.
//!
//! Both are read once, block by block. Records are compared by their number and by the sum of their hashes, which does
//! not depend on their order. A lost, duplicated or damaged record changes the sum, except with a probability of one in
//! 2^64.
//!
//! The parts and the parameters in `_SUCCESS` are located elsewhere. It is not checked that `--stable` kept the order
//! of the input among equal keys: no single pass over both can determine that.

use crate::Sort;
use crate::sort::{KeyBuffers, RecordOrder};
use gristmill_worker::api::Input;
use gristmill_worker::input::list::LocalListing;
use gristmill_worker::input::plan::{SplitRules, plan_splits};
use gristmill_worker::input::{Blocks, InputError, InputLimits, LocalFiles, open_split};
use gristmill_worker::record::Record;
use std::fmt;
use xxhash_rust::xxh3::xxh3_64;

/// Output to verify.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// The files of the output, in order. They are sorted like one concatenated file.
    pub parts: Vec<String>,
    /// The parameters of the job, including its inputs.
    pub sort: Sort,
    /// Limits of reading records.
    pub limits: InputLimits,
}

/// Number and identity of records, independent of their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contents {
    /// Number of records.
    pub records: u64,
    /// Their bytes, without line breaks.
    pub bytes: u64,
    /// The sum of their 64-bit XXH3 hashes, modulo 2^64.
    pub hash_sum: u64,
}

/// Result of a verification. See [`VerifyReport::problems`] for its meaning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyReport {
    /// Contents of the input.
    pub input: Contents,
    /// Contents of the parts.
    pub output: Contents,
    /// The first record that is out of order, if any.
    pub disorder: Option<Disorder>,
    /// True if the job keeps only one of several records with equal keys, so that the input may hold more.
    pub unique: bool,
}

/// A record that must not follow the previous one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disorder {
    /// The part that contains it.
    pub part: String,
    /// Offset of its start in the part, in bytes.
    pub offset: u64,
}

/// A difference between the output and the sorted input.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// A record is out of order.
    Disorder(Disorder),
    /// The number of records differs from that of the input; with `--unique`, it is larger.
    Records {
        /// Records of the input.
        input: u64,
        /// Records of the parts.
        output: u64,
    },
    /// The number of records equals that of the input, but the records differ.
    Contents {
        /// Sum of the hashes of the input.
        input: u64,
        /// Sum of the hashes of the parts.
        output: u64,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Disorder(Disorder { part, offset }) => {
                write!(f, "the record at byte {offset} of {part} should come before the one in front of it")
            }
            Problem::Records { input, output } => {
                write!(f, "the output has {output} records, the input {input}")
            }
            Problem::Contents { input, output } => write!(
                f,
                "the output has other records than the input: their hashes add up to {output:016x}, not {input:016x}"
            ),
        }
    }
}

impl VerifyReport {
    /// Problems of the output; empty if it is the sorted input. With `--unique`, it is only checked that the keys
    /// ascend and that there are no more records than in the input, not which records of the input are present.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self.disorder.clone().map(Problem::Disorder).into_iter().collect();
        let (input, output) = (self.input, self.output);
        if output.records > input.records || (output.records < input.records && !self.unique) {
            problems.push(Problem::Records { input: input.records, output: output.records });
        } else if output.records == input.records && output != input {
            problems.push(Problem::Contents { input: input.hash_sum, output: output.hash_sum });
        } else if self.unique && output.records == 0 && input.records > 0 {
            problems.push(Problem::Records { input: input.records, output: 0 });
        }
        problems
    }
}

/// Reason for which an output could not be verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// A part cannot be read.
    #[error("could not read the output")]
    Output {
        /// The part and the cause.
        #[source]
        source: InputError,
    },
    /// An input cannot be read.
    #[error("could not read the input")]
    Input {
        /// The file and the cause.
        #[source]
        source: InputError,
    },
}

/// Reads the parts and the inputs and compares them. Memory: one block of either and the largest record.
///
/// # Errors
/// Files that cannot be read. A wrong output is not an error: see [`VerifyReport::problems`].
pub fn verify(options: &VerifyOptions) -> Result<VerifyReport, VerifyError> {
    let mut check = OrderCheck::new(&options.sort);
    let parts = Input { paths: options.parts.clone(), ..options.sort.input() };
    let output = read(&parts, &options.limits, |record| check.next(record))
        .map_err(|source| VerifyError::Output { source })?;
    let input = read(&options.sort.input(), &options.limits, |_| {})
        .map_err(|source| VerifyError::Input { source })?;
    Ok(VerifyReport { input, output, disorder: check.disorder, unique: options.sort.unique })
}

/// Checks that each record may follow the previous one.
struct OrderCheck {
    order: RecordOrder,
    unique: bool,
    scratch: KeyBuffers,
    before: Option<Vec<u8>>,
    disorder: Option<Disorder>,
}

impl OrderCheck {
    fn new(sort: &Sort) -> Self {
        let (order, unique) = (RecordOrder::new(sort), sort.unique);
        Self { order, unique, scratch: KeyBuffers::default(), before: None, disorder: None }
    }

    fn next(&mut self, record: Record<'_>) {
        let (key, _) = self.order.pair(record.bytes(), &mut self.scratch);
        match &mut self.before {
            None => self.before = Some(key.to_vec()),
            Some(before) => {
                let in_order = if self.unique { before[..] < *key } else { before[..] <= *key };
                if !in_order && self.disorder.is_none() {
                    let (part, offset) = (record.source().path.clone(), record.offset());
                    self.disorder = Some(Disorder { part, offset });
                }
                before.clear();
                before.extend_from_slice(key);
            }
        }
    }
}

/// Reads all records of an input in order.
fn read(
    input: &Input,
    limits: &InputLimits,
    mut with_record: impl FnMut(Record<'_>),
) -> Result<Contents, InputError> {
    let mut contents = Contents::default();
    for split in plan_splits(std::slice::from_ref(input), &LocalListing, SplitRules::default())? {
        let mut blocks = open_split(&split, &LocalFiles, limits);
        while let Some(block) = blocks.next_block()? {
            for record in block.records() {
                contents.records += 1;
                contents.bytes += record.bytes().len() as u64;
                contents.hash_sum = contents.hash_sum.wrapping_add(xxh3_64(record.bytes()));
                with_record(record);
            }
        }
    }
    Ok(contents)
}

#[cfg(test)]
mod tests;
