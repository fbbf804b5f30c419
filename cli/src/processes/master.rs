//! `gristmill cluster master`: a master that a person starts, and the one that is a child of `run`.

use super::addresses;
use super::log::{log_to, print_message};
use super::stoppable::Stoppable;
use crate::child;
use crate::flags::{DeciderFlags, JOIN_FILE, ListenFlags, PlaintextFlag, pools, state_dir};
use crate::private_memory::keep_memory_private;
use crate::settings::Settings;
use crate::state::StateDirectory;
use crate::switches::FirstSignal;
use crate::terminal::stdout_line;
use crate::usage::usage;
use clap::Args;
use gristmill_runtime::cluster::{ChildConfig, MasterReady, remove_directories};
use gristmill_runtime::exit;
use gristmill_runtime::master::tokens::Tokens;
use gristmill_runtime::master::{MasterConfig, PreparedMaster};
use gristmill_runtime::registry::Registry;
use gristmill_worker::descriptors;
use gristmill_worker::http::{Bind, Endpoint, Identity, Transport, make_private_directory, resolve};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// File in the state directory by which numbers of jobs continue over restarts.
const REGISTER_FILE: &str = "jobs";

/// Directory in the state directory with ended jobs.
const ENDED_JOBS_DIRECTORY: &str = "ended-jobs";

/// File in the state directory from which a master recovers after the last one ended without notice.
const RECOVERY_FILE: &str = "recovery";

/// Start a master and print the line with which workers join
#[derive(Args)]
pub struct MasterCommand {
    /// Address to listen on; port 0 is the port of the last master in the state directory, or any
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = parse_listen)]
    listen: SocketAddr,
    /// A host name with which the master is reached; several allowed
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    #[command(flatten)]
    deciders: DeciderFlags,
    /// Pools that jobs may name, with their weights; others are rejected [default: any, with the weight of its first
    /// job]
    #[arg(long, value_name = "NAME=W,...", hide_short_help = true)]
    pools: Option<String>,
    /// Accept only workers with --map-slots and --reduce-slots
    #[arg(long, hide_short_help = true)]
    divided_slots: bool,
    /// Accept jobs of Hadoop Streaming: users who may submit can then run any command on the workers
    #[arg(long)]
    pub allow_commands: bool,
    #[command(flatten)]
    permissions: ListenFlags,
    #[command(flatten)]
    plaintext: PlaintextFlag,
    /// Directory for the secret and the join line [default: $GRISTMILL_STATE, else gristmill in $XDG_STATE_HOME, else
    /// in ~/.local/state]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print the join line on stdout even if that is not a terminal: its readers have the secret
    #[arg(long)]
    print_join: bool,
}

/// `gristmill cluster master`.
pub fn master(registry: Registry, settings: &Settings, flags: &MasterCommand) -> anyhow::Result<u8> {
    descriptors::ensure_enough()?;
    let pools = pools(flags.pools.as_deref(), settings)?;
    let deciders = flags.deciders.names(settings, !pools.is_empty()).make(&registry).map_err(usage)?;
    let journal = flags.deciders.journal(settings)?;
    let Stoppable { runtime, requests, .. } = Stoppable::start(FirstSignal::Leaves)?;
    log_to(None, "info");
    let mut held = flags.take_state(settings)?;
    let tokens = Arc::new(Tokens::of_state(held.path())?);
    let bind = bind(flags, held.path())?;
    warn_as_root(&bind);
    let (listener, address) = runtime.block_on(held.listen(&bind))?;
    let state = held.path();
    let prepared = PreparedMaster::new(MasterConfig {
        bind: bind.clone(),
        host_names: flags.allow_host.clone(),
        tokens: tokens.clone(),
        build: gristmill_worker::build_id(),
        deciders,
        registry,
        pools,
        divided_slots: flags.divided_slots || settings.map_slots.is_some(),
        backups: flags.deciders.backups(settings),
        divides: flags.deciders.divides(settings),
        journal,
        recovery: Some(state.join(RECOVERY_FILE)),
        register: Some(state.join(REGISTER_FILE)),
        archive: Some(state.join(ENDED_JOBS_DIRECTORY)),
    })?;
    announce(&bind, address, &tokens, state, flags.print_join)?;
    // The secret is kept, so that workers can reconnect; the address is kept only if a next master is
    // expected.
    if !runtime.block_on(prepared.run(listener, requests)) {
        let _ = fs::remove_file(state.join(JOIN_FILE));
    }
    Ok(exit::OK)
}

/// The master of an embedded cluster, a child of `run`. It keeps no state: it may be one of many.
pub(super) fn master_process(registry: Registry) -> anyhow::Result<u8> {
    keep_memory_private();
    let Stoppable { runtime, switches, requests } = Stoppable::start(FirstSignal::Ends)?;
    log_to(None, "warn");
    let ChildConfig::Master(child) = child::settings(switches)? else {
        return Err(usage("the parent started a master with the settings of a worker".to_owned()));
    };
    let secret = child.secret.parse().map_err(|_| usage("the parent's secret cannot be read".to_owned()))?;
    let bind = Bind::loopback();
    let listener = runtime.block_on(bind.listen())?;
    let port = listener.local_addr()?.port();
    let prepared = PreparedMaster::new(MasterConfig {
        bind,
        host_names: Vec::new(),
        tokens: Arc::new(Tokens::of_secret(secret)),
        build: gristmill_worker::build_id(),
        deciders: child.deciders.make(&registry).map_err(usage)?,
        registry,
        pools: child.pools,
        divided_slots: child.divided_slots,
        backups: child.backups,
        divides: child.divides,
        journal: child.journal.map(|journal| journal.to_path().to_path_buf()),
        recovery: None,
        register: None,
        archive: None,
    })?;
    stdout_line(&serde_json::to_string(&MasterReady { port })?)?;
    io::stdout().flush()?;
    runtime.block_on(prepared.run(listener, requests));
    // A parent that was killed cannot clean up. A live parent does so itself, and this finds nothing.
    remove_directories(&child.remove_at_end);
    Ok(exit::OK)
}

impl MasterCommand {
    /// State directory, held until it is dropped.
    fn take_state(&self, settings: &Settings) -> anyhow::Result<StateDirectory> {
        let directory = state_dir(self.state.as_ref(), settings)?;
        // This comes first: it refuses a directory that is not private to this user, in which nothing may be
        // written.
        make_private_directory(&directory)?;
        Ok(StateDirectory::lock(directory)?)
    }
}

/// Parses an address and a port; resolves a name.
fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = text.rsplit_once(':').ok_or("write HOST:PORT, as 127.0.0.1:7070")?;
    let port = port.parse().map_err(|_| format!("`{port}` is not a port; ports are from 0 to 65535"))?;
    let ip = resolve(host).ok_or_else(|| format!("could not resolve the host `{host}`"))?;
    Ok(SocketAddr::new(ip, port))
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
        last_port: 0,
        transport,
        permissions: flags.permissions.permissions(&flags.plaintext),
    })
}

fn warn_as_root(bind: &Bind) {
    if rustix::process::geteuid().is_root() && bind.address.ip().is_loopback() {
        tracing::warn!("running as root: submitted jobs run code as root");
    }
}

/// Writes the join line to the state directory for this user's other commands, and prints it on a terminal, with `print`
/// on any stdout.
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
    let everywhere = bind.address.ip().to_canonical().is_unspecified();
    let own = everywhere.then(|| addresses::of_this_machine(bind.address.ip()));
    let named =
        own.map_or(address, |own| SocketAddr::new(own.unwrap_or(Ipv4Addr::LOCALHOST.into()), address.port()));
    let line = tokens.keep_join(path.clone(), Endpoint::of_address(named, pin))?;
    let text = line.to_text();
    print_message(&format!(
        "master listens on {address}; its join line is in {} (keep it secret)",
        path.display()
    ));
    if everywhere {
        print_message(&format!(
            "the join line names {named}; where this machine is reached under another name or address, add --master HOST:{}",
            named.port()
        ));
    }
    // Others may read a redirected stdout, now or later.
    if print || io::stdout().is_terminal() {
        stdout_line(&*text)?;
        io::stdout().flush()?;
    }
    print_message(
        "start a worker with: gristmill cluster worker --join FILE    (FILE from `gristmill cluster token new work --output FILE`, or \
         - for stdin)",
    );
    Ok(())
}
