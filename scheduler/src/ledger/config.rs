//! The limits of the core, with their defaults.

use crate::ledger::{AheadConfig, BackupLimits};
use crate::units::{Bytes, Span};

/// Limits of the core.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct CoreConfig {
    /// How long maps that are pinned to a host wait for a worker there before their job fails; 30 s.
    pub pinned_grace: Span,
    /// How long live jobs wait when there is no worker before they fail; 30 s by default.
    pub no_workers_grace: Span,
    /// Failures by a worker's fault after which a job gives it nothing more while there are others; 3.
    #[serde(rename = "troubles_bar")]
    pub worker_failures_tolerated: u32,
    /// Failures by a worker's fault after which a job is given up, being the last resort of a job that has
    /// only bad workers; 24.
    #[serde(rename = "troubles_max")]
    pub worker_failures_max: u32,
    /// Times that a map is made again because a home could not read its output; 8.
    pub rereads_max: u32,
    /// Workers that one task may lose while it runs, those not counted that another attempt is known to have brought
    /// down; 8.
    pub losses_max: u32,
    /// Workers that one job may lose while its attempts run there, beyond as many as it has tasks that are done; 64.
    pub deaths_max: u32,
    /// Failures of one task without anybody's fault, lost workers not counted; 16.
    pub uncharged_max: u32,
    /// How long a task waits after it failed by a worker's fault (disk full, I/O error); 1 s.
    #[serde(rename = "trouble_pause")]
    pub backoff: Span,
    /// Ended jobs that can still be looked up; 1,000.
    pub ended_jobs_max: usize,
    /// What is queued behind running attempts.
    pub ahead: AheadConfig,
    /// What each worker can take in from others, in bytes per second, for estimates of the shuffle; `None`, the
    /// default, counts as no limit.
    pub network: Option<Bytes>,
    /// When running reduces are suspended and handed over.
    #[serde(flatten)]
    pub suspending: SuspendLimits,
    /// When ready reduces move to another home.
    #[serde(flatten)]
    pub moving: MoveLimits,
    /// What follows when workers do not reach each other.
    #[serde(flatten)]
    pub routes: RouteLimits,
    /// When slow tasks get a second attempt; `None`, the default, is never.
    pub backups: Option<BackupLimits>,
}

impl Default for CoreConfig {
    fn default() -> Self {
        Self {
            pinned_grace: Span::whole_seconds(30),
            no_workers_grace: Span::whole_seconds(30),
            worker_failures_tolerated: 3,
            worker_failures_max: 24,
            rereads_max: 8,
            losses_max: 8,
            deaths_max: 64,
            uncharged_max: 16,
            backoff: Span::whole_seconds(1),
            ended_jobs_max: 1000,
            ahead: AheadConfig::default(),
            network: None,
            suspending: SuspendLimits::default(),
            moving: MoveLimits::default(),
            routes: RouteLimits::default(),
            backups: None,
        }
    }
}

impl CoreConfig {
    pub(crate) fn worker_failures(&self) -> (u32, u32) {
        (self.worker_failures_tolerated, self.worker_failures_max)
    }
}

/// Limits of suspending reduces under a policy that preempts.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct SuspendLimits {
    /// How long a reduce keeps a slot at least before a policy that preempts may suspend it; 200 ms. A suspension costs
    /// tens of milliseconds, and slots that go back and forth would be nothing but cost.
    pub suspend_after_min: Span,
    /// Suspended attempts that a worker keeps at most, since each keeps its memory and its thread; 64.
    pub suspended_per_worker_max: u32,
    /// How long a suspended attempt waits for a slot of its worker while one elsewhere stays idle before it is handed
    /// over; 2 s. Its segments are then fetched anew.
    pub hand_over_after: Span,
}

impl Default for SuspendLimits {
    fn default() -> Self {
        Self {
            suspend_after_min: Span::milliseconds(200),
            suspended_per_worker_max: 64,
            hand_over_after: Span::whole_seconds(2),
        }
    }
}

/// Limits of moving ready reduces whose homes are busy.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct MoveLimits {
    /// How long slots stay idle while ready reduces wait for busy homes before these move; 200 ms.
    pub move_after: Span,
    /// Input of a reduce, in the mean of its job, up to which it moves; 32 MiB, a third of a second on a common
    /// network.
    pub move_bytes_max: Bytes,
}

impl Default for MoveLimits {
    fn default() -> Self {
        Self { move_after: Span::milliseconds(200), move_bytes_max: Bytes(32 << 20) }
    }
}

/// Limits of ways between workers that are cut.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct RouteLimits {
    /// How long a way over which a home could not read counts as cut before it is tried again; 30 s, a few times what it
    /// takes to find out. Twice as long each further time.
    pub cut_for: Span,
    /// The longest such time; 10 min.
    pub cut_for_max: Span,
    /// A way is slow over which a home gets so many times less than workers at neither end of it get; 32. Not less, as homes
    /// have up to 16 requests in flight, which share one network card.
    pub slow_factor: u32,
    /// Time with requests in flight after which a way is judged slow; 2 s.
    pub slow_after: Span,
    /// What waits behind a slow way is made again if it would take so much longer to come than to be made; 3 s.
    pub slow_gain: Span,
    /// How long others have to fetch what they lack of a worker that is to leave; 60 s. It is made again after that.
    pub drain_max: Span,
}

impl Default for RouteLimits {
    fn default() -> Self {
        Self {
            cut_for: Span::whole_seconds(30),
            cut_for_max: Span::whole_seconds(600),
            slow_factor: 32,
            slow_after: Span::whole_seconds(2),
            slow_gain: Span::whole_seconds(3),
            drain_max: Span::whole_seconds(60),
        }
    }
}
