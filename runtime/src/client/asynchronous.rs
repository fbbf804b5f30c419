//! Asynchronous client: all requests to a master, as futures.
//!
//! Dropping a future stops its work. A tokio runtime with time and network is required. Jobs are planned and run in
//! `jobs`. The blocking interface is in `client`.

use super::outcome::ClientError;
use crate::api::{
    ApiError, ClusterStatus, EstimatorMemory, Explanation, JobStatus, JobTrace, LogEntry, MadeToken,
    MasterStatus, NewToken, PageCode, PolicyChange, Quota, ROOT, RevokeToken, Role, RotateTokens, TokenList,
    Turns,
};
use gristmill_scheduler::ids::{JobId, WorkerId};
use gristmill_worker::agent::check::{
    CHECK_ROUTE, CHECK_TIMEOUT, CheckRequest, WorkerCheck, try_route, wall_ms,
};
use gristmill_worker::fault;
use gristmill_worker::http::{
    Answer, Body, Endpoint, HttpError, JoinLine, Key, Permissions, Phase, Plaintext, Pool, Secret, Timeouts,
    Token, full,
};
use hyper::body::Body as _;
use hyper::{Method, StatusCode, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Longest response that is read whole, bytes.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// Silence after which a master counts as gone, in active time of this process: time while it is stopped or its machine
/// sleeps does not count. A master sends data twice a second.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Time for which a client looks for a master that is gone, or for its successor.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of one master, for programs that have a tokio runtime of their own. See [`Client`](super::Client) for
/// others.
pub struct AsyncClient {
    pub(super) master: Endpoint,
    token: Token,
    pub(super) pool: Pool,
    /// Rule for which endpoints may be used without TLS.
    plaintext: Plaintext,
    /// Counts interruptions by the user; `None` if they are not watched.
    pub(super) interrupted: Option<watch::Receiver<u32>>,
    pub(super) permissions: Permissions,
    /// Time for which a master is searched that was lost while a job was followed.
    pub(super) patience: Duration,
    /// Called with a message when that search starts.
    pub(super) said: Option<fn(&str)>,
}

impl AsyncClient {
    /// Creates a client of the master of this join line, without sending a request.
    #[must_use]
    pub fn new(master: &JoinLine) -> Self {
        let timeouts = Timeouts {
            stall: fault::span("client.silence", SILENCE_MAX),
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
            patience: fault::span("client.patience", PATIENCE),
            said: None,
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

    /// Creates a code that opens the live page once, with a token of this role: read-only for `view`; with `submit` the
    /// page may cancel jobs too.
    ///
    /// # Errors
    /// A token without the rights of that role, or a master that cannot be reached.
    pub async fn page_code(&self, role: Role) -> Result<String, ClientError> {
        let route = if role == Role::View { "page" } else { "page/submit" };
        let made: PageCode = parsed(&self.change(Method::POST, route, &()).await?)?;
        Ok(made.code)
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

    /// Checks all workers: each reports on itself and on its routes to the others. The checks are in the order of
    /// the workers of the master that is also returned. All checks run at once, and each has a timeout of a few seconds ([`check`](gristmill_worker::agent::check) names them).
    ///
    /// # Errors
    /// A token that may not submit jobs, or a master that cannot be reached. A worker that does not respond is an item.
    pub async fn check_workers(
        &self,
    ) -> Result<(MasterStatus, Vec<Result<HeardCheck, HttpError>>), ClientError> {
        let ClusterStatus { master, list_keys } = self.get(&format!("{ROOT}/cluster")).await?;
        let peers = master.workers.iter().map(|worker| worker.endpoint.clone()).collect();
        let body =
            serde_json::to_vec(&CheckRequest { peers }).map_err(|source| ClientError::Answer { source })?;
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

    pub(super) async fn request(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<bytes::Bytes, ClientError> {
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
