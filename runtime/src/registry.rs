//! What a program knows by name: jobs, rounds of jobs, policies, placements.
//!
//! A user's program registers its own and hands the registry to [`cli::main`](crate::cli::main); workers of its
//! clusters are the same program, so they know the same names. Not here: the jobs themselves.

use crate::client::Client;
use gristmill_scheduler::catalogue::{self, CatalogueError, Entry};
use gristmill_scheduler::placement::{self, Placement};
use gristmill_scheduler::policy::{self, Policy};
use gristmill_worker::agent::JobSource;
use gristmill_worker::api::{Job, JobPlan, PlanError, Submitter};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A registered job with its type erased: its flags, its parameters, its plan.
pub(crate) trait AnyJob: Send + Sync {
    /// The job's flags, as a subcommand of its name.
    fn command(&self) -> clap::Command;
    /// From flags to a prepared job.
    fn parse(&self, flags: &clap::ArgMatches) -> Result<Box<dyn PreparedJob>, clap::Error>;
    /// From parameters that have travelled to a plan.
    fn plan(&self, parameters: &str) -> Result<JobPlan, PlanError>;
}

/// A job with its parameters, on its way to being submitted.
pub(crate) trait PreparedJob: Send {
    fn name(&self) -> &'static str;
    fn prepare(&mut self, submitter: &dyn Submitter) -> Result<(), PlanError>;
    fn plan(&self) -> Result<JobPlan, PlanError>;
    fn parameters(&self) -> Result<String, PlanError>;
    fn columns(&self) -> Option<Vec<String>>;
    fn remarks(&self) -> Vec<String>;
}

impl<J: Job> PreparedJob for J {
    fn name(&self) -> &'static str {
        J::NAME
    }
    fn prepare(&mut self, submitter: &dyn Submitter) -> Result<(), PlanError> {
        Job::prepare(self, submitter)
    }
    fn plan(&self) -> Result<JobPlan, PlanError> {
        Job::plan(self)
    }
    fn parameters(&self) -> Result<String, PlanError> {
        serde_json::to_string(self).map_err(|source| PlanError::Decode { job: J::NAME.to_owned(), source })
    }
    fn columns(&self) -> Option<Vec<String>> {
        Job::columns(self)
    }
    fn remarks(&self) -> Vec<String> {
        Job::remarks(self)
    }
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
        let job: J = serde_json::from_str(parameters)
            .map_err(|source| PlanError::Decode { job: J::NAME.to_owned(), source })?;
        Job::plan(&job)
    }
}

/// A program that runs several jobs one after another, such as an iteration until nothing changes.
///
/// Register it with [`Registry::rounds`], and each of its jobs with [`Registry::job`], since the workers know them by
/// name; `#[command(hide = true)]` on a job keeps it out of the help. It then stands beside the jobs of `run` and
/// `submit` and needs `--output`: a folder that holds the output directories of all its jobs.
///
/// ```no_run
/// use gristmill::prelude::*;
/// # #[derive(clap::Args, Serialize, Deserialize)]
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
///             let options = client.options(&format!("round-{round}"));
///             let report = client.run(Step { inputs }, &options)?;
///             if report.counter("changed") == 0 {
///                 return Ok(format!("the result is in {}", report.output.display()));
///             }
///             // The next round reads the directory that this one wrote.
///             inputs = vec![report.output.to_string_lossy().into_owned()];
///         }
///         Ok(String::new())
///     }
/// }
/// ```
pub trait Rounds: clap::Args + Send + Sync + 'static {
    /// The name people type.
    const NAME: &'static str;

    /// Submits jobs through the client until done. What it returns is printed. Runs in the process that was started,
    /// never on a worker.
    ///
    /// # Errors
    /// The first job that does not succeed, or anything of its own.
    fn drive(&self, client: &mut Client) -> anyhow::Result<String>;
}

pub(crate) trait AnyRounds: Send + Sync {
    fn command(&self) -> clap::Command;
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

/// Makes a policy from the text behind its name (`k=100`), empty if there is none. Refuse what you do not know.
pub type PolicyFactory = fn(&str) -> Result<Box<dyn Policy + Send>, String>;

/// Makes a placement from the text behind its name, empty if there is none. Refuse what you do not know.
pub type PlacementFactory = fn(&str) -> Result<Box<dyn Placement + Send>, String>;

/// Names and what they stand for. Start from [`Registry::new`], or from [`Registry::standard`] to keep `wordcount` and
/// the others beside your own.
#[derive(Clone, Default)]
pub struct Registry {
    pub(crate) jobs: BTreeMap<&'static str, Arc<dyn AnyJob>>,
    pub(crate) rounds: BTreeMap<&'static str, Arc<dyn AnyRounds>>,
    /// Of one's own, beside those of the scheduler's catalogue.
    policies: BTreeMap<&'static str, PolicyFactory>,
    /// Likewise.
    placements: BTreeMap<&'static str, PlacementFactory>,
}

impl Registry {
    /// The standard policies and placements (the scheduler's catalogues), and no jobs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that comes with Gristmill.
    #[must_use]
    pub fn standard() -> Self {
        use crate::jobs::{Grep, Join, Sort, Synthetic, WordCount};
        Self::new().job::<WordCount>().job::<Grep>().job::<Sort>().job::<Join>().job::<Synthetic>()
    }

    /// Adds a job: `run NAME` and `submit NAME` of the command line, with the job's fields as flags. A later one of the
    /// same name replaces an earlier one.
    #[must_use]
    pub fn job<J: Job + clap::Args>(mut self) -> Self {
        self.jobs.insert(J::NAME, Arc::new(Registered::<J>(std::marker::PhantomData)));
        self
    }

    /// Adds a program of several jobs. The jobs themselves are added by [`Registry::job`].
    #[must_use]
    pub fn rounds<R: Rounds>(mut self) -> Self {
        self.rounds.insert(R::NAME, Arc::new(RegisteredRounds::<R>(std::marker::PhantomData)));
        self
    }

    /// Adds a policy. It hides a standard one of the same name.
    #[must_use]
    pub fn policy(mut self, name: &'static str, make: PolicyFactory) -> Self {
        self.policies.insert(name, make);
        self
    }

    /// Adds a placement. It hides a standard one of the same name.
    #[must_use]
    pub fn placement(mut self, name: &'static str, make: PlacementFactory) -> Self {
        self.placements.insert(name, make);
        self
    }

    /// The policy of this text, `name` or `name:parameters`, for a live cluster.
    ///
    /// # Errors
    /// An unknown name, with the known ones and the nearest; parameters that the policy refuses; a policy that can
    /// only be simulated, with its reason.
    pub fn make_policy(&self, text: &str) -> Result<Box<dyn Policy>, String> {
        refuse_simulated("policy", &policy::catalogue(), &self.policies, text)?;
        let policy = self.simulated_policy(text)?;
        if policy.suspends_maps() {
            return Err(format!(
                "policy `{text}` can only be simulated: maps on workers cannot be suspended"
            ));
        }
        Ok(policy)
    }

    /// As [`Registry::make_policy`], for a simulator, which can run every policy.
    ///
    /// # Errors
    /// An unknown name, with the known ones and the nearest, or parameters that the policy refuses.
    pub fn simulated_policy(&self, text: &str) -> Result<Box<dyn Policy>, String> {
        match call_own("policy", &self.policies, text, |make, parameters| make(parameters)) {
            Some(made) => made.map(|policy| policy as Box<dyn Policy>),
            None => call_standard("policy", &policy::catalogue(), &self.policies, text),
        }
    }

    /// The placement of this text, `name` or `name:parameters`, for a live cluster.
    ///
    /// # Errors
    /// As for [`Registry::make_policy`].
    pub fn make_placement(&self, text: &str) -> Result<Box<dyn Placement>, String> {
        refuse_simulated("placement", &placement::catalogue(), &self.placements, text)?;
        self.simulated_placement(text)
    }

    /// As [`Registry::make_placement`], for a simulator.
    ///
    /// # Errors
    /// An unknown name, with the known ones and the nearest, or parameters that the placement refuses.
    pub fn simulated_placement(&self, text: &str) -> Result<Box<dyn Placement>, String> {
        match call_own("placement", &self.placements, text, |make, parameters| make(parameters)) {
            Some(made) => made.map(|placement| placement as Box<dyn Placement>),
            None => call_standard("placement", &placement::catalogue(), &self.placements, text),
        }
    }
}

/// Names of one's own, and what makes them.
type Own<F> = BTreeMap<&'static str, F>;

fn name_of(text: &str) -> &str {
    text.split_once(':').map_or(text, |(name, _)| name)
}

/// What one's own entry of this name makes; `None` if there is none.
fn call_own<F, T>(
    kind: &str,
    own: &Own<F>,
    text: &str,
    call: impl Fn(&F, &str) -> Result<T, String>,
) -> Option<Result<T, String>> {
    let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
    let factory = own.get(name)?;
    Some(call(factory, parameters).map_err(|reason| format!("{kind} `{name}`: {reason}")))
}

/// Makes what the catalogue has under this name; one's own names stand in the error with the others.
fn call_standard<F, T: ?Sized>(
    kind: &'static str,
    catalogue: &[&'static Entry<T>],
    own: &Own<F>,
    text: &str,
) -> Result<Box<T>, String> {
    catalogue::call(catalogue, kind, text).map_err(|error| match error {
        CatalogueError::Unknown { kind, name, mut known } => {
            known.extend(own.keys());
            CatalogueError::Unknown { kind, name, known }.to_string()
        }
        other => other.to_string(),
    })
}

/// Refuses what only simulators can run. Names that are not known are refused later.
fn refuse_simulated<F, T: ?Sized>(
    kind: &'static str,
    catalogue: &[&'static Entry<T>],
    own: &Own<F>,
    text: &str,
) -> Result<(), String> {
    let name = name_of(text);
    let found = catalogue::find(catalogue, kind, text).ok().filter(|_| !own.contains_key(name));
    match found.and_then(|(entry, _)| entry.only_simulated) {
        Some(reason) => Err(format!("{kind} `{name}` can only be simulated: {reason}")),
        None => Ok(()),
    }
}

impl JobSource for Registry {
    fn plan(&self, name: &str, parameters: &str) -> Result<JobPlan, PlanError> {
        let job = self.jobs.get(name).ok_or_else(|| PlanError::Parameter {
            parameter: "job".to_owned(),
            value: name.to_owned(),
            reason: "no job of that name is registered in this program".to_owned(),
        })?;
        job.plan(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::policy::Fifo;

    /// What a call could not make; made things cannot be shown.
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
        let registry = Registry::new().policy("srpt", |_| Ok(Box::new(Fifo::new()))).policy("sjf", |text| {
            if text.is_empty() { Ok(Box::new(Fifo::new())) } else { Err(format!("no `{text}` please")) }
        });
        assert_eq!(registry.make_policy("srpt").unwrap().name(), "fifo");
        assert_eq!(error(registry.make_policy("sjf:k=1")), "policy `sjf`: no `k=1` please");
        let unknown = error(registry.make_policy("sfj"));
        assert!(
            unknown.starts_with("there is no policy `sfj`; did you mean `sjf`? There is fifo"),
            "{unknown}"
        );
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
