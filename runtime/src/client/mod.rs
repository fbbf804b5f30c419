//! A client of a master: submits jobs, waits for them and reads their counters, also over several rounds.
//!
//! The client is blocking: each call runs the method of the same name of [`AsyncClient`] on a small runtime of its own,
//! which also serves files to workers while a job runs. An embedded cluster is started in `cluster`.

mod asynchronous;
mod jobs;
mod joining;
mod lines;
mod outcome;
mod reconnect;
mod result;

use crate::api::{JobStatus, JobTrace, LogEntry, MasterStatus};
use crate::output_dir::OutputError;
use crate::prepared::PreparedJob;
use crate::submit::JobOptions;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::api::Job;
use gristmill_worker::http::JoinLine;
use std::sync::Arc;
use std::time::Duration;

pub use asynchronous::{AsyncClient, HeardCheck};
pub use jobs::Ready;
pub use outcome::{ClientError, JobReport};
pub use result::ResultError;

/// Time to wait for a new cluster's workers, and additional time for each: with few cores, many processes start slowly.
const JOIN_TIMEOUT: Duration = Duration::from_secs(1);
const JOIN_TIMEOUT_EACH: Duration = Duration::from_millis(20);

fn runtime() -> Result<Arc<tokio::runtime::Runtime>, ClientError> {
    let runtime = gristmill_worker::threads::runtime();
    runtime.map(Arc::new).map_err(|source| ClientError::Start { source })
}

/// A completed round: one of the jobs of a program that runs several.
#[derive(Clone, Debug)]
pub struct RoundReport {
    /// Its name, which is that of its output directory.
    pub name: String,
    /// Report of its job.
    pub report: JobReport,
}

/// A client of one master. [`Rounds`](crate::registry::Rounds) receive one; another program creates one from the join
/// line that `cluster master` prints:
///
/// ```no_run
/// # use gristmill_runtime as gristmill;
/// use gristmill::prelude::*;
/// use gristmill::jobs::WordCount;
///
/// # fn run(count: WordCount) -> anyhow::Result<()> {
/// let join_line = std::fs::read_to_string("/home/me/.local/state/gristmill/join")?;
/// let mut client = Client::connect(&join_line.parse()?)?;
/// let report = client.run(count, &JobOptions::new("counts"))?;
/// println!("{} parts, {} records", report.parts().len(), report.status.totals.records_out);
/// # Ok(())
/// # }
/// ```
pub struct Client {
    runtime: Arc<tokio::runtime::Runtime>,
    core: AsyncClient,
    /// Options of the jobs of several rounds; all rounds share their output directory.
    options: JobOptions,
    /// Completed rounds.
    done: Vec<RoundReport>,
    /// Traces of the rounds that were run, if they are kept.
    traces: Option<Vec<JobTrace>>,
    /// Called with each job that `run` or `round` has completed.
    announce: Option<fn(&JobStatus)>,
}

impl Client {
    /// Creates a client of the master of this join line.
    ///
    /// # Errors
    /// A runtime that cannot be started. No request is sent yet.
    pub fn connect(master: &JoinLine) -> Result<Self, ClientError> {
        Ok(Self::within(runtime()?, AsyncClient::new(master)))
    }

    /// Creates a client that blocks on this runtime.
    #[must_use]
    pub fn within(runtime: Arc<tokio::runtime::Runtime>, core: AsyncClient) -> Self {
        let options = JobOptions::new("output");
        Self { runtime, core, options, done: Vec::new(), traces: None, announce: None }
    }

    /// Creates another client of the same master, for another thread: with its own connections, and without rounds.
    ///
    /// # Errors
    /// A runtime that cannot be started.
    pub fn another(&self) -> Result<Self, ClientError> {
        let mut another = Self::within(runtime()?, self.core.another());
        another.options = self.options.clone();
        Ok(another)
    }

    /// Sets the options from which [`Client::options`] derives those of each round.
    pub fn set_options(&mut self, options: JobOptions) {
        self.options = options;
    }

    /// Keeps the traces of rounds from now on.
    pub fn keep_traces(&mut self) {
        self.traces = Some(Vec::new());
    }

    /// Traces of the rounds that were run, including a failed one; empty without [`Client::keep_traces`].
    #[must_use]
    pub fn traces(&self) -> &[JobTrace] {
        self.traces.as_deref().unwrap_or_default()
    }

    /// The completed rounds, in the order in which they were requested.
    #[must_use]
    pub fn rounds(&self) -> &[RoundReport] {
        &self.done
    }

    /// Sets a callback for each job that [`Client::run`] or [`Client::round`] has completed.
    pub fn set_announce(&mut self, announce: fn(&JobStatus)) {
        self.announce = Some(announce);
    }

    /// See [`AsyncClient::set_said`].
    pub fn set_said(&mut self, said: fn(&str)) {
        self.core.set_said(said);
    }

    /// The asynchronous client behind this one, whose requests [`Client::block_on`] waits for.
    #[must_use]
    pub fn requests(&self) -> &AsyncClient {
        &self.core
    }

    /// Waits for a request: `client.block_on(client.requests().tokens())`.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Waits a short time for a new cluster's workers: a job planned too early would count too few slots.
    pub fn wait_for_workers(&self, workers: u32) {
        let patience = JOIN_TIMEOUT + JOIN_TIMEOUT_EACH * workers;
        // A master that does not respond is noticed by the next request.
        let _ = self.block_on(self.core.await_workers(workers, patience));
    }

    /// Options for a job of several rounds: those of the command line, with `name` inside its output directory.
    #[must_use]
    pub fn options(&self, name: &str) -> JobOptions {
        JobOptions { output: self.options.output.join(name), ..self.options.clone() }
    }

    /// Runs one of several jobs to its end: [`Client::run`] with the [`Client::options`] of this name, the name of its
    /// directory in the output directory.
    ///
    /// # Errors
    /// As those of [`Client::run`].
    pub fn round<J: Job>(&mut self, name: &str, job: J) -> Result<JobReport, ClientError> {
        let mut seen = None;
        let mut note = |status: &JobStatus| seen = Some(status.job);
        let ran = self.run_prepared(Box::new(job), &self.options(name), &mut note);
        if let (Some(traces), Some(job)) = (&mut self.traces, seen) {
            // If the master cannot provide the trace any more, it is left out; the round is complete anyway.
            traces.extend(self.runtime.block_on(self.core.trace(job)));
        }
        let report = ran?;
        if let Some(announce) = self.announce {
            announce(&report.status);
        }
        self.done.push(RoundReport { name: name.to_owned(), report: report.clone() });
        Ok(report)
    }

    /// Removes the output of a round that is no longer needed.
    ///
    /// # Errors
    /// Files that cannot be removed.
    pub fn discard(&mut self, round: &JobReport) -> Result<(), ClientError> {
        match std::fs::remove_dir_all(&round.output) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                let (action, path) = ("remove", round.output.clone());
                Err(ClientError::Output { source: OutputError::Io { action, path, source } })
            }
            _ => Ok(()),
        }
    }

    /// Runs a job to its end. It is cancelled if this process ends before.
    ///
    /// # Errors
    /// Everything that prevents the job's success; its output directory is then as it was before.
    pub fn run<J: Job>(&mut self, job: J, options: &JobOptions) -> Result<JobReport, ClientError> {
        let report = self.run_prepared(Box::new(job), options, &mut |_| {})?;
        if let Some(announce) = self.announce {
            announce(&report.status);
        }
        Ok(report)
    }

    /// As [`Client::run`], for a job created by a registry. `seen` is called with each status that the master sends.
    ///
    /// # Errors
    /// As those of [`Client::run`].
    pub fn run_prepared(
        &mut self,
        job: Box<dyn PreparedJob>,
        options: &JobOptions,
        seen: &mut dyn FnMut(&JobStatus),
    ) -> Result<JobReport, ClientError> {
        self.block_on(self.core.run_prepared(job, options, seen))
    }

    /// [`AsyncClient::submit`].
    ///
    /// # Errors
    /// Its errors.
    pub fn submit<J: Job>(&mut self, job: J, options: &JobOptions) -> Result<JobId, ClientError> {
        self.block_on(self.core.submit(job, options))
    }

    /// [`AsyncClient::submit_prepared`].
    ///
    /// # Errors
    /// Its errors.
    pub fn submit_prepared(
        &mut self,
        job: Box<dyn PreparedJob>,
        options: &JobOptions,
    ) -> Result<JobId, ClientError> {
        self.block_on(self.core.submit_prepared(job, options))
    }

    /// [`AsyncClient::master`].
    ///
    /// # Errors
    /// Its errors.
    pub fn master(&self) -> Result<MasterStatus, ClientError> {
        self.block_on(self.core.master())
    }

    /// [`AsyncClient::jobs`].
    ///
    /// # Errors
    /// Its errors.
    pub fn jobs(&self) -> Result<Vec<JobStatus>, ClientError> {
        self.block_on(self.core.jobs())
    }

    /// [`AsyncClient::status`].
    ///
    /// # Errors
    /// Its errors.
    pub fn status(&self, job: JobId) -> Result<JobStatus, ClientError> {
        self.block_on(self.core.status(job))
    }

    /// [`AsyncClient::wait`].
    ///
    /// # Errors
    /// Its errors.
    pub fn wait(&self, job: JobId, seen: impl FnMut(&JobStatus)) -> Result<JobStatus, ClientError> {
        self.block_on(self.core.wait(job, seen))
    }

    /// [`AsyncClient::cancel`].
    ///
    /// # Errors
    /// Its errors.
    pub fn cancel(&self, job: JobId) -> Result<(), ClientError> {
        self.block_on(self.core.cancel(job))
    }

    /// [`AsyncClient::logs`].
    ///
    /// # Errors
    /// Its errors.
    pub fn logs(&self, job: JobId) -> Result<Vec<LogEntry>, ClientError> {
        self.block_on(self.core.logs(job))
    }

    /// [`AsyncClient::trace`].
    ///
    /// # Errors
    /// Its errors.
    pub fn trace(&self, job: JobId) -> Result<JobTrace, ClientError> {
        self.block_on(self.core.trace(job))
    }
}
