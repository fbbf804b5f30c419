//! MapReduce on a laptop or a LAN: the building blocks of a program of jobs, and the system that runs it.
//!
//! You write what happens to a record and to a group. Gristmill splits the input, runs the tasks on worker processes,
//! sorts and moves the intermediate data, retries failed tasks, and publishes the output.
//!
//! # A whole program
//!
//! ```toml
//! [dependencies]
//! gristmill = "0.1"                                   # or { path = "…" }
//! serde = { version = "1", features = ["derive"] }    # serde's derives look for it here
//! ```
//!
//! ```no_run
//! use gristmill::prelude::*;
//!
//! /// Count the lines of each length
//! #[derive(clap::Args, Serialize, Deserialize)]
//! struct LineLengths {
//!     /// Text files, or directories of them
//!     #[arg(required = true)]
//!     inputs: Vec<String>,
//!     /// Leave out lines of fewer bytes
//!     #[arg(long, default_value_t = 0)]
//!     least: u64,
//! }
//!
//! impl Job for LineLengths {
//!     const NAME: &'static str = "line-lengths";
//!
//!     fn plan(&self) -> Result<JobPlan, PlanError> {
//!         let least = self.least;
//!         Ok(JobPlan::map(Input::lines(&self.inputs), move || Measure { least, left_out: Counter::default() })
//!             .combine(|| Add)
//!             .reduce(|| WriteCount))
//!     }
//! }
//!
//! struct Measure {
//!     least: u64,
//!     left_out: Counter,
//! }
//!
//! impl Mapper for Measure {
//!     type Key = u64;
//!     type Value = u64;
//!
//!     fn setup(&mut self, task: &TaskContext) -> TaskResult {
//!         self.left_out = task.counter("left out");
//!         Ok(())
//!     }
//!
//!     fn map(&mut self, line: Record<'_>, out: &mut Emitter<u64, u64>) -> TaskResult {
//!         match line.len() as u64 {
//!             length if length < self.least => self.left_out.add(1),
//!             length => out.emit(length, 1),
//!         }
//!         Ok(())
//!     }
//! }
//!
//! struct Add;
//!
//! impl Combiner for Add {
//!     type Value = u64;
//!
//!     fn combine(&mut self, total: &mut u64, count: u64) {
//!         *total += count;
//!     }
//! }
//!
//! struct WriteCount;
//!
//! impl Reducer for WriteCount {
//!     type Key = u64;
//!     type Value = u64;
//!
//!     fn reduce(&mut self, length: u64, counts: &mut Values<'_, u64, u64>, out: &mut Output) -> TaskResult {
//!         out.pair(length, counts.iter().sum::<u64>());
//!         Ok(())
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     gristmill::cli::main(Registry::new().job::<LineLengths>())
//! }
//! ```
//!
//! `cargo run --release -- run line-lengths book.txt` starts a master and workers, prints lines of length,
//! tab and count, and leaves nothing behind. `--output DIR` keeps the parts in a directory instead. `--help`
//! after any command lists its options. The same program is also `cluster master`, `cluster worker`, `submit`,
//! `cluster status` and so on. The workers of a cluster must run the program that submits, since that is how they know its jobs.
//!
//! (`Add` and `WriteCount` need not be written: [`Sum::new`](prelude::Sum::new) and
//! [`WriteTotal::<u64, Sum<u64>>::default`](prelude::WriteTotal) are the same.)
//!
//! # Traits
//!
//! | Trait | One object serves | You write | Must |
//! |---|---|---|---|
//! | [`Job`](prelude::Job) | a job; it *is* the parameters | `plan`: inputs, mappers, order, reducer | depend on its fields alone |
//! | [`Mapper`](prelude::Mapper) | a map task, on one thread | `map`: a record in, any number of pairs out | be a function of its input |
//! | [`Combiner`](prelude::Combiner) | a task | `combine`: two values of one key into one | be exactly associative and commutative |
//! | [`Reducer`](prelude::Reducer) | a part of the output | `reduce`: a key and its values in, output out | be a function of its input |
//! | [`MapOnly`](prelude::MapOnly) | a map task of a job without reduce | `map`: a record in, output out | be a function of its input |
//! | [`Partitioner`](prelude::Partitioner) | a job | `partition`: the number of a key's part | depend on its arguments alone |
//! | [`Rounds`](prelude::Rounds) | one run of several jobs | `drive`: run jobs through a [`Client`](prelude::Client) | |
//! | [`Policy`](scheduler::policy::Policy) | a master | `observe`, `plan`: which job gets the next slot | advance in `observe` alone |
//!
//! A [`JobPlan`](prelude::JobPlan) puts them together and a [`Registry`](prelude::Registry) gives them names:
//!
//! ```no_run
//! # use gristmill::prelude::*;
//! # fn plan<M, C, R, P>(input: Input, lookup: Input, m: fn() -> M, c: fn() -> C, r: fn() -> R, p: P) -> JobPlan
//! # where M: Mapper + 'static, C: Combiner<Value = M::Value> + 'static,
//! # R: Reducer<Key = M::Key, Value = M::Value> + 'static, P: Partitioner<Key = M::Key> {
//! JobPlan::map(input.clone(), m)  // an input and its mapper
//!     .map(input, m)              // another input, optionally with another mapper
//!     .side(lookup)               // files that every task reads as a whole
//!     .combine(c)                 // merge values of a key before they are sent
//!     .partition(p)               // or .total_order(), or neither
//!     .reduces(8)                 // set the number of parts
//!     .reduce(r)                  // the last step
//! # }
//! ```
//!
//! # Keys and values
//!
//! Pairs are grouped and sorted by their **[`Key`](prelude::Key)**. Keys are integers, `bool`, `char`, floats
//! (in the order of `total_cmp`), `String`, [`ByteString`](prelude::ByteString), `()`, and own newtypes by
//! [`key_newtype!`](prelude::key_newtype). Tuples, `Option`, `Vec` and [`Reverse`](std::cmp::Reverse) of keys
//! are keys too. Keys are encoded so that the order of their bytes is their order, and so that no key is ever
//! decoded to be compared.
//!
//! A **[`Value`](prelude::Value)** is any type with serde's `Serialize` and `Deserialize` that owns its data. Small
//! whole numbers take one byte. `ByteString` is sent without any encoding.
//!
//! Both are passed as **views**, which are the type itself except for three that borrow:
//!
//! | Type | `emit` takes, `reduce` gets |
//! |---|---|
//! | key `String` | `&str` |
//! | key or value `ByteString` | `&[u8]` |
//! | everything else, a *value* `String` as well | itself: `(String, u64)`, `Option<f64>`, `String` |
//!
//! In the signature of `reduce` write the view (`word: &str`), in `Emitter<K, V>` and `Values<'_, K, V>` the type.
//! `ByteString` is best for text that need not be UTF-8; it also saves the copy.
//!
//! [`Values`](prelude::Values) streams: a group may be larger than memory. `values.next()?` lends one value after
//! another, `values.iter()` returns owned ones; values that are not read are skipped.
//!
//! # Guarantees
//!
//! The same job on the same input with the same number of parts gives **the same bytes**, for any number of workers and
//! despite any failure. Keys are in ascending order within a part; the values of a key are in the order of inputs,
//! files and positions. The guarantee holds as long as user code is a function of its input: no clock, no unseeded
//! randomness, no iteration over a `HashMap`. A task may run more than once; only one attempt's output and counters
//! count.
//!
//! **Combiners** run any number of times on any grouping of a key's values, also zero times. They must be *exactly*
//! associative and commutative, and `combine` cannot change the key. Sums of integers, minima, maxima and unions of
//! sets are. Sums of floats are not, because rounding depends on the order: add them in the reducer. A mean is a
//! combiner of (sum, count) and a division in the reducer. With a combiner the reducer gets one value per key.
//!
//! # Tests
//!
//! [`testing`] runs a mapper, a combiner or a reducer alone ([`testing::map`], [`testing::combine`],
//! [`testing::reduce`]). It also runs a whole job over files in memory ([`testing::Trial`]), or several jobs
//! on a cluster of threads in the test's own process ([`testing::LocalCluster`]).
//!
//! # Further
//!
//! * **One function** is enough for a mapper or reducer without state: [`JobPlan::map_each`](prelude::JobPlan::map_each),
//!   [`JobPlan::map_only_each`](prelude::JobPlan::map_only_each) and `reduce_each`.
//! * **Columns of a table by their names**: [`Columns`](prelude::Columns), found in [`Job::prepare`](prelude::Job::prepare).
//! * **Values between jobs** travel as JSON lines: [`Output::json`](prelude::Output::json) writes and
//!   [`Record::json`](prelude::Record::json) reads them. [`JobReport`](prelude::JobReport) reads a result as lines, pairs or
//!   values.
//! * **Parameters** are the job's fields: `clap` makes flags of them, serde sends them to every task. Pass them to
//!   mappers and reducers in the closures of `plan`, which make a fresh object for each task.
//!   [`Job::prepare`](prelude::Job::prepare) may read the inputs once and write the results to the fields.
//! * **Counters**: [`TaskContext::counter`](prelude::TaskContext::counter) in `setup`, as above, or
//!   [`Emitter::count`](prelude::Emitter::count) and [`Output::count`](prelude::Output::count). The sums are in the
//!   summary, in `_SUCCESS` and in [`JobReport::counter`](prelude::JobReport::counter).
//! * **Secondary sort**: a tuple as key and `group_by_first()`: pairs are sorted by the whole key, and one call of
//!   `reduce` gets all that share the first component. [`Values::key`](prelude::Values::key) is the current whole key.
//! * **Total order**: `total_order()` splits the range of keys by a seeded sample, so that the concatenated parts are
//!   sorted.
//! * **Map-only** jobs: [`JobPlan::map_only`](prelude::JobPlan::map_only); each split becomes a part, in input order.
//! * **Inputs**: [`Input::lines`](prelude::Input::lines), [`Input::csv`](prelude::Input::csv) (one row, also
//!   with line breaks in quotes) and [`Input::fixed`](prelude::Input::fixed). A directory means its files,
//!   without those whose name starts with `_` or `.`. Files `.gz`, `.zst` and `.bz2` are unpacked.
//!   [`Record`](prelude::Record) dereferences to its bytes and knows its file and offset.
//!   [`text`](prelude::text) has tokenisers, field splitters and number parsers.
//! * **Several inputs**: further `.map(input, mapper)` calls, all with the same key and value type.
//! * **Side inputs**: `.side(input)`, then [`TaskContext::side`](prelude::TaskContext::side) in `setup` with a
//!   function that builds a value from the files, a block of records each; it runs once for each worker process.
//! * **Whole blocks**: [`Mapper::block`](prelude::Mapper::block) for mappers that ignore line ends.
//! * **Errors**: `?` accepts any error, and the task is retried up to `--attempts` times.
//!   [`TaskError::input`](prelude::TaskError::input) ends the job at once: a retry cannot fix the input.
//!   [`TaskError::bad_record`](prelude::TaskError::bad_record) does so too, unless `--skip-bad-records` lets the job leave
//!   that record out; a mapper of whole blocks names it with [`Emitter::refuse`](prelude::Emitter::refuse). A panic is an
//!   error of that attempt alone. What user code prints `run` shows at the end, and a master keeps: `gristmill job logs JOB`.
//! * **Several jobs in a row**: [`Rounds`](prelude::Rounds), registered with
//!   [`Registry::rounds`](prelude::Registry::rounds), their jobs with [`Registry::inner_job`](prelude::Registry::inner_job); or a [`Client`](prelude::Client) of your own.
//! * **Policies and placements of your own**: [`scheduler::policy`], [`scheduler::placement`],
//!   [`Registry::policy`](prelude::Registry::policy).
//!
//! The package `examples` has a program for most of these.
//!
//! # Inside
//!
//! This crate has the command line ([`cli`]) and re-exports what a program of jobs needs. Decisions are in
//! [`scheduler`], the execution of tasks in [`worker`], and the processes around them in [`gristmill_runtime`].

/// Prints a line to stderr.
macro_rules! say {
    ($($words:tt)*) => { $crate::terminal::stderr_line(&format!($($words)*)) };
}

pub mod cli;

mod advice;
mod bars;
mod child;
mod compare;
mod doctor;
mod explain;
mod files;
mod flags;
mod history;
mod init;
mod interruption;
mod narrate;
mod number_table;
mod order;
mod page;
mod papers;
mod places;
mod policy;
mod private_file;
mod private_memory;
mod processes;
mod query;
mod queues;
mod replay;
mod report;
mod run;
mod settings;
mod sim;
mod state;
mod streaming;
mod summary;
mod switches;
mod task_log;
mod terminal;
mod text_table;
mod token;
mod tools;
mod trace;
mod trusted;
mod usage;
mod verdict;
mod whatif;

pub use gristmill_lab as lab;
pub use gristmill_runtime::{
    api, client, cluster, exit, generate, jobs, output_dir, prelude, registry, size, submit, testing,
    wall_time,
};
pub use gristmill_scheduler as scheduler;
pub use gristmill_worker as worker;

/// The README's program must compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
