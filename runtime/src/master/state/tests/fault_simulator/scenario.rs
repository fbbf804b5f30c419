//! Scenario of a seed: workers, jobs, deciders and faults.

use super::fault::{self, PlannedFault};
use super::slots::GROUPS;
use crate::deciders::DeciderNames;
use crate::registry::Registry;
use gristmill_scheduler::core::{BackupLimits, CoreConfig, DivideLimits, SuspendLimits};
use gristmill_scheduler::units::{Span, Time};
use gristmill_worker::protocol::Slots;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Faults are injected until this time.
const FAULTS_LAST: Span = Span::whole_seconds(30);

/// Property that a run checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// The faults stop, and then every job ends.
    Liveness,
    /// More faults, which never stop; no output is wrong.
    Safety,
}

/// Theme of a run. Some combinations hardly ever arise by chance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Theme {
    /// No theme.
    Any,
    /// Late news of lost outputs, of maps with different output in each attempt.
    LateNews,
}

/// A worker's place. When its process ends, another one takes the place.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PlacePlan {
    pub host: u32,
    pub slots: Slots,
}

/// Definition of a job. Its workers read this from its parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct JobPlan {
    pub at_ns: u64,
    pub maps: u32,
    pub reduces: u32,
    /// Mean duration of a map.
    pub map_ns: u64,
    /// Mean duration of a group of a reduce.
    pub group_ns: u64,
    /// True if each attempt of a map has different output.
    pub whimsical: bool,
    pub priority: i32,
    pub weight: f64,
}

impl JobPlan {
    fn draw(rng: &mut ChaCha8Rng, theme: Theme) -> Self {
        let times = [3_000_000, 100_000_000, 600_000_000, 2_000_000_000];
        let (map, group) = (times[rng.random_range(0..4)], times[rng.random_range(0..4)]);
        let plan = Self {
            at_ns: rng.random_range(0..20_000_000_000),
            maps: rng.random_range(0..24),
            reduces: rng.random_range(0..6),
            map_ns: rng.random_range(map / 3..map),
            group_ns: rng.random_range(group / 3..group),
            whimsical: rng.random_range(0..5) == 0,
            priority: rng.random_range(0..3),
            weight: f64::from(rng.random_range(1..5)),
        };
        match theme {
            Theme::Any => plan,
            // With a few maps and two homes, the faults often hit just those. A lost output is then held by no worker,
            // and its map may produce different output.
            Theme::LateNews => Self { whimsical: true, reduces: 2, maps: 1 + plan.maps % 6, ..plan },
        }
    }

    /// True if a map emits a pair for this partition. Some maps have no output at all.
    pub fn has_pair(map: u32, partition: u32) -> bool {
        map % 5 != 4 && !(map + partition).is_multiple_of(4)
    }
}

/// One run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Scenario {
    pub seed: u64,
    pub mode: Mode,
    pub limits: CoreConfig,
    pub deciders: DeciderNames,
    pub places: Vec<PlacePlan>,
    pub jobs: Vec<JobPlan>,
    pub faults: Vec<PlannedFault>,
    /// Growth in bytes after which the recovery file is compacted; `None` if the master keeps none.
    pub recovery: Option<u64>,
}

impl Scenario {
    /// Draws the run of this seed.
    pub fn draw(seed: u64, mode: Mode, live: &LiveDeciders) -> Self {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let theme = if rng.random_range(0..5) == 0 { Theme::LateNews } else { Theme::Any };
        let pick = |names: &[String], rng: &mut ChaCha8Rng| names[rng.random_range(0..names.len())].clone();
        let policies = if rng.random_range(0..3) == 0 { &live.preempting } else { &live.policies };
        let deciders = DeciderNames {
            policy: pick(policies, rng),
            placement: pick(&live.placements, rng),
            estimator: pick(&live.estimators, rng),
        };
        let (pooled, hosts) = (rng.random_range(0..3) == 0, rng.random_range(1..4));
        let places: Vec<PlacePlan> = (0..rng.random_range(2..6))
            .map(|_| {
                let (map, reduce) = (rng.random_range(1..4), rng.random_range(1..3));
                let slots = if pooled { Slots::Pools { map, reduce } } else { Slots::Unified(map) };
                PlacePlan { host: rng.random_range(0..hosts), slots }
            })
            .collect();
        let jobs: Vec<JobPlan> = (0..rng.random_range(2..8)).map(|_| JobPlan::draw(rng, theme)).collect();
        let until = Time::ZERO + FAULTS_LAST;
        let arrivals: Vec<Time> = jobs.iter().map(|job| Time(job.at_ns)).collect();
        let faults = fault::draw(rng, (mode, theme), until, (places.len(), &arrivals));
        // Suspensions start sooner than in production, so that they happen more often.
        let suspending = SuspendLimits {
            suspend_after_min: Span::milliseconds(rng.random_range(20..200)),
            suspended_per_worker_max: rng.random_range(1..5),
        };
        let backups = (rng.random_range(0..4) != 0).then(|| BackupLimits {
            slots_per_backup: rng.random_range(1..6),
            run_min: Span::milliseconds(rng.random_range(10..300)),
            ..BackupLimits::default()
        });
        let dividing = (rng.random_range(0..4) != 0).then(|| DivideLimits {
            part_min: Span::milliseconds(5),
            look_after: Span::milliseconds(5),
            added_max: 30,
        });
        let limits = CoreConfig { suspending, dividing, backups, ..CoreConfig::default() };
        let (mut faults, mut recovery) = (faults, None);
        if rng.random_range(0..3) == 0 {
            recovery = Some(rng.random_range(10_000..200_000));
            faults.extend(fault::master_deaths(rng, until));
            faults.sort_by_key(|fault| fault.at);
        }
        Self { seed, mode, limits, deciders, places, jobs, faults, recovery }
    }

    /// Duration of all tasks, if each runs once, on one slot of each place.
    pub fn work(&self) -> Span {
        let job = |job: &JobPlan| {
            u64::from(job.maps) * job.map_ns + u64::from(job.reduces) * GROUPS as u64 * job.group_ns
        };
        Span(self.jobs.iter().map(job).sum::<u64>() / self.places.len() as u64)
    }

    /// Time at which the faults are over.
    pub fn healed(&self) -> Time {
        Time::ZERO + FAULTS_LAST
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeciderNames { policy, placement, estimator } = &self.deciders;
        writeln!(f, "seed {}, {:?}: {policy}, {placement}, {estimator}", self.seed, self.mode)?;
        if let Some(bytes) = self.recovery {
            writeln!(f, "  the master can be replaced; its file is rewritten after {bytes} bytes")?;
        }
        for (number, place) in self.places.iter().enumerate() {
            writeln!(f, "  place {number}: host {}, {:?}", place.host, place.slots)?;
        }
        for (number, job) in self.jobs.iter().enumerate() {
            writeln!(f, "  job {number}: {job:?}")?;
        }
        self.faults.iter().try_for_each(|fault| writeln!(f, "  {fault}"))
    }
}

/// Names of all deciders of a live cluster, with their defaults.
pub(super) struct LiveDeciders {
    pub policies: Vec<String>,
    /// Those of them that preempt slots.
    pub preempting: Vec<String>,
    pub placements: Vec<String>,
    pub estimators: Vec<String>,
}

impl LiveDeciders {
    pub fn new(registry: &Registry) -> Self {
        let live = |names: Vec<&'static str>, makes: &dyn Fn(&str) -> bool| -> Vec<String> {
            names.into_iter().filter(|name| makes(name)).map(str::to_owned).collect()
        };
        let policies = registry.policies().iter().map(|entry| entry.name).collect();
        let placements = registry.placements().iter().map(|entry| entry.name).collect();
        let estimators = registry.estimators().iter().map(|entry| entry.name).collect();
        let mut policies = live(policies, &|name| registry.make_policy(name).is_ok());
        // Policies whose parameter changes their kind.
        let more = ["asrpt:preemptive=yes", "lrpt:preemptive=yes", "gristmill:preemptive=no"];
        policies
            .extend(more.into_iter().filter(|name| registry.make_policy(name).is_ok()).map(str::to_owned));
        let preempts = |name: &&String| registry.make_policy(name).is_ok_and(|policy| policy.preempts());
        Self {
            preempting: policies.iter().filter(preempts).cloned().collect(),
            policies,
            placements: live(placements, &|name| registry.make_placement(name).is_ok()),
            estimators: live(estimators, &|name| registry.make_estimator(name).is_ok()),
        }
    }
}
