//! The kinds of faults of a soak.

/// A kind of fault of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    KillWorker,
    StopWorker,
    SwitchOff,
    Leave,
    KillMaster,
    StopMaster,
    KillSubmitter,
    SilentMaster,
    DeafMaster,
    ResetMaster,
    SilentPeers,
    SlowPeer,
    LatePeer,
    DripPeer,
    ResetSegment,
    CutSegment,
    FlipSegment,
    FullDisk,
    FailedWrite,
    FlippedDisk,
    Clock,
}

/// All kinds.
pub const KINDS: [Kind; 21] = [
    Kind::KillWorker,
    Kind::StopWorker,
    Kind::SwitchOff,
    Kind::Leave,
    Kind::KillMaster,
    Kind::StopMaster,
    Kind::KillSubmitter,
    Kind::SilentMaster,
    Kind::DeafMaster,
    Kind::ResetMaster,
    Kind::SilentPeers,
    Kind::SlowPeer,
    Kind::LatePeer,
    Kind::DripPeer,
    Kind::ResetSegment,
    Kind::CutSegment,
    Kind::FlipSegment,
    Kind::FullDisk,
    Kind::FailedWrite,
    Kind::FlippedDisk,
    Kind::Clock,
];

impl Kind {
    /// True if it ends or may end a worker process.
    pub fn costs_a_worker(self) -> bool {
        matches!(self, Kind::KillWorker | Kind::SwitchOff | Kind::Leave)
    }

    /// True if programs cannot talk to the master meanwhile.
    pub fn is_of_the_master(self) -> bool {
        matches!(self, Kind::KillMaster | Kind::StopMaster)
    }

    /// True if it fills or changes the disk of one worker.
    pub fn needs_a_small_disk(self) -> bool {
        matches!(self, Kind::FullDisk | Kind::FlippedDisk)
    }

    /// True if it needs the shim for the C library.
    pub fn needs_the_shim(self) -> bool {
        matches!(self, Kind::FailedWrite | Kind::Clock)
    }
}
