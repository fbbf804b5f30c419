//! `up`: a master here, workers where a place puts them; what does not come up is ended again.

use super::flags::UpCommand;
use super::record::{KubernetesPlace, Place, Record, locked};
use super::starts::{Begun, begin_ray, begin_slurm, begin_ssh, manifests, slurm_script};
use super::{down, kubernetes, master};
use crate::query::table;
use crate::settings::Settings;
use crate::terminal::{complain, stdout_line};
use gristmill_runtime::api::{MasterStatus, Role};
use gristmill_runtime::chain;
use gristmill_runtime::client::AsyncClient;
use gristmill_runtime::exit;
use gristmill_runtime::plural::counted;
use gristmill_worker::clean;
use gristmill_worker::http::{JoinLine, make_private_directory};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Label of the token with which workers of `up` join.
const TOKEN_LABEL: &str = "guests";

/// `gristmill up`. `named` are the settings that were typed.
pub fn up(settings: &Settings, named: Option<&Path>, flags: &UpCommand) -> anyhow::Result<u8> {
    let runtime = gristmill_worker::threads::runtime()?;
    runtime.block_on(bring_up(settings, named, flags))
}

async fn bring_up(settings: &Settings, named: Option<&Path>, flags: &UpCommand) -> anyhow::Result<u8> {
    let state = flags.state(settings)?;
    let place = flags.place(&state)?;
    if let Place::Slurm(place) = &place
        && flags.nodes.print
    {
        stdout_line(&slurm_script(flags, place, &state)?.trim_end())?;
        return Ok(exit::OK);
    }
    if let Place::Kubernetes(place) = &place {
        return bring_up_pods(flags, place, &state).await;
    }
    let listen = flags.listen(&place).await?;
    make_private_directory(&state)?;
    let record = Record::claim(&state, place)?;
    let record = Arc::new(Mutex::new(record));
    let named = named.map(std::path::absolute).transpose()?;
    let words = flags.master_words(listen, &state, named.as_deref());
    match begin(flags, &state, &words, &record).await {
        Ok((status, begun)) => {
            show(flags, &status, &begun)?;
            Ok(exit::OK)
        }
        Err(error) => {
            let record = locked(&record).clone();
            take_back(record, &state).await;
            Err(error)
        }
    }
}

/// Nothing stays that was not asked for; what does is named, and kept for `down`.
async fn take_back(record: Record, state: &Path) {
    if let Err(left) = down::take_down(record, state, Duration::ZERO, false).await {
        complain("warning", &clean::message(&chain(left.as_ref())));
    }
}

/// Master and workers as pods. What they run with is theirs: this machine keeps no token.
async fn bring_up_pods(flags: &UpCommand, place: &KubernetesPlace, state: &Path) -> anyhow::Result<u8> {
    let text = manifests(flags, place)?;
    if flags.nodes.print {
        stdout_line(&text.trim_end())?;
        return Ok(exit::OK);
    }
    make_private_directory(state)?;
    let record = Record::claim(state, Place::Kubernetes(place.clone()))?;
    if let Err(error) = kubernetes::begin(place, text, state).await {
        take_back(record, state).await;
        return Err(error);
    }
    let KubernetesPlace { name, namespace } = place;
    say!(
        "applied: {name} in the namespace {namespace}; `kubectl get pods -n {namespace}` shows it, `gristmill down` ends \
         it"
    );
    Ok(exit::OK)
}

async fn begin(
    flags: &UpCommand,
    state: &Path,
    words: &[String],
    record: &Arc<Mutex<Record>>,
) -> anyhow::Result<(MasterStatus, Begun)> {
    let started = master::start(state, words, |process| {
        let mut record = locked(record);
        record.master = Some(process.clone());
        record.keep()
    });
    let line = started.await?;
    let client = AsyncClient::new(&line);
    let token = client.new_token(Role::Work, Some(TOKEN_LABEL), None).await?;
    let line = JoinLine { token, ..line };
    let place = locked(record).place.clone();
    let begun = match place {
        Place::Ssh(place) => begin_ssh(flags, &place, &line, record).await?,
        Place::Slurm(place) => begin_slurm(flags, place, state, &line, record).await?,
        Place::Ray(place) => begin_ray(flags, &place, &line).await?,
        // It has its master there.
        Place::Kubernetes(_) => Begun { rows: Vec::new(), expected: 0 },
    };
    let patience = Duration::from_secs(u64::from(flags.wait));
    let joined = client.await_workers(begun.expected, patience).await?;
    let status = match joined {
        Some(status) => status,
        None => {
            let status = client.master().await?;
            say_who_lacks(&status, &begun, patience);
            status
        }
    };
    Ok((status, begun))
}

/// Names hosts whose workers have not all joined.
fn say_who_lacks(status: &MasterStatus, begun: &Begun, patience: Duration) {
    let here = status.workers.len();
    let expected = counted(u64::from(begun.expected), "worker", "workers");
    say!("of {expected} {here} joined within {patience:?}; more may come");
    for row in &begun.rows {
        let joined = status.workers.iter().filter(|worker| worker.host == row.host).count();
        if row.workers.is_some_and(|workers| joined < workers as usize) {
            say!("  {}: {}; its log is {}", row.host, counted(joined as u64, "worker", "workers"), row.log);
        }
    }
}

fn show(flags: &UpCommand, status: &MasterStatus, begun: &Begun) -> anyhow::Result<()> {
    if flags.json {
        let text = serde_json::json!({ "workers": status.workers.len(), "hosts": begun.rows });
        return stdout_line(&serde_json::to_string_pretty(&text)?);
    }
    let dash = || "-".to_owned();
    let rows = begun.rows.iter().map(|row| {
        [
            row.host.clone(),
            row.workers.map_or_else(dash, |workers| workers.to_string()),
            row.process.map_or_else(dash, |process| process.to_string()),
            row.log.clone(),
        ]
    });
    stdout_line(&table(["HOST", "WORKERS", "PROCESS", "LOG"], rows))?;
    let joined = counted(status.workers.len() as u64, "worker has", "workers have");
    say!("{joined} joined; end all of it with `gristmill down`");
    Ok(())
}
