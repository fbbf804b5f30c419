//! What can be typed behind `up`, and what each of it means for master and workers.

use super::groups::{KubernetesFlags, MasterWords, NodeFlags, SshFlags, WorkerWords};
use super::record::{KubernetesPlace, Place, RayPlace, SlurmPlace, SshHost, SshPlace};
use super::{hosts, ssh};
use crate::flags::{ListenFlags, MasterFlags, PlaintextFlag};
use crate::settings::Settings;
use crate::usage::usage;
use clap::{Args, ValueEnum};
use gristmill_worker::http::{Endpoint, ListenAddress};
use std::hash::{BuildHasher, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// Name of the file with the line by which workers in Slurm's jobs join, in the state folder.
const SLURM_JOIN_FILE: &str = "slurm.join";

/// The program's file in an image that has nothing else.
const PROGRAM_OF_PODS: &str = "/gristmill";

/// The port that a route to a host is looked up with; nothing is sent there.
const SSH_PORT: u16 = 22;

/// What places the workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PlaceName {
    /// Hosts that the system's `ssh` reaches without asking anything
    Ssh,
    /// Slurm: a job array, one job for each node
    Slurm,
    /// Ray: one actor for each node
    Ray,
    /// Kubernetes: a pod for the master, and one for each node
    Kubernetes,
}

/// Bring a cluster up where something else places processes
///
/// The master runs here (with Kubernetes: there) and outlives this command; `gristmill down` ends it and its workers,
/// wherever they are.
#[derive(Args)]
#[command(after_help = "\
Examples:
  gristmill up --on ssh --hosts hosts.txt
  gristmill up --on slurm --listen 192.0.2.1 --nodes 8 --time 02:00:00
  gristmill up --on ray --listen 192.0.2.1 --nodes 4
  gristmill up --on kubernetes --image example/gristmill --nodes 4 --print
  gristmill submit wordcount words.txt --output counts
  gristmill down")]
pub struct UpCommand {
    /// What places the workers
    #[arg(long, value_name = "PLACE")]
    pub on: PlaceName,
    /// Address of this machine that the workers reach, perhaps with a port [default: with ssh that on the way to the
    /// first host]
    #[arg(long, value_name = "ADDR[:PORT]")]
    pub listen: Option<ListenAddress>,
    /// Folder for what is up, the secret and the join line [default: $GRISTMILL_STATE, else gristmill in
    /// $XDG_STATE_HOME, else in ~/.local/state]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// The program's file where the workers run; the same build [default: with ssh it is sent,
    /// in an image /gristmill, else the path of this one]
    #[arg(long, value_name = "PATH")]
    program: Option<String>,
    /// How long to wait for workers, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub wait: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub master: MasterWords,
    #[command(flatten)]
    pub workers: WorkerWords,
    #[command(flatten)]
    pub permissions: ListenFlags,
    #[command(flatten)]
    pub ssh: SshFlags,
    #[command(flatten)]
    pub nodes: NodeFlags,
    #[command(flatten)]
    pub kubernetes: KubernetesFlags,
}

/// The state folder of `up` and `down`.
///
/// # Errors
/// No folder given and no home to put one.
pub fn state_dir(named: Option<&PathBuf>, settings: &Settings) -> anyhow::Result<PathBuf> {
    let plaintext = PlaintextFlag::default();
    let flags = MasterFlags { master: None, join: None, state: named.cloned(), plaintext };
    // The master is another process, which may be elsewhere.
    Ok(std::path::absolute(flags.state_dir(settings)?)?)
}

/// A word that nobody else has.
fn new_name() -> String {
    // The standard library draws the keys of its hash maps at random.
    let drawn = std::hash::RandomState::new().build_hasher().finish();
    format!("gristmill-{drawn:016x}")
}

impl UpCommand {
    /// The state folder.
    ///
    /// # Errors
    /// As [`state_dir`].
    pub fn state(&self, settings: &Settings) -> anyhow::Result<PathBuf> {
        state_dir(self.state.as_ref(), settings)
    }

    /// Where the workers are to be.
    ///
    /// # Errors
    /// What was typed makes no place.
    pub fn place(&self, state: &Path) -> anyhow::Result<Place> {
        if self.on != PlaceName::Ssh && (self.ssh.hosts.is_some() || self.ssh.require_all) {
            return Err(usage("--hosts and --require-all are for --on ssh".to_owned()));
        }
        if self.nodes.print && matches!(self.on, PlaceName::Ssh | PlaceName::Ray) {
            return Err(usage("--print is for --on slurm and --on kubernetes".to_owned()));
        }
        let name = new_name();
        match self.on {
            PlaceName::Ssh => self.ssh_place(name).map(Place::Ssh),
            PlaceName::Slurm => {
                Ok(Place::Slurm(SlurmPlace { job: None, name, join: state.join(SLURM_JOIN_FILE) }))
            }
            PlaceName::Ray => Ok(Place::Ray(RayPlace {
                name,
                python: self.nodes.python.clone(),
                address: self.nodes.ray_address.clone(),
                nodes: self.nodes.nodes,
            })),
            PlaceName::Kubernetes => Ok(Place::Kubernetes(KubernetesPlace {
                name: self.kubernetes.name.clone(),
                namespace: self.kubernetes.namespace.clone(),
            })),
        }
    }

    fn ssh_place(&self, name: String) -> anyhow::Result<SshPlace> {
        let Some(hosts) = &self.ssh.hosts else {
            return Err(usage("--on ssh needs --hosts FILE, with a host on each line".to_owned()));
        };
        let program = match &self.program {
            Some(program) if ssh::is_plain(program) => program.clone(),
            Some(program) => {
                let why = "write letters, digits, . / _ + and - alone: the shells of all hosts must take it as one word";
                return Err(usage(format!("--program {program}: {why}")));
            }
            None => ssh::sent_program()?,
        };
        let config = self.ssh.ssh_config.as_ref().map(std::path::absolute).transpose()?;
        let (connect_s, at_once) = (self.ssh.connect_timeout, self.ssh.at_once);
        Ok(SshPlace { name, config, connect_s, at_once, program, hosts: hosts::read(hosts)? })
    }

    /// Whether the program goes to hosts that lack it.
    pub fn sends_program(&self) -> bool {
        self.program.is_none()
    }

    /// Where the master listens.
    ///
    /// # Errors
    /// An address that is not named and cannot be found.
    pub async fn listen(&self, place: &Place) -> anyhow::Result<SocketAddr> {
        if let Some(listen) = self.listen {
            return match listen.room() {
                None | Some(1) => Ok(SocketAddr::new(listen.ip, *listen.ports().start())),
                Some(_) => Err(usage(format!("--listen {listen}: a master has one port"))),
            };
        }
        let own: Option<IpAddr> = match place {
            Place::Ssh(place) => match place.hosts.first() {
                Some(SshHost { target, port, .. }) => {
                    let host = target.rsplit_once('@').map_or(target.as_str(), |(_, host)| host).to_owned();
                    Endpoint { host, port: port.unwrap_or(SSH_PORT), pin: None }.own_address().await
                }
                None => None,
            },
            Place::Slurm(_) | Place::Ray(_) | Place::Kubernetes(_) => None,
        };
        let address = own.ok_or_else(|| {
            usage("--listen is needed: an address of this machine that the workers reach".to_owned())
        })?;
        Ok(SocketAddr::new(address, 0))
    }

    /// Words for `gristmill master`.
    pub fn master_words(&self, listen: SocketAddr, state: &Path, settings: Option<&Path>) -> Vec<String> {
        let mut words = vec!["master".to_owned(), "--listen".to_owned(), listen.to_string()];
        words.extend(["--state".to_owned(), state.display().to_string()]);
        words.extend(
            settings.into_iter().flat_map(|path| ["--settings".to_owned(), path.display().to_string()]),
        );
        words.extend(self.master.words());
        let switches = [
            (self.permissions.allow_root, "--allow-root"),
            (self.permissions.listen_everywhere, "--listen-everywhere"),
        ];
        words.extend(switches.into_iter().filter(|(typed, _)| *typed).map(|(_, word)| word.to_owned()));
        words
    }

    /// Words for `gristmill worker` besides those that say how it joins; so many processes where that is named.
    pub fn worker_words(&self, workers: Option<u32>) -> Vec<String> {
        let flags = &self.workers;
        let mut words = Vec::new();
        let mut add = |flag: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
        };
        add("--workers", workers.or(flags.workers_per_host).map(|workers| workers.to_string()));
        add("--slots", flags.slots.map(|slots| slots.to_string()));
        add("--memory", flags.memory.clone());
        add("--ports", flags.worker_ports.clone());
        for folder in &flags.spill_dir {
            add("--spill-dir", Some(folder.display().to_string()));
        }
        if self.permissions.allow_root {
            words.push("--allow-root".to_owned());
        }
        words
    }

    /// The program's file in the image.
    pub fn program_of_pods(&self) -> &str {
        self.program.as_deref().unwrap_or(PROGRAM_OF_PODS)
    }

    /// The program's file on nodes that see the same files as this machine.
    ///
    /// # Errors
    /// This program's file is gone.
    pub fn program_of_nodes(&self) -> anyhow::Result<String> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None => Ok(std::env::current_exe()?.display().to_string()),
        }
    }
}
