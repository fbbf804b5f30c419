//! What can be typed behind `up`, in groups: for the master, for the workers, and for each place.

use clap::Args;
use std::path::PathBuf;

/// Most nodes.
const NODES_MAX: u32 = 1000;

/// For Kubernetes.
#[derive(Args)]
#[command(next_help_heading = "Kubernetes")]
pub struct KubernetesFlags {
    /// Image of the pods, in which this program is
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Namespace
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub namespace: String,
    /// Name of the cluster there
    #[arg(long, value_name = "NAME", default_value = "gristmill")]
    pub name: String,
    /// Memory of each pod of workers
    #[arg(long, value_name = "SIZE", default_value = "2Gi")]
    pub pod_memory: String,
}

/// For the master.
#[derive(Args)]
#[command(next_help_heading = "Master")]
pub struct MasterWords {
    /// Which job gets a slot, as with `gristmill master`
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Take jobs of Hadoop Streaming: whoever may submit can then run any command on the workers
    #[arg(long)]
    pub allow_commands: bool,
    /// Take jobs with programs of their own: whoever may submit can then run any code on the workers
    #[arg(long)]
    pub allow_ship: bool,
}

impl MasterWords {
    /// Words for `gristmill master` that hold wherever it runs.
    pub fn words(&self) -> Vec<String> {
        let policy = self.policy.iter().flat_map(|policy| ["--policy".to_owned(), policy.clone()]);
        let switches = [(self.allow_commands, "--allow-commands"), (self.allow_ship, "--allow-ship")];
        let switches = switches.into_iter().filter(|(typed, _)| *typed).map(|(_, word)| word.to_owned());
        policy.chain(switches).collect()
    }
}

/// For the workers.
#[derive(Args)]
#[command(next_help_heading = "Workers")]
pub struct WorkerWords {
    /// Worker processes on each host or node [default: one for each core there]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub workers_per_host: Option<u32>,
    /// Slots of each worker [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub slots: Option<u32>,
    /// Memory of each worker [default: all of a host together a quarter of what it has]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Folder there for what does not fit in memory; several allowed [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub spill_dir: Vec<PathBuf>,
    /// Ports of which each worker takes one [default: any]
    #[arg(long, value_name = "PORT-PORT")]
    pub worker_ports: Option<String>,
}

/// For ssh.
#[derive(Args)]
#[command(next_help_heading = "Ssh")]
pub struct SshFlags {
    /// File with the hosts, one on each line: [USER@]HOST[:PORT] [workers=N]; - for standard input
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
    /// Bring nothing up unless every host takes part
    #[arg(long)]
    pub require_all: bool,
    /// Hosts that are spoken to at once
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub at_once: u32,
    /// How long a connection may take, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub connect_timeout: u32,
    /// Settings of ssh, in the place of the user's
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
}

/// For what has nodes.
#[derive(Args)]
#[command(next_help_heading = "Slurm, Ray and Kubernetes")]
pub struct NodeFlags {
    /// How many nodes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(NODES_MAX)))]
    pub nodes: u32,
    /// Slurm: longest run of the workers, which leave 90 s before
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// Slurm: a further option of sbatch, such as --partition=short; several allowed
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// Slurm and Kubernetes: print what is handed in, without its secrets, and start nothing
    #[arg(long)]
    pub print: bool,
    /// Ray: address of the cluster, as ray.init takes it
    #[arg(long, value_name = "ADDRESS", default_value = "auto")]
    pub ray_address: String,
    /// Ray: the Python that has it
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub python: PathBuf,
}
