//! What a program knows by name: jobs, rounds of jobs, policies, placements.
//!
//! A user's program registers its own and hands the registry to [`cli::main`](crate::cli::main); workers of its
//! clusters are the same program, so they know the same names. Not here: the jobs themselves.

use crate::client::Client;
use gristmill_scheduler::placement::Placement;
use gristmill_scheduler::policy::Policy;
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
    pub(crate) policies: BTreeMap<&'static str, PolicyFactory>,
    pub(crate) placements: BTreeMap<&'static str, PlacementFactory>,
}

impl Registry {
    /// The standard policies and placements, and no jobs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
            .policy("fifo", |text| {
                no_parameters(text).map(|()| Box::new(crate::scheduler::policy::Fifo::new()) as _)
            })
            .policy("fair", |text| {
                no_parameters(text).map(|()| Box::new(crate::scheduler::policy::Fair::new()) as _)
            })
            .placement("pull", |text| {
                no_parameters(text).map(|()| Box::new(crate::scheduler::placement::Pull::new()) as _)
            })
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

    /// Adds a policy.
    #[must_use]
    pub fn policy(mut self, name: &'static str, make: PolicyFactory) -> Self {
        self.policies.insert(name, make);
        self
    }

    /// Adds a placement.
    #[must_use]
    pub fn placement(mut self, name: &'static str, make: PlacementFactory) -> Self {
        self.placements.insert(name, make);
        self
    }

    /// The policy of this text, `name` or `name:parameters`.
    ///
    /// # Errors
    /// An unknown name, with the known ones, or parameters that the policy refuses.
    pub fn make_policy(&self, text: &str) -> Result<Box<dyn Policy + Send>, String> {
        make(&self.policies, "policy", text, |make, parameters| make(parameters))
    }

    /// The placement of this text, `name` or `name:parameters`.
    ///
    /// # Errors
    /// An unknown name, with the known ones, or parameters that the placement refuses.
    pub fn make_placement(&self, text: &str) -> Result<Box<dyn Placement + Send>, String> {
        make(&self.placements, "placement", text, |make, parameters| make(parameters))
    }
}

fn no_parameters(text: &str) -> Result<(), String> {
    if text.is_empty() { Ok(()) } else { Err(format!("it takes no parameters, but was given `{text}`")) }
}

fn make<F, T>(
    known: &BTreeMap<&'static str, F>,
    kind: &str,
    text: &str,
    call: impl Fn(&F, &str) -> Result<T, String>,
) -> Result<T, String> {
    let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
    match known.get(name) {
        Some(factory) => call(factory, parameters).map_err(|reason| format!("{kind} `{name}`: {reason}")),
        None => {
            let names: Vec<&str> = known.keys().copied().collect();
            Err(format!("there is no {kind} `{name}`; there is {}", names.join(", ")))
        }
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
