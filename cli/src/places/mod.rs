//! `cluster up` and `cluster down`: a cluster whose workers are started by ssh, Slurm, Ray or Kubernetes.
//!
//! Each place starts, replaces and ends workers by its own means, with the templates beside this file. Everything
//! that may run somewhere is written to a [`record::PlaceRecord`] first, so that `cluster down` ends all of it.

mod call;
mod flags;
mod hosts;
mod kubernetes;
mod master;
mod ray;
mod record;
mod slurm;
mod ssh;

pub use call::UpError;
use call::{TOKEN_LABEL, refused};
pub use flags::{DownCommand, UpCommand};
pub use kubernetes::{UnpackCommand, unpack};

use crate::flags::state_dir;
use crate::settings::Settings;
use crate::state::StateDirectory;
use crate::terminal::{complain, stdout_line};
use gristmill_runtime::api::Role;
use gristmill_runtime::client::AsyncClient;
use gristmill_runtime::plural::counted;
use gristmill_runtime::{chain, exit};
use gristmill_worker::http::{JoinLine, make_private_directory};
use gristmill_worker::sanitize;
use record::{PlaceRecord, WorkerPlace};
use std::path::Path;
use std::time::Duration;

/// Time for the workers to join.
const JOIN_MAX: Duration = Duration::from_secs(60);

/// `gristmill cluster up`. `named` is the settings file that was typed.
pub fn up(settings: &Settings, named: Option<&Path>, flags: &UpCommand) -> anyhow::Result<u8> {
    let runtime = gristmill_worker::threads::runtime()?;
    runtime.block_on(bring_up(settings, named, flags))
}

async fn bring_up(settings: &Settings, named: Option<&Path>, flags: &UpCommand) -> anyhow::Result<u8> {
    let state = std::path::absolute(state_dir(flags.state.as_ref(), settings)?)?;
    let Some(place) = flags.place(&state)? else { return kubernetes::up(flags) };
    let record = PlaceRecord::new(&state, place);
    if flags.print {
        stdout_line(&slurm::script(flags, &record.name, &state)?.trim_end())?;
        return Ok(exit::OK);
    }
    let words = flags.master_words(&state, named)?;
    make_private_directory(&state)?;
    let mut record = record.claim(&state)?;
    if let Err(error) = start(flags, &state, &words, &mut record).await {
        // Workers that do not start are ended again; those that cannot be ended are left to `cluster down`.
        if let Err(left) = take_down(record, &state, false).await {
            complain("warning", &sanitize::message(&chain(left.as_ref())));
        }
        return Err(error);
    }
    Ok(exit::OK)
}

async fn start(
    flags: &UpCommand,
    state: &Path,
    words: &[String],
    record: &mut PlaceRecord,
) -> anyhow::Result<()> {
    let line = master::start(state, words).await?;
    let client = AsyncClient::new(&line);
    let token = client.new_token(Role::Work, Some(TOKEN_LABEL), None).await?;
    let line = JoinLine { token, ..line };
    let expected = match record.place.clone() {
        WorkerPlace::Ssh { hosts } => ssh::start(flags, &line, record, hosts).await?,
        WorkerPlace::Slurm { join } => slurm::start(flags, &record.name, &join, state, &line).await?,
        WorkerPlace::Ray => ray::start(flags, &record.name, &line).await?,
    };
    if client.await_workers(expected, JOIN_MAX).await?.is_none() {
        say!("not all have joined within {JOIN_MAX:?}; more may come");
    }
    let joined = counted(client.master().await?.workers.len() as u64, "worker has", "workers have");
    say!("{joined} joined; end all of it with `gristmill cluster down`");
    Ok(())
}

/// `gristmill cluster down`.
pub fn down(settings: &Settings, flags: &DownCommand) -> anyhow::Result<u8> {
    let state = std::path::absolute(state_dir(flags.state.as_ref(), settings)?)?;
    let Some(record) = PlaceRecord::read(&state)? else {
        let path = state.display();
        return Err(refused(match StateDirectory::holder(&state) {
            Some(process) => format!(
                "a master started by hand runs in {path} (process {process}); end it with SIGTERM: kill {process}"
            ),
            None => {
                format!("nothing is up by the state directory {path}; name another one with --state")
            }
        }));
    };
    let words = record.words();
    let runtime = gristmill_worker::threads::runtime()?;
    if record.machine != gristmill_worker::host_name() {
        return Err(refused(format!(
            "{words} is up, but it was started on {}: type `gristmill cluster down` there",
            record.machine
        )));
    }
    match runtime.block_on(master::live_jobs(&state)) {
        Ok(0) => {}
        Ok(live) if flags.now => say!("{} abandoned", counted(live.into(), "job is", "jobs are")),
        Ok(live) => {
            let jobs = counted(live.into(), "job has", "jobs have");
            return Err(refused(format!(
                "{jobs} not ended: `gristmill job wait` waits, and --now abandons them"
            )));
        }
        Err(error) if !flags.now => return Err(error),
        Err(_) => {}
    }
    runtime.block_on(take_down(record, &state, flags.forget))?;
    say!("down: {words}");
    Ok(exit::OK)
}

/// Ends all that the record names, then removes it.
async fn take_down(mut record: PlaceRecord, state: &Path, forget: bool) -> anyhow::Result<()> {
    master::end(state).await?;
    match record.place.clone() {
        WorkerPlace::Ssh { hosts } => ssh::end(&mut record, hosts, state, forget).await?,
        WorkerPlace::Slurm { join } => slurm::end(&record.name, &join).await?,
        WorkerPlace::Ray => ray::end(&record.name).await?,
    }
    record.remove()
}
