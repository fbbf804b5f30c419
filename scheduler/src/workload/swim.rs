//! Traces of SWIM (Statistical Workload Injector for MapReduce): one job per line, tab-separated, without header.
//!
//! Columns: name, arrival in seconds, gap to the previous arrival in seconds, input bytes of maps, shuffled bytes,
//! output bytes of reduces; further columns are ignored. The trace has no times and no numbers of tasks: those follow
//! from [`Costs`]. A job without shuffled bytes has maps only. SWIM's own minimums (64 MiB of input, 1 kB of shuffle)
//! are not applied, since they distort the many small jobs.

use super::reading::{TASKS_MAX, number};
use super::{Costs, Job, LineError, Reading, Trace, WorkloadError};
use crate::station::PerStation;

/// Number of columns that are read.
const COLUMNS: usize = 6;

pub(super) fn read(text_of_all: &str, reading: &Reading) -> Result<Trace, WorkloadError> {
    let mut trace = Trace::default();
    let mut tasks = 0_usize;
    for (line, text) in (1..).zip(text_of_all.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let sizes = SwimSizes::read(text);
        let job = match sizes {
            Err(error) => Err(error),
            Ok(sizes) => {
                let sizes = sizes.times(reading.scale.bytes);
                // Checked before allocation: a wrong number of bytes must not use up all memory.
                tasks = tasks.saturating_add(sizes.tasks(&reading.costs));
                if TASKS_MAX < tasks {
                    let needed = Some(tasks_of_all(text_of_all, reading));
                    return Err(WorkloadError::Tasks { line, limit: TASKS_MAX, needed });
                }
                Ok(sizes.job(&reading.costs, reading.scale.bytes))
            }
        };
        trace.add_line(line, job, reading)?;
    }
    Ok(trace)
}

/// Returns the number of tasks of all readable lines.
fn tasks_of_all(text: &str, reading: &Reading) -> f64 {
    let sizes = text.lines().filter_map(|line| SwimSizes::read(line).ok());
    sizes.map(|sizes| sizes.times(reading.scale.bytes).tasks(&reading.costs) as f64).sum()
}

/// Values of a line.
struct SwimSizes<'a> {
    name: &'a str,
    arrival: f64,
    input: f64,
    shuffle: f64,
    output: f64,
}

impl<'a> SwimSizes<'a> {
    fn read(line: &'a str) -> Result<Self, LineError> {
        let cells: Vec<&str> = line.trim_end_matches('\r').split('\t').collect();
        if cells.len() < COLUMNS {
            return Err(LineError::Cells { found: cells.len(), wanted: format!("at least {COLUMNS}") });
        }
        Ok(SwimSizes {
            name: cells[0],
            arrival: number("arrival", cells[1])?,
            input: number("input bytes", cells[3])?,
            shuffle: number("shuffle bytes", cells[4])?,
            output: number("output bytes", cells[5])?,
        })
    }

    fn times(self, bytes: f64) -> Self {
        SwimSizes {
            input: self.input * bytes,
            shuffle: self.shuffle * bytes,
            output: self.output * bytes,
            ..self
        }
    }

    fn maps(&self, costs: &Costs) -> usize {
        pieces(self.input, costs.split_bytes)
    }

    fn reduces(&self, costs: &Costs) -> usize {
        if self.shuffle == 0.0 { 0 } else { pieces(self.shuffle, costs.partition_bytes) }
    }

    fn tasks(&self, costs: &Costs) -> usize {
        self.maps(costs).saturating_add(self.reduces(costs))
    }

    /// Creates the job. Its bytes are without the factor, which is applied to all formats later.
    fn job(&self, costs: &Costs, bytes: f64) -> Job {
        let (maps, reduces) = (self.maps(costs), self.reduces(costs));
        // All splits except the last are full.
        let last = self.input - (maps - 1) as f64 * costs.split_bytes;
        let length = |bytes: f64| costs.task_seconds + bytes / costs.map_rate;
        let mut map_lengths = vec![length(costs.split_bytes); maps];
        map_lengths[maps - 1] = length(last);
        let reduce_bytes = (self.shuffle + self.output) / reduces.max(1) as f64;
        let reduce_length = costs.task_seconds + reduce_bytes / costs.reduce_rate;
        let shuffle = self.shuffle / bytes;
        Job {
            arrival: self.arrival,
            work: PerStation::new(
                map_lengths.iter().sum(),
                shuffle / costs.network,
                reduce_length * reduces as f64,
            ),
            maps: map_lengths,
            reduces: vec![reduce_length; reduces],
            input_bytes: self.input / bytes,
            shuffle_bytes: shuffle,
            name: Some(self.name.to_owned()),
            ..Job::default()
        }
    }
}

/// Returns the number of pieces of this size, at least one.
fn pieces(bytes: f64, size: f64) -> usize {
    // Saturates at the maximum of `usize`, far above the limit of tasks.
    ((bytes / size).ceil() as usize).max(1)
}
