//! Phases of a job at which a fault can be injected, and the job that passes through each.

use crate::support::Sandbox;
use crate::support::data::Random;

/// Phase of a job at which the fault is injected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Before it is submitted.
    Idle,
    /// Its submitter cuts the input into splits.
    Split,
    /// A map is about to start.
    Map,
    /// A map is about to write a run to disk.
    Spill,
    /// A worker is about to fetch segments.
    Shuffle,
    /// Segments have reached a worker, which has not reported them yet.
    Received,
    /// A worker is about to fetch segments of a job whose map outputs are on disk.
    ShuffleFromDisk,
    /// A reduce is about to merge its segments.
    Merge,
    /// A reduce is about to start.
    Reduce,
    /// An attempt has built its part and has its commit permit.
    BeforeCommit,
    /// An attempt has handed in its part and has not reported it yet.
    AfterCommit,
    /// The submitter has published one of the parts.
    Publish,
    /// The output is complete, and leftovers are about to be removed.
    Cleanup,
}

/// All phases, in the order in which a job passes through them.
pub const PHASES: [Phase; 13] = [
    Phase::Idle,
    Phase::Split,
    Phase::Map,
    Phase::Spill,
    Phase::Shuffle,
    Phase::Received,
    Phase::ShuffleFromDisk,
    Phase::Merge,
    Phase::Reduce,
    Phase::BeforeCommit,
    Phase::AfterCommit,
    Phase::Publish,
    Phase::Cleanup,
];

impl Phase {
    /// Name of the phase in pages and environment variables.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Split => "split",
            Phase::Map => "map",
            Phase::Spill => "spill",
            Phase::Shuffle => "shuffle",
            Phase::Received => "received",
            Phase::ShuffleFromDisk => "shuffle-from-disk",
            Phase::Merge => "merge",
            Phase::Reduce => "reduce",
            Phase::BeforeCommit => "before-commit",
            Phase::AfterCommit => "after-commit",
            Phase::Publish => "publish",
            Phase::Cleanup => "cleanup",
        }
    }

    /// Returns the place in the program at which a process stops for the fault.
    pub fn place(self) -> Option<&'static str> {
        match self {
            Phase::Idle => None,
            Phase::Split => Some("split"),
            Phase::Map => Some("map"),
            Phase::Spill => Some("spill"),
            Phase::Shuffle | Phase::ShuffleFromDisk => Some("fetch"),
            Phase::Received => Some("fetch.received"),
            Phase::Merge => Some("merge"),
            Phase::Reduce => Some("reduce"),
            Phase::BeforeCommit => Some("commit.before"),
            Phase::AfterCommit => Some("commit.after"),
            Phase::Publish => Some("output.renamed"),
            Phase::Cleanup => Some("output.complete"),
        }
    }

    /// True if the submitter stops there.
    pub fn is_of_submitter(self) -> bool {
        matches!(self, Phase::Split | Phase::Publish | Phase::Cleanup)
    }

    /// Memory of each worker: small enough for a job that must spill.
    pub fn memory(self) -> &'static str {
        if self.spills() { "16MiB" } else { "64MiB" }
    }

    fn spills(self) -> bool {
        matches!(self, Phase::Spill | Phase::ShuffleFromDisk)
    }

    /// Returns the arguments of `submit` for a job that passes through this phase, without its output.
    pub fn job(self, sandbox: &Sandbox) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        if self.spills() {
            // The reverse order is made of copies, which do not stay in the input.
            let input = sandbox.text("records");
            // The segments of the larger input for two keeps do not fit in the memory of either.
            let size = if self == Phase::Spill { "12MiB" } else { "20MiB" };
            sandbox.gristmill(["gen", "records", &input, "--size", size]).finish().expect_code(0);
            return words(&[
                "submit",
                "sort",
                "-r",
                &input,
                "--reduces",
                "2",
                "--split-size",
                "4MiB",
                "--json",
            ]);
        }
        let input = sandbox.write("text", Random::seeded(1616).text(200_000, &[" ", "\n"]));
        let job = if self == Phase::Merge { "sort" } else { "wordcount" };
        words(&["submit", job, &input, "--reduces", "3", "--split-size", "16KiB", "--json"])
    }
}
