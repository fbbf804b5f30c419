//! Flags of `up` and `down`, and the command lines of master and workers that follow from them.

use super::hosts;
use super::ray::RayPlace;
use super::record::Place;
use super::ssh::SshPlace;
use crate::flags::{ListenFlags, MasterFlags, PlaintextFlag};
use crate::settings::Settings;
use crate::usage::usage;
use clap::{Args, ValueEnum, value_parser};
use gristmill_worker::http::{Endpoint, ListenAddress};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Port with which the route to a host is looked up; nothing is sent there.
const SSH_PORT: u16 = 22;

/// Headings of flags.
const WORKERS: &str = "Workers";
const NODES: &str = "Slurm, Ray and Kubernetes";

/// System that starts the workers.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlaceName {
    /// Hosts that `ssh` reaches without asking for anything
    Ssh,
    /// Slurm: a job array, one job for each node
    Slurm,
    /// Ray: one actor for each node
    Ray,
    /// Kubernetes: a pod for the master, and one for each node
    Kubernetes,
}

/// Start a cluster by ssh, Slurm, Ray or Kubernetes
///
/// The master runs here and outlives this command; `gristmill cluster down` ends it and its workers, wherever they are. For
/// Kubernetes manifests are printed, for `kubectl create -f -`; the master is a pod.
#[derive(Args)]
#[command(after_help = "\
Examples:
  gristmill cluster up --on ssh --hosts hosts.txt
  gristmill cluster up --on slurm --listen 192.0.2.1 --nodes 8 --sbatch=--time=02:00:00
  gristmill cluster up --on ray --listen 192.0.2.1 --nodes 4
  gristmill cluster up --on kubernetes --image example/gristmill --nodes 4 | kubectl create -f -
  gristmill submit wordcount words.txt --output counts
  gristmill cluster down")]
pub struct UpCommand {
    /// System that starts the workers
    #[arg(long, value_name = "PLACE")]
    on: PlaceName,
    /// Address of this machine that the workers reach, with or without a port [default: with ssh the one on
    /// the route to the first host]
    #[arg(long, value_name = "ADDR[:PORT]")]
    listen: Option<ListenAddress>,
    /// Directory for the record of the cluster, the secret and the join line [default: $GRISTMILL_STATE, else gristmill
    /// in $XDG_STATE_HOME, else in ~/.local/state]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Path of gristmill where the workers run; the same build [default: with ssh it is sent, in an image /gristmill,
    /// else the path of this one]
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    program: Option<String>,
    /// Time to wait for workers, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, hide_short_help = true)]
    pub wait: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Slurm and Kubernetes: print the batch script or the manifests without secrets, and start nothing
    #[arg(long)]
    pub print: bool,
    /// Which job gets a slot, as with `gristmill cluster master`
    #[arg(long, value_name = "POLICY", help_heading = "Master")]
    policy: Option<String>,
    /// Accept jobs of Hadoop Streaming: users who may submit can then run any command on the workers
    #[arg(long, help_heading = "Master", hide_short_help = true)]
    allow_commands: bool,
    /// Accept jobs with their own programs: users who may submit can then run any code on the workers
    #[arg(long, help_heading = "Master", hide_short_help = true)]
    allow_ship: bool,
    /// Worker processes on each host or node [default: one for each core there]
    #[arg(long, value_name = "N", help_heading = WORKERS, value_parser = value_parser!(u32).range(1..=1000))]
    pub workers_per_host: Option<u32>,
    /// Slots of each worker [default: 1]
    #[arg(long, value_name = "N", help_heading = WORKERS, value_parser = value_parser!(u32).range(1..=1000), hide_short_help = true)]
    slots: Option<u32>,
    /// Memory of each worker [default: 25 % of a host's memory for all of them]
    #[arg(long, value_name = "SIZE", help_heading = WORKERS)]
    memory: Option<String>,
    /// Directory there for what does not fit in memory; several allowed [default: the system's temporary directory]
    #[arg(long, value_name = "DIR", help_heading = WORKERS, hide_short_help = true)]
    spill_dir: Vec<String>,
    /// Ports of which each worker takes one [default: any]
    #[arg(long, value_name = "PORT-PORT", help_heading = WORKERS, hide_short_help = true)]
    worker_ports: Option<String>,
    #[command(flatten)]
    permissions: ListenFlags,
    /// File with the hosts, one on each line: [USER@]HOST[:PORT] [workers=N]; - for standard input
    #[arg(long, value_name = "FILE", help_heading = "Ssh")]
    hosts: Option<PathBuf>,
    /// Start nothing unless every host takes part
    #[arg(long, help_heading = "Ssh")]
    pub require_all: bool,
    /// Timeout of a connection, seconds
    #[arg(long, value_name = "SECONDS", help_heading = "Ssh", default_value_t = 10, value_parser = value_parser!(u32).range(1..=600), hide_short_help = true)]
    connect_timeout: u32,
    /// Settings file of ssh instead of the user's
    #[arg(long, value_name = "FILE", help_heading = "Ssh", hide_short_help = true)]
    ssh_config: Option<PathBuf>,
    /// Number of nodes
    #[arg(long, value_name = "N", help_heading = NODES, default_value_t = 1, value_parser = value_parser!(u32).range(1..=1000))]
    pub nodes: u32,
    /// Slurm: a further option of sbatch, such as --time=02:00:00; several allowed
    #[arg(long, value_name = "OPTION", help_heading = NODES, allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// Ray: address of the cluster, as ray.init takes it
    #[arg(long, value_name = "ADDRESS", help_heading = NODES, default_value = "auto", hide_short_help = true)]
    ray_address: String,
    /// Ray: the Python that has it
    #[arg(long, value_name = "PATH", help_heading = NODES, default_value = "python3", hide_short_help = true)]
    python: PathBuf,
    /// Kubernetes: image of the pods, with gristmill in it
    #[arg(long, value_name = "IMAGE", help_heading = NODES)]
    pub image: Option<String>,
    /// Kubernetes: namespace
    #[arg(long, value_name = "NAME", help_heading = NODES, default_value = "default", hide_short_help = true)]
    pub namespace: String,
    /// Kubernetes: name of the cluster
    #[arg(long, value_name = "NAME", help_heading = NODES, default_value = "gristmill", hide_short_help = true)]
    pub name: String,
    /// Kubernetes: memory of each pod of workers
    #[arg(long, value_name = "SIZE", help_heading = NODES, default_value = "2Gi", hide_short_help = true)]
    pub pod_memory: String,
}

/// End what `gristmill cluster up` has started, here and elsewhere
///
/// Waits for running jobs, by default for 80 s. Then master and workers end, and their files on other hosts
/// are removed.
#[derive(Args)]
pub struct DownCommand {
    /// The directory that was named to `gristmill cluster up` [default: as there]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Time to wait for running jobs, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 80)]
    grace: u32,
    /// Do not wait for running jobs
    #[arg(long, conflicts_with = "grace")]
    now: bool,
    /// Forget hosts that cannot be reached: their workers end by themselves when they find no master for ten minutes
    #[arg(long)]
    pub forget: bool,
}

fn state(named: Option<&PathBuf>, settings: &Settings) -> anyhow::Result<PathBuf> {
    let plaintext = PlaintextFlag::default();
    let flags = MasterFlags { master: None, join: None, state: named.cloned(), plaintext };
    Ok(std::path::absolute(flags.state_dir(settings)?)?)
}

/// Adds a flag for each value.
fn add<T: ToString>(words: &mut Vec<String>, flag: &str, values: impl IntoIterator<Item = T>) {
    words.extend(values.into_iter().flat_map(|value| [flag.to_owned(), value.to_string()]));
}

/// Adds the switches that were typed.
fn add_switches<const N: usize>(words: &mut Vec<String>, switches: [(&str, bool); N]) {
    words.extend(switches.into_iter().filter(|(_, typed)| *typed).map(|(flag, _)| flag.to_owned()));
}

impl DownCommand {
    pub fn state(&self, settings: &Settings) -> anyhow::Result<PathBuf> {
        state(self.state.as_ref(), settings)
    }

    pub fn grace(&self) -> Duration {
        Duration::from_secs(if self.now { 0 } else { u64::from(self.grace) })
    }
}

impl UpCommand {
    pub fn state(&self, settings: &Settings) -> anyhow::Result<PathBuf> {
        state(self.state.as_ref(), settings)
    }

    /// Returns where the workers run; `None` with Kubernetes.
    ///
    /// # Errors
    /// Flags that do not fit the place.
    pub fn place(&self, state: &Path) -> anyhow::Result<Option<Place>> {
        if self.on != PlaceName::Ssh && (self.hosts.is_some() || self.require_all) {
            return Err(usage("--hosts and --require-all are for --on ssh".to_owned()));
        }
        if self.print && matches!(self.on, PlaceName::Ssh | PlaceName::Ray) {
            return Err(usage("--print is for --on slurm and --on kubernetes".to_owned()));
        }
        Ok(match self.on {
            PlaceName::Ssh => {
                let Some(hosts) = &self.hosts else {
                    return Err(usage("--on ssh needs --hosts FILE, with a host on each line".to_owned()));
                };
                let config = self.ssh_config.as_ref().map(std::path::absolute).transpose()?;
                let (connect_s, hosts) = (self.connect_timeout, hosts::read(hosts)?);
                Some(Place::Ssh(SshPlace { config, connect_s, hosts }))
            }
            PlaceName::Slurm => Some(Place::Slurm { join: state.join("slurm.join") }),
            PlaceName::Ray => {
                let (python, address) = (self.python.clone(), self.ray_address.clone());
                Some(Place::Ray(RayPlace { python, address }))
            }
            PlaceName::Kubernetes => None,
        })
    }

    /// Returns the address on which the master listens.
    ///
    /// # Errors
    /// An address that is not given and cannot be found.
    pub async fn listen(&self, place: &Place) -> anyhow::Result<SocketAddr> {
        if let Some(listen) = self.listen {
            return match listen.room() {
                None | Some(1) => Ok(SocketAddr::new(listen.ip, *listen.ports().start())),
                Some(_) => Err(usage(format!("--listen {listen}: a master has one port"))),
            };
        }
        let first = if let Place::Ssh(place) = place { place.hosts.first() } else { None };
        let own = match first {
            Some(first) => {
                let host = first.target.rsplit('@').next().unwrap_or_default().to_owned();
                Endpoint { host, port: first.port.unwrap_or(SSH_PORT), pin: None }.own_address().await
            }
            None => None,
        };
        let needed = || {
            usage("--listen is missing: name an address of this machine that the workers reach".to_owned())
        };
        Ok(SocketAddr::new(own.ok_or_else(needed)?, 0))
    }

    /// Returns the arguments of the master on this machine.
    pub fn master_words(&self, listen: SocketAddr, state: &Path, settings: Option<&Path>) -> Vec<String> {
        let mut words = vec!["master".to_owned()];
        add(&mut words, "--listen", [listen]);
        add(&mut words, "--state", [state.display()]);
        add(&mut words, "--settings", settings.map(Path::display));
        let ListenFlags { allow_root, listen_everywhere } = self.permissions;
        add_switches(&mut words, [("--allow-root", allow_root), ("--listen-everywhere", listen_everywhere)]);
        self.add_master_flags(&mut words);
        words
    }

    /// Adds the flags of `gristmill cluster master` that hold wherever it runs.
    pub fn add_master_flags(&self, words: &mut Vec<String>) {
        add(words, "--policy", self.policy.as_ref());
        add_switches(words, [("--allow-commands", self.allow_commands), ("--allow-ship", self.allow_ship)]);
    }

    /// Returns the flags of `gristmill cluster worker`, other than --join. `workers` is the number of this host.
    pub fn worker_words(&self, workers: Option<u32>) -> Vec<String> {
        let mut words = Vec::new();
        add(&mut words, "--workers", workers.or(self.workers_per_host));
        add(&mut words, "--slots", self.slots);
        add(&mut words, "--memory", self.memory.as_ref());
        add(&mut words, "--ports", self.worker_ports.as_ref());
        add(&mut words, "--spill-dir", &self.spill_dir);
        add_switches(&mut words, [("--allow-root", self.permissions.allow_root)]);
        words
    }

    /// Returns the given program.
    pub fn program(&self) -> Option<&str> {
        self.program.as_deref()
    }

    /// Returns the command of the workers on a node that sees the files of this machine.
    ///
    /// # Errors
    /// The file of this program does not exist any more.
    pub fn node_command(&self, join: &str) -> anyhow::Result<Vec<String>> {
        let own = || anyhow::Ok(std::env::current_exe()?.display().to_string());
        let program = self.program.clone().map_or_else(own, Ok)?;
        let mut words = vec![program, "worker".to_owned(), "--join".to_owned(), join.to_owned()];
        words.extend(self.worker_words(None));
        Ok(words)
    }
}
