//! Limits that the scheduler's core enforces, with their defaults: timeouts, tolerated failures, and limits of
//! suspending, moving and dividing tasks and of speculative attempts. Each journal records them.

use crate::ledger::{AheadConfig, BackupLimits};
use crate::units::{Bytes, Span};

/// Limits of the core.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct CoreConfig {
    /// Time that maps pinned to a host wait for a worker there before their job fails; 30 s.
    pub pinned_grace: Span,
    /// Time that live jobs wait without any worker before they fail; 30 s by default.
    pub no_workers_grace: Span,
    /// Failures by a worker's fault after which a job stops using that worker while others are available; 3.
    #[serde(rename = "troubles_bar")]
    pub worker_failures_tolerated: u32,
    /// Failures by a worker's fault after which a job fails, if only bad workers are left to it; 24.
    #[serde(rename = "troubles_max")]
    pub worker_failures_max: u32,
    /// Times that a map runs again because a home could not read its output; 8.
    pub rereads_max: u32,
    /// Workers that one task may lose while it runs; 8. Losses known to be caused by another attempt do not count.
    pub losses_max: u32,
    /// Workers that one job may lose while its attempts run there, in addition to one per finished task; 64.
    pub deaths_max: u32,
    /// Failures of one task that are not charged, lost workers not counted; 16.
    pub uncharged_max: u32,
    /// Time that a task waits after it failed by a worker's fault (disk full, I/O error); 1 s.
    #[serde(rename = "trouble_pause")]
    pub backoff: Span,
    /// Number of ended jobs that can still be queried; 1,000.
    pub ended_jobs_max: usize,
    /// Limits of queuing behind running attempts.
    pub ahead: AheadConfig,
    /// Bytes per second that each worker can receive from others, for estimates of the shuffle. With `None`, the
    /// default, it is learned from transfers between hosts; before there are any, it counts as without limit.
    pub network: Option<Bytes>,
    /// Limits of suspending running reduces.
    #[serde(flatten)]
    pub suspending: SuspendLimits,
    /// Limits of moving ready reduces to another home.
    #[serde(flatten)]
    pub moving: MoveLimits,
    /// Limits of routes between workers.
    #[serde(flatten)]
    pub routes: RouteLimits,
    /// Limits of dividing running maps and reduces; `None`, the default, disables it.
    pub dividing: Option<DivideLimits>,
    /// Limits of speculative attempts; `None`, the default, disables them.
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
            dividing: None,
            backups: None,
        }
    }
}

impl CoreConfig {
    pub(crate) fn worker_failures(&self) -> (u32, u32) {
        (self.worker_failures_tolerated, self.worker_failures_max)
    }
}

/// Limits of suspending reduces under a preemptive policy.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct SuspendLimits {
    /// Minimum time that a reduce keeps a slot before a preemptive policy may suspend it; 200 ms. A suspension costs
    /// tens of milliseconds, so frequent suspensions would be pure cost.
    pub suspend_after_min: Span,
    /// Maximum number of suspended attempts per worker, since each keeps its memory and its thread; 64.
    pub suspended_per_worker_max: u32,
}

impl Default for SuspendLimits {
    fn default() -> Self {
        Self { suspend_after_min: Span::milliseconds(200), suspended_per_worker_max: 64 }
    }
}

/// Limits of moving ready reduces whose homes are busy.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct MoveLimits {
    /// Time that slots stay idle while ready reduces wait for busy homes before these reduces move; 200 ms.
    pub move_after: Span,
    /// Maximum mean input of a job's reduces for which they move; 32 MiB, a third of a second on a common network.
    pub move_bytes_max: Bytes,
}

impl Default for MoveLimits {
    fn default() -> Self {
        Self { move_after: Span::milliseconds(200), move_bytes_max: Bytes::mib(32) }
    }
}

/// Limits of failed and slow routes between workers.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct RouteLimits {
    /// Time that a route counts as cut after a home failed to read over it; 30 s, a few times the detection time. It
    /// doubles with each further failure.
    pub cut_for: Span,
    /// Maximum of that time; 10 min.
    pub cut_for_max: Span,
    /// A route is slow if it is this many times slower than routes between other workers; 32. A smaller factor would be
    /// wrong: homes have up to 16 requests in flight, which share one network card.
    pub slow_factor: u32,
    /// Time with requests in flight after which a route is judged slow; 2 s.
    pub slow_after: Span,
    /// Outputs behind a slow route are made again if this is faster than fetching them by at least this time; 3 s.
    pub slow_gain: Span,
    /// Time that others have to fetch their data from a draining worker; 60 s. After that, the outputs are made again.
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

/// Limits of dividing running tasks for idle slots.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct DivideLimits {
    /// Minimum expected time of each of the two parts; 100 ms. A task costs a few milliseconds besides its input.
    pub part_min: Span,
    /// Minimum interval between searches for tasks to divide; 20 ms. Each search costs a little per running attempt.
    pub look_after: Span,
    /// Maximum number of maps, and of reduces, that divisions add to a job; 1,000.
    pub added_max: u32,
}

impl Default for DivideLimits {
    fn default() -> Self {
        Self { part_min: Span::milliseconds(100), look_after: Span::milliseconds(20), added_max: 1000 }
    }
}
