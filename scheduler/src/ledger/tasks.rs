//! One map or reduce task: its state, its tries and its commit permit.

use crate::event::Fingerprint;
use crate::ids::WorkerId;
use crate::ledger::suspensions::Continued;

/// Where a map stands. Legal: `Waiting -> Running -> Done`, and back to `Waiting` when the attempt failed or
/// the output was lost while somebody lacks it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum MapState {
    Waiting,
    /// An attempt has a slot, or is queued behind one.
    Running,
    /// `output` is the worker that keeps it; `None` when it was published (map-only), is empty, or is lost and
    /// lacked by no home.
    Done {
        output: Option<WorkerId>,
    },
}

/// Where a reduce stands. Legal: `Gathering -> Ready -> Running -> Done`; `Running -> Suspended` and back; from
/// `Running` or `Suspended` to `Ready` when the attempt failed; from these three to `Gathering` when it moves to
/// another home.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum ReduceState {
    /// Segments are missing, or there is no home.
    Gathering,
    Ready,
    Running,
    /// Its attempt left its slot and keeps what it has.
    Suspended,
    Done,
}

/// The tries of one task.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Tries {
    /// Attempts launched.
    pub(crate) launched: u32,
    /// The epoch of the attempt that runs, or of the last one that did; 0 before the first.
    pub(crate) current: u32,
    /// The epoch of the backup that runs beside it.
    pub(crate) backup: Option<u32>,
    /// Backups that ended without result while the other attempt ran.
    pub(crate) backups_failed: u32,
    /// Failures by user code.
    pub(crate) charged: u32,
    /// Failures by a worker's fault or without fault, lost workers not counted.
    pub(crate) uncharged: u32,
    /// Attempts whose worker was lost, culprits not counted.
    pub(crate) lost: u32,
    /// An attempt was on a worker that was lost, begun or not: no other task shares a slot's queue with the next,
    /// so that it shows should this be the task that brings workers down.
    pub(crate) alone: bool,
    /// Memory ran out where an attempt of it ran: the next has its worker process to itself.
    #[serde(default)]
    pub(crate) short_of_memory: bool,
    /// Workers that the next try avoids, each once.
    pub(crate) avoids: Vec<WorkerId>,
    /// The epoch that may publish; at most one at a time.
    pub(crate) permit: Option<u32>,
}

impl Tries {
    pub(crate) fn avoid(&mut self, worker: WorkerId) {
        if !self.avoids.contains(&worker) {
            self.avoids.push(worker);
        }
    }

    /// Whether no attempt of the task ever failed or was on a worker that was lost.
    pub(crate) fn unblemished(&self) -> bool {
        self.charged == 0 && self.uncharged == 0 && !self.alone
    }

    /// This attempt ended without result: its permit, if it held one, goes to another.
    pub(crate) fn drop_permit(&mut self, epoch: u32) {
        self.permit.take_if(|holder| *holder == epoch);
    }

    /// Whether this is the attempt that runs or ran last, or its backup.
    pub(crate) fn concerns(&self, epoch: u32) -> bool {
        0 < self.launched && (epoch == self.current || Some(epoch) == self.backup)
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct MapTask {
    pub(crate) state: MapState,
    pub(crate) tries: Tries,
    /// The worker that it was assigned to and waits for.
    pub(crate) assigned: Option<WorkerId>,
    /// Partitions that do not have their segment of this map; those of finished reduces do.
    pub(crate) lacking: u32,
    /// Times that a home could not read the output.
    pub(crate) unreadable: u32,
    /// What the output of the last attempt that ended well consists of.
    pub(crate) print: Option<Fingerprint>,
    /// The first epoch whose output is like that: segments of earlier ones do not go with it.
    pub(crate) alike_since: u32,
}

impl MapTask {
    pub(crate) fn new(reduces: u32) -> Self {
        Self {
            state: MapState::Waiting,
            tries: Tries::default(),
            assigned: None,
            lacking: reduces,
            unreadable: 0,
            print: None,
            alike_since: 0,
        }
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct ReduceTask {
    pub(crate) state: ReduceState,
    pub(crate) tries: Tries,
    /// The worker that gathers and will run it; `None` while there is none, and when done.
    pub(crate) home: Option<WorkerId>,
    /// It has left a busy home for an idle worker; it does so once.
    pub(crate) moved: bool,
    /// The maps whose segment is at the home.
    pub(crate) gathered: Bits,
    /// Where the next attempt, or the one that runs, goes on; `None` is from its inputs.
    pub(crate) continues: Option<Continued>,
}

impl ReduceTask {
    pub(crate) fn new() -> Self {
        Self {
            state: ReduceState::Gathering,
            tries: Tries::default(),
            home: None,
            moved: false,
            gathered: Bits::default(),
            continues: None,
        }
    }
}

/// How many partitions have their segment of each map at one home, those whose reduce ended there included; so that
/// nobody looks at all partitions to learn whether one lacks a map. Maps without output do not count.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct GatheredSegments {
    /// By map; maps beyond have come to none.
    segments: Vec<u32>,
    /// Reduces that ended there.
    pub(crate) ended: u32,
}

impl GatheredSegments {
    /// Partitions, ended ones included, that have this map.
    pub(crate) fn of(&self, map: u32) -> u32 {
        self.segments.get(map as usize).copied().unwrap_or(0)
    }

    /// One more partition has it.
    pub(crate) fn add(&mut self, map: u32) {
        if self.segments.len() <= map as usize {
            self.segments.resize(map as usize + 1, 0);
        }
        self.segments[map as usize] += 1;
    }

    /// A partition that had it has left.
    pub(crate) fn take(&mut self, map: u32) {
        self.segments[map as usize] -= 1;
    }
}

/// A set of small integers, one bit each, that knows its size.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Bits {
    words: Vec<u64>,
    count: u32,
}

impl Bits {
    pub(crate) fn get(&self, index: u32) -> bool {
        self.words.get(index as usize / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Adds; answers whether it was new.
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

    /// 64 to a word, the lowest first; what is beyond the last word is not in the set.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }
}
