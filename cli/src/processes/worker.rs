//! `gristmill cluster worker`: starts worker processes, and is such a process.

use super::log::log_to;
use super::stoppable::Stoppable;
use crate::child;
use crate::flags::{ListenFlags, MasterFlags, WorkerFlags, memory};
use crate::private_memory::keep_memory_private;
use crate::settings::Settings;
use crate::switches::FirstSignal;
use crate::usage::usage;
use clap::Args;
use gristmill_runtime::cluster::{ChildConfig, WorkerChild, leave_directories};
use gristmill_runtime::exit;
use gristmill_runtime::master::tokens::work_token_of;
use gristmill_runtime::registry::Registry;
use gristmill_scheduler::units::Bytes;
use gristmill_worker::agent::capture::Capture;
use gristmill_worker::agent::{
    self, EndRequests, LEAVE_MAX, MASTER_SILENCE_MAX, ORPHAN_TIMEOUT, WorkerConfig, WorkerError, WorkerExit,
    crash, slots,
};
use gristmill_worker::http::{Bind, Endpoint, Identity, Key, ListenAddress, Transport};
use gristmill_worker::input::FilePath;
use gristmill_worker::memory_watch;
use gristmill_worker::settings::WorkerSettings;
use gristmill_worker::shuffle::plan::FetchLimits;
use gristmill_worker::{descriptors, fault};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Time for which a new worker tries to reach its master.
const JOIN_TIMEOUT: Duration = Duration::from_secs(60);

/// Start a worker and join a master
///
/// Ctrl-C or SIGTERM lets it leave in good order. It gets no new tasks, finishes those that it runs and stays
/// until others have fetched its data, for at most 80 s. A second signal ends it at once; its tasks run again
/// elsewhere.
#[derive(Args)]
pub struct WorkerCommand {
    #[command(flatten)]
    workers: WorkerFlags,
    /// Memory of each of these processes [default: 25 % of the machine's memory for all of them]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Address on which other workers fetch segments, with or without a range of ports: 192.0.2.1,
    /// 192.0.2.1:7100-7119 [default: the address from which the master is reached, any port]
    #[arg(long, value_name = "ADDR[:PORT-PORT]")]
    listen: Option<ListenAddress>,
    /// Range of ports, one for each process, on the address from which the master is reached: 7100-7119
    #[arg(long, value_name = "PORT-PORT", conflicts_with = "listen", value_parser = parse_ports, hide_short_help = true)]
    ports: Option<(u16, u16)>,
    /// Name or address with which other workers reach this one
    #[arg(long, value_name = "HOST", hide_short_help = true)]
    advertise: Option<String>,
    /// Directory from which jobs may read input on this worker; several allowed [default: all that its user can read,
    /// except state and spill directories]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    input_dir: Vec<PathBuf>,
    #[command(flatten)]
    permissions: ListenFlags,
    #[command(flatten)]
    master: MasterFlags,
}

/// Parses ports: one, or the first and the last.
fn parse_ports(text: &str) -> Result<(u16, u16), String> {
    let address: ListenAddress = format!("0.0.0.0:{text}")
        .parse()
        .map_err(|_| format!("`{text}` is not a range of ports; write 7100-7119"))?;
    address.ports.ok_or_else(|| "write 7100-7119".to_owned())
}

/// `gristmill cluster worker`: starts worker processes, replaces those that die, ends with the master.
pub fn worker(settings: &Settings, flags: &WorkerCommand) -> anyhow::Result<u8> {
    descriptors::ensure_enough()?;
    log_to(None, "info");
    let mut line = flags.master.join_line(settings)?;
    // User code can read the memory of its own process, so that process gets a token with minimal rights.
    let state = flags.master.state_dir(settings).ok();
    let own = state.map_or(Ok(None), |state| work_token_of(&state, &line.token))?;
    match own {
        Some(token) => line.token = token,
        None if Key::name(&line.token).starts_with("admin") => tracing::warn!(
            "this join line holds an admin token, which jobs can read in the memory of a worker: create one for workers with \
             `gristmill cluster token new work`"
        ),
        None => {}
    }
    let count = flags.workers.count(settings)?;
    let named = flags.memory.as_ref().or(settings.memory.as_ref());
    // A named size is for one worker; the default is a share of the machine for all of them.
    let memory = memory(named, count)?;
    let mut workers = flags.workers.workers(settings, Bytes(memory / u64::from(count)))?;
    let Stoppable { runtime, requests, .. } = Stoppable::start(FirstSignal::Leaves)?;
    let listen = flags.listen.or_else(|| {
        let own = runtime.block_on(line.endpoint.own_address());
        let ip = own.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        flags.ports.map(|ports| ListenAddress { ip, ports: Some(ports) })
    });
    if let Some(listen) = listen.filter(|listen| listen.room().is_some_and(|room| room < count)) {
        return Err(usage(format!(
            "{listen} has fewer ports than the {count} worker processes, which need one each: name more ports, or fewer \
             --workers"
        )));
    }
    workers.each.listen = listen;
    workers.each.advertise = flags.advertise.clone();
    let canonical = |path: &PathBuf| {
        let found = std::fs::canonicalize(path).map(|found| FilePath::from(found.as_path()));
        found.map_err(|error| usage(format!("--input-dir {}: {error}", path.display())))
    };
    workers.each.input_dirs = flags.input_dir.iter().map(canonical).collect::<anyhow::Result<_>>()?;
    workers.each.join_file = flags.master.join.as_ref().and_then(|join| canonical(join).ok()).map(Box::new);
    workers.each.permissions = flags.permissions.permissions(&flags.master.plaintext);
    // Errors of the children's listeners are reported here, once.
    let is_root = rustix::process::geteuid().is_root();
    worker_bind(&runtime, &workers.each, &line.endpoint)?.validate(is_root)?;
    runtime.spawn(say_how_it_goes(requests.clone()));
    Ok(runtime.block_on(workers.run(&line, requests))?)
}

/// Logs what a worker that was asked to end waits for.
async fn say_how_it_goes(mut requests: EndRequests) {
    requests.to_leave().await;
    tracing::info!(
        within = ?LEAVE_MAX,
        "leaving once running attempts have ended and other workers have fetched their segments; a second signal ends it at once"
    );
    requests.to_end().await;
    tracing::info!("ending at once");
}

/// One worker process, a child of `run` or of `cluster worker`.
pub(super) fn worker_process(registry: Registry) -> anyhow::Result<u8> {
    // In this order: only root can change the score of a process whose memory is private.
    gristmill_runtime::out_of_memory::offer_this_process_first();
    keep_memory_private();
    let Stoppable { runtime, switches, requests } = Stoppable::start(FirstSignal::Leaves)?;
    let ChildConfig::Worker(child) = child::settings(switches.clone())? else {
        return Err(usage("the parent started a worker with the settings of a master".to_owned()));
    };
    let mut config = worker_config(&runtime, child)?;
    let directories = config.spill_dirs.clone();
    let first = directories.first().ok_or_else(|| usage("the parent named no spill directory".to_owned()))?;
    let parents = directories.iter().filter_map(|directory| directory.parent());
    let holds = parents.map(gristmill_runtime::scratch::lock_directory).collect::<io::Result<Vec<_>>>()?;
    let (capture, stderr) = Capture::start(first)?;
    log_to(Some(stderr), "warn");
    // The parent knows by the code, and by the attempt that user code leaves behind where it exits.
    slots::install_panic_hook(exit::worker::BROKEN);
    // Without it a crash cannot be attributed if several attempts run.
    if let Err(error) = crash::install(first) {
        tracing::warn!(%error, "crashes of this process cannot be traced to an attempt");
    }
    config.capture = Some(capture);
    // The reason goes where its parent reads the last output of user code.
    memory_watch::watch(config.settings.memory.get(), config.settings.slots.total(), |why| {
        crate::terminal::stderr_line(why);
        std::process::exit(exit::worker::OVER_MEMORY);
    })?;
    let running = || runtime.block_on(agent::run(config, Arc::new(registry), requests.clone()));
    let Ok(ended) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(running)) else {
        // The hook has printed the panic. Its own exit code would look like one of user code.
        std::process::exit(exit::worker::BROKEN);
    };
    let code = match ended {
        // Its parent asks by closing a pipe, and the master by a message.
        Ok(WorkerExit::Shutdown) if requests.is_to_go() && !switches.is_by_parent() => {
            tracing::warn!("ended by a signal that its parent did not send: it will be replaced");
            exit::worker::TERMINATED
        }
        Ok(exited) => code_of_exit(&exited),
        Err(error) => code_of_error(&error),
    };
    if code == exit::worker::ASKED {
        // The parent does this too, unless it was killed.
        leave_directories(&directories, holds, switches.is_orphaned());
    }
    // Slot threads may still be inside user code, which nothing can stop: end them with the process.
    std::process::exit(code)
}

/// Settings from the parent, completed by those of this process. User output is not captured yet.
fn worker_config(runtime: &tokio::runtime::Runtime, child: WorkerChild) -> anyhow::Result<WorkerConfig> {
    let unreadable = |what: &str| usage(format!("the parent's {what} cannot be read"));
    Ok(WorkerConfig {
        token: child.token.parse().map_err(|_| unreadable("token"))?,
        ended_proof: child.ended_proof.parse().map_err(|_| unreadable("proof"))?,
        bind: worker_bind(runtime, &child.settings, &child.master)?,
        master: child.master,
        settings: child.settings,
        spill_dirs: child.directories,
        host: gristmill_worker::host_name(),
        build: gristmill_worker::build_id(),
        join_patience: match child.replaces {
            true => ORPHAN_TIMEOUT,
            false => fault::span("worker.join", JOIN_TIMEOUT),
        },
        leave_max: fault::span("worker.leave", LEAVE_MAX),
        master_silence_max: fault::span("worker.master_silence", MASTER_SILENCE_MAX),
        fetch: FetchLimits::default(),
        capture: None,
    })
}

/// Exit code of a worker process that has ended in order, by which its parent decides what to do.
fn code_of_exit(exited: &WorkerExit) -> i32 {
    match exited {
        WorkerExit::Shutdown => exit::worker::ASKED,
        // Another process tries to join again; the worker ends only if that fails for a while.
        WorkerExit::MasterGone => {
            tracing::warn!("lost the connection to the master");
            exit::worker::RENEW
        }
        WorkerExit::Stuck(attempt) => {
            tracing::warn!(%attempt, "user code does not stop; ending this process");
            exit::worker::RENEW
        }
        WorkerExit::Broken => exit::worker::BROKEN,
    }
}

/// Returns the exit code of a worker process that failed.
fn code_of_error(error: &WorkerError) -> i32 {
    // The error cannot go to stderr as usual: user output goes there.
    tracing::error!("{}", gristmill_runtime::chain(error));
    match error {
        WorkerError::Unreachable { .. } => exit::worker::MASTER_GONE,
        WorkerError::Unauthorised { .. } => exit::worker::UNAUTHORISED,
        WorkerError::Start { .. } | WorkerError::Listen { .. } => exit::worker::LACKING,
        _ => exit::worker::REFUSED,
    }
}

/// The shuffle server listens on the address from which the master is reached, with the master's transport.
fn worker_bind(
    runtime: &tokio::runtime::Runtime,
    settings: &WorkerSettings,
    master: &Endpoint,
) -> anyhow::Result<Bind> {
    let listen = settings.listen.unwrap_or_else(|| {
        let own = runtime.block_on(master.own_address());
        ListenAddress::any_port(own.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)))
    });
    let ip = listen.ip;
    let transport = match (&master.pin, ip.is_loopback()) {
        (Some(_), false) => {
            let mut names = vec![ip.to_string()];
            names.extend(settings.advertise.clone());
            Transport::Tls(Identity::generate(&names)?)
        }
        _ => Transport::Plain,
    };
    Ok(Bind::within(listen, transport, settings.permissions))
}
