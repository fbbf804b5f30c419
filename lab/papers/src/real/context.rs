//! Settings of experiments on real processes, and their runs.

use super::common;
use super::control::{Control, SimulatedDraws};
use crate::PaperScale;
use gristmill_lab::compare::{CompareError, CompareProgress, Comparison, Contender, Options, Site, Workload};
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_scheduler::workload::Job;
use gristmill_worker::exit::{self, Exit, ExitsWith};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

/// Longest time of one run.
const RUN_LIMIT: Duration = Duration::from_secs(600);

/// Runs at the same time. Their slots sleep, or work at a few hundredths of a processor's speed.
pub(super) const AT_ONCE: NonZeroU32 = NonZeroU32::new(5).expect("above 0");

/// Largest share of the processors' time that other programs may use when runs start.
const OTHERS_MAX: f64 = 0.2;

/// Settings of an experiment on real processes.
pub struct RealContext<'a> {
    /// Amount of work to run.
    pub scale: PaperScale,
    /// First seed of random draws. Experiments count up from it.
    pub first_seed: u64,
    /// Receives a short description of the current run.
    pub progress: &'a (dyn Fn(&str) + Sync),
    /// Directory of runs and inputs. Runs that are complete there are not run again.
    pub directory: &'a Path,
    /// Runs the workloads.
    pub carry_out: &'a CarryOut<'a>,
}

/// Runs a workload as [`gristmill_lab::compare::run`] does.
pub type CarryOut<'a> =
    dyn Fn(&Workload, &Options, &mut dyn FnMut(CompareProgress<'_>)) -> Result<Comparison, CompareError> + 'a;

/// The experiments were interrupted.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl ExitsWith for Interrupted {
    fn exit(&self) -> Exit {
        Exit::with(exit::INTERRUPTED)
    }
}

impl RealContext<'_> {
    /// Returns the value for this scale.
    pub fn scaled<T>(&self, quick: T, normal: T, full: T) -> T {
        self.scale.pick(quick, normal, full)
    }

    /// Returns what is drawn for each repetition, from a seed of its own.
    pub(super) fn draws<T>(&self, repetitions: u32, draw: impl Fn(u64) -> T) -> Vec<T> {
        let seeds = (0..u64::from(repetitions)).map(|repetition| self.first_seed.wrapping_add(repetition));
        seeds.map(draw).collect()
    }

    /// Runs the jobs of each repetition, whose units last this many seconds, under each policy: as [`Self::compare`].
    pub(super) fn sleep(
        &self,
        name: &str,
        jobs: &[Vec<Job>],
        unit_seconds: f64,
        cluster: &ClusterConfig,
        names: &[(&str, &str)],
    ) -> anyhow::Result<Comparison> {
        let workload = common::sleeping(name, self.first_seed, jobs, unit_seconds);
        self.compare(name, &workload, cluster, common::policies(names), jobs.len() as u32)
    }

    /// Returns the number of draws that are only simulated.
    pub(super) fn simulated_draws(&self) -> u32 {
        self.scaled(50, 2000, 2000)
    }

    /// Runs drawn jobs, whose times are in seconds, as [`Self::sleep`], and simulates them and many other draws.
    pub(super) fn sleep_and_simulate(
        &self,
        name: &str,
        draw: impl Fn(u64) -> Vec<Job> + Sync,
        repetitions: u32,
        cluster: &ClusterConfig,
        names: &[(&str, &str)],
    ) -> anyhow::Result<(Comparison, Control)> {
        (self.progress)(&format!("{name}: simulating"));
        let draws = SimulatedDraws {
            count: [repetitions, self.simulated_draws()],
            first_seed: self.first_seed,
            skipped: 0,
        };
        let control = Control::simulate(cluster, &common::policies(names), draws, &draw)?;
        let comparison = self.sleep(name, &self.draws(repetitions, draw), 1.0, cluster, names)?;
        Ok((comparison, control))
    }

    /// Runs a workload under each policy on fresh clusters of this shape, `repetitions` times each,
    /// interleaved, five of them at the same time.
    ///
    /// # Errors
    /// The errors of [`RealContext::carry_out`], and an interruption.
    pub fn compare(
        &self,
        name: &str,
        workload: &Workload,
        cluster: &ClusterConfig,
        contenders: Vec<Contender>,
        repetitions: u32,
    ) -> anyhow::Result<Comparison> {
        self.compare_at_once(AT_ONCE, name, workload, cluster, (contenders, repetitions))
    }

    /// Does the same with this many runs at the same time: one where maps use the processors.
    pub(super) fn compare_at_once(
        &self,
        at_once: NonZeroU32,
        name: &str,
        workload: &Workload,
        cluster: &ClusterConfig,
        (contenders, repetitions): (Vec<Contender>, u32),
    ) -> anyhow::Result<Comparison> {
        let options = Options {
            contenders,
            against: None,
            repetitions,
            site: Site::Embedded(cluster.clone()),
            directory: self.directory.join(name),
            resume: true,
            warm_up: true,
            at_once,
            // A quick run judges nothing.
            others_max: self.scaled(None, Some(OTHERS_MAX), Some(OTHERS_MAX)),
            calibrate: false,
            isolated: false,
            sync: false,
            run_limit: RUN_LIMIT,
        };
        let all = options.contenders.len() as u32 * options.repetitions;
        let mut told = |progress: CompareProgress<'_>| {
            let words = match progress {
                CompareProgress::Step(words) => words.to_owned(),
                CompareProgress::Begins(contender, repetition, place) => {
                    format!("{}, run {} of {all} (repetition {})", contender.name, place + 1, repetition + 1)
                }
                CompareProgress::Ended(..) | CompareProgress::Kept(..) => return,
            };
            (self.progress)(&format!("{name}: {words}"));
        };
        let comparison = (self.carry_out)(workload, &options, &mut told).map_err(|error| {
            let directory = options.directory.display();
            anyhow::Error::new(error).context(format!(
                "the experiment `{name}` failed; its runs are in {directory}, and start again without that directory"
            ))
        })?;
        if comparison.interrupted {
            return Err(Interrupted.into());
        }
        Ok(comparison)
    }
}
