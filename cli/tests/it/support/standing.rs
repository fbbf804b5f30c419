//! A master and workers that were started separately and keep running, as opposed to those of `run`.

use super::sandbox::{Running, Sandbox};
use super::{TIMEOUT, until, until_within};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;

/// A master's join line.
pub struct JoinLine {
    /// The whole line.
    pub text: String,
    /// Address at which the master listens.
    pub address: SocketAddr,
    /// The token, `NAME:KEY`.
    pub token: String,
    /// The secret key of the token.
    pub key: String,
}

impl JoinLine {
    /// Parses `gm1:HOST:PORT#TOKEN[.PIN]`.
    pub fn read(text: &str) -> Self {
        let text = text.trim().to_owned();
        let (address, key) = text.strip_prefix("gm1:").and_then(|rest| rest.split_once('#')).unwrap();
        let token = key.split('.').next().unwrap().to_owned();
        let key = token.split_once(':').unwrap().1.to_owned();
        Self { address: address.parse().unwrap(), token, key, text }
    }

    /// Returns the same line with another secret.
    pub fn with_wrong_token(&self) -> String {
        let first = if self.key.starts_with('A') { 'B' } else { 'A' };
        self.text.replace(&self.key, &format!("{first}{}", &self.key[1..]))
    }
}

/// A master and workers on loopback; the state directory is that of the sandbox.
pub struct Standing<'a> {
    sandbox: &'a Sandbox,
    /// The master.
    pub master: Running,
    /// Supervisors with one worker process each.
    pub workers: Vec<Running>,
    /// The join line.
    pub join: JoinLine,
}

impl<'a> Standing<'a> {
    /// Starts a master and this many workers of one process with one slot, and waits until all have joined.
    pub fn start(sandbox: &'a Sandbox, workers: u32) -> Self {
        Self::start_with(sandbox, workers, &[])
    }

    /// As [`Standing::start`], with these flags of the master.
    pub fn start_with(sandbox: &'a Sandbox, workers: u32, flags: &[&str]) -> Self {
        let master = sandbox.gristmill([&["master"], flags].concat()).start();
        let join = await_join_line(&master);
        let workers = (0..workers).map(|_| start_worker(sandbox)).collect();
        let standing = Self { sandbox, master, workers, join };
        standing.await_workers(standing.workers.len());
        standing
    }

    /// A master and workers that were started elsewhere.
    pub fn new(sandbox: &'a Sandbox, master: Running, workers: Vec<Running>, join: JoinLine) -> Self {
        Self { sandbox, master, workers, join }
    }

    /// Waits until this many worker processes have joined.
    pub fn await_workers(&self, count: usize) {
        until(&format!("{count} workers"), || (self.worker_pids().len() == count).then_some(()));
    }

    /// Returns the processes of the workers that have joined and are alive.
    pub fn worker_pids(&self) -> Vec<u32> {
        let (code, answer) = self.request("GET", "status", "");
        assert_eq!(code, 200, "{answer}");
        let status: Value = serde_json::from_str(&answer).unwrap();
        status["workers"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|worker| worker["away"] == false)
            .map(|worker| worker["pid"].as_u64().unwrap() as u32)
            .collect()
    }

    /// Returns the status of a job.
    pub fn job(&self, job: &str) -> Value {
        self.sandbox.gristmill(["status", job, "--json"]).finish().expect_code(0).json()
    }

    /// Sends a request with the admin's token. Returns the status and the body of the response.
    pub fn request(&self, method: &str, route: &str, body: &str) -> (u16, String) {
        use std::io::{Read, Write};
        // The current token: a test may have rotated tokens.
        let now = std::fs::read_to_string(self.sandbox.path("state/join"));
        let join = JoinLine::read(&now.unwrap_or_else(|_| self.join.text.clone()));
        let mut stream = std::net::TcpStream::connect(join.address).unwrap();
        let (host, token) = (join.address, &join.token);
        let head = format!(
            "{method} /api/v1/{route} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: \
             application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split_whitespace().nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// Ends the master for good, as `down` does. Its workers end with the code of a lost cluster or with
    /// success, and nothing is left but the secret.
    pub fn end(self) {
        assert_eq!(self.request("POST", "shutdown", "").0, 204);
        self.master.finish().expect_code(0);
        for worker in self.workers {
            let code = worker.finish().status.code();
            assert!(code == Some(0) || code == Some(5), "a worker ended with {code:?}");
        }
        self.sandbox.assert_nothing_left();
        assert!(
            !self.sandbox.path("state/join").exists(),
            "the address of a master that has ended is still told"
        );
    }
}

/// Starts a worker of one process with one slot that joins the master of the state directory.
pub fn start_worker(sandbox: &Sandbox) -> Running {
    sandbox.gristmill(["worker", "--workers", "1", "--slots", "1"]).start()
}

/// Waits until a master has reported where its join line is.
pub fn await_join_line(master: &Running) -> JoinLine {
    await_join_line_within(master, TIMEOUT)
}

/// The same for a master that may take long to read its predecessor's state.
pub fn await_join_line_within(master: &Running, limit: Duration) -> JoinLine {
    let path = until_within("a join line", limit, || {
        let said = master.stderr();
        let (path, _) = said.split_once("its join line is in ")?.1.split_once(" (keep it secret)")?;
        Some(path.to_owned())
    });
    JoinLine::read(&std::fs::read_to_string(path).unwrap())
}
