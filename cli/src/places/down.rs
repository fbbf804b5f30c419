//! `down`: ends what `up` has started, by what that wrote down, and says what it could not reach.

use super::flags::state_dir;
use super::record::{HostState, Place, Record, SlurmPlace, SshPlace};
use super::{PlaceError, kubernetes, master, ray, record, slurm, ssh};
use crate::flags::JOIN_FILE;
use crate::settings::Settings;
use clap::Args;
use gristmill_runtime::chain;
use gristmill_runtime::client::AsyncClient;
use gristmill_runtime::exit;
use gristmill_runtime::plural::{counted, noun};
use gristmill_worker::whole_file::{self, Promise};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Pause between looks at whether jobs have ended.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// End what `gristmill up` has started, here and elsewhere
///
/// Jobs that run are waited for, for so long; then master and workers end, and what they left on other hosts is removed.
#[derive(Args)]
pub struct DownCommand {
    /// The folder that was named to `gristmill up` [default: as there]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// How long jobs that run are waited for, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 80)]
    grace: u32,
    /// Wait for no job
    #[arg(long, conflicts_with = "grace")]
    now: bool,
    /// Forget hosts that cannot be reached: their workers end by themselves when they find no master for ten minutes
    #[arg(long)]
    forget: bool,
}

/// `gristmill down`.
pub fn down(settings: &Settings, flags: &DownCommand) -> anyhow::Result<u8> {
    let state = state_dir(flags.state.as_ref(), settings)?;
    let Some(record) = Record::read(&state)? else { return Err(PlaceError::Nothing { path: state }.into()) };
    let is_here = record.master.is_none() || record.machine == gristmill_worker::host_name();
    if !is_here {
        return Err(PlaceError::Elsewhere { what: record.words(), machine: record.machine }.into());
    }
    let words = record.words();
    let grace = Duration::from_secs(if flags.now { 0 } else { u64::from(flags.grace) });
    let runtime = gristmill_worker::threads::runtime()?;
    runtime.block_on(take_down(record, &state, grace, flags.forget))?;
    say!("down: {words}");
    Ok(exit::OK)
}

/// Ends all that stands in the record, then forgets it. Jobs are waited for, for so long.
///
/// # Errors
/// What could not be ended, which the record then still has.
pub async fn take_down(
    mut record: Record,
    state: &Path,
    grace: Duration,
    forget: bool,
) -> anyhow::Result<()> {
    if let Some(process) = record.master.clone().filter(|process| process.is_alive()) {
        wait_for_jobs(state, grace).await;
        if !master::finish(&process, state).await {
            return Err(PlaceError::MasterStays { pid: process.pid() }.into());
        }
    }
    if record.master.is_some() {
        // The line of one that was killed opens nothing any more.
        let _ = fs::remove_file(state.join(JOIN_FILE));
    }
    match record.place.clone() {
        Place::Ssh(place) => {
            let left = end_ssh(place, state).await?;
            let hosts: Vec<String> = left.touched().map(|(_, host)| host.target.clone()).collect();
            if !hosts.is_empty() && !forget {
                record.place = Place::Ssh(left);
                record.keep()?;
                return Err(PlaceError::Left { hosts }.into());
            }
        }
        Place::Slurm(place) => end_slurm(&place).await?,
        Place::Ray(place) => {
            let ended = ray::end(&place).await?;
            if 0 < ended.killed {
                let actors = counted(u64::from(ended.killed), "actor", "actors");
                say!("the workers of {actors} did not end by themselves");
            }
        }
        Place::Kubernetes(place) => kubernetes::end(&place).await?,
    }
    Ok(record.remove()?)
}

/// Waits until no job runs, for so long. A master that does not answer has none to wait for.
async fn wait_for_jobs(state: &Path, grace: Duration) {
    let Some(line) = master::line_of(&state.join(JOIN_FILE)) else { return };
    let client = AsyncClient::new(&line);
    let end = Instant::now() + grace;
    let mut said = false;
    while let Ok(status) = client.master().await
        && 0 < status.jobs_live
    {
        let live = counted(u64::from(status.jobs_live), "live job", "live jobs");
        if end <= Instant::now() {
            say!("{live} {} abandoned", noun(u64::from(status.jobs_live), "is", "are"));
            return;
        }
        if !said {
            say!("waiting for {live}, for {grace:?} at most");
            said = true;
        }
        sleep(LOOK_PAUSE).await;
    }
}

/// Ends the workers on hosts and keeps what they have said; answers the place, in which those that were not
/// reached are touched still.
async fn end_ssh(mut place: SshPlace, state: &Path) -> anyhow::Result<SshPlace> {
    let logs = record::logs(state)?;
    let mut left = Vec::new();
    for (number, outcome) in ssh::end(&place).await {
        let target = &place.hosts[number].target;
        match outcome {
            Ok(answer) => {
                if answer.killed {
                    say!("{target}: the workers did not end when they were told to, and were killed");
                }
                if answer.was_there {
                    let path = logs.join(format!("{}-{number}-{target}.log", place.name));
                    let text = answer.log.as_bytes();
                    whole_file::replace(&path, Promise::Private, |file| file.write_all(text))?;
                }
            }
            Err(error) => {
                say!("{target}: {}", chain(&error));
                left.push(number);
            }
        }
    }
    // Numbers are in the names of what lies on hosts, so they stay.
    for (number, host) in place.hosts.iter_mut().enumerate() {
        if !left.contains(&number) {
            host.state = HostState::Untouched;
        }
    }
    Ok(place)
}

async fn end_slurm(place: &SlurmPlace) -> anyhow::Result<()> {
    slurm::end(place).await?;
    match fs::remove_file(&place.join) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
