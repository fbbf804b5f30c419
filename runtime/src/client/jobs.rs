//! Jobs of the asynchronous client: planned, submitted, followed and closed.
//!
//! Dropping a future stops its work, except for files that are being planned or closed on other threads.

use super::AsyncClient;
use super::lines::Lines;
use super::outcome::{ClientError, JobReport};
use super::reconnect::Again;
use crate::api::{
    BuiltPart, ClusterStatus, ErrorCode, JobAttended, JobState, JobStatus, MasterStatus, OutputClosed, ROOT,
    Submission,
};
use crate::cluster_view::{ClusterView, unseen};
use crate::output_dir::{ClaimedOutput, Success};
use crate::prepared::PreparedJob;
use crate::standard_input::StandardInput;
use crate::submit::{ClaimGate, JobOptions, Planned, SubmitError, plan};
use crate::submitter;
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_worker::agent::files::Served;
use gristmill_worker::api::Job;
use gristmill_worker::http::{Bind, Endpoint, Identity, ListenAddress, Transport};
use gristmill_worker::input::FilePath;
use gristmill_worker::input::list::Subdirectories;
use hyper::Method;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Number of parts up to which an output without syncs is closed on this thread: another thread would take longer to
/// wake.
const CLOSED_HERE_PARTS_MAX: usize = 16;

impl AsyncClient {
    /// Runs a job to its end. It is cancelled if the future is dropped before.
    ///
    /// # Errors
    /// Everything that prevents the job's success; its output directory is then as it was before.
    pub async fn run<J: Job>(&self, job: J, options: &JobOptions) -> Result<JobReport, ClientError> {
        self.run_prepared(Box::new(job), options, &mut |_| {}).await
    }

    /// Submits a job and returns at once. The master must be able to see the input and the output directory.
    ///
    /// # Errors
    /// Everything that prevents the job's acceptance.
    pub async fn submit<J: Job>(&self, job: J, options: &JobOptions) -> Result<JobId, ClientError> {
        self.submit_prepared(Box::new(job), options).await
    }

    /// As [`AsyncClient::submit`], for a job created by a registry.
    ///
    /// # Errors
    /// As those of [`AsyncClient::submit`].
    pub async fn submit_prepared(
        &self,
        job: Box<dyn PreparedJob>,
        options: &JobOptions,
    ) -> Result<JobId, ClientError> {
        let ready = self.make_ready(job, options, true).await?;
        let output = ready.output.path();
        self.hand_over(ready).await.map_err(|error| match error {
            ClientError::Refused { error } if error.code == ErrorCode::NotShared => ClientError::NotShared {
                who: "the master".to_owned(),
                path: FilePath::from(output.as_path()).to_string(),
            },
            error => error,
        })
    }

    fn cluster_view(
        &self,
        master: MasterStatus,
        list_keys: &BTreeMap<WorkerId, String>,
        (options, attached): (&JobOptions, bool),
    ) -> ClusterView {
        let keys = list_keys.iter().filter_map(|(worker, key)| Some((*worker, key.parse().ok()?)));
        ClusterView {
            master_returns: master.returns,
            workers: master.workers,
            list_keys: keys.collect(),
            pool: self.pool.clone(),
            runtime: tokio::runtime::Handle::current(),
            standard_input: StandardInput::in_directory(options.standard_input.clone().filter(|_| attached)),
            below: if options.recursive { Subdirectories::Read } else { Subdirectories::Refused },
        }
    }

    /// Plans a job and claims its output directory, so that its later submission takes no time. With `checked`, all
    /// workers are asked if they can see its input and output.
    ///
    /// # Errors
    /// Everything that prevents the job's submission.
    pub async fn make_ready(
        &self,
        job: Box<dyn PreparedJob>,
        options: &JobOptions,
        checked: bool,
    ) -> Result<Ready, ClientError> {
        let (planned, cluster) = self.plan(job, options, false).await?;
        let patience = if cluster.master_returns { self.patience } else { Duration::ZERO };
        let (submission, output) = (planned.submission, planned.output);
        let look = async { if checked { unseen(Arc::new(cluster), &submission).await } else { None } };
        let unseen = tokio::select! {
            unseen = look => unseen,
            () = self.interruption() => {
                give_up(output).await;
                return Err(ClientError::InterruptedPlanning);
            }
        };
        if let Some((worker, path)) = unseen {
            give_up(output).await;
            return Err(ClientError::NotShared { who: worker.to_string(), path: path.to_string() });
        }
        let body = serde_json::to_vec(&submission).map_err(|source| ClientError::Answer { source })?;
        Ok(Ready { body, output, patience })
    }

    /// Submits a job from [`AsyncClient::make_ready`]. The master finishes or abandons its output.
    ///
    /// # Errors
    /// Everything that prevents the job's acceptance.
    pub async fn hand_over(&self, ready: Ready) -> Result<JobId, ClientError> {
        let Ready { body, patience, .. } = ready;
        let submit = Again { method: Method::POST, path: format!("{ROOT}/jobs"), body, patience };
        let first = match self.open_again(None, &submit).await {
            Ok(mut lines) => self.next_status(&mut lines, None, &submit).await,
            Err(error) => Err(error),
        };
        match first {
            Ok(status) => Ok(status.job),
            Err(error) => {
                give_up(ready.output).await;
                Err(error)
            }
        }
    }

    /// Plans a job on a thread of its own. An interruption does not wait for that thread, which may be delayed by a
    /// slow disk or a job's own code: it claims nothing after that.
    async fn plan(
        &self,
        mut job: Box<dyn PreparedJob>,
        options: &JobOptions,
        attached: bool,
    ) -> Result<(Planned, ClusterView), ClientError> {
        let (wanted, options) = (options, options.clone());
        let gate = Arc::new(ClaimGate::default());
        // Its thread starts while the request to the master runs.
        let (known, cluster) = tokio::sync::oneshot::channel::<ClusterView>();
        let claiming = gate.clone();
        let planning = tokio::task::spawn_blocking(move || {
            let cluster = cluster.blocking_recv().ok()?;
            let planned = plan(&mut *job, &options, &cluster, (attached, &claiming));
            Some((planned, cluster))
        });
        let whole = async {
            let path = format!("{ROOT}/cluster");
            let asked = match self.get(&path).await {
                // The master may be restarting. Without a callback for messages the user would wait without notice, so
                // there is no retry.
                Err(error) if self.said.is_some() => {
                    self.ask_again(self.patience, error, false, async || self.get(&path).await).await
                }
                asked => asked,
            };
            let ClusterStatus { master, list_keys } = asked?;
            let build = gristmill_worker::build_id();
            if master.build != build {
                // The master would reject it too, but only after all of it is planned.
                return Err(ClientError::OtherBuild { own: build, cluster: master.build });
            }
            let _ = known.send(self.cluster_view(master, &list_keys, (wanted, attached)));
            match planning.await {
                Ok(Some((planned, cluster))) => {
                    let planned =
                        planned.map_err(|source| ClientError::Submit { source: Box::new(source) })?;
                    say_planned(&planned.submission);
                    Ok((planned, cluster))
                }
                // The panic hook has printed the message.
                Ok(None) | Err(_) => Err(ClientError::Submit { source: Box::new(SubmitError::Panicked) }),
            }
        };
        tokio::pin!(whole);
        tokio::select! {
            biased;
            planned = &mut whole => return planned,
            () = self.interruption() => {}
        }
        if !gate.give_up() {
            // The output is claimed, and planning is nearly done.
            if let Ok((planned, _)) = whole.await {
                give_up(planned.output).await;
            }
        }
        Err(ClientError::InterruptedPlanning)
    }

    /// Waits until the user interrupts.
    async fn interruption(&self) {
        if let Some(mut count) = self.interrupted.clone()
            && count.wait_for(|count| 0 < *count).await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// As [`AsyncClient::run`], for a job created by a registry. `seen` is called with each status that the master
    /// sends.
    ///
    /// # Errors
    /// As those of [`AsyncClient::run`].
    pub async fn run_prepared(
        &self,
        job: Box<dyn PreparedJob>,
        options: &JobOptions,
        seen: &mut dyn FnMut(&JobStatus),
    ) -> Result<JobReport, ClientError> {
        let (planned, cluster) = self.plan(job, options, true).await?;
        self.run_planned(planned, &cluster, options, seen).await
    }

    async fn run_planned(
        &self,
        mut planned: Planned,
        cluster: &ClusterView,
        options: &JobOptions,
        seen: &mut dyn FnMut(&JobStatus),
    ) -> Result<JobReport, ClientError> {
        let patience = if cluster.master_returns { self.patience } else { Duration::ZERO };
        let serving = match self.serve(&mut planned, options).await {
            Ok(serving) => serving,
            Err(error) => {
                give_up(planned.output).await;
                return Err(error);
            }
        };
        let mut lines = None;
        let result = self.follow((&planned.submission, patience), &mut lines, seen).await;
        drop(serving);
        let (path, columns) = (planned.output.path(), planned.submission.columns.clone());
        let (claim, sync) = (planned.output, options.sync);
        let success =
            result.as_ref().ok().map(|status| (Success::from_status(status, columns), status.built.clone()));
        let few = success.as_ref().is_none_or(|(_, built)| are_few(built));
        let few = few && !claim.is_far();
        let close = move || {
            let closed = match success {
                Some((success, built)) => claim.finish(&success, &built, sync),
                None => {
                    claim.abandon();
                    Ok(None)
                }
            };
            match closed {
                Ok(remains) => (remains, Ok(())),
                Err(error) => (None, Err(error)),
            }
        };
        let (remains, closed) = if few && !sync {
            close()
        } else {
            // Off this thread, which keeps the connection alive: while it lasts, the master leaves the output to this
            // client.
            let closing = tokio::task::spawn_blocking(close).await;
            closing.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
        };
        // The claim is given back; its directory is removed while the master is notified.
        let clearing = tokio::task::spawn_blocking(move || drop(remains));
        if let (Some(mut lines), Some(job)) = (lines, job_of(&result)) {
            self.tell_closed(
                job,
                closed.as_ref().err().map(|error| gristmill_worker::error_text::chain(error)),
            )
            .await;
            lines.end().await;
        }
        let _ = clearing.await;
        let status = result?;
        closed.map_err(|source| ClientError::Output { source })?;
        let status = JobStatus { state: JobState::Succeeded, built: Vec::new(), ..status };
        Ok(JobReport { status, output: path })
    }

    /// Reports to the master how the output of an ended job was closed.
    async fn tell_closed(&self, job: JobId, failed: Option<String>) {
        let path = format!("{ROOT}/jobs/{job}/closed");
        let Ok(body) = serde_json::to_vec(&OutputClosed { failed }) else { return };
        // If the master is gone by now, nothing changes: the output is closed.
        if let Err(error) = self.request(Method::POST, &path, body).await {
            tracing::debug!(%error, %job, "the master was not told that the output is closed");
        }
    }

    /// Starts to serve files and receive parts, if workers may need it.
    async fn serve(
        &self,
        planned: &mut Planned,
        options: &JobOptions,
    ) -> Result<Option<Serving>, ClientError> {
        let listen = match options.serve {
            Some(listen) => listen,
            None => match self.master.own_address().await {
                Some(address) if !address.is_loopback() => ListenAddress::any_port(address),
                _ => return Ok(None),
            },
        };
        let own = listen.ip;
        let transport = match self.master.pin {
            None => Transport::Plain,
            Some(_) => Transport::Tls(
                Identity::generate(&[own.to_string()]).map_err(|source| ClientError::Identity { source })?,
            ),
        };
        let bind = Bind::within(listen, transport.clone(), self.permissions);
        let listener = bind.listen().await.map_err(|source| ClientError::Serve { source })?;
        let address = listener.local_addr().map_err(|source| ClientError::Start { source })?;
        let pin = match &transport {
            Transport::Plain => None,
            Transport::Tls(identity) => Some(identity.pin()),
        };
        planned.submission.submitter = Some(Endpoint::of_address(address, pin));
        let files = Served::Listed(Arc::new(std::mem::take(&mut planned.files)));
        let auth =
            submitter::SubmitterAuth { key: planned.key.clone(), permit_key: planned.permit_key.clone() };
        let parts = planned.output.parts(options.sync).map_err(|source| ClientError::Start { source })?;
        let task = tokio::spawn(submitter::run(listener, transport, auth, files, parts));
        Ok(Some(Serving(task)))
    }

    /// Submits a job and waits until the output is to be published. While the connection in `open` lasts, the master
    /// leaves the output to this client.
    async fn follow<'a>(
        &'a self,
        (submission, patience): (&Submission, Duration),
        open: &mut Option<Lines<'a>>,
        seen: &mut dyn FnMut(&JobStatus),
    ) -> Result<JobStatus, ClientError> {
        let body = serde_json::to_vec(submission).map_err(|source| ClientError::Answer { source })?;
        let shown = JobAttended { permit_key: submission.permit_key.clone() };
        let shown = serde_json::to_vec(&shown).map_err(|source| ClientError::Answer { source })?;
        let attend = Again { method: Method::POST, path: format!("{ROOT}/attend"), body: shown, patience };
        let submit = Again { method: Method::POST, path: format!("{ROOT}/jobs"), body, patience };
        let lines = open.insert(self.open_again(None, &submit).await?);
        let mut job = None;
        let mut interrupted = self.interrupted.clone();
        let mut cancelled = None;
        loop {
            let interruption = async {
                match &mut interrupted {
                    Some(count) if cancelled.is_none() => {
                        count.wait_for(|count| 0 < *count).await.map(drop).ok()
                    }
                    _ => std::future::pending().await,
                }
            };
            // A master that has this job already returns it.
            let again = if job.is_some() { &attend } else { &submit };
            let status = tokio::select! {
                status = self.next_status(lines, job, again) => status?,
                _ = interruption => {
                    // The first status names the job. Until it arrives, the end of the connection cancels the job.
                    let status = self.next_status(lines, job, again).await?;
                    cancelled = Some(status.job);
                    if !status.state.ended() {
                        self.cancel(status.job).await?;
                    }
                    status
                }
            };
            job = Some(status.job);
            seen(&status);
            match (status.state, cancelled) {
                (JobState::Publishing | JobState::Succeeded, _) => return Ok(status),
                (state, Some(job)) if state.ended() => return Err(ClientError::Interrupted { job }),
                (state, None) if state.ended() => return Err(ClientError::Job { status: Box::new(status) }),
                _ => {}
            }
        }
    }
}

/// Logs the planned submission for troubleshooting, without its parameters, which belong to the user.
fn say_planned(submission: &Submission) {
    tracing::debug!(
        job = %submission.name,
        maps = submission.splits.len(),
        reduces = submission.reduces,
        side_inputs = submission.side.len(),
        output = %submission.output,
        attached = submission.attached,
        "the job is planned"
    );
}

/// The job of this result, if it is known to have ended.
fn job_of(result: &Result<JobStatus, ClientError>) -> Option<JobId> {
    match result {
        Ok(status) => Some(status.job),
        Err(ClientError::Job { status }) => Some(status.job),
        Err(ClientError::Interrupted { job }) => Some(*job),
        Err(_) => None,
    }
}

/// True if parts built like this are published faster than another thread starts. The files of a divided part are copied,
/// which may take long.
fn are_few(built: &[BuiltPart]) -> bool {
    built.len() <= CLOSED_HERE_PARTS_MAX && built.iter().all(|part| part.pieces.is_empty())
}

/// Abandons an output, off this thread if it is in a store, which may be slow.
async fn give_up(output: ClaimedOutput) {
    if !output.is_far() {
        return output.abandon();
    }
    let abandoned = tokio::task::spawn_blocking(|| output.abandon()).await;
    abandoned.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
}

/// A job that is ready to be submitted.
pub struct Ready {
    /// The submission as JSON.
    body: Vec<u8>,
    output: ClaimedOutput,
    /// Time for which the request is retried; zero if a master that is gone has no successor.
    patience: Duration,
}

impl Ready {
    /// Gives up the claim on the output directory of a job that is not submitted after all.
    pub fn abandon(self) {
        self.output.abandon();
    }
}

/// Serves while it lives.
struct Serving(tokio::task::JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}
