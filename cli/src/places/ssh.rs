//! Workers on hosts that the system's `ssh` reaches. The script `cli/src/places/ssh.sh` starts and ends them there.
//!
//! Each call of `ssh` has a time limit and asks the user for nothing. The script goes over standard input and the join line with
//! it, so the secret is in no command line. The program is sent the same way, into the directory that goes with the workers.

use super::call::{UpError, call, quoted};
use super::flags::UpCommand;
use super::record::{PlaceRecord, WorkerPlace};
use anyhow::Context as _;
use gristmill_runtime::chain;
use gristmill_runtime::cluster::{Tool, ToolCall, ToolInput};
use gristmill_runtime::plural::counted;
use gristmill_worker::http::{JoinLine, make_private_directory};
use gristmill_worker::whole_file::{self, Promise};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// The script that runs on hosts.
const SCRIPT: &str = include_str!("ssh.sh");

/// Directory of all workers of `cluster up` on a host, below the home directory.
const GUESTS: &str = ".local/state/gristmill/guests";

/// Maximum number of hosts that are called at once.
const AT_ONCE: usize = 16;

/// Time for a connection, which then counts as broken if it does not respond for as long.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Arguments of `ssh` before the host.
const OPTIONS: [&str; 7] = [
    "-oBatchMode=yes",
    "-oConnectTimeout=10",
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=2",
    "-oClearAllForwardings=yes",
    "-T",
    "--",
];

/// Time for a host to create a directory.
const CREATE_MAX: Duration = Duration::from_secs(10);

/// Time for a host to start workers, or to end them.
const SCRIPT_MAX: Duration = Duration::from_secs(40);

/// Time for the program to be sent.
const SEND_MAX: Duration = Duration::from_secs(300);

/// File of this process's program, even if it has been replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// A step on a host, by a command that means the same in every shell.
#[derive(Clone)]
enum SshStep {
    Create,
    Send,
    /// The script with its variables, for this purpose.
    Script(&'static str, String),
}

/// Starts workers on the hosts that respond, and returns their number.
///
/// # Errors
/// No host takes part.
pub async fn start(
    flags: &UpCommand,
    line: &JoinLine,
    record: &mut PlaceRecord,
    mut hosts: BTreeSet<String>,
) -> anyhow::Result<u32> {
    let absent = "does not take part";
    hosts = on_each(&hosts, &record.name, &SshStep::Create, absent).await.into_keys().collect();
    record.place = WorkerPlace::Ssh { hosts: hosts.clone() };
    record.write()?;
    if flags.program.is_none() {
        hosts = on_each(&hosts, &record.name, &SshStep::Send, absent).await.into_keys().collect();
    }
    let program = quoted(flags.program.as_deref().unwrap_or_default());
    let join = quoted(&line.to_text());
    let worker: String = flags.worker_words().iter().map(|word| format!(" {}", quoted(word))).collect();
    let text = format!("verb=start\nprogram={program}\njoin={join}\nset --{worker}\n{SCRIPT}");
    let started = on_each(&hosts, &record.name, &SshStep::Script("start workers", text), absent).await;
    if started.is_empty() {
        return Err(UpError::Hosts("no host takes part".to_owned()).into());
    }
    let workers = |cores: &String| flags.workers_per_host.or(cores.trim().parse().ok()).unwrap_or(1);
    Ok(started.values().map(workers).sum())
}

/// Ends workers on hosts and stores their logs.
///
/// # Errors
/// A log that cannot be written, or hosts that failed and are not forgotten: they stay in the record.
pub async fn end(
    record: &mut PlaceRecord,
    mut hosts: BTreeSet<String>,
    state: &Path,
    forget: bool,
) -> anyhow::Result<()> {
    let logs = state.join("logs");
    make_private_directory(&logs)?;
    let step = SshStep::Script("end workers", format!("verb=end\n{SCRIPT}"));
    for (host, log) in on_each(&hosts, &record.name, &step, "could not be brought down").await {
        let path = logs.join(format!("{}-{host}.log", record.name));
        whole_file::replace(&path, Promise::Private, |file| file.write_all(log.as_bytes()))?;
        hosts.remove(&host);
    }
    if hosts.is_empty() || forget {
        return Ok(());
    }
    let left = counted(hosts.len() as u64, "host is", "hosts are");
    record.place = WorkerPlace::Ssh { hosts };
    record.write()?;
    Err(UpError::Hosts(format!(
        "{left} left; workers there end by themselves when they have not found their master for ten minutes. Type \
         `gristmill cluster down` again to retry, or `gristmill cluster down --forget` to give them up"
    ))
    .into())
}

/// Takes a step on each of these hosts. Returns what it printed where it succeeded, and reports where it failed.
async fn on_each(
    hosts: &BTreeSet<String>,
    name: &str,
    step: &SshStep,
    failed: &str,
) -> BTreeMap<String, String> {
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for host in hosts {
        let directory = format!("{GUESTS}/{name}-{host}");
        let (host, step, permits) = (host.clone(), step.clone(), permits.clone());
        tasks.spawn(async move {
            // The semaphore is never closed.
            let _permit = permits.acquire_owned().await;
            let printed = ssh(&host, &directory, step).await;
            (host, printed)
        });
    }
    let mut succeeded = BTreeMap::new();
    for (host, printed) in tasks.join_all().await {
        match printed {
            Ok(printed) => drop(succeeded.insert(host, printed)),
            Err(error) => say!("{host} {failed}: {}", chain(error.as_ref())),
        }
    }
    succeeded
}

/// Takes a step on a host. `ssh` does not bound what a server does before authentication, hence the limit for the
/// connection.
async fn ssh(host: &str, directory: &str, step: SshStep) -> anyhow::Result<String> {
    let (what, command, input, limit) = match step {
        SshStep::Create => {
            let command = format!("umask 077; mkdir -p {directory}");
            ("create a directory", command, ToolInput::Nothing, CREATE_MAX)
        }
        SshStep::Send => {
            let program = File::open(OWN_PROGRAM).context("could not read this program")?;
            ("send the program", format!("cat > {directory}/gristmill"), ToolInput::File(program), SEND_MAX)
        }
        SshStep::Script(what, text) => {
            let input = ToolInput::Bytes(format!("directory={directory}\n{text}").into_bytes());
            (what, "sh -s".to_owned(), input, SCRIPT_MAX)
        }
    };
    let words = OPTIONS.into_iter().chain([host, &command]).map(str::to_owned).collect();
    call(what, ToolCall { tool: Tool::Ssh, words, input, limit: limit + 2 * CONNECT_MAX }).await
}
