//! Flags that several commands share, and what they mean together with the settings file.
//!
//! Two steps: what was typed (the structs here), then what it means (their methods).

use crate::settings::Settings;
use crate::trusted::{self, Closed, TrustError};
use crate::usage::usage;
use crate::worker_flags::WorkerFlags;
use clap::Args;
use gristmill_runtime::api::ExactWork;
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::deciders::DeciderNames;
use gristmill_runtime::size::parse_bytes;
use gristmill_runtime::submit::JobOptions;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::http::{Endpoint, JoinLine, Permissions, Plaintext};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Share of the machine's memory that an embedded cluster or a worker takes unless told otherwise: a quarter, so
/// that the page cache and the user's other programs keep the rest.
const MEMORY_SHARE: u64 = 4;

/// Size of an embedded cluster.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterFlags {
    #[command(flatten)]
    pub workers: WorkerFlags,
    /// Memory of all workers together, such as 2GiB [default: a quarter of the machine's]
    #[arg(long, global = true, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Which job gets a slot: NAME or NAME:PARAMETERS; `gristmill sim --list` shows them [default: gristmill]
    #[arg(long, global = true, value_name = "POLICY")]
    pub policy: Option<String>,
    /// Which worker gets a task: NAME or NAME:PARAMETERS; `gristmill sim --list` shows them [default: pull]
    #[arg(long, global = true, value_name = "PLACEMENT")]
    pub placement: Option<String>,
    /// How policies learn how large jobs are; `gristmill sim --list` shows them [default: history]
    #[arg(long, global = true, value_name = "ESTIMATOR")]
    pub estimator: Option<String>,
    /// Write down every decision of the master, for `replay` and `whatif`; the file must not exist
    #[arg(long, global = true, value_name = "FILE")]
    pub journal: Option<PathBuf>,
}

impl ClusterFlags {
    /// The size of the cluster.
    ///
    /// # Errors
    /// Numbers that make no cluster.
    pub fn config(&self, settings: &Settings) -> anyhow::Result<ClusterConfig> {
        let count = self.workers.count(settings)?;
        let memory = memory(self.memory.as_ref().or(settings.memory.as_ref()))?;
        Ok(ClusterConfig {
            workers: self.workers.workers(settings, Bytes(memory / u64::from(count)))?,
            deciders: DeciderNames {
                policy: policy(self.policy.as_ref(), settings, false),
                placement: placement(self.placement.as_ref(), settings),
                estimator: estimator(self.estimator.as_ref(), settings),
            },
            journal: journal(self.journal.as_ref(), settings)?,
        })
    }
}

/// Who decides if nobody says otherwise. `benches/results` has the comparison that speaks for it.
const DEFAULT_POLICY: &str = "gristmill";

/// Who decides where pools were named, if nobody says otherwise: it shares by them.
const DEFAULT_POLICY_OF_POOLS: &str = "fair";

/// The policy of a flag or the settings, or the default of a master with or without `pools`.
pub fn policy(flag: Option<&String>, settings: &Settings, pools: bool) -> String {
    let default = if pools { DEFAULT_POLICY_OF_POOLS } else { DEFAULT_POLICY };
    flag.or(settings.policy.as_ref()).cloned().unwrap_or_else(|| default.to_owned())
}

/// The placement of a flag or the settings, or the default.
pub fn placement(flag: Option<&String>, settings: &Settings) -> String {
    flag.or(settings.placement.as_ref()).cloned().unwrap_or_else(|| "pull".to_owned())
}

/// The estimator of a flag or the settings, or the default.
pub fn estimator(flag: Option<&String>, settings: &Settings) -> String {
    flag.or(settings.estimator.as_ref()).cloned().unwrap_or_else(|| "history".to_owned())
}

/// Where the journal goes, if anywhere.
///
/// # Errors
/// A file that is there already, or a folder that is not.
pub fn journal(flag: Option<&PathBuf>, settings: &Settings) -> anyhow::Result<Option<PathBuf>> {
    let path = flag.or(settings.journal.as_ref()).cloned();
    let wrong = |path: &Path, reason: &str| Err(usage(format!("--journal {}: {reason}", path.display())));
    match path.as_deref() {
        Some(path) if path.exists() => wrong(path, "that file exists already"),
        Some(path) if !std::path::absolute(path)?.parent().is_some_and(Path::is_dir) => {
            wrong(path, "its folder does not exist")
        }
        _ => Ok(path),
    }
}

/// Bytes of memory as named, or a quarter of the machine's.
///
/// # Errors
/// A text that is no size, or less than 16 MiB.
pub fn memory(text: Option<&String>) -> anyhow::Result<u64> {
    const LEAST: u64 = 16 << 20;
    match text {
        Some(text) => match parse_bytes(text).map_err(|error| usage(format!("--memory: {error}")))? {
            bytes if bytes < LEAST => Err(usage(format!("--memory {text} is less than 16MiB"))),
            bytes => Ok(bytes),
        },
        None => Ok((gristmill_worker::machine_memory_bytes() / MEMORY_SHARE).max(LEAST)),
    }
}

/// How a job is run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Job")]
pub struct JobFlags {
    /// Output directory; it must not exist or be empty
    #[arg(long, global = true, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace an output directory that has something in it
    #[arg(long, global = true)]
    pub overwrite: bool,
    /// Number of parts [default: one for each slot]
    #[arg(long, global = true, value_name = "N")]
    pub reduces: Option<u32>,
    /// Bytes of input of one map task [default: 64MiB]
    #[arg(long, global = true, value_name = "SIZE")]
    pub split_size: Option<String>,
    /// Weight beside other jobs, for policies that share or order by it: `fair`, `gristmill`, `ps`, `k-lps`
    #[arg(long, global = true, value_name = "W", default_value_t = 1.0)]
    pub weight: f64,
    /// Pool under the policy `fair` [default: one of its own]
    #[arg(long, global = true, value_name = "NAME")]
    pub pool: Option<String>,
    /// What to call the job: history takes jobs of one label to be alike [default: the job's name]
    #[arg(long, global = true, value_name = "TEXT")]
    pub label: Option<String>,
    /// Urgency, for the policy `fifo`; the higher the sooner
    #[arg(long, global = true, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub priority: i32,
    /// Time from its arrival within which the job should end, such as 30s or 5min: a wish that reports judge
    /// by, and that `min-scheduler` and `max-scheduler` plan by
    #[arg(long, global = true, value_name = "TIME", allow_hyphen_values = true)]
    pub deadline: Option<String>,
    /// For experiments: the job's work as measured before, for the estimator `oracle`
    #[arg(long, global = true, value_name = "FILE")]
    pub exact: Option<PathBuf>,
    /// Tries of a task before the job fails
    #[arg(long, global = true, value_name = "N", default_value_t = 4)]
    pub attempts: u32,
    /// Do not wait until the output is on disk
    #[arg(long, global = true)]
    pub no_sync: bool,
    /// Longest record
    #[arg(long, global = true, value_name = "SIZE", default_value = "64MiB")]
    pub max_record: String,
    /// Bytes that may come out of a compressed input for each byte of it
    #[arg(long, global = true, value_name = "N", default_value_t = 200)]
    pub max_expansion: u32,
    /// Seconds without a record after which user code counts as hanging
    #[arg(long, global = true, value_name = "S", default_value_t = 600.0)]
    pub hang_after: f64,
    /// Print the report as JSON on stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// Write a trace for ui.perfetto.dev or chrome://tracing
    #[arg(long, global = true, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Print nothing on stderr but errors
    #[arg(long, global = true)]
    pub quiet: bool,
    /// Address on which inputs are offered to workers that do not see them
    #[arg(long, global = true, value_name = "IP")]
    pub serve: Option<std::net::IpAddr>,
}

impl JobFlags {
    /// The options of a job that writes to `output`.
    ///
    /// # Errors
    /// Values that make no sense.
    pub fn options(&self, settings: &Settings, output: PathBuf) -> anyhow::Result<JobOptions> {
        let size = |flag: &str, text: &str| match parse_bytes(text) {
            Ok(0) => Err(usage(format!("{flag} must be at least 1"))),
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(usage(format!("{flag}: {error}"))),
        };
        let reduces = self.reduces.or(settings.reduces);
        if reduces == Some(0) {
            return Err(usage(
                "--reduces must be at least 1; a job without a reduce says so itself".to_owned(),
            ));
        }
        if reduces.is_some_and(|reduces| REDUCES_MAX < reduces) {
            return Err(usage(format!("--reduces is more than {REDUCES_MAX}")));
        }
        if self.attempts == 0 {
            return Err(usage("--attempts must be at least 1".to_owned()));
        }
        if !(self.weight.is_finite() && 0.0 < self.weight) {
            return Err(usage(format!("--weight {} is not a number above 0", self.weight)));
        }
        if !(0.1..=1e6).contains(&self.hang_after) {
            return Err(usage(format!(
                "--hang-after {} must be from 0.1 to 1000000 seconds",
                self.hang_after
            )));
        }
        let mut options = JobOptions::new(output);
        if let Some(text) = self.split_size.as_ref().or(settings.split_size.as_ref()) {
            options.split_bytes = size("--split-size", text)?;
        }
        options.overwrite = self.overwrite;
        options.reduces = reduces;
        options.weight = self.weight;
        options.pool = self.pool.clone();
        options.label = self.label.clone();
        options.priority = self.priority;
        options.deadline = self.deadline.as_deref().map(deadline).transpose()?;
        options.exact = self.exact.as_deref().map(exact).transpose()?;
        options.attempts_max = self.attempts;
        options.sync = !(self.no_sync || settings.no_sync.unwrap_or(false));
        options.record_bytes_max = size("--max-record", &self.max_record)?;
        options.expansion_max = self.max_expansion;
        options.hang = Duration::from_secs_f64(self.hang_after);
        options.serve = self.serve;
        Ok(options)
    }
}

/// A time from the job's arrival.
fn deadline(text: &str) -> anyhow::Result<Duration> {
    let wrong = |reason: &str| usage(format!("--deadline {text}: {reason}"));
    if text.starts_with('-') {
        return Err(wrong("a deadline cannot lie in the past"));
    }
    let span: Span = text.parse().map_err(|error| wrong(&format!("{error}")))?;
    match span {
        Span(0) => Err(wrong("no job ends in no time")),
        Span(ns) => Ok(Duration::from_nanos(ns)),
    }
}

/// The work of a job, measured before.
///
/// # Errors
/// A file that cannot be read, or that holds something else.
pub fn exact(path: &Path) -> anyhow::Result<ExactWork> {
    let wrong = |reason: String| usage(format!("--exact {}: {reason}", path.display()));
    let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let work: ExactWork = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    work.validate().map_err(wrong)?;
    Ok(work)
}

/// Parts of one job.
const REDUCES_MAX: u32 = 100_000;

/// Which master.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Master")]
pub struct MasterFlags {
    /// Address of the master [default: the one that was started here last]
    #[arg(long, global = true, value_name = "HOST:PORT")]
    pub master: Option<Endpoint>,
    /// File with the master's join line, 0600; `-` for standard input [default: the one in the state folder]
    #[arg(long, global = true, value_name = "FILE")]
    pub join: Option<PathBuf>,
    /// Folder for the secret and the join line [default: gristmill in $XDG_STATE_HOME, else in ~/.local/state]
    #[arg(long, global = true, value_name = "DIR", env = "GRISTMILL_STATE")]
    pub state: Option<PathBuf>,
    #[command(flatten)]
    pub plaintext: PlaintextFlag,
}

/// Leave to speak without TLS.
#[derive(Args, Clone, Debug, Default)]
pub struct PlaintextFlag {
    /// Speak plain HTTP on the network: everyone on the way can read all data
    #[arg(long, global = true)]
    pub insecure_plaintext: bool,
}

/// Name of the file with the join line in the state folder.
pub const JOIN_FILE: &str = "join";

impl MasterFlags {
    /// The state folder.
    ///
    /// # Errors
    /// No folder given and no home to put one.
    pub fn state_dir(&self, settings: &Settings) -> anyhow::Result<PathBuf> {
        if let Some(dir) = self.state.clone().or_else(|| settings.state.clone()) {
            return Ok(dir);
        }
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
        state
            .map(|state| state.join("gristmill"))
            .ok_or_else(|| usage("no home folder: name one with --state".into()))
    }

    /// The master's address and secret.
    ///
    /// # Errors
    /// No join line where one is expected.
    pub fn join_line(&self, settings: &Settings) -> anyhow::Result<JoinLine> {
        let text = match &self.join {
            Some(path) if path.as_os_str() == "-" => {
                let mut text = String::new();
                std::io::stdin().take(4096).read_to_string(&mut text)?;
                text
            }
            Some(path) => read_join(path)?,
            None => read_join(&self.state_dir(settings)?.join(JOIN_FILE))?,
        };
        let mut line: JoinLine = text.parse().map_err(|error| usage(format!("{error}")))?;
        if let Some(master) = &self.master {
            line.endpoint.host = master.host.clone();
            line.endpoint.port = master.port;
        }
        if self.plaintext.insecure_plaintext {
            line.plaintext = Plaintext::Everywhere;
        }
        Ok(line)
    }
}

fn read_join(path: &Path) -> anyhow::Result<String> {
    trusted::read(path, Closed::Altogether).map_err(|error| match error {
        TrustError::Io { path, source } => usage(format!(
            "no master is known: could not read the join line in {} ({source}); start one with `gristmill master`, or \
             name the file with its join line with --join FILE",
            path.display()
        )),
        untrusted => untrusted.into(),
    })
}

/// What a listener beyond this machine needs.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Listening")]
pub struct ListenFlags {
    /// Listen on every network this machine is in
    #[arg(long)]
    pub listen_everywhere: bool,
    /// Run as root although whoever holds the secret then runs code as root
    #[arg(long)]
    pub allow_root: bool,
}

impl ListenFlags {
    /// As permissions.
    pub fn permissions(&self, plaintext: &PlaintextFlag) -> Permissions {
        Permissions {
            insecure_plaintext: plaintext.insecure_plaintext,
            listen_everywhere: self.listen_everywhere,
            allow_root: self.allow_root,
        }
    }
}
