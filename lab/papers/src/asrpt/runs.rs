//! Runs of the slotted model in the four settings, and the numbers kept of them.
//!
//! Not here: the claims about them.

use crate::prelude::*;
use crate::workload::asrpt::{AsrptArrivals, AsrptCut, MACHINES, SETTINGS, SLOTS};
use anyhow::Context as _;
use gristmill_scheduler::policy;
use gristmill_scheduler::sim::slotted::lower_bound;
use gristmill_scheduler::sim::slotted::{self, Config};

/// Number of slots between two points of the convergence.
pub(super) const STEP: u32 = 10;

/// Number of points of the convergence: one every [`STEP`] slots, up to the last slot in which jobs arrive.
pub(super) const STEPS: usize = (SLOTS / STEP) as usize;

/// Longest flow time that the distributions show, in slots. The paper's figures end here too.
pub(super) const FLOW_MAX: usize = 100;

/// Largest proved ratio of the total flow of ASRPT and DSRPT to the bound (Theorem 4 and its corollaries).
pub(super) const PROVED: f64 = 3.0;

/// Names of the scenarios in the order in which figures show them, and cuts of the reduces, on which
/// preemptive runs do not depend.
pub(super) const SCENARIOS: [(&str, AsrptCut); 4] = [
    ("preemptive", AsrptCut::Even),
    ("non-preemptive, even", AsrptCut::Even),
    ("non-preemptive, random", AsrptCut::Random),
    ("non-preemptive, ten", AsrptCut::Ten),
];

/// Index of the scenario in which reduces can be interrupted.
pub(super) const PREEMPTIVE: usize = 0;

/// Policy and its name in the figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PaperScheduler {
    pub(super) title: &'static str,
    policy: &'static str,
}

/// Schedulers in the order of the legends. DSRPT is preemptive only.
pub(super) const SCHEDULERS: [PaperScheduler; 5] = [
    PaperScheduler { title: "ASRPT", policy: "asrpt" },
    PaperScheduler { title: "FIFO", policy: "fifo" },
    PaperScheduler { title: "Fair", policy: "fair" },
    PaperScheduler { title: "LRPT", policy: "lrpt" },
    PaperScheduler { title: "DSRPT", policy: "dsrpt" },
];

impl PaperScheduler {
    pub(super) fn runs_in(self, scenario: usize) -> bool {
        self.policy != "dsrpt" || scenario == PREEMPTIVE
    }
}

/// Numbers kept of one run.
#[derive(Clone, Debug)]
pub(super) struct KeptRun {
    /// Total flow until all jobs ended, divided by the bound.
    pub(super) ratio: f64,
    /// The same ratio within the first `STEP`, `2 * STEP`, ... slots.
    pub(super) within: Vec<f64>,
    /// Number of jobs by flow time in slots, 0 to `FLOW_MAX`. Longer ones count in the last entry.
    pub(super) flows: Vec<u64>,
}

/// All runs of one setting: by scenario, by scheduler, by seed.
pub(super) type OfSetting = Vec<Vec<Vec<KeptRun>>>;

/// All runs.
pub(super) struct AsrptRuns {
    pub(super) seeds: u64,
    /// First seed.
    pub(super) seed: u64,
    /// Runs by setting, in the order of [`SETTINGS`].
    settings: Vec<OfSetting>,
}

impl AsrptRuns {
    pub(super) fn new(context: &Context<'_>, seeds: u64) -> anyhow::Result<Self> {
        let cells: Vec<usize> = (0..SETTINGS.len()).collect();
        let runs = each_cell(&cells, &context.seeds(seeds), |&setting, &seed| {
            (context.progress)(&format!("ASRPT: {}, seed {seed}", SETTINGS[setting].name));
            run_seed(setting, seed).with_context(|| format!("{}, seed {seed}", SETTINGS[setting].name))
        })?;
        let empty = vec![vec![Vec::new(); SCHEDULERS.len()]; SCENARIOS.len()];
        let mut settings = vec![empty; SETTINGS.len()];
        for (setting, runs) in settings.iter_mut().zip(runs) {
            for (scenario, scheduler, kept) in runs.into_iter().flatten() {
                setting[scenario][scheduler].push(kept);
            }
        }
        Ok(AsrptRuns { seeds, seed: context.first_seed, settings })
    }

    /// Builds runs of this many seeds from made-up numbers by scenario, scheduler and seed.
    #[cfg(test)]
    pub(super) fn made_up(seeds: usize, kept: impl Fn(usize, usize, usize) -> KeptRun) -> Self {
        let by_scheduler = |scenario: usize, scheduler: usize| {
            let runs = SCHEDULERS[scheduler].runs_in(scenario);
            (0..if runs { seeds } else { 0 }).map(|seed| kept(scenario, scheduler, seed)).collect()
        };
        let by_scenario = |scenario| (0..SCHEDULERS.len()).map(|one| by_scheduler(scenario, one)).collect();
        let of_setting = || (0..SCENARIOS.len()).map(by_scenario).collect();
        AsrptRuns { seeds: seeds as u64, seed: 1, settings: SETTINGS.iter().map(|_| of_setting()).collect() }
    }

    /// Returns the runs of a scheduler by seed; empty if it does not run in this scenario.
    pub(super) fn runs_of(&self, setting: usize, scenario: usize, scheduler: usize) -> &[KeptRun] {
        &self.settings[setting][scenario][scheduler]
    }

    /// Returns one number of each of these runs.
    pub(super) fn numbers(
        &self,
        [setting, scenario, scheduler]: [usize; 3],
        number: impl Fn(&KeptRun) -> f64,
    ) -> Vec<f64> {
        self.runs_of(setting, scenario, scheduler).iter().map(number).collect()
    }

    /// Returns the mean of a number over seeds.
    pub(super) fn mean(&self, runs: [usize; 3], number: impl Fn(&KeptRun) -> f64) -> Option<Interval> {
        Interval::from_samples(&self.numbers(runs, number))
    }

    /// Returns the seeds in words.
    pub(super) fn seeds_in_words(&self) -> String {
        format!("{} seeds, {} to {}", self.seeds, self.seed, self.seed.wrapping_add(self.seeds - 1))
    }
}

/// Runs all scenarios and schedulers on the jobs of one seed. Returns indices in `SCENARIOS` and
/// `SCHEDULERS`, and the run.
fn run_seed(setting: usize, seed: u64) -> anyhow::Result<Vec<(usize, usize, KeptRun)>> {
    let mut kept = Vec::new();
    for (place, (_, cut)) in SCENARIOS.into_iter().enumerate() {
        let jobs: Vec<Job> = AsrptArrivals::new(SETTINGS[setting], cut).jobs(seed).collect();
        anyhow::ensure!(!jobs.is_empty(), "no job arrived");
        // The bound does not depend on the cut.
        let bound = lower_bound::completions(MACHINES, &jobs)?;
        for (index, scheduler) in SCHEDULERS.into_iter().enumerate() {
            if scheduler.runs_in(place) {
                let completions = completions(scheduler.policy, MACHINES, place == PREEMPTIVE, &jobs)?;
                kept.push((place, index, keep(&jobs, &completions, &bound)));
            }
        }
    }
    Ok(kept)
}

/// Returns the completion time of each job under this policy.
pub(super) fn completions(
    name: &str,
    machines: u32,
    preemptive: bool,
    jobs: &[Job],
) -> anyhow::Result<Vec<f64>> {
    let mut policy = policy::by_name(name)?;
    let config = Config::for_policy(&*policy, machines, preemptive);
    let mut completions = vec![0.0; jobs.len()];
    let mut sink = |record: &gristmill_scheduler::metrics::JobRecord| {
        completions[record.seq as usize] = record.completion;
    };
    slotted::run(&mut *policy, &config, jobs, &mut sink, &mut |_, _| {})?;
    Ok(completions)
}

/// Returns the total flow within the first slots: every job counts the slots in which it is present up to
/// then.
pub(super) fn flow_within(jobs: &[Job], completions: &[f64], slots: f64) -> f64 {
    let present =
        |(job, &completion): (&Job, &f64)| (completion.min(slots) - job.arrival.min(slots)).max(0.0);
    jobs.iter().zip(completions).map(present).sum()
}

fn keep(jobs: &[Job], completions: &[f64], bound: &[f64]) -> KeptRun {
    let over_bound = |slots: f64| {
        let bound = flow_within(jobs, bound, slots);
        // Before the first arrival no job waits under any schedule.
        if bound == 0.0 { 1.0 } else { flow_within(jobs, completions, slots) / bound }
    };
    let mut flows = vec![0; FLOW_MAX + 2];
    for (job, completion) in jobs.iter().zip(completions) {
        flows[((completion - job.arrival) as usize).min(FLOW_MAX + 1)] += 1;
    }
    KeptRun {
        ratio: over_bound(f64::INFINITY),
        within: (1..=STEPS).map(|step| over_bound(step as f64 * f64::from(STEP))).collect(),
        flows,
    }
}
