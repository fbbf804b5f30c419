//! Asynchronous client: all requests to a master, as futures.
//!
//! Dropping a future stops its work, except for files that are being planned or closed on other threads. A tokio
//! runtime with time and network is required. The blocking interface is in `client`.

use super::feed::Feed;
use super::lines::Lines;
use super::outcome::{ClientError, JobReport};
use super::reconnect::{self, Again};
use crate::api::{
    ApiError, ClusterStatus, ErrorCode, EstimatorMemory, Explanation, JobAttended, JobState, JobStatus,
    JobTrace, LogEntry, MadeToken, MasterStatus, NewToken, OutputClosed, PageCode, PolicyChange, Quota, ROOT,
    RevokeToken, Role, RotateTokens, Submission, TokenList, Turns,
};
use crate::cluster_view::{ClusterView, unseen};
use crate::output_dir::{ClaimedOutput, Success};
use crate::prepared::PreparedJob;
use crate::standard_input::StandardInput;
use crate::submit::{ClaimGate, JobOptions, Planned, SubmitError, plan};
use crate::submitter;
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_worker::agent::check::{
    CHECK_ROUTE, CHECK_TIMEOUT, CheckRequest, WorkerCheck, try_route, wall_ms,
};
use gristmill_worker::agent::files::Served;
use gristmill_worker::api::Job;
use gristmill_worker::fault;
use gristmill_worker::http::{
    Answer, Bind, Body, Endpoint, HttpError, Identity, JoinLine, Key, ListenAddress, Permissions, Phase,
    Plaintext, Pool, Secret, Timeouts, Token, Transport, full,
};
use gristmill_worker::input::FilePath;
use gristmill_worker::input::list::Subdirectories;
use hyper::body::Body as _;
use hyper::{Method, StatusCode, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Longest response that is read whole, bytes.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// Silence after which a master counts as gone, in active time of this process: time while it is stopped or its machine
/// sleeps does not count. A master sends data twice a second.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Number of parts up to which an output without syncs is closed on this thread: another thread would take longer to
/// wake.
const CLOSED_HERE_PARTS_MAX: usize = 16;

/// A client of one master, for programs that have a tokio runtime of their own. See [`Client`](super::Client) for
/// others.
pub struct AsyncClient {
    pub(super) master: Endpoint,
    token: Token,
    pool: Pool,
    /// Rule for which endpoints may be used without TLS.
    plaintext: Plaintext,
    /// Counts interruptions by the user; `None` if they are not watched.
    interrupted: Option<watch::Receiver<u32>>,
    permissions: Permissions,
    /// Time for which a master is searched that was lost while a job was followed.
    pub(super) patience: Duration,
    /// Called with a message when that search starts.
    pub(super) said: Option<fn(&str)>,
    /// True if jobs are shipped with this program.
    ships: bool,
}

impl AsyncClient {
    /// Creates a client of the master of this join line, without sending a request.
    #[must_use]
    pub fn new(master: &JoinLine) -> Self {
        Self::with_silence(master, fault::span("client.silence", SILENCE_MAX))
    }

    /// As [`AsyncClient::new`], for a master that counts as gone after this much silence.
    #[must_use]
    pub fn with_silence(master: &JoinLine, silence: Duration) -> Self {
        let timeouts = Timeouts {
            stall: silence,
            // A follower of a job receives little while nothing changes.
            steady: false,
            ..Timeouts::default()
        };
        Self {
            master: master.endpoint.clone(),
            token: master.token.clone(),
            pool: Pool::new(timeouts, master.plaintext),
            plaintext: master.plaintext,
            interrupted: None,
            permissions: Permissions::default(),
            patience: fault::span("client.patience", reconnect::TIMEOUT),
            said: None,
            ships: false,
        }
    }

    /// Creates another client of the same master, with the same token and its own connections.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            master: self.master.clone(),
            token: self.token.clone(),
            pool: self.pool.renewed(),
            plaintext: self.plaintext,
            interrupted: self.interrupted.clone(),
            permissions: self.permissions,
            patience: self.patience,
            said: self.said,
            ships: self.ships,
        }
    }

    /// Cancels the followed job as soon as this is more than 0.
    pub fn set_interrupted(&mut self, interrupted: watch::Receiver<u32>) {
        self.interrupted = Some(interrupted);
    }

    /// Sets a callback for the message that the connection to the master broke while a job was followed, and that the
    /// master is searched.
    pub fn set_said(&mut self, said: fn(&str)) {
        self.said = Some(said);
    }

    /// Ships this program with each job, so that the job's functions run in processes of it; the master must allow
    /// that. Without it, a job of another program than the cluster's is rejected.
    pub fn set_ships(&mut self, ships: bool) {
        self.ships = ships;
    }

    /// Sets the addresses on which this client may listen to serve its files to workers.
    pub fn set_permissions(&mut self, permissions: Permissions) {
        self.permissions = permissions;
    }

    /// The master and its workers.
    ///
    /// # Errors
    /// A master that cannot be reached.
    pub async fn master(&self) -> Result<MasterStatus, ClientError> {
        self.get(&format!("{ROOT}/status")).await
    }

    /// Creates a token of this role; with a label it can be revoked alone. A quota limits what the jobs submitted with
    /// it from now on may use together.
    ///
    /// # Errors
    /// An invalid label, a token without this right, or a master that cannot be reached.
    pub async fn new_token(
        &self,
        role: Role,
        label: Option<&str>,
        quota: Option<Quota>,
    ) -> Result<Token, ClientError> {
        let wanted = NewToken { role, label: label.map(str::to_owned), quota };
        let made: MadeToken = parsed(&self.change(Method::POST, "tokens", &wanted).await?)?;
        made.token.parse().map_err(|wrong| ClientError::Answer { source: serde::de::Error::custom(wrong) })
    }

    /// Tokens known to the master.
    ///
    /// # Errors
    /// A token without this right, or a master that cannot be reached.
    pub async fn tokens(&self) -> Result<TokenList, ClientError> {
        self.get(&format!("{ROOT}/tokens")).await
    }

    /// Creates a code that opens the live page once, read-only.
    ///
    /// # Errors
    /// A token without the right to view, or a master that cannot be reached.
    pub async fn page_code(&self) -> Result<String, ClientError> {
        let made: PageCode = parsed(&self.change(Method::POST, "page", &()).await?)?;
        Ok(made.code)
    }

    /// As [`AsyncClient::page_code`], for a page that may cancel jobs too: its token has the role `submit`.
    ///
    /// # Errors
    /// A token without the right to cancel jobs, or a master that cannot be reached.
    pub async fn page_code_to_cancel(&self) -> Result<String, ClientError> {
        let made: PageCode = parsed(&self.change(Method::POST, "page/submit", &()).await?)?;
        Ok(made.code)
    }

    /// Follows the changes at the master, as its live page does.
    ///
    /// # Errors
    /// A token without the right to view, or a master that cannot be reached.
    pub async fn feed(&self) -> Result<Feed<'_>, ClientError> {
        Ok(Feed::new(self, self.send(Method::GET, &format!("{ROOT}/feed"), full(Vec::new())).await?))
    }

    /// Name of the token used for requests: its role, a label if it has one, and its generation.
    #[must_use]
    pub fn token_name(&self) -> &str {
        self.token.name()
    }

    /// Revokes the token of this name. Workers that joined with it are lost.
    ///
    /// # Errors
    /// As [`AsyncClient::new_token`].
    pub async fn revoke_token(&self, name: &str) -> Result<(), ClientError> {
        let revoked = RevokeToken { name: name.to_owned() };
        self.change(Method::POST, "tokens/revoke", &revoked).await.map(drop)
    }

    /// Replaces all tokens; earlier ones are accepted for this long.
    ///
    /// # Errors
    /// As [`AsyncClient::new_token`].
    pub async fn rotate_tokens(&self, grace: Duration) -> Result<(), ClientError> {
        let rotated = RotateTokens { grace_seconds: grace.as_secs() };
        self.change(Method::POST, "tokens/rotate", &rotated).await.map(drop)
    }

    /// Ends the master for good, with its jobs and workers.
    ///
    /// # Errors
    /// A token without this right, or a master that cannot be reached.
    pub async fn shut_down(&self) -> Result<(), ClientError> {
        self.request(Method::POST, &format!("{ROOT}/shutdown"), Vec::new()).await.map(drop)
    }

    /// Replaces the policy or placement. Returns the master's new status.
    ///
    /// # Errors
    /// A policy or placement that the master cannot create or cannot run, or a master that cannot be reached.
    pub async fn decide_by(&self, change: &PolicyChange) -> Result<MasterStatus, ClientError> {
        parsed(&self.change(Method::PUT, "policy", change).await?)
    }

    /// Memory of the master's estimator.
    ///
    /// # Errors
    /// A master that cannot be reached.
    pub async fn estimator_memory(&self) -> Result<EstimatorMemory, ClientError> {
        self.get(&format!("{ROOT}/estimator")).await
    }

    /// Replaces the memory of the master's estimator.
    ///
    /// # Errors
    /// Live jobs, the memory of another estimator, or a master that cannot be reached.
    pub async fn restore_memory(&self, memory: &EstimatorMemory) -> Result<(), ClientError> {
        self.change(Method::PUT, "estimator", memory).await.map(drop)
    }

    /// All jobs that the master remembers, oldest first.
    ///
    /// # Errors
    /// A master that cannot be reached.
    pub async fn jobs(&self) -> Result<Vec<JobStatus>, ClientError> {
        self.get(&format!("{ROOT}/jobs")).await
    }

    /// One job.
    ///
    /// # Errors
    /// A job that does not exist at the master, or a master that cannot be reached.
    pub async fn status(&self, job: JobId) -> Result<JobStatus, ClientError> {
        self.get(&format!("{ROOT}/jobs/{job}")).await
    }

    /// Waits until a job has ended, whatever its outcome.
    ///
    /// # Errors
    /// A job that does not exist at the master, or a master that cannot be reached.
    pub async fn wait(&self, job: JobId, mut seen: impl FnMut(&JobStatus)) -> Result<JobStatus, ClientError> {
        let path = format!("{ROOT}/jobs/{job}/watch");
        let again = Again { method: Method::GET, path, body: Vec::new(), patience: self.patience };
        let mut lines = self.open_again(Some(job), &again).await?;
        loop {
            let status = self.next_status(&mut lines, Some(job), &again).await?;
            seen(&status);
            if status.state.ended() {
                lines.end().await;
                return Ok(status);
            }
        }
    }

    /// Cancels a job.
    ///
    /// # Errors
    /// A job that does not exist at the master, or a master that cannot be reached.
    pub async fn cancel(&self, job: JobId) -> Result<(), ClientError> {
        let path = format!("{ROOT}/jobs/{job}/cancel");
        self.request(Method::POST, &path, Vec::new()).await.map(drop)
    }

    /// Drains a worker: it gets no new tasks, ends those it runs, and leaves once no other worker needs its data.
    /// Returns at once.
    ///
    /// # Errors
    /// A worker that the master does not have, a token without this right, or a master that cannot be reached.
    pub async fn drain(&self, worker: WorkerId) -> Result<(), ClientError> {
        let path = format!("{ROOT}/workers/{worker}/drain");
        self.request(Method::POST, &path, Vec::new()).await.map(drop)
    }

    /// Checks all workers: each reports on itself and on its routes to the others, and if it can see this path and a
    /// probe below it. The checks are in the order of the workers of the master that is also returned. All checks run
    /// at once, and each has a timeout of a few seconds ([`check`](gristmill_worker::agent::check) names them).
    ///
    /// # Errors
    /// A token that may not submit jobs, or a master that cannot be reached. A worker that does not respond is an item.
    pub async fn check_workers(
        &self,
        path: Option<&Path>,
        probe: Option<&Path>,
    ) -> Result<(MasterStatus, Vec<Result<HeardCheck, HttpError>>), ClientError> {
        let ClusterStatus { master, list_keys } = self.get(&format!("{ROOT}/cluster")).await?;
        let peers = master.workers.iter().map(|worker| worker.endpoint.clone()).collect();
        let request =
            CheckRequest { peers, path: path.map(FilePath::from), probe: probe.map(FilePath::from) };
        let body = serde_json::to_vec(&request).map_err(|source| ClientError::Answer { source })?;
        let mut asked = JoinSet::new();
        for (number, worker) in master.workers.iter().enumerate() {
            let (pool, body, endpoint) = (self.pool.clone(), body.clone(), worker.endpoint.clone());
            let key: Option<Secret> = list_keys.get(&worker.worker).and_then(|key| key.parse().ok());
            let plaintext = self.plaintext;
            asked.spawn(async move {
                let answer = match try_route(&endpoint, plaintext).await {
                    Ok(()) => {
                        let checked = check_worker(&pool, &endpoint, key, body).await;
                        checked.map(|check| HeardCheck { check, heard_wall_ms: wall_ms() })
                    }
                    Err(error) => Err(error),
                };
                (number, answer)
            });
        }
        let mut answers: Vec<_> = asked.join_all().await;
        answers.sort_by_key(|(number, _)| *number);
        Ok((master, answers.into_iter().map(|(_, answer)| answer).collect()))
    }

    /// Output of a job's user code to stdout and stderr.
    ///
    /// # Errors
    /// A job that does not exist at the master, or a master that cannot be reached.
    pub async fn logs(&self, job: JobId) -> Result<Vec<LogEntry>, ClientError> {
        self.get(&format!("{ROOT}/jobs/{job}/logs")).await
    }

    /// Explains why a job waits, or, with a task such as `map-3`, why that task ran where and when it did.
    ///
    /// # Errors
    /// A job or task that does not exist at the master, or a master that cannot be reached.
    pub async fn explain(&self, job: JobId, task: Option<&str>) -> Result<Explanation, ClientError> {
        let query = task.map_or_else(String::new, |task| format!("?task={task}"));
        self.get(&format!("{ROOT}/jobs/{job}/explain{query}")).await
    }

    /// Queue of the policy: jobs that would get the next slots, with reasons.
    ///
    /// # Errors
    /// A master that cannot be reached.
    pub async fn turns(&self) -> Result<Turns, ClientError> {
        self.get(&format!("{ROOT}/turns")).await
    }

    /// Trace of a job.
    ///
    /// # Errors
    /// A job that does not exist at the master, or a master that cannot be reached.
    pub async fn trace(&self, job: JobId) -> Result<JobTrace, ClientError> {
        self.get(&format!("{ROOT}/jobs/{job}/trace")).await
    }

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

    async fn change(
        &self,
        method: Method,
        route: &str,
        change: &impl Serialize,
    ) -> Result<bytes::Bytes, ClientError> {
        let body = serde_json::to_vec(change).map_err(|source| ClientError::Answer { source })?;
        self.request(method, &format!("{ROOT}/{route}"), body).await
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        parsed(&self.request(Method::GET, path, Vec::new()).await?)
    }

    async fn request(&self, method: Method, path: &str, body: Vec<u8>) -> Result<bytes::Bytes, ClientError> {
        let mut answer = self.send(method, path, full(body)).await?;
        answer.collect(ANSWER_BYTES_MAX).await.map_err(|source| self.failed(source))
    }

    pub(super) fn failed(&self, source: HttpError) -> ClientError {
        ClientError::Master { master: self.master.clone(), source: Box::new(source) }
    }

    /// Sends a request. An error response becomes the error that the master wrote.
    pub(super) async fn send(&self, method: Method, path: &str, body: Body) -> Result<Answer, ClientError> {
        let bytes = body.size_hint().exact();
        let mut request = hyper::Request::new(body);
        *request.method_mut() = method.clone();
        *request.uri_mut() =
            hyper::http::uri::PathAndQuery::try_from(path).map(Uri::from).unwrap_or_default();
        // Logs neither the token nor the body, which may contain keys.
        let (master, token) = (&self.master, self.token_name());
        tracing::debug!(%master, %method, path, bytes, token, "asks the master");
        let sent = self.pool.send(&self.master, Some(&self.token), request).await;
        let answer = sent.map_err(|source| self.failed(source))?;
        let status = answer.status();
        tracing::debug!(status = status.as_u16(), path, "the master answers");
        let mut answer = answer.into_body();
        if status.is_success() {
            return Ok(answer);
        }
        let body = answer.collect(ANSWER_BYTES_MAX).await.unwrap_or_default();
        if let Ok(error) = serde_json::from_slice::<ApiError>(&body) {
            return Err(ClientError::Refused { error });
        }
        let (peer, path) = (self.master.to_string(), path.to_owned());
        Err(self.failed(match status {
            StatusCode::UNAUTHORIZED => HttpError::Unauthorized { peer, method, path },
            StatusCode::FORBIDDEN => HttpError::Forbidden { peer, method, path },
            status => HttpError::Status { peer, method, path, status, message: String::new() },
        }))
    }

    pub(super) async fn open(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<Lines<'_>, ClientError> {
        let answer = self.send(method, path, body).await?;
        Ok(Lines::new(self, answer))
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
            standard_input: StandardInput::in_folder(options.standard_input.clone().filter(|_| attached)),
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
            let program = if self.ships { Some(self.ship().await?) } else { None };
            let build = gristmill_worker::build_id();
            if program.is_none() && master.build != build {
                // The master would reject it too, but only after all of it is planned.
                return Err(ClientError::OtherBuild { own: build, cluster: master.build });
            }
            let _ = known.send(self.cluster_view(master, &list_keys, (wanted, attached)));
            match planning.await {
                Ok(Some((planned, cluster))) => {
                    let mut planned =
                        planned.map_err(|source| ClientError::Submit { source: Box::new(source) })?;
                    planned.submission.program = program;
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
        let success = result.as_ref().ok().map(|status| (Success::of(status, columns), status.built.clone()));
        let few = success.as_ref().is_none_or(|(_, built)| built.len() <= CLOSED_HERE_PARTS_MAX);
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
        ships = submission.program.is_some(),
        "the job is planned"
    );
}

/// A worker's report on itself, with the time of its receipt.
#[derive(Clone, Debug)]
pub struct HeardCheck {
    /// The report.
    pub check: WorkerCheck,
    /// Time of receipt by the local clock, milliseconds since 1970. The worker reads its own clock last, so the two
    /// clocks differ by the difference of these times minus the transit time of the response.
    pub heard_wall_ms: u64,
}

/// Requests a check of one worker, with a timeout of [`CHECK_TIMEOUT`].
async fn check_worker(
    pool: &Pool,
    endpoint: &Endpoint,
    key: Option<Secret>,
    body: Vec<u8>,
) -> Result<WorkerCheck, HttpError> {
    let key = key.as_ref().map(|key| key as &dyn Key);
    let asked = async {
        let mut answer = pool.request(endpoint, key, Method::POST, CHECK_ROUTE, full(body)).await?;
        answer.body_mut().collect(ANSWER_BYTES_MAX).await
    };
    let late =
        |_| HttpError::Timeout { peer: endpoint.to_string(), phase: Phase::Head, limit: CHECK_TIMEOUT };
    let body = timeout(CHECK_TIMEOUT, asked).await.map_err(late)??;
    serde_json::from_slice(&body).map_err(|source| HttpError::Status {
        peer: endpoint.to_string(),
        method: Method::POST,
        path: CHECK_ROUTE.to_owned(),
        status: StatusCode::OK,
        message: source.to_string(),
    })
}

fn parsed<T: DeserializeOwned>(answer: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(answer).map_err(|source| ClientError::Answer { source })
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
