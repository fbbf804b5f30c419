//! Flags of `cluster up` and `cluster down`, and the command lines of master and workers that follow from them.

use super::hosts::read_hosts;
use super::record::WorkerPlace;
use crate::flags::ListenFlags;
use crate::usage::usage;
use clap::{Args, ValueEnum, value_parser};
use gristmill_worker::http::ListenAddress;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Heading of flags.
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
  gristmill cluster up --on ssh --listen 192.0.2.1 --hosts hosts.txt
  gristmill cluster up --on slurm --listen 192.0.2.1 --nodes 8 --sbatch=--time=02:00:00
  gristmill cluster up --on ray --listen 192.0.2.1 --nodes 4 -- --slots 2 --memory 1GiB
  gristmill cluster up --on kubernetes --image example/gristmill --nodes 4 | kubectl create -f -
  gristmill submit wordcount words.txt --output counts
  gristmill cluster down")]
pub struct UpCommand {
    /// System that starts the workers
    #[arg(long, value_name = "PLACE")]
    on: PlaceName,
    /// Address of this machine that the workers reach, with or without a port; not for Kubernetes
    #[arg(long, value_name = "ADDR[:PORT]")]
    listen: Option<ListenAddress>,
    /// Directory for the record of the cluster, the secret and the join line [default: $GRISTMILL_STATE, else gristmill
    /// in $XDG_STATE_HOME, else in ~/.local/state]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Path of gristmill where the workers run; the same build [default: with ssh it is sent, else the path of this one]
    #[arg(long, value_name = "PATH", hide_short_help = true)]
    pub program: Option<String>,
    /// Slurm and Kubernetes: print the batch script or the manifests without secrets, and start nothing
    #[arg(long)]
    pub print: bool,
    /// A further flag of `gristmill cluster master`, such as --policy=fair; several allowed
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub master_flag: Vec<String>,
    /// Worker processes on each host or node [default: one for each core there]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    pub workers_per_host: Option<u32>,
    /// Ssh: file with the hosts, one on each line: [USER@]HOST; - for standard input
    #[arg(long, value_name = "FILE", required_if_eq("on", "ssh"))]
    hosts: Option<PathBuf>,
    /// Number of nodes
    #[arg(long, value_name = "N", help_heading = NODES, default_value_t = 1, value_parser = value_parser!(u32).range(1..=1000))]
    pub nodes: u32,
    /// Slurm: a further option of sbatch, such as --time=02:00:00; several allowed
    #[arg(long, value_name = "OPTION", help_heading = NODES, allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// Kubernetes: image of the pods, with gristmill at /gristmill
    #[arg(long, value_name = "IMAGE", help_heading = NODES, required_if_eq("on", "kubernetes"))]
    pub image: Option<String>,
    /// Kubernetes: memory of each pod of workers
    #[arg(long, value_name = "SIZE", help_heading = NODES, default_value = "2Gi", hide_short_help = true)]
    pub pod_memory: String,
    /// Further flags of `gristmill cluster worker`
    #[arg(last = true, value_name = "WORKER FLAG")]
    pub worker_flags: Vec<String>,
    #[command(flatten)]
    permissions: ListenFlags,
}

/// End what `gristmill cluster up` has started, here and elsewhere
///
/// Master and workers end, and their files on other hosts are removed.
#[derive(Args)]
pub struct DownCommand {
    /// The directory that was named to `gristmill cluster up` [default: as there]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Abandon running jobs
    #[arg(long)]
    pub now: bool,
    /// Forget hosts that cannot be reached: their workers end by themselves when they find no master for ten minutes
    #[arg(long)]
    pub forget: bool,
}

impl UpCommand {
    /// Returns where the workers run; `None` with Kubernetes.
    ///
    /// # Errors
    /// Flags that do not fit the place.
    pub fn place(&self, state: &Path) -> anyhow::Result<Option<WorkerPlace>> {
        if self.print && matches!(self.on, PlaceName::Ssh | PlaceName::Ray) {
            return Err(usage("--print is for --on slurm and --on kubernetes".to_owned()));
        }
        if self.hosts.is_some() && self.on != PlaceName::Ssh {
            return Err(usage("--hosts is for --on ssh".to_owned()));
        }
        Ok(match self.on {
            PlaceName::Ssh => {
                let hosts = read_hosts(self.hosts.as_deref().unwrap_or(Path::new("-")))?;
                Some(WorkerPlace::Ssh { hosts })
            }
            PlaceName::Slurm => Some(WorkerPlace::Slurm { join: state.join("slurm.join") }),
            PlaceName::Ray => Some(WorkerPlace::Ray),
            PlaceName::Kubernetes => None,
        })
    }

    /// Returns the arguments of the master on this machine. `settings` is the settings file that was typed.
    ///
    /// # Errors
    /// No address.
    pub fn master_words(&self, state: &Path, settings: Option<&Path>) -> anyhow::Result<Vec<String>> {
        let Some(listen) = self.listen else {
            let missing = "--listen is missing: name an address of this machine that the workers reach";
            return Err(usage(missing.to_owned()));
        };
        if listen.room().is_some_and(|ports| ports != 1) {
            return Err(usage("a master has one port: --listen ADDRESS:PORT".to_owned()));
        }
        let listen = SocketAddr::new(listen.ip, *listen.ports().start()).to_string();
        let state = state.display().to_string();
        let mut words = ["master", "--listen", &listen, "--state", &state].map(str::to_owned).to_vec();
        if let Some(settings) = settings {
            words.extend(["--settings".to_owned(), std::path::absolute(settings)?.display().to_string()]);
        }
        let ListenFlags { allow_root, listen_everywhere } = self.permissions;
        words.extend(allow_root.then(|| "--allow-root".to_owned()));
        words.extend(listen_everywhere.then(|| "--listen-everywhere".to_owned()));
        words.extend(self.master_flag.iter().cloned());
        Ok(words)
    }

    /// Returns the flags of `gristmill cluster worker`, other than --join.
    pub fn worker_words(&self) -> Vec<String> {
        let workers = self.workers_per_host.map(|workers| format!("--workers={workers}"));
        let root = self.permissions.allow_root.then(|| "--allow-root".to_owned());
        workers.into_iter().chain(root).chain(self.worker_flags.iter().cloned()).collect()
    }

    /// Returns the command of the workers on a node that sees the files of this machine.
    ///
    /// # Errors
    /// The file of this program does not exist any more.
    pub fn node_command(&self, join: &str) -> anyhow::Result<Vec<String>> {
        let own = || anyhow::Ok(std::env::current_exe()?.display().to_string());
        let program = self.program.clone().map_or_else(own, Ok)?;
        let mut words = vec![program, "worker".to_owned(), "--join".to_owned(), join.to_owned()];
        words.extend(self.worker_words());
        Ok(words)
    }
}
