//! Workers on hosts that the system's `ssh` reaches. The script `deploy/ssh.sh` starts and ends them there.
//!
//! Each call of `ssh` has a time limit and asks the user for nothing. The script goes over standard input and the join line with
//! it, so the secret is in no command line. The program is sent the same way, into the directory that goes with the workers.

use super::flags::UpCommand;
use super::record::{Place, Record};
use super::{PlaceError, Row, last_words, quoted};
use gristmill_runtime::chain;
use gristmill_runtime::cluster::{Tool, ToolCall, ToolInput};
use gristmill_worker::http::{JoinLine, make_private_directory};
use gristmill_worker::protocol::ProgramSum;
use gristmill_worker::whole_file::{self, Promise};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The script that runs on hosts.
const SCRIPT: &str = include_str!("../../../deploy/ssh.sh");

/// Directory of all workers of `up` on a host, below the home directory.
const GUESTS: &str = ".local/state/gristmill/guests";

/// Maximum number of hosts that are called at once.
const AT_ONCE: usize = 16;

/// Time for a host to create a directory.
const CREATE_MAX: Duration = Duration::from_secs(10);

/// Time for a host to start workers, or to end them.
const SCRIPT_MAX: Duration = Duration::from_secs(40);

/// Time for the program to be sent.
const SEND_MAX: Duration = Duration::from_secs(300);

/// File of this process's program, even if it has been replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Exit code of `ssh` itself.
const SSH_FAILED: i32 = 255;

/// Hosts of ssh.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SshPlace {
    /// The settings file of `ssh`; `None`: the user's.
    pub config: Option<PathBuf>,
    /// Longest time for a connection, seconds.
    pub connect_s: u32,
    /// The hosts.
    pub hosts: Vec<SshHost>,
}

/// A host of ssh.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SshHost {
    /// `[USER@]HOST`, as `ssh` takes it.
    pub target: String,
    /// Its port, or `None` for that of the settings of `ssh`.
    pub port: Option<u16>,
    /// Number of worker processes, or `None` for that of all hosts.
    pub workers: Option<u32>,
    /// True if something may run there or be stored there.
    pub touched: bool,
}

/// A call of a host.
struct HostCall {
    what: &'static str,
    /// A command that means the same in every shell.
    command: String,
    input: Input,
    /// Time limit, without that for the connection.
    limit: Duration,
}

/// Standard input of a command on a host.
enum Input {
    Nothing,
    Text(String),
    Program,
}

/// Results of calls, by the hosts' positions, in their order.
type Outcomes<T> = Vec<(usize, Result<T, PlaceError>)>;

/// Starts workers on the hosts that respond.
///
/// # Errors
/// No host takes part, or not all if all are required.
pub async fn start(flags: &UpCommand, line: &JoinLine, record: &mut Record) -> anyhow::Result<Vec<Row>> {
    let Place::Ssh(place) = &mut record.place else { return Ok(Vec::new()) };
    let name = record.name.clone();
    let (mut rows, mut refused) = (Vec::new(), 0);
    let mut refuse = |target: &str, error: &PlaceError| {
        refused += 1;
        say!("{target} does not take part: {}", chain(error));
    };
    let all = 0..place.hosts.len();
    let created = place.each(all, &name, |_, folder| {
        let command = format!("umask 077; mkdir -p {folder}");
        vec![HostCall { what: "create a directory", command, input: Input::Nothing, limit: CREATE_MAX }]
    });
    for (number, outcome) in created.await {
        let host = &mut place.hosts[number];
        match outcome {
            Ok(_) => host.touched = true,
            Err(error) => refuse(&host.target, &error),
        }
    }
    let place = place.clone();
    record.write()?;
    let sum = if flags.program().is_none() { own_sum()? } else { String::new() };
    let join = line.to_text();
    let started = place.each(place.touched(), &name, |host, folder| {
        let path = flags.program().map_or_else(|| format!("{folder}/gristmill"), str::to_owned);
        let values = [("folder", folder), ("program", &path), ("sum", &sum), ("join", &join)];
        let start = script("start workers", "start", &values, &flags.worker_words(host.workers));
        let command = format!("cat > {path}");
        let send = HostCall { what: "send the program", command, input: Input::Program, limit: SEND_MAX };
        if sum.is_empty() { vec![start] } else { vec![send, start] }
    });
    for (number, outcome) in started.await {
        let host = &place.hosts[number];
        match outcome {
            Ok(cores) => {
                let workers = host.workers.or(flags.workers_per_host).or(cores.trim().parse().ok());
                let log = format!("{}:{}/worker.log", host.target, folder(&name, number));
                rows.push(Row { host: host.target.clone(), workers, log });
            }
            Err(error) => refuse(&host.target, &error),
        }
    }
    if rows.is_empty() || (flags.require_all && refused > 0) {
        let hosts = place.hosts.len();
        return Err(PlaceError::Hosts { refused, hosts, all: flags.require_all }.into());
    }
    Ok(rows)
}

/// Ends workers on hosts and stores their logs; returns the hosts that failed, which stay touched.
///
/// # Errors
/// A log that cannot be written.
pub async fn end(record: &mut Record, state: &Path) -> anyhow::Result<Vec<String>> {
    let Place::Ssh(place) = &mut record.place else { return Ok(Vec::new()) };
    let logs = state.join("logs");
    make_private_directory(&logs)?;
    let ended = place.each(place.touched(), &record.name, |_, folder| {
        let values = [("folder", folder), ("program", ""), ("sum", ""), ("join", "")];
        vec![script("end workers", "end", &values, &[])]
    });
    let mut left = Vec::new();
    for (number, outcome) in ended.await {
        let host = &mut place.hosts[number];
        match outcome {
            Ok(log) => {
                let path = logs.join(format!("{}-{number}-{}.log", record.name, host.target));
                whole_file::replace(&path, Promise::Private, |file| file.write_all(log.as_bytes()))?;
                host.touched = false;
            }
            Err(error) => {
                say!("{}: {}", host.target, chain(&error));
                left.push(host.target.clone());
            }
        }
    }
    Ok(left)
}

/// Checksum of this program.
fn own_sum() -> Result<String, PlaceError> {
    let summed = File::open(OWN_PROGRAM).and_then(ProgramSum::of_reader);
    summed.map(|(sum, _)| sum.to_string()).map_err(unreadable)
}

fn unreadable(source: io::Error) -> PlaceError {
    PlaceError::File { action: "read", path: OWN_PROGRAM.into(), source }
}

/// Directory of the workers of a host.
fn folder(name: &str, number: usize) -> String {
    format!("{GUESTS}/{name}-{number}")
}

/// The script, with its variables and parameters.
fn script(what: &'static str, verb: &str, values: &[(&str, &str)], words: &[String]) -> HostCall {
    let mut text = format!("verb={verb}\n");
    values.iter().for_each(|(name, value)| text += &format!("{name}={}\n", quoted(value)));
    text += "set --";
    words.iter().for_each(|word| text += &format!(" {}", quoted(word)));
    text += &format!("\n{SCRIPT}");
    HostCall { what, command: "sh -s".to_owned(), input: Input::Text(text), limit: SCRIPT_MAX }
}

impl SshPlace {
    /// Positions of the hosts on which something may run or be stored.
    fn touched(&self) -> impl Iterator<Item = usize> {
        self.hosts.iter().enumerate().filter(|(_, host)| host.touched).map(|(number, _)| number)
    }

    /// Makes the calls of each of these hosts one after another, and returns what the last one printed.
    async fn each(
        &self,
        numbers: impl Iterator<Item = usize>,
        name: &str,
        calls: impl Fn(&SshHost, &str) -> Vec<HostCall>,
    ) -> Outcomes<String> {
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        let mut tasks = JoinSet::new();
        for number in numbers {
            let host = &self.hosts[number];
            let calls = calls(host, &folder(name, number));
            let (words, limit) = (self.words(host), Duration::from_secs(2 * u64::from(self.connect_s)));
            let permits = permits.clone();
            tasks.spawn(async move {
                // The semaphore is never closed.
                let _permit = permits.acquire_owned().await;
                let mut printed = Ok(String::new());
                for call in calls {
                    printed = ssh(words.clone(), call, limit).await;
                    if printed.is_err() {
                        break;
                    }
                }
                (number, printed)
            });
        }
        let mut outcomes = tasks.join_all().await;
        outcomes.sort_by_key(|(number, _)| *number);
        outcomes
    }

    /// Arguments of `ssh` before the command.
    fn words(&self, host: &SshHost) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        if let Some(config) = &self.config {
            words.extend(["-F".to_owned(), config.display().to_string()]);
        }
        let connect = self.connect_s;
        // A connection that stops responding counts as broken after the same time as one that was never
        // established.
        let options = [
            "BatchMode=yes".to_owned(),
            format!("ConnectTimeout={connect}"),
            format!("ServerAliveInterval={}", connect.div_ceil(2)),
            "ServerAliveCountMax=2".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
        ];
        words.extend(options.into_iter().flat_map(|option| ["-o".to_owned(), option]));
        words.extend(host.port.into_iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
        words.extend(["-T", "--", &host.target].map(str::to_owned));
        words
    }
}

/// Runs a command on a host. `ssh` does not bound what a server does before authentication, hence the limit for the
/// connection.
async fn ssh(mut words: Vec<String>, call: HostCall, connect: Duration) -> Result<String, PlaceError> {
    words.push(call.command);
    let input = match call.input {
        Input::Nothing => ToolInput::Nothing,
        Input::Text(text) => ToolInput::Bytes(text.into_bytes()),
        Input::Program => ToolInput::File(File::open(OWN_PROGRAM).map_err(unreadable)?),
    };
    let answer = ToolCall { tool: Tool::Ssh, words, input, limit: call.limit + connect }.make().await?;
    let said = last_words(&answer.stderr);
    match answer.code {
        Some(0) => Ok(answer.stdout),
        Some(SSH_FAILED) => Err(PlaceError::Unreached { said }),
        _ => Err(PlaceError::Refused { what: call.what, said }),
    }
}
