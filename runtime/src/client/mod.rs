//! A client of a master: submits jobs, waits, reads counters, several rounds if need be.
//!
//! Blocking: each call runs the future of the same name in [`AsyncClient`] to its end, on a small runtime of this
//! client's own, which also serves files to workers while a job runs. Not here: starting a cluster (`cluster`).

mod asynchronous;
mod feed;
mod finding_again;
mod joining;
mod lines;
mod outcome;
mod result;
mod rounds;
mod shipping;

use crate::api::{
    Explanation, JobStatus, JobTrace, LogEntry, MasterStatus, PolicyChange, Quota, Role, TokenList, Turns,
};
use crate::output_dir::OutputError;
use crate::prepared::PreparedJob;
use crate::submit::{JobOptions, SubmitError};
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_worker::api::Job;
use gristmill_worker::http::{HttpError, JoinLine, Token};
use rounds::{RoundsRecord, WantedRound};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use asynchronous::{AsyncClient, HeardCheck, Ready};
pub use feed::Feed;
pub use outcome::{ClientError, JobReport};
pub use result::ResultError;
pub use rounds::{Earlier, ROUNDS, ResumeError, RoundReport, RoundsCall};

/// How long a fresh cluster's workers are waited for, and how much longer for each of them: on few cores, many processes
/// take their time to start.
const JOIN_PATIENCE: Duration = Duration::from_secs(1);
const JOIN_PATIENCE_EACH: Duration = Duration::from_millis(20);

fn resume(source: ResumeError) -> ClientError {
    ClientError::Resume { source: Box::new(source) }
}

fn runtime() -> Result<Arc<tokio::runtime::Runtime>, ClientError> {
    let runtime = gristmill_worker::threads::runtime();
    runtime.map(Arc::new).map_err(|source| ClientError::Start { source })
}

/// A way to one master. [`Rounds`](crate::registry::Rounds) are handed one; a program of its own makes one of the join
/// line that `master` prints:
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
    /// Options of the jobs of several rounds; their output directory is the one all rounds share.
    options: JobOptions,
    /// What rounds of this program have done, if somebody may want to go on with them.
    record: Option<RoundsRecord>,
    /// Rounds that are done.
    done: Vec<RoundReport>,
    /// What happened to each of them that was run, if somebody wants to know.
    traces: Option<Vec<JobTrace>>,
    /// Told of each job that `run` has run, and of each round that was done before.
    announce: Option<fn(&JobStatus, bool)>,
}

impl Client {
    /// A client of the master of this join line.
    ///
    /// # Errors
    /// A runtime that cannot be started. The master is not asked yet.
    pub fn connect(master: &JoinLine) -> Result<Self, ClientError> {
        Ok(Self::within(runtime()?, AsyncClient::new(master)))
    }

    /// A client that blocks on this runtime.
    #[must_use]
    pub fn within(runtime: Arc<tokio::runtime::Runtime>, core: AsyncClient) -> Self {
        let options = JobOptions::new("output");
        Self { runtime, core, options, record: None, done: Vec::new(), traces: None, announce: None }
    }

    /// Another client of the same master, for another thread: with connections of its own, and no rounds.
    ///
    /// # Errors
    /// A runtime that cannot be started.
    pub fn another(&self) -> Result<Self, ClientError> {
        let mut another = Self::within(runtime()?, self.core.another());
        another.options = self.options.clone();
        Ok(another)
    }

    /// The options from which [`Client::options`] makes those of each round.
    pub fn set_options(&mut self, options: JobOptions) {
        self.options = options;
    }

    /// Records what rounds do in the output directory of [`Client::set_options`], which must be there.
    ///
    /// # Errors
    /// Rounds of before that are in the way, or are not those that are to be gone on with.
    pub fn record_rounds(&mut self, call: RoundsCall, earlier: Earlier) -> Result<(), ClientError> {
        let record = RoundsRecord::begin(&self.options.output, call, earlier, self.options.sync);
        self.record = Some(record.map_err(resume)?);
        Ok(())
    }

    /// Keeps the traces of rounds from now on.
    pub fn keep_traces(&mut self) {
        self.traces = Some(Vec::new());
    }

    /// What happened to the rounds that were run, also to one that failed; empty without [`Client::keep_traces`].
    #[must_use]
    pub fn traces(&self) -> &[JobTrace] {
        self.traces.as_deref().unwrap_or_default()
    }

    /// The rounds that are done, in the order in which they were asked for.
    #[must_use]
    pub fn rounds(&self) -> &[RoundReport] {
        &self.done
    }

    /// Tells of each job that [`Client::run`] has run, and of each round that was done before, with `true`.
    pub fn set_announce(&mut self, announce: fn(&JobStatus, bool)) {
        self.announce = Some(announce);
    }

    /// [`AsyncClient::set_said`].
    pub fn set_said(&mut self, said: fn(&str)) {
        self.core.set_said(said);
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Waits for a fresh cluster's workers, not for long: a job planned too early would count too few slots.
    pub fn wait_for_workers(&self, workers: u32) {
        let patience = JOIN_PATIENCE + JOIN_PATIENCE_EACH * workers;
        // A master that does not answer is noticed by the first request that matters.
        let _ = self.block_on(self.core.await_workers(workers, patience));
    }

    /// Options for a job of several rounds: those of the command line, with `name` inside its output directory.
    #[must_use]
    pub fn options(&self, name: &str) -> JobOptions {
        JobOptions { output: self.options.output.join(name), ..self.options.clone() }
    }

    /// Runs one of several jobs to its end: [`Client::run`] with the [`Client::options`] of this name, the name of its
    /// directory in the output directory. With `--resume` a round that is done already is not run again, if its
    /// parameters and what it reads are as they were.
    ///
    /// # Errors
    /// As those of [`Client::run`], and a round that was done before and was not this one.
    pub fn round<J: Job>(&mut self, name: &str, job: J) -> Result<JobReport, ClientError> {
        let job: Box<dyn PreparedJob> = Box::new(job);
        let plan = |source| ClientError::Submit { source: Box::new(SubmitError::Plan { source }) };
        let parameters = job.parameters().map_err(plan)?;
        let wanted = WantedRound { name, job: J::NAME, parameters: &parameters };
        let mut options = self.options(name);
        let (report, resumed) = match self.done_before(&wanted, &options)? {
            Some(report) => (report, true),
            None => {
                options.overwrite |=
                    self.record.as_ref().is_some_and(|record| record.left_unentered(&wanted));
                (self.run_round(&wanted, job, &options)?, false)
            }
        };
        if let Some(announce) = self.announce {
            announce(&report.status, resumed);
        }
        self.done.push(RoundReport { name: name.to_owned(), resumed, report: report.clone() });
        Ok(report)
    }

    /// The report of a round that was done before.
    fn done_before(
        &mut self,
        wanted: &WantedRound<'_>,
        options: &JobOptions,
    ) -> Result<Option<JobReport>, ClientError> {
        let Some(record) = &mut self.record else { return Ok(None) };
        let Some(paths) = record.inputs_of(wanted).map_err(resume)? else { return Ok(None) };
        let files = self.runtime.block_on(self.core.input_files(paths, options))?;
        record.take(wanted.name, &files).map_err(resume)
    }

    /// Runs a round and enters it.
    fn run_round(
        &mut self,
        wanted: &WantedRound<'_>,
        job: Box<dyn PreparedJob>,
        options: &JobOptions,
    ) -> Result<JobReport, ClientError> {
        let mut seen = None;
        let mut note = |status: &JobStatus| seen = Some(status.job);
        let ran = self.runtime.block_on(self.core.run_listed(job, options, &mut note));
        if let (Some(traces), Some(job)) = (&mut self.traces, seen) {
            // What cannot be had of the master any more is missing from the trace, and the round is done all the same.
            traces.extend(self.runtime.block_on(self.core.trace(job)));
        }
        let (report, inputs) = ran?;
        if let Some(record) = &mut self.record {
            record.enter(wanted, inputs, &report.status).map_err(resume)?;
        }
        Ok(report)
    }

    /// Removes the output of a round that nobody reads any more. With `--resume` the round counts as done all the same.
    ///
    /// # Errors
    /// Files that cannot be removed.
    pub fn discard(&mut self, round: &JobReport) -> Result<(), ClientError> {
        if let Some(record) = &mut self.record {
            record.discard(&round.output).map_err(resume)?;
        }
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
    /// Everything that keeps the job from succeeding; its output directory is then as it was before.
    pub fn run<J: Job>(&mut self, job: J, options: &JobOptions) -> Result<JobReport, ClientError> {
        let report = self.run_prepared(Box::new(job), options, &mut |_| {})?;
        if let Some(announce) = self.announce {
            announce(&report.status, false);
        }
        Ok(report)
    }

    /// As [`Client::run`], of a job that a registry has made. `seen` is shown each status that the master tells.
    ///
    /// # Errors
    /// Likewise.
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

    /// [`AsyncClient::new_token`].
    ///
    /// # Errors
    /// Its errors.
    pub fn new_token(
        &self,
        role: Role,
        label: Option<&str>,
        quota: Option<Quota>,
    ) -> Result<Token, ClientError> {
        self.block_on(self.core.new_token(role, label, quota))
    }

    /// [`AsyncClient::tokens`].
    ///
    /// # Errors
    /// Its errors.
    pub fn tokens(&self) -> Result<TokenList, ClientError> {
        self.block_on(self.core.tokens())
    }

    /// [`AsyncClient::page_code`].
    ///
    /// # Errors
    /// Its errors.
    pub fn page_code(&self) -> Result<String, ClientError> {
        self.block_on(self.core.page_code())
    }

    /// [`AsyncClient::page_code_to_cancel`].
    ///
    /// # Errors
    /// Its errors.
    pub fn page_code_to_cancel(&self) -> Result<String, ClientError> {
        self.block_on(self.core.page_code_to_cancel())
    }

    /// [`AsyncClient::revoke_token`].
    ///
    /// # Errors
    /// Its errors.
    pub fn revoke_token(&self, name: &str) -> Result<(), ClientError> {
        self.block_on(self.core.revoke_token(name))
    }

    /// [`AsyncClient::rotate_tokens`].
    ///
    /// # Errors
    /// Its errors.
    pub fn rotate_tokens(&self, grace: Duration) -> Result<(), ClientError> {
        self.block_on(self.core.rotate_tokens(grace))
    }

    /// [`AsyncClient::decide_by`].
    ///
    /// # Errors
    /// Its errors.
    pub fn decide_by(&self, change: &PolicyChange) -> Result<MasterStatus, ClientError> {
        self.block_on(self.core.decide_by(change))
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

    /// [`AsyncClient::drain`].
    ///
    /// # Errors
    /// Its errors.
    pub fn drain(&self, worker: WorkerId) -> Result<(), ClientError> {
        self.block_on(self.core.drain(worker))
    }

    /// [`AsyncClient::check_workers`].
    ///
    /// # Errors
    /// Its errors.
    pub fn check_workers(
        &self,
        path: Option<&Path>,
        probe: Option<&Path>,
    ) -> Result<(MasterStatus, Vec<Result<HeardCheck, HttpError>>), ClientError> {
        self.block_on(self.core.check_workers(path, probe))
    }

    /// [`AsyncClient::logs`].
    ///
    /// # Errors
    /// Its errors.
    pub fn logs(&self, job: JobId) -> Result<Vec<LogEntry>, ClientError> {
        self.block_on(self.core.logs(job))
    }

    /// [`AsyncClient::explain`].
    ///
    /// # Errors
    /// Its errors.
    pub fn explain(&self, job: JobId, task: Option<&str>) -> Result<Explanation, ClientError> {
        self.block_on(self.core.explain(job, task))
    }

    /// [`AsyncClient::turns`].
    ///
    /// # Errors
    /// Its errors.
    pub fn turns(&self) -> Result<Turns, ClientError> {
        self.block_on(self.core.turns())
    }

    /// [`AsyncClient::trace`].
    ///
    /// # Errors
    /// Its errors.
    pub fn trace(&self, job: JobId) -> Result<JobTrace, ClientError> {
        self.block_on(self.core.trace(job))
    }
}
