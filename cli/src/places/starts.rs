//! How workers are started in each place, once there is a master: what is asked of the place, what is written down before,
//! and what is shown of it.

use super::flags::UpCommand;
use super::guest::BeginAnswer;
use super::record::{
    HostState, KubernetesPlace, LOGS_FOLDER, Place, RayPlace, Record, SlurmPlace, SshHost, SshPlace,
};
use super::record::{locked, logs};
use super::ssh::Asked;
use super::{PlaceError, kubernetes, ray, slurm, ssh};
use crate::usage::usage;
use gristmill_runtime::chain;
use gristmill_runtime::plural::counted;
use gristmill_worker::http::JoinLine;
use gristmill_worker::whole_file::{self, Promise};
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Workers that were started in one go.
#[derive(Serialize)]
pub struct Row {
    pub host: String,
    pub workers: Option<u32>,
    pub process: Option<i32>,
    pub log: String,
}

/// What came of a place.
pub struct Begun {
    pub rows: Vec<Row>,
    /// How many workers are waited for.
    pub expected: u32,
}

/// Starts workers on hosts of ssh.
///
/// # Errors
/// No host takes part, or not all where all must.
pub async fn begin_ssh(
    flags: &UpCommand,
    place: &SshPlace,
    line: &JoinLine,
    record: &Arc<Mutex<Record>>,
) -> anyhow::Result<Begun> {
    let noted = record.clone();
    let sends = flags.sends_program();
    let asked: Asked = Arc::new(move |number, sent| {
        if sent && !sends {
            let said = "the program is not there; leave --program out to have it sent".to_owned();
            return Err(PlaceError::Refused { what: "use the file of --program", said });
        }
        note(&noted, number, |host| (host.state, host.sent) = (HostState::Asked, sent))
    });
    let outcomes = ssh::begin(place, &line.to_text(), |host| flags.worker_words(host.workers), &asked).await;
    let (mut rows, mut expected, mut refused) = (Vec::new(), 0, 0);
    for (number, outcome) in outcomes {
        let target = &place.hosts[number].target;
        match outcome {
            Ok(BeginAnswer { host, pid, workers, log }) => {
                note(record, number, |host| host.state = HostState::Begun)?;
                expected += workers;
                let log = format!("{target}:{}", log.display());
                rows.push(Row { host, workers: Some(workers), process: Some(pid), log });
            }
            Err(error) => {
                refused += 1;
                say!("{target} does not take part: {}", chain(&error));
            }
        }
    }
    let hosts = place.hosts.len();
    if rows.is_empty() || (flags.ssh.require_all && 0 < refused) {
        return Err(PlaceError::Hosts { refused, hosts, all: flags.ssh.require_all }.into());
    }
    Ok(Begun { rows, expected })
}

/// Writes down what has changed of a host.
fn note(record: &Mutex<Record>, number: usize, change: impl FnOnce(&mut SshHost)) -> Result<(), PlaceError> {
    let mut record = locked(record);
    if let Place::Ssh(place) = &mut record.place
        && let Some(host) = place.hosts.get_mut(number)
    {
        change(host);
    }
    record.keep()
}

/// The script of the job of workers.
///
/// # Errors
/// An option that is none.
pub fn slurm_script(flags: &UpCommand, place: &SlurmPlace, state: &Path) -> anyhow::Result<String> {
    let join = place.join.display().to_string();
    let mut command = vec![flags.program_of_nodes()?];
    command.extend(["worker".to_owned(), "--join".to_owned(), join]);
    command.extend(flags.worker_words(None));
    let options = &flags.nodes.sbatch;
    if let Some(option) = options.iter().find(|option| option.contains(['\n', '@'])) {
        return Err(usage(format!("--sbatch {option:?} is no option of sbatch")));
    }
    Ok(slurm::Script {
        name: &place.name,
        nodes: flags.nodes.nodes,
        processors: flags.workers.workers_per_host,
        time: flags.nodes.time.as_deref(),
        logs: &state.join(LOGS_FOLDER),
        options,
        command: &command,
    }
    .text())
}

/// Hands in the job of workers.
///
/// # Errors
/// Slurm refuses it.
pub async fn begin_slurm(
    flags: &UpCommand,
    mut place: SlurmPlace,
    state: &Path,
    line: &JoinLine,
    record: &Arc<Mutex<Record>>,
) -> anyhow::Result<Begun> {
    let script = slurm_script(flags, &place, state)?;
    logs(state)?;
    let text = line.to_text();
    whole_file::replace(&place.join, Promise::Private, |file| file.write_all(text.as_bytes()))?;
    let job = slurm::begin(script).await?;
    place.job = Some(job);
    let (nodes, workers) = (flags.nodes.nodes, flags.workers.workers_per_host);
    {
        let mut record = locked(record);
        record.place = Place::Slurm(place);
        record.keep()?;
    }
    let log =
        |node: u32| state.join(LOGS_FOLDER).join(format!("slurm-{job}-{node}.log")).display().to_string();
    let row = |node: u32| Row { host: format!("job {job}_{node}"), workers, process: None, log: log(node) };
    Ok(Begun { rows: (1..=nodes).map(row).collect(), expected: nodes * workers.unwrap_or(1) })
}

/// Makes the actors.
///
/// # Errors
/// Ray is not reached, or places none.
pub async fn begin_ray(flags: &UpCommand, place: &RayPlace, line: &JoinLine) -> anyhow::Result<Begun> {
    let mut words = vec![flags.program_of_nodes()?];
    words.extend(["worker", "--join", "-"].map(str::to_owned));
    words.extend(flags.worker_words(None));
    let workers = flags.workers.workers_per_host;
    let begun = ray::begin(place, &words, workers.unwrap_or(1), &line.to_text()).await?;
    for said in &begun.failed {
        say!("an actor does not take part: {said}");
    }
    if 0 < begun.late {
        let late = counted(begun.late as u64, "actor has", "actors have");
        say!("{late} no place yet: Ray starts what is missing when it has one");
    }
    let rows: Vec<Row> = begun
        .guests
        .into_iter()
        .map(|(host, process, _)| Row {
            host,
            workers,
            process: i32::try_from(process).ok(),
            log: "that of its actor: `ray logs`".to_owned(),
        })
        .collect();
    if rows.is_empty() {
        return Err(PlaceError::Hosts {
            refused: place.nodes as usize,
            hosts: place.nodes as usize,
            all: false,
        }
        .into());
    }
    Ok(Begun { expected: rows.len() as u32 * workers.unwrap_or(1), rows })
}

/// The manifests of a cluster in pods.
///
/// # Errors
/// What was typed makes none.
pub fn manifests(flags: &UpCommand, place: &KubernetesPlace) -> anyhow::Result<String> {
    let Some(image) = &flags.kubernetes.image else {
        return Err(usage("--on kubernetes needs --image, in which this program is".to_owned()));
    };
    let workers = flags.workers.workers_per_host.unwrap_or(1);
    kubernetes::Manifests {
        place,
        image,
        program: flags.program_of_pods(),
        nodes: flags.nodes.nodes,
        workers,
        memory: &flags.kubernetes.pod_memory,
        master: flags.master.words(),
        worker: flags.worker_words(Some(workers)),
    }
    .text()
}
