//! `master` and `worker`: the processes of a cluster, started by a person or by `run`.

use super::child;
use super::flags::{
    ClusterFlags, JOIN_FILE, ListenFlags, MasterFlags, PlaintextFlag, estimator, journal, placement, policy,
};
use super::settings::Settings;
use super::shape::ShapeFlags;
use super::state::StateFolder;
use super::{stdout_line, usage};
use crate::cluster::{ChildConfig, MasterReady, Shuffle, Workers};
use crate::exit;
use crate::master::tokens::Tokens;
use crate::master::{MasterConfig, Prepared};
use crate::registry::Registry;
use clap::Args;
use gristmill_scheduler::estimate;
use gristmill_scheduler::units::Bytes;
use gristmill_worker::agent::capture::Capture;
use gristmill_worker::agent::{self, WorkerConfig, WorkerError, WorkerExit, crash, slots};
use gristmill_worker::http::{Bind, Endpoint, Identity, Secret, Transport};
use gristmill_worker::shuffle::plan::FetchLimits;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// How long a worker tries to reach its master at first.
const JOIN_PATIENCE: Duration = Duration::from_secs(60);

/// Name of the file in the state folder with what the master has learned of jobs.
const HISTORY_FILE: &str = "history.json";

/// Name of the file in the state folder that says which tokens hold.
const TOKENS_FILE: &str = "tokens";

/// Name of the file in the state folder by which numbers of jobs go on over restarts.
const REGISTER_FILE: &str = "jobs";

/// Start a master
#[derive(Args)]
pub struct MasterCommand {
    /// Address to listen on; port 0 is the port of the last master in the state folder, or one that the system chooses
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// A host name under which the master is reached; several allowed
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Which job gets a slot: NAME or NAME:PARAMETERS; `gristmill sim --list` shows them [default:
    /// gristmill; with --pools fair]
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Which worker gets a task: NAME or NAME:PARAMETERS; `gristmill sim --list` shows them [default: pull]
    #[arg(long, value_name = "PLACEMENT")]
    placement: Option<String>,
    /// How policies learn how large jobs are; `gristmill sim --list` shows them [default: history]
    #[arg(long, value_name = "ESTIMATOR")]
    estimator: Option<String>,
    /// File for what is learned of jobs, kept over restarts [default: history.json in the state folder]
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Pools that jobs may name, with their weights; others are refused [default: any, with the weight of its first job]
    #[arg(long, value_name = "NAME=W,...")]
    pools: Option<String>,
    /// Write down every decision, for `replay` and `whatif`; the file must not exist
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    #[command(flatten)]
    permissions: ListenFlags,
    #[command(flatten)]
    plaintext: PlaintextFlag,
    /// Folder for the secret and the join line [default: gristmill in $XDG_STATE_HOME, else in ~/.local/state]
    #[arg(long, value_name = "DIR", env = "GRISTMILL_STATE")]
    state: Option<PathBuf>,
    /// Print the join line on stdout also where that is no terminal: whoever reads it there has the secret
    #[arg(long)]
    print_join: bool,
    /// For child processes of `run`: take settings from standard input
    #[arg(long, hide = true)]
    from_parent: bool,
}

/// Start a worker
#[derive(Args)]
pub struct WorkerCommand {
    #[command(flatten)]
    master: MasterFlags,
    /// Worker processes to start [default: one for each core]
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    #[command(flatten)]
    shape: ShapeFlags,
    /// Memory of each of these processes [default: together a quarter of the machine's]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Folder for what does not fit in memory; several allowed
    #[arg(long, value_name = "DIR")]
    spill_dir: Vec<PathBuf>,
    /// Disk space that spills leave free in each such folder's file system [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    disk_reserve: Option<String>,
    /// How these workers get segments [default: auto]
    #[arg(long, value_enum)]
    shuffle: Option<Shuffle>,
    /// Address on which other workers fetch segments [default: the one from which the master is reached]
    #[arg(long, value_name = "IP")]
    listen: Option<IpAddr>,
    /// Name or address under which other workers reach this one
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,
    #[command(flatten)]
    permissions: ListenFlags,
    /// For child processes of `run`: take settings from standard input
    #[arg(long, hide = true)]
    from_parent: bool,
}

/// A runtime, and a switch that turns when this process is asked to end.
struct Stoppable {
    runtime: tokio::runtime::Runtime,
    stop: watch::Sender<bool>,
    stopping: watch::Receiver<bool>,
    /// It was a signal that turned it, sent by somebody.
    signalled: Arc<AtomicBool>,
    /// The parent of this process has died without a word, or the kernel says so.
    orphaned: Arc<AtomicBool>,
}

impl Stoppable {
    fn start() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopping) = watch::channel(false);
        let (signalled, orphaned) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (asked, by_signal, by_death) = (stop.clone(), signalled.clone(), orphaned.clone());
        // From now on, not from when the runtime first runs: by then others may know that this process is there.
        let parent_died = SignalKind::from_raw(child::PARENT_DEATH_SIGNAL.as_raw());
        let signals = runtime.block_on(async {
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()), signal(parent_died))
        });
        runtime.spawn(async move {
            let (Ok(mut interrupt), Ok(mut terminate), Ok(mut parent_died)) = signals else { return };
            let cause = tokio::select! {
                _ = interrupt.recv() => by_signal,
                _ = terminate.recv() => by_signal,
                _ = parent_died.recv() => by_death,
            };
            cause.store(true, Ordering::Relaxed);
            let _ = asked.send(true);
        });
        Ok(Self { runtime, stop, stopping, signalled, orphaned })
    }
}

/// Sends the program's own log to stderr, or to where stderr was before user output took its place.
fn log_to(stderr: Option<OwnedFd>, default: &str) {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("GRISTMILL_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_target(false);
    // A second subscriber in one process is refused; then the first one stays.
    let _ = match stderr {
        Some(fd) => {
            builder.with_ansi(false).with_writer(std::sync::Mutex::new(fs::File::from(fd))).try_init()
        }
        None => builder.with_ansi(io::stderr().is_terminal()).with_writer(io::stderr).try_init(),
    };
}

/// `gristmill master`.
pub fn master(registry: &Registry, settings: &Settings, flags: &MasterCommand) -> anyhow::Result<u8> {
    let pools = pools(flags.pools.as_deref(), settings)?;
    let policy_name = policy(flags.policy.as_ref(), settings, !pools.is_empty());
    let placement_name = placement(flags.placement.as_ref(), settings);
    let (policy, placement) = (
        registry.make_policy(&policy_name).map_err(usage)?,
        registry.make_placement(&placement_name).map_err(usage)?,
    );
    let estimator_name = estimator(flags.estimator.as_ref(), settings)?;
    let estimator = estimate::by_name(&estimator_name).map_err(|error| usage(error.to_string()))?;
    // What a parent does not name it does not want, whatever the settings say: it may start many masters.
    let of_settings = if flags.from_parent { &Settings::default() } else { settings };
    let journal = journal(flags.journal.as_ref(), of_settings)?;
    let Stoppable { runtime, stop, stopping, orphaned, .. } = Stoppable::start()?;
    let (secret, bind, state, remove_at_end) = match flags.from_parent {
        true => {
            log_to(None, "warn");
            let child = child::settings(stop.clone(), orphaned)?;
            (parse_secret(&child)?, Bind::loopback(), None, child.remove_at_end)
        }
        false => {
            log_to(None, "info");
            let master = MasterFlags {
                master: None,
                join: None,
                state: flags.state.clone(),
                plaintext: PlaintextFlag::default(),
            };
            let folder = master.state_dir(settings)?;
            // First: it refuses a folder that is not ours alone, in which nothing may be written.
            let secret = Secret::load_or_create(&folder.join("secret"))?;
            let state = StateFolder::take(folder)?;
            (secret, bind(flags, state.path())?, Some(state), Vec::new())
        }
    };
    let mut held = state;
    warn_as_root(&bind, flags.from_parent);
    let (listener, address) = match &mut held {
        Some(held) => runtime.block_on(held.listen(&bind))?,
        None => {
            let listener = runtime.block_on(bind.listen())?;
            let address = listener.local_addr()?;
            (listener, address)
        }
    };
    let state = held.as_ref().map(StateFolder::path);
    let tokens = Arc::new(Tokens::open(secret, state.map(|state| state.join(TOKENS_FILE)))?);
    let config = MasterConfig {
        bind: bind.clone(),
        host_names: flags.allow_host.clone(),
        tokens: tokens.clone(),
        build: gristmill_worker::build_id(),
        policy,
        placement,
        policy_name,
        placement_name,
        estimator: Some(estimator),
        estimator_name,
        registry: registry.clone(),
        pools,
        journal,
        history: flags.history(settings, state),
        register: state.map(|state| state.join(REGISTER_FILE)),
    };
    let prepared = Prepared::new(config)?;
    match state {
        None => {
            stdout_line(&serde_json::to_string(&MasterReady { port: address.port() })?)?;
            io::stdout().flush()?;
        }
        Some(state) => announce(&bind, address, &tokens, state, flags.print_join)?,
    }
    runtime.block_on(prepared.run(listener, stopping));
    if let Some(state) = state {
        // The secret stays, so that workers can come back; the address does not.
        let _ = fs::remove_file(state.join(JOIN_FILE));
    }
    // A parent that was killed cannot clean up; if it lives, it does so itself and this finds nothing.
    crate::cluster::remove_folders(&remove_at_end);
    Ok(exit::OK)
}

impl MasterCommand {
    /// Where what is learned of jobs is kept: the master of a `run` starts and ends without.
    fn history(&self, settings: &Settings, state: Option<&Path>) -> Option<PathBuf> {
        let named = self.history.clone().or_else(|| settings.history.clone());
        state.map(|state| named.unwrap_or_else(|| state.join(HISTORY_FILE)))
    }
}

/// Pools and their weights; none: any pool is welcome.
fn pools(flag: Option<&str>, settings: &Settings) -> anyhow::Result<BTreeMap<String, f64>> {
    let Some(text) = flag else { return check_pools(settings.pools.clone().unwrap_or_default()) };
    let mut pools = BTreeMap::new();
    for piece in text.split(',') {
        let pool = piece.split_once('=').and_then(|(name, weight)| Some((name, weight.parse::<f64>().ok()?)));
        let Some((name, weight)) = pool else {
            return Err(usage(format!("--pools: `{piece}` is not NAME=WEIGHT, such as reports=2")));
        };
        if pools.insert(name.to_owned(), weight).is_some() {
            return Err(usage(format!("--pools names `{name}` twice")));
        }
    }
    check_pools(pools)
}

fn check_pools(pools: BTreeMap<String, f64>) -> anyhow::Result<BTreeMap<String, f64>> {
    for (name, weight) in &pools {
        if name.is_empty() || !(weight.is_finite() && 0.0 < *weight) {
            return Err(usage(format!("--pools: `{name}={weight}` needs a name and a weight above 0")));
        }
    }
    Ok(pools)
}

fn parse_secret(child: &ChildConfig) -> anyhow::Result<Secret> {
    child.secret.parse().map_err(|_| usage("the parent's secret cannot be read".to_owned()))
}

fn bind(flags: &MasterCommand, state: &Path) -> anyhow::Result<Bind> {
    let ip = flags.listen.ip();
    let transport = match ip.is_loopback() || flags.plaintext.insecure_plaintext {
        true => Transport::Plain,
        false => {
            let mut names = vec![ip.to_string()];
            names.extend(flags.allow_host.iter().cloned());
            Transport::Tls(Identity::load_or_create(&state.join("identity"), &names)?)
        }
    };
    Ok(Bind {
        address: flags.listen,
        transport,
        permissions: flags.permissions.permissions(&flags.plaintext),
    })
}

fn warn_as_root(bind: &Bind, quiet: bool) {
    if !quiet && rustix::process::geteuid().is_root() && bind.address.ip().is_loopback() {
        tracing::warn!("running as root: whoever submits a job runs code as root");
    }
}

/// Leaves the join line in the state folder for this user's other commands, and shows it on a terminal; with `print`, on
/// stdout whatever that is.
fn announce(
    bind: &Bind,
    address: SocketAddr,
    tokens: &Tokens,
    state: &Path,
    print: bool,
) -> anyhow::Result<()> {
    let pin = match &bind.transport {
        Transport::Plain => None,
        Transport::Tls(identity) => Some(identity.pin()),
    };
    let path = state.join(JOIN_FILE);
    let line = tokens.keep_join(path.clone(), Endpoint::of_address(address, pin))?;
    let text = line.to_text();
    say!("master listens on {address}; its join line is in {} (keep it secret)", path.display());
    // What stdout was turned into others may read, today or later.
    if print || io::stdout().is_terminal() {
        stdout_line(&*text)?;
        io::stdout().flush()?;
    }
    say!(
        "start a worker with: gristmill worker --join FILE    (FILE from `gristmill token new work --output FILE`, or \
         - for stdin)"
    );
    Ok(())
}

/// `gristmill worker`: starts worker processes, replaces those that die, ends with the master.
pub fn worker(registry: Registry, settings: &Settings, flags: &WorkerCommand) -> anyhow::Result<u8> {
    if flags.from_parent {
        return worker_process(registry, flags);
    }
    log_to(None, "info");
    let line = flags.master.join_line(settings)?;
    let cluster = ClusterFlags {
        workers: flags.workers,
        shape: flags.shape.clone(),
        memory: flags.memory.clone(),
        spill_dir: flags.spill_dir.clone(),
        disk_reserve: flags.disk_reserve.clone(),
        shuffle: flags.shuffle,
        policy: None,
        placement: None,
        estimator: None,
        journal: None,
    };
    let config = cluster.config(settings)?;
    let Stoppable { runtime, stopping, .. } = Stoppable::start()?;
    // What the listeners of the children would refuse is refused here, once.
    worker_bind(&runtime, flags, &line.endpoint)?.validate(rustix::process::geteuid().is_root())?;
    // What is named is one worker's; what is not is a share of the machine, for all of them.
    let named = flags.memory.is_some() || settings.memory.is_some();
    let of_each = if named { u64::from(config.workers) } else { 1 };
    let workers = Workers {
        count: config.workers,
        slots: config.slot_counts(),
        speeds: config.speeds,
        nic_bytes_per_second: config.nic_bytes_per_second,
        memory_bytes: config.memory_bytes.saturating_mul(of_each),
        master: line.endpoint,
        token: line.token,
        plaintext: line.plaintext,
        spill_dirs: config.spill_dirs,
        disk_reserve_bytes: config.disk_reserve_bytes,
        shuffle: config.shuffle,
        flags: flags.for_children(),
    };
    Ok(runtime.block_on(workers.run(stopping))?)
}

impl WorkerCommand {
    /// The flags that each child needs too.
    fn for_children(&self) -> Vec<OsString> {
        let mut flags = Vec::new();
        let mut add = |flag: &str, value: Option<String>| {
            flags.push(OsString::from(flag));
            flags.extend(value.map(OsString::from));
        };
        if let Some(ip) = self.listen {
            add("--listen", Some(ip.to_string()));
        }
        if let Some(host) = &self.advertise {
            add("--advertise", Some(host.clone()));
        }
        for (flag, set) in [
            ("--insecure-plaintext", self.master.plaintext.insecure_plaintext),
            ("--listen-everywhere", self.permissions.listen_everywhere),
            ("--allow-root", self.permissions.allow_root),
        ] {
            if set {
                add(flag, None);
            }
        }
        flags
    }
}

/// One worker process, a child of `run` or of `worker`.
fn worker_process(registry: Registry, flags: &WorkerCommand) -> anyhow::Result<u8> {
    // In this order: the score of a process that is closed to its user is root's to change.
    crate::out_of_memory::offer_this_process_first();
    super::keep_memory_private();
    let Stoppable { runtime, stop, stopping, signalled, orphaned } = Stoppable::start()?;
    let child = child::settings(stop, orphaned.clone())?;
    let token = child.secret.parse().map_err(|_| usage("the parent's token cannot be read".to_owned()))?;
    let master = child.master.ok_or_else(|| usage("the parent named no master".to_owned()))?;
    let first =
        child.spill_dirs.first().ok_or_else(|| usage("the parent named no spill folder".to_owned()))?;
    let parents = child.spill_dirs.iter().filter_map(|folder| folder.parent());
    let holds = parents.map(crate::scratch::hold).collect::<io::Result<Vec<_>>>()?;
    let (capture, stderr) = Capture::start(first)?;
    log_to(Some(stderr), "warn");
    slots::install_panic_hook(exit::worker::BROKEN);
    // Without it nobody knows who brought the process down if several attempts run.
    if let Err(error) = crash::install(first) {
        tracing::warn!(%error, "crashes of this process cannot be traced to an attempt");
    }
    let config = WorkerConfig {
        bind: worker_bind(&runtime, flags, &master)?,
        master,
        token,
        slots: child.slots,
        memory: Bytes(child.memory_bytes),
        spill_dirs: child.spill_dirs.clone(),
        disk_reserve: Bytes(child.disk_reserve_bytes),
        read_in_place: child.shuffle == Shuffle::Auto,
        advertise: flags.advertise.clone(),
        host: gristmill_worker::host_name(),
        build: gristmill_worker::build_id(),
        join_patience: JOIN_PATIENCE,
        fetch: FetchLimits::default(),
        speed: child.speed,
        nic_bytes_per_second: child.nic_bytes_per_second,
        capture: Some(capture),
    };
    let running = || runtime.block_on(agent::run(config, Arc::new(registry), stopping));
    let Ok(ended) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(running)) else {
        // The hook has said what. Left to itself, it would look like an exit code of user code.
        std::process::exit(exit::worker::BROKEN);
    };
    let code = match ended {
        // Its parent asks by closing a pipe, and the master by a word.
        Ok(WorkerExit::Shutdown)
            if signalled.load(Ordering::Relaxed) && !orphaned.load(Ordering::Relaxed) =>
        {
            tracing::warn!("told to end by a signal, but not by whoever started it: it will be replaced");
            exit::worker::TERMINATED
        }
        Ok(WorkerExit::Shutdown) => exit::worker::ASKED,
        // Another process tries to join again; only one that cannot for a while gives up.
        Ok(WorkerExit::MasterGone) => {
            tracing::warn!("the connection to the master is gone");
            exit::worker::RENEW
        }
        Ok(WorkerExit::Stuck(attempt)) => {
            tracing::warn!(%attempt, "user code does not stop; ending this process");
            exit::worker::RENEW
        }
        Ok(WorkerExit::Broken) => exit::worker::BROKEN,
        Err(error) => {
            // The error cannot go to stderr as usual: that is where user output goes.
            tracing::error!("{}", crate::chain(&error));
            match error {
                WorkerError::Unreachable { .. } => exit::worker::MASTER_GONE,
                WorkerError::Unauthorised { .. } => exit::worker::UNAUTHORISED,
                WorkerError::Start { .. } | WorkerError::Listen { .. } => exit::worker::LACKING,
                _ => exit::worker::REFUSED,
            }
        }
    };
    if code == exit::worker::ASKED {
        // The parent does this too, unless it was killed.
        crate::cluster::leave_folders(&child.spill_dirs, holds, orphaned.load(Ordering::Relaxed));
    }
    // Slot threads may still be inside user code, which nothing can stop: end them with the process.
    std::process::exit(code)
}

/// The shuffle server listens on the address from which the master is reached, with the master's transport.
fn worker_bind(
    runtime: &tokio::runtime::Runtime,
    flags: &WorkerCommand,
    master: &Endpoint,
) -> anyhow::Result<Bind> {
    let ip = match flags.listen {
        Some(ip) => ip,
        None => runtime.block_on(own_address(master)).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
    };
    let transport = match (&master.pin, ip.is_loopback()) {
        (Some(_), false) => {
            let mut names = vec![ip.to_string()];
            names.extend(flags.advertise.clone());
            Transport::Tls(Identity::generate(&names)?)
        }
        _ => Transport::Plain,
    };
    Ok(Bind {
        address: SocketAddr::new(ip, 0),
        transport,
        permissions: flags.permissions.permissions(&flags.master.plaintext),
    })
}

/// The address this machine has on the way to the master, found without waiting for the master to be there: a
/// datagram socket only looks the route up.
async fn own_address(master: &Endpoint) -> Option<IpAddr> {
    let target = tokio::net::lookup_host((master.host.as_str(), master.port)).await.ok()?.next()?;
    let any: IpAddr = match target.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = tokio::net::UdpSocket::bind(SocketAddr::new(any, 0)).await.ok()?;
    socket.connect(target).await.ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_come_from_the_flag_or_else_from_the_settings() {
        let settings: Settings = toml::from_str("[pools]\nnightly = 0.5").unwrap();
        let weights = |flag: Option<&str>| pools(flag, &settings).map_err(|error| error.to_string());
        assert_eq!(
            weights(Some("a=2,b=1.5")).unwrap(),
            [("a".to_owned(), 2.0), ("b".to_owned(), 1.5)].into()
        );
        assert_eq!(weights(None).unwrap(), [("nightly".to_owned(), 0.5)].into());
        assert!(pools(None, &Settings::default()).unwrap().is_empty(), "any pool is welcome");
        for (flag, words) in
            [("", "NAME=WEIGHT"), ("=1", "needs a name"), ("a=-1", "weight above 0"), ("a=nan", "above 0")]
        {
            let error = weights(Some(flag)).unwrap_err();
            assert!(error.contains(words), "{flag}: {error}");
        }
    }
}
