//! Facts about a job that has ended: its trace, and the pairs that its attempts have kept.

use gristmill_runtime::api::{AttemptEnd, AttemptRecord, JobTrace};
use gristmill_runtime::deciders::DeciderNames;
use gristmill_scheduler::ids::TaskKind;
use gristmill_worker::narration::{MapStory, Narration, ReduceStory};
use gristmill_worker::output::open_part;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;

/// Bytes of a part that a story shows.
const PART_BYTES_MAX: u64 = 256 << 10;

/// Input of a story.
pub struct StoryFacts {
    pub trace: JobTrace,
    /// Positions of the winning attempts in the trace.
    winners: BTreeMap<(TaskKind, u32), usize>,
    /// Pairs of the winning attempts of maps, by map.
    pub maps: BTreeMap<u32, MapStory>,
    /// The same of reduces, by partition.
    pub reduces: BTreeMap<u32, ReduceStory>,
    pub parts: Vec<PartFacts>,
    pub deciders: DeciderNames,
}

/// A part of the output.
pub struct PartFacts {
    pub name: String,
    /// Its bytes, decompressed, at most [`PART_BYTES_MAX`] of them.
    pub bytes: Vec<u8>,
    /// True if there are more.
    pub is_cut: bool,
}

impl StoryFacts {
    /// Reads the records of the winning attempts of a job, and its parts.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn gather(
        trace: JobTrace,
        narration: &Narration,
        parts: &[PathBuf],
        deciders: DeciderNames,
    ) -> io::Result<Self> {
        let (winners, maps, reduces) = (winners(&trace), BTreeMap::new(), BTreeMap::new());
        let mut facts = Self { trace, winners, maps, reduces, parts: Vec::new(), deciders };
        for (&(kind, index), &at) in &facts.winners {
            let attempt = facts.trace.attempts[at].attempt;
            match kind {
                TaskKind::Map => facts.maps.extend(narration.read(attempt)?.map(|story| (index, story))),
                TaskKind::Reduce => {
                    facts.reduces.extend(narration.read(attempt)?.map(|story| (index, story)));
                }
            }
        }
        for path in parts {
            let mut bytes = Vec::new();
            open_part(path)?.take(PART_BYTES_MAX + 1).read_to_end(&mut bytes)?;
            let is_cut = PART_BYTES_MAX < bytes.len() as u64;
            bytes.truncate(PART_BYTES_MAX as usize);
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            facts.parts.push(PartFacts { name, bytes, is_cut });
        }
        Ok(facts)
    }

    /// Nanoseconds from the job's arrival to a time of the master's clock.
    pub fn since_arrival(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.trace.status.arrived_ns)
    }

    /// Returns the winning attempt of a task, if any.
    pub fn winner(&self, kind: TaskKind, index: u32) -> Option<&AttemptRecord> {
        self.winners.get(&(kind, index)).and_then(|&at| self.trace.attempts.get(at))
    }

    /// Output of this reducer between two offsets of its part.
    pub fn written(&self, partition: u32, from: u64, until: u64) -> Option<&[u8]> {
        self.parts.get(partition as usize)?.bytes.get(from as usize..until as usize)
    }
}

/// Returns the attempt of each task that counts: the last successful one. A map that ran again after its
/// output was lost emitted the same pairs both times, or its job has failed.
fn winners(trace: &JobTrace) -> BTreeMap<(TaskKind, u32), usize> {
    let well =
        trace.attempts.iter().enumerate().filter(|(_, record)| matches!(record.end, AttemptEnd::Succeeded));
    well.map(|(at, record)| ((record.attempt.task.kind, record.attempt.task.index), at)).collect()
}
