//! Registry of names: jobs, rounds of jobs, policies, placements and estimators.
//!
//! A user's program registers its own and passes the registry to `cli::main` of the package `gristmill`. Workers of its
//! clusters run the same program, so they have the same names.

use crate::client::Client;
use crate::prepared::PreparedJob;
use gristmill_scheduler::catalogue::{self, CatalogueError, Entry};
use gristmill_scheduler::estimate::{self, Estimator};
use gristmill_scheduler::placement::{self, Placement};
use gristmill_scheduler::policy::{self, Policy};
use gristmill_worker::agent::JobSource;
use gristmill_worker::api::{Job, JobPlan, PlanError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A registered job with its type erased: its flags, its parameters, its plan.
pub trait AnyJob: Send + Sync {
    /// The job's flags, as a subcommand of its name.
    fn command(&self) -> clap::Command;
    /// Creates a prepared job from flags.
    ///
    /// # Errors
    /// Flags that the job does not have.
    fn parse(&self, flags: &clap::ArgMatches) -> Result<Box<dyn PreparedJob>, clap::Error>;
    /// Creates a plan from parameters that were sent.
    fn plan(&self, parameters: &str) -> Result<JobPlan, PlanError>;
}

struct Registered<J>(std::marker::PhantomData<fn() -> J>);

impl<J: Job + clap::Args> AnyJob for Registered<J> {
    fn command(&self) -> clap::Command {
        J::augment_args(clap::Command::new(J::NAME))
    }
    fn parse(&self, flags: &clap::ArgMatches) -> Result<Box<dyn PreparedJob>, clap::Error> {
        Ok(Box::new(J::from_arg_matches(flags)?))
    }
    fn plan(&self, parameters: &str) -> Result<JobPlan, PlanError> {
        plan_of::<J>(parameters)
    }
}

/// A program that runs several jobs one after another, such as an iteration until a fixed point.
///
/// Register it with [`Registry::rounds`], and each of its jobs with [`Registry::inner_job`], since the workers look
/// them up by name. It is then listed next to the jobs of `run` and `submit`, and requires `--output`: a directory that
/// holds the output directories of all its jobs.
///
/// ```no_run
/// # use gristmill_runtime as gristmill;
/// use gristmill::prelude::*;
/// # #[derive(Serialize, Deserialize)]
/// # struct Step { inputs: Vec<String> }
/// # impl Job for Step {
/// #     const NAME: &'static str = "step";
/// #     fn plan(&self) -> Result<JobPlan, PlanError> { unreachable!("not run") }
/// # }
///
/// /// Step until nothing changes
/// #[derive(clap::Args)]
/// struct Iterate {
///     inputs: Vec<String>,
/// }
///
/// impl Rounds for Iterate {
///     const NAME: &'static str = "iterate";
///
///     fn drive(&self, client: &mut Client) -> anyhow::Result<String> {
///         let mut inputs = self.inputs.clone();
///         for round in 1.. {
///             let report = client.round(&format!("round-{round}"), Step { inputs })?;
///             if report.counter("changed") == 0 {
///                 return Ok(format!("the result is in {}", report.output.display()));
///             }
///             // The next round reads the directory that this one wrote.
///             inputs = vec![report.as_input()];
///         }
///         Ok(String::new())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no program of several jobs",
    note = "it implements `Rounds` and derives `clap::Args`; a single job is registered by `job`, or by `inner_job` if only rounds \
            run it"
)]
pub trait Rounds: clap::Args + Send + Sync + 'static {
    /// The name that users type.
    const NAME: &'static str;

    /// Submits jobs through the client until done, with [`Client::round`]. The returned text is printed. Runs in the
    /// process that was started, never on a worker.
    ///
    /// # Errors
    /// The first job that does not succeed, or any error of its own.
    fn drive(&self, client: &mut Client) -> anyhow::Result<String>;
}

/// Registered rounds with their type erased.
pub trait AnyRounds: Send + Sync {
    /// Their flags, as a subcommand of their name.
    fn command(&self) -> clap::Command;
    /// [`Rounds::drive`].
    ///
    /// # Errors
    /// Errors of the rounds, and flags that they do not have.
    fn drive(&self, flags: &clap::ArgMatches, client: &mut Client) -> anyhow::Result<String>;
}

struct RegisteredRounds<R>(std::marker::PhantomData<fn() -> R>);

impl<R: Rounds> AnyRounds for RegisteredRounds<R> {
    fn command(&self) -> clap::Command {
        R::augment_args(clap::Command::new(R::NAME))
    }
    fn drive(&self, flags: &clap::ArgMatches, client: &mut Client) -> anyhow::Result<String> {
        R::from_arg_matches(flags)?.drive(client)
    }
}

/// Creates a job's plan from its parameters.
type MakePlan = fn(&str) -> Result<JobPlan, PlanError>;

/// Creates a plan from parameters that were sent.
fn plan_of<J: Job>(parameters: &str) -> Result<JobPlan, PlanError> {
    let job: J = serde_json::from_str(parameters)
        .map_err(|source| PlanError::Decode { job: J::NAME.to_owned(), source })?;
    Job::plan(&job)
}

/// Names and the types registered under them. Start from [`Registry::new`], or from [`Registry::standard`] to keep
/// `wordcount` and the others next to your own.
#[derive(Clone, Default)]
pub struct Registry {
    jobs: BTreeMap<&'static str, Arc<dyn AnyJob>>,
    /// Names of the jobs that came with Gristmill.
    standard: BTreeSet<&'static str>,
    rounds: BTreeMap<&'static str, Arc<dyn AnyRounds>>,
    /// Jobs that only programs run.
    inner: BTreeMap<&'static str, MakePlan>,
    /// User-defined policies, in addition to those of the scheduler's catalogue.
    own_policies: Vec<&'static Entry<dyn Policy>>,
    own_placements: Vec<&'static Entry<dyn Placement>>,
    own_estimators: Vec<&'static Entry<dyn Estimator>>,
}

impl Registry {
    /// The standard policies, placements and estimators (the scheduler's catalogues), and no jobs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that comes with Gristmill.
    #[must_use]
    pub fn standard() -> Self {
        use gristmill_jobs::{Grep, Join, Sort, Synthetic, WordCount};
        let mut all =
            Self::new().job::<WordCount>().job::<Grep>().job::<Sort>().job::<Join>().job::<Synthetic>();
        all.standard = all.jobs.keys().copied().collect();
        all
    }

    /// True if the job of this name came with Gristmill, so that its code cannot end a process.
    #[must_use]
    pub fn is_standard(&self, job: &str) -> bool {
        self.standard.contains(job)
    }

    /// Adds a job: `run NAME` and `submit NAME` of the command line, with the job's fields as flags. A later one of the
    /// same name replaces an earlier one.
    #[must_use]
    pub fn job<J: Job + clap::Args>(mut self) -> Self {
        self.standard.remove(J::NAME);
        self.jobs.insert(J::NAME, Arc::new(Registered::<J>(std::marker::PhantomData)));
        self
    }

    /// Adds a job that is not run from the command line: one of several [`Rounds`], which create its parameters. It
    /// needs no flags.
    #[must_use]
    pub fn inner_job<J: Job>(mut self) -> Self {
        self.inner.insert(J::NAME, plan_of::<J>);
        self
    }

    /// Adds a program of several jobs. The jobs themselves are added by [`Registry::inner_job`], or by
    /// [`Registry::job`] if they are also useful alone.
    #[must_use]
    pub fn rounds<R: Rounds>(mut self) -> Self {
        self.rounds.insert(R::NAME, Arc::new(RegisteredRounds::<R>(std::marker::PhantomData)));
        self
    }

    /// All jobs, by name.
    pub fn jobs(&self) -> impl Iterator<Item = &Arc<dyn AnyJob>> {
        self.jobs.values()
    }

    /// Their names, in order.
    pub fn job_names(&self) -> impl Iterator<Item = &'static str> {
        self.jobs.keys().copied()
    }

    /// All programs of several jobs, by name.
    pub fn all_rounds(&self) -> impl Iterator<Item = &Arc<dyn AnyRounds>> {
        self.rounds.values()
    }

    /// True if a job of this name can be planned, one of the command line or an inner one.
    #[must_use]
    pub(crate) fn has_plan(&self, name: &str) -> bool {
        self.jobs.contains_key(name) || self.inner.contains_key(name)
    }

    /// The job of this name.
    #[must_use]
    pub fn find_job(&self, name: &str) -> Option<&Arc<dyn AnyJob>> {
        self.jobs.get(name)
    }

    /// The rounds of this name.
    #[must_use]
    pub fn find_rounds(&self, name: &str) -> Option<&Arc<dyn AnyRounds>> {
        self.rounds.get(name)
    }

    /// Adds a policy. It hides a standard one of the same name.
    #[must_use]
    pub fn policy(mut self, entry: &'static Entry<dyn Policy>) -> Self {
        self.own_policies.push(entry);
        self
    }

    /// Adds a placement. It hides a standard one of the same name.
    #[must_use]
    pub fn placement(mut self, entry: &'static Entry<dyn Placement>) -> Self {
        self.own_placements.push(entry);
        self
    }

    /// Adds an estimator. It hides a standard one of the same name.
    #[must_use]
    pub fn estimator(mut self, entry: &'static Entry<dyn Estimator>) -> Self {
        self.own_estimators.push(entry);
        self
    }

    /// All policies that can be used by name.
    #[must_use]
    pub fn policies(&self) -> Vec<&'static Entry<dyn Policy>> {
        catalogue::with_own(policy::catalogue(), &self.own_policies)
    }

    /// All placements that can be used by name.
    #[must_use]
    pub fn placements(&self) -> Vec<&'static Entry<dyn Placement>> {
        catalogue::with_own(placement::catalogue(), &self.own_placements)
    }

    /// All estimators that can be used by name.
    #[must_use]
    pub fn estimators(&self) -> Vec<&'static Entry<dyn Estimator>> {
        catalogue::with_own(estimate::catalogue(), &self.own_estimators)
    }

    /// Creates the policy of this text, `name` or `name:parameters`, for a live cluster.
    ///
    /// # Errors
    /// An unknown name, with the known ones and the nearest; parameters that the policy rejects; a policy that can only
    /// be simulated, with its reason.
    pub fn make_policy(&self, text: &str) -> Result<Box<dyn Policy>, String> {
        let policy = in_words(catalogue::call_live(&self.policies(), "policy", text))?;
        if policy.suspends_maps() {
            return Err(format!(
                "policy `{text}` can only be simulated: maps on workers cannot be suspended"
            ));
        }
        Ok(policy)
    }

    /// True if the policy of this text starts another program.
    pub(crate) fn policy_starts_program(&self, text: &str) -> bool {
        catalogue::find(&self.policies(), "policy", text).is_ok_and(|(entry, _)| entry.starts_program)
    }

    /// As [`Registry::make_policy`], for a simulator, which can run every policy.
    ///
    /// # Errors
    /// An unknown name, with the known ones and the nearest, or parameters that the policy rejects.
    pub fn simulated_policy(&self, text: &str) -> Result<Box<dyn Policy>, String> {
        in_words(catalogue::call(&self.policies(), "policy", text))
    }

    /// Creates the placement of this text, `name` or `name:parameters`, for a live cluster.
    ///
    /// # Errors
    /// As for [`Registry::make_policy`].
    pub fn make_placement(&self, text: &str) -> Result<Box<dyn Placement>, String> {
        in_words(catalogue::call_live(&self.placements(), "placement", text))
    }

    /// As [`Registry::make_placement`], for a simulator.
    ///
    /// # Errors
    /// An unknown name, with the known ones and the nearest, or parameters that the placement rejects.
    pub fn simulated_placement(&self, text: &str) -> Result<Box<dyn Placement>, String> {
        in_words(catalogue::call(&self.placements(), "placement", text))
    }

    /// Creates the estimator of this text, `name` or `name:parameters`.
    ///
    /// # Errors
    /// An unknown name, with the known ones and the nearest, or parameters that the estimator rejects.
    pub fn make_estimator(&self, text: &str) -> Result<Box<dyn Estimator>, String> {
        in_words(catalogue::call(&self.estimators(), "estimator", text))
    }
}

fn in_words<T: ?Sized>(made: Result<Box<T>, CatalogueError>) -> Result<Box<T>, String> {
    made.map_err(|error| error.to_string())
}

impl JobSource for Registry {
    fn plan(&self, name: &str, parameters: &str) -> Result<JobPlan, PlanError> {
        match (self.jobs.get(name), self.inner.get(name)) {
            (Some(job), _) => job.plan(parameters),
            (None, Some(plan)) => plan(parameters),
            (None, None) => Err(PlanError::Parameter {
                parameter: "job".to_owned(),
                value: name.to_owned(),
                reason: "no job of that name is registered in this program".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::catalogue::ArgumentError;
    use gristmill_scheduler::policy::Fifo;

    /// Error of a call; created objects cannot be printed.
    fn error<T: ?Sized>(made: Result<Box<T>, String>) -> String {
        made.map(|_| ()).unwrap_err()
    }

    #[test]
    fn a_live_cluster_refuses_what_can_only_be_simulated_with_the_reason() {
        let registry = Registry::new();
        let reason = error(registry.make_policy("srpt"));
        assert!(reason.starts_with("policy `srpt` can only be simulated: "), "{reason}");
        assert!(registry.simulated_policy("srpt").is_ok());
        assert!(registry.make_policy("fcfs").is_ok());
        let reason = error(registry.make_policy("dsrpt"));
        assert!(reason.starts_with("policy `dsrpt` can only be simulated: "), "{reason}");
        assert!(registry.make_policy("asrpt:preemptive=yes").is_ok());
    }

    #[test]
    fn a_policy_of_ones_own_hides_the_standard_one_and_stands_in_the_list() {
        const SRPT: Entry<dyn Policy> = Entry::new("srpt", "", |_| Ok(Box::new(Fifo::new())));
        const SJF: Entry<dyn Policy> = Entry::new("sjf", "", |arguments| match arguments.text("k") {
            None => Ok(Box::new(Fifo::new())),
            Some(k) => Err(ArgumentError::Refused { reason: format!("no `k={k}` please") }),
        });
        let registry = Registry::new().policy(&SRPT).policy(&SJF);
        assert_eq!(registry.make_policy("srpt").unwrap().name(), "fifo");
        assert_eq!(error(registry.make_policy("sjf:k=1")), "policy `sjf`: no `k=1` please");
        let unknown = error(registry.make_policy("sfj"));
        assert!(
            unknown.starts_with("there is no policy `sfj`; did you mean `sjf`? There is fifo"),
            "{unknown}"
        );
    }

    #[test]
    fn an_estimator_of_ones_own_is_made_by_its_name_and_listed() {
        const BLIND: Entry<dyn Estimator> = Entry::new("blind", "", |_| Ok(Box::new(estimate::Tasks)));
        let registry = Registry::new().estimator(&BLIND);
        assert_eq!(registry.make_estimator("blind").unwrap().name(), "tasks");
        assert!(registry.estimators().iter().any(|entry| entry.name == "blind"));
        let unknown = error(registry.make_estimator("blnd"));
        assert!(unknown.starts_with("there is no estimator `blnd`; did you mean `blind`? "), "{unknown}");
    }

    #[test]
    fn an_unknown_placement_names_the_known_ones() {
        let unknown = error(Registry::new().make_placement("pul"));
        assert!(
            unknown.starts_with("there is no placement `pul`; did you mean `pull`? There is pull"),
            "{unknown}"
        );
    }
}
