//! Hadoop Streaming: jobs whose mapper, combiner and reducer are commands that read lines and write lines.
//!
//! A [`StreamingJob`] is a parsed command line of Hadoop Streaming. It is sent to the workers like the
//! parameters of any job. A task starts its command ([`process`](self)), feeds it, and splits its output,
//! all on the thread of its slot. Partitioning, sorting and the bytes that reach a command follow Hadoop
//! bit by bit. The book's chapter "Hadoop Streaming" lists each rule with its test.
//!
//! Not here: the command line, paths of `hdfs:`, log lines for drivers (all in `cli`), and starting
//! processes, which is in `cluster`.

mod bundle;
mod columns;
mod combine;
mod command;
mod directory;
mod environment;
mod fields;
mod job;
mod key_specs;
mod keys;
mod map;
mod pairs;
mod pipes;
mod place;
mod process;
mod program;
mod reduce;
mod reported;
mod sink;
#[cfg(test)]
mod tests;
mod typed_keys;

pub use bundle::{BUNDLE_BYTES_MAX, write_bundle};
pub use command::split_command;
pub use environment::job_number;
pub use fields::FieldRule;
pub use job::{LineInput, ShippedFile, StreamingJob};
pub use key_specs::{KeySpecError, KeySpecs};
pub use keys::PartRule;
pub use reported::{CounterSum, counter_sums};

use gristmill_worker::api::MapReducePlan;
use gristmill_worker::prelude::*;
use keys::{KeyCoding, KeyOrder, KeyPartitioner};
use map::{StreamMapOnly, StreamMapper};
use reduce::StreamReducer;
use std::sync::Arc;

impl Job for StreamingJob {
    const NAME: &'static str = "streaming";

    fn plan(&self) -> Result<JobPlan, PlanError> {
        let job = Arc::new(self.clone());
        let input = match self.line_input {
            LineInput::Pairs => Input::fixed(&self.inputs, 1),
            _ => Input::lines(&self.inputs),
        };
        // Bytes unchanged: without records, and without decompression by name.
        let bundle = self.bundle.as_ref().map(|bundle| Input::fixed([bundle], 1));
        if self.reduces == 0 {
            let plan = JobPlan::map_only(input, move || StreamMapOnly::new(job.clone()));
            return Ok(bundle.into_iter().fold(plan, JobPlan::side));
        }
        let order = match &self.order {
            _ if self.has_lengths => KeyOrder::Typed,
            Some(specs) => KeyOrder::Fields(specs.clone()),
            None => KeyOrder::Bytes,
        };
        let coding = Arc::new(KeyCoding { partition: self.partition.clone(), order });
        let (of_map, of_reduce) = (coding.clone(), coding.clone());
        let for_reduce = job.clone();
        let plan = JobPlan::map(input, move || StreamMapper::new(job.clone(), of_map.clone()))
            .whole_splits()
            .partition(KeyPartitioner(coding))
            .reduces(self.reduces);
        let plan = bundle.into_iter().fold(plan, MapReducePlan::side);
        Ok(plan.reduce(move || StreamReducer::new(for_reduce.clone(), of_reduce.clone())))
    }
}
