//! Reconnection of a client that has lost its master while it follows a job, to that master or its successor.

use super::lines::Lines;
use super::{AsyncClient, ClientError};
use crate::api::{ErrorCode, JobStatus, ROOT};
use gristmill_scheduler::ids::JobId;
use gristmill_worker::http::{HttpError, full};
use hyper::Method;
use std::time::{Duration, Instant};

/// Pause between two tries: the first one, which doubles, and the longest.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A request that follows a job again, and the time for which the master is searched.
pub(super) struct Again {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    /// Zero if a master that is gone has no successor.
    pub(super) patience: Duration,
}

impl AsyncClient {
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

    /// Next status of a job. If the connection to the master breaks, the request is repeated.
    pub(super) async fn next_status<'a>(
        &'a self,
        lines: &mut Lines<'a>,
        job: Option<JobId>,
        again: &Again,
    ) -> Result<JobStatus, ClientError> {
        loop {
            let lost = match lines.next().await {
                Ok(status) => return Ok(status),
                Err(error) => error,
            };
            if lines.has_ended() {
                return Err(lost);
            }
            *lines = self.find_again(job, lost, again).await?;
        }
    }

    /// Opens a stream that follows a job. The request is repeated if the master is gone, or the connection breaks.
    ///
    /// # Errors
    /// As [`AsyncClient::find_again`].
    pub(super) async fn open_again(
        &self,
        job: Option<JobId>,
        again: &Again,
    ) -> Result<Lines<'_>, ClientError> {
        match self.open(again.method.clone(), &again.path, full(again.body.clone())).await {
            Ok(lines) => Ok(lines),
            Err(lost) => self.find_again(job, lost, again).await,
        }
    }

    /// Looks for the master, or its successor, after this error.
    ///
    /// # Errors
    /// That error if it is of another kind, and that of the last try.
    async fn find_again(
        &self,
        job: Option<JobId>,
        lost: ClientError,
        again: &Again,
    ) -> Result<Lines<'_>, ClientError> {
        let open = async || self.open(again.method.clone(), &again.path, full(again.body.clone())).await;
        let found = self.ask_again(again.patience, lost, job.is_some(), open).await;
        found.map_err(|error| match (is_broken(&error), error, job) {
            (true, ClientError::Master { source, master }, Some(job)) if !again.patience.is_zero() => {
                let seconds = again.patience.as_secs_f64();
                ClientError::LostSight { job, master, seconds, source }
            }
            (_, error, _) => error,
        })
    }

    /// Repeats a request after this error, while the master may come back. `has_job` is true if it has confirmed the
    /// job.
    ///
    /// # Errors
    /// That error if it is of another kind, and that of the last try.
    pub(super) async fn ask_again<T>(
        &self,
        patience: Duration,
        lost: ClientError,
        has_job: bool,
        ask: impl AsyncFn() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        if patience.is_zero() || !is_broken(&lost) {
            return Err(lost);
        }
        if let Some(say) = self.said {
            let (master, seconds) = (&self.master, patience.as_secs_f64());
            say(&match has_job {
                true => format!(
                    "the connection to the master at {master} broke: looking for it, or for the one that comes in its place, for \
                     {seconds} s"
                ),
                false => format!(
                    "the master at {master} is not there, or broke off: it, or the one that comes in its place, is asked again \
                     for {seconds} s; a job is taken once"
                ),
            });
        }
        let (began, mut pause, mut last) = (Instant::now(), PAUSE, lost);
        while began.elapsed() < patience {
            match ask().await {
                Err(error) if is_broken(&error) => last = error,
                asked => return asked,
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
        Err(last)
    }
}

/// True if the master may come back after this error.
fn is_broken(error: &ClientError) -> bool {
    match error {
        ClientError::Master { source, .. } => {
            !matches!(**source, HttpError::Unauthorized { .. } | HttpError::Forbidden { .. })
        }
        ClientError::Refused { error } => error.code == ErrorCode::Ending,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_worker::http::{Endpoint, JoinLine, Plaintext, Secret, Token};
    use std::sync::Mutex;

    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

    #[tokio::test]
    async fn client_promises_to_look_for_its_job_only_when_the_master_has_said_that_it_has_it() {
        // No process listens there any more.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port, pin: None };
        let token = Token::derive(&Secret::generate().unwrap(), "submit").unwrap();
        let mut client = AsyncClient::new(&JoinLine { endpoint, token, plaintext: Plaintext::OnLoopback });
        client.set_said(|words| SAID.lock().unwrap().push(words.to_owned()));
        for job in [None, Some(JobId(7))] {
            let path = "/attend".to_owned();
            let again =
                Again { method: Method::POST, path, body: Vec::new(), patience: Duration::from_millis(1) };
            let peer = "127.0.0.1".to_owned();
            let lost =
                client.failed(HttpError::Connect { peer, source: std::io::ErrorKind::BrokenPipe.into() });
            assert!(client.find_again(job, lost, &again).await.is_err(), "no master is there");
        }
        let said = SAID.lock().unwrap();
        let [before, after] = said.as_slice() else { panic!("{said:?}") };
        assert!(
            before.contains(
                " is not there, or broke off: it, or the one that comes in its place, is asked again for "
            ),
            "{before}"
        );
        assert!(
            after.contains(" broke: looking for it, or for the one that comes in its place, "),
            "{after}"
        );
    }
}
