//! One map or reduce task: its state, its attempts and its commit permit.

use crate::event::Fingerprint;
use crate::ids::WorkerId;
use crate::units::{Bytes, Span};

/// State of a map. Legal changes: `Waiting -> Running -> Done`, and back to `Waiting` when the attempt failed, or when
/// the output was lost while a partition lacks it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) enum MapState {
    #[default]
    Waiting,
    /// An attempt has a slot, or is queued behind one.
    Running,
    /// `output` is the worker that keeps it. It is `None` if the output was published (map-only), is empty, or is lost
    /// and no home lacks it.
    Done { output: Option<WorkerId> },
}

/// State of a reduce. Legal changes are `Gathering -> Ready -> Running -> Done`, and `Running -> Suspended`
/// and back. A failed attempt leads from `Running` or `Suspended` to `Ready`. A move to another keep leads
/// from these three to `Gathering`.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, serde::Serialize, serde::Deserialize,
)]
pub(crate) enum ReduceState {
    /// Segments are missing, or it has no home.
    #[default]
    Gathering,
    Ready,
    Running,
    /// Its attempt left its slot and keeps its state.
    Suspended,
    Done,
}

/// Attempts of one task.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Tries {
    /// Number of attempts launched.
    pub(crate) launched: u32,
    /// Epoch of the running attempt, or of the last one; 0 before the first.
    pub(crate) current: u32,
    /// Epoch of the running speculative attempt.
    pub(crate) backup: Option<u32>,
    /// Speculative attempts that ended without a result while the other attempt ran.
    pub(crate) backups_failed: u32,
    /// Failures by user code.
    pub(crate) charged: u32,
    /// Failures by a worker's fault or without any fault, not counting lost workers.
    pub(crate) uncharged: u32,
    /// Attempts whose worker was lost, not counting those that caused the loss.
    pub(crate) lost: u32,
    /// True if an attempt was on a lost worker, started or not. The task then shares a slot's queue with no other task,
    /// so that a task that crashes workers can be identified.
    pub(crate) alone: bool,
    /// True if memory ran out where an attempt of the task ran. The next attempt then gets a worker process of its own.
    #[serde(default)]
    pub(crate) short_of_memory: bool,
    /// Workers that the next attempt avoids, without duplicates.
    pub(crate) avoids: Vec<WorkerId>,
    /// Epoch that may publish; at most one at a time.
    pub(crate) permit: Option<u32>,
}

impl Tries {
    pub(crate) fn avoid(&mut self, worker: WorkerId) {
        if !self.avoids.contains(&worker) {
            self.avoids.push(worker);
        }
    }

    /// True if no attempt of the task failed or was on a lost worker.
    pub(crate) fn unblemished(&self) -> bool {
        self.charged == 0 && self.uncharged == 0 && !self.alone
    }

    /// Drops the permit of an attempt that ended without a result, if it held it.
    pub(crate) fn drop_permit(&mut self, epoch: u32) {
        self.permit.take_if(|holder| *holder == epoch);
    }

    /// True if this is the running or last attempt, or its speculative attempt.
    pub(crate) fn concerns(&self, epoch: u32) -> bool {
        0 < self.launched && (epoch == self.current || Some(epoch) == self.backup)
    }
}

/// Time and output of a successful map attempt.
#[derive(Clone, Copy, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct MapRun {
    pub(crate) took: Span,
    pub(crate) output: Bytes,
}

#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct MapTask {
    pub(crate) state: MapState,
    pub(crate) tries: Tries,
    /// Worker to which the map was assigned and for which it waits.
    pub(crate) assigned: Option<WorkerId>,
    /// Number of partitions without their segment of this map. Finished reduces do not count.
    pub(crate) lacking: u32,
    /// Number of times that a home could not read the output.
    pub(crate) unreadable: u32,
    /// Time and output of the last successful attempt.
    #[serde(default)]
    pub(crate) ran: MapRun,
    /// Fingerprint of the output of the last successful attempt.
    pub(crate) fingerprint: Option<Fingerprint>,
    /// First epoch with the same output. Segments of earlier epochs do not match it.
    pub(crate) alike_since: u32,
}

impl MapTask {
    pub(crate) fn new(reduces: u32) -> Self {
        Self { lacking: reduces, ..Self::default() }
    }
}

#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct ReduceTask {
    pub(crate) state: ReduceState,
    pub(crate) tries: Tries,
    /// Worker that gathers and will run it; `None` before it is chosen, and when done.
    pub(crate) home: Option<WorkerId>,
    /// True if it has left a busy home for an idle worker. It moves only once.
    pub(crate) moved: bool,
    /// Maps whose segment is at the home.
    pub(crate) gathered: Bits,
}

/// Number of partitions that have their segment of each map at one home, including those whose reduce ended there. It
/// avoids a scan of all partitions to find if one lacks a map. Maps without output do not count.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct GatheredSegments {
    /// Counts by map. No partition has segments of maps beyond the end.
    segments: Vec<u32>,
    /// Reduces that ended there.
    pub(crate) ended: u32,
}

impl GatheredSegments {
    /// Number of partitions, ended ones included, that have this map.
    pub(crate) fn count(&self, map: u32) -> u32 {
        self.segments.get(map as usize).copied().unwrap_or(0)
    }

    /// Adds a partition that has this map.
    pub(crate) fn add(&mut self, map: u32) {
        if self.segments.len() <= map as usize {
            self.segments.resize(map as usize + 1, 0);
        }
        self.segments[map as usize] += 1;
    }

    /// Removes a partition that had this map.
    pub(crate) fn remove(&mut self, map: u32) {
        self.segments[map as usize] -= 1;
    }
}

/// Set of small integers, one bit each, with its size.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Bits {
    words: Vec<u64>,
    count: u32,
}

impl Bits {
    pub(crate) fn get(&self, index: u32) -> bool {
        self.words.get(index as usize / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Adds an index. Returns true if it was new.
    pub(crate) fn set(&mut self, index: u32) -> bool {
        let word = index as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] >> (index % 64) & 1 == 0;
        self.words[word] |= 1 << (index % 64);
        self.count += u32::from(new);
        new
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.words.iter().zip((0..).step_by(64)).flat_map(|(&word, first)| {
            let rest = std::iter::successors(Some(word), |&word| Some(word & word.wrapping_sub(1)));
            rest.take_while(|&word| word != 0).map(move |word| first + word.trailing_zeros())
        })
    }

    /// Returns the words of 64 bits, lowest first. Indexes beyond the last word are not in the set.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }
}
