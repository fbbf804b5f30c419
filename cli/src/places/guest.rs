//! `gristmill guest`: what `up` and `down` have this program do elsewhere: on a host of ssh, start workers that outlive the
//! connection, and end them; in a pod, put a secret where its mode can be closed.
//!
//! On a host, what to do comes as one JSON document on standard input, the join line too, so nothing of it is in a command line; the
//! answer is one on standard output. All of a guest lies in one private folder, which goes with it.

use super::process::ProcessName;
use crate::terminal::stdout_line;
use crate::usage::usage;
use anyhow::Context as _;
use clap::{Args, Subcommand};
use gristmill_runtime::cluster::start_detached;
use gristmill_runtime::exit;
use gristmill_runtime::scratch::ScratchFolder;
use gristmill_worker::http::make_private_directory;
use gristmill_worker::whole_file::{self, Promise};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest document that is read, bytes.
const ORDER_BYTES_MAX: u64 = 64 << 10;

/// How long it is watched whether the workers end at once: what is wrong with their flags shows then.
const WATCHED: Duration = Duration::from_millis(500);

/// How long workers may take to end by themselves, as they do when their master has ended.
const OWN_END: Duration = Duration::from_secs(5);

/// How long they may take once they were told to end at once.
const TOLD_END: Duration = Duration::from_secs(5);

/// How long it may take until what was killed is gone.
const KILLED_END: Duration = Duration::from_secs(5);

/// How much of the end of a log is handed back, bytes.
const LOG_BYTES_MAX: u64 = 64 << 10;

/// Longest description of a guest, bytes.
const GUEST_BYTES_MAX: u64 = 4096;

/// Names in a guest's folder.
const LOG_FILE: &str = "worker.log";
const GUEST_FILE: &str = "guest.json";

/// For `up` and `down`: start or end workers on this host, as told on standard input
#[derive(Args)]
pub struct GuestCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Start workers that outlive the connection
    Begin,
    /// End them and remove what they have left
    End,
    /// Copy the files of a mounted secret into a private folder
    Unpack {
        /// The mounted folder
        from: PathBuf,
        /// The private one
        to: PathBuf,
    },
}

/// What `begin` is told.
#[derive(Serialize, Deserialize)]
pub struct BeginOrder {
    /// The guest's name, which no other has.
    pub name: String,
    /// The line with which workers join.
    pub join: String,
    /// Words for `gristmill worker`.
    pub words: Vec<String>,
}

/// What `begin` answers.
#[derive(Serialize, Deserialize)]
pub struct BeginAnswer {
    /// The host, as its workers call it.
    pub host: String,
    /// The process that looks after the workers.
    pub pid: i32,
    /// How many workers it starts.
    pub workers: u32,
    /// Their log.
    pub log: PathBuf,
}

/// What `end` is told.
#[derive(Serialize, Deserialize)]
pub struct EndOrder {
    /// The guest's name.
    pub name: String,
}

/// What `end` answers.
#[derive(Serialize, Deserialize)]
pub struct EndAnswer {
    /// Whether there was such a guest.
    pub was_there: bool,
    /// Whether its processes had to be killed.
    pub killed: bool,
    /// The end of its log.
    pub log: String,
}

/// `gristmill guest`.
pub fn guest(flags: &GuestCommand) -> anyhow::Result<u8> {
    let answer = match &flags.action {
        Action::Begin => serde_json::to_string(&begin(&order()?)?),
        Action::End => serde_json::to_string(&end(&order()?)?),
        Action::Unpack { from, to } => {
            unpack(from, to).with_context(|| format!("could not unpack {}", from.display()))?;
            return Ok(exit::OK);
        }
    };
    stdout_line(&answer?)?;
    Ok(exit::OK)
}

fn order<T: for<'de> Deserialize<'de>>() -> anyhow::Result<T> {
    let mut text = String::new();
    io::stdin().take(ORDER_BYTES_MAX).read_to_string(&mut text)?;
    // The text may hold a secret: the reason names a place in it, and no value.
    serde_json::from_str(&text).map_err(|error| {
        usage(format!(
            "this is for `gristmill up` and `down`: no order on standard input ({:?})",
            error.classify()
        ))
    })
}

/// The folder of a guest of this name.
fn folder(name: &str) -> anyhow::Result<PathBuf> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || 64 < name.len() || !name.bytes().all(plain) {
        return Err(usage(format!("a guest cannot be called `{}`", name.escape_debug())));
    }
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    let state = state.ok_or_else(|| usage("no home folder on this host".to_owned()))?;
    Ok(state.join("gristmill/guests").join(name))
}

fn begin(order: &BeginOrder) -> anyhow::Result<BeginAnswer> {
    let folder = folder(&order.name)?;
    if let Some(parent) = folder.parent() {
        make_private_directory(parent)?;
    }
    let made = DirBuilder::new().mode(0o700).create(&folder);
    made.with_context(|| format!("could not make the folder {}", folder.display()))?;
    let begun = begin_in(&folder, order);
    if begun.is_err() {
        // Nothing of it runs. The folder around it stays if there are others.
        let _ = fs::remove_dir_all(&folder);
        let _ = folder.parent().map(fs::remove_dir);
    }
    begun
}

fn begin_in(folder: &Path, order: &BeginOrder) -> anyhow::Result<BeginAnswer> {
    let log = folder.join(LOG_FILE);
    let file = File::options().create_new(true).append(true).mode(0o600).open(&log)?;
    let words = ["worker", "--join", "-"].map(str::to_owned).into_iter().chain(order.words.iter().cloned());
    let words: Vec<String> = words.collect();
    let mut child = start_detached(&words, file).context("could not start workers")?;
    let process = ProcessName::of(child.id())?;
    let kept = keep(folder, &process);
    if let Some(mut stdin) = child.stdin.take() {
        // One that has ended already says why in its log.
        let _ = stdin.write_all(order.join.as_bytes());
    }
    if kept.is_err() || process.ends_within(WATCHED) {
        process.kill_session(KILLED_END);
        // The dead child's number is free again.
        let _ = child.wait();
        kept?;
        let said = log_end(&log);
        anyhow::bail!("its workers ended at once: {}", said.trim());
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let named = order.words.iter().position(|word| word == "--workers");
    let workers = named.and_then(|at| order.words.get(at + 1)?.parse().ok()).unwrap_or(cores);
    Ok(BeginAnswer { host: gristmill_worker::host_name(), pid: process.pid(), workers, log })
}

fn keep(folder: &Path, process: &ProcessName) -> anyhow::Result<()> {
    let text = serde_json::to_vec(process)?;
    let path = folder.join(GUEST_FILE);
    whole_file::replace(&path, Promise::Private, |file| file.write_all(&text))
        .with_context(|| format!("could not write {}", path.display()))
}

fn end(order: &EndOrder) -> anyhow::Result<EndAnswer> {
    let folder = folder(&order.name)?;
    let was_there = folder.is_dir();
    let mut killed = false;
    if let Ok(bytes) = whole_file::read(&folder.join(GUEST_FILE), GUEST_BYTES_MAX) {
        let process: ProcessName =
            serde_json::from_slice(&bytes).context("the guest's file makes no sense")?;
        killed = end_process(&process)?;
        // Making a folder for temporary files sweeps away those of the dead, such as workers that were killed.
        drop(ScratchFolder::new("guest-"));
    }
    let log = log_end(&folder.join(LOG_FILE));
    if was_there {
        fs::remove_dir_all(&folder).with_context(|| format!("could not remove {}", folder.display()))?;
        // It goes when it is empty, and stays for others.
        let _ = folder.parent().map(fs::remove_dir);
    }
    Ok(EndAnswer { was_there, killed, log })
}

/// Ends workers: by themselves, else told twice, which is at once, else killed; whether they were.
fn end_process(process: &ProcessName) -> anyhow::Result<bool> {
    let mut ended = process.ends_within(OWN_END);
    if !ended {
        process.signal(Signal::TERM);
        // Two signals that come at once may count as one.
        ended = process.ends_within(Duration::from_millis(200));
        process.signal(Signal::TERM);
        ended = ended || process.ends_within(TOLD_END);
    }
    // What the dead have left, too.
    if !process.kill_session(KILLED_END) {
        anyhow::bail!("process {} and what it has started do not end", process.pid());
    }
    Ok(!ended)
}

/// Copies the files of a folder; those that are there already stay, as a master that was started anew has changed them.
fn unpack(from: &Path, to: &Path) -> anyhow::Result<()> {
    make_private_directory(to)?;
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        // Kubernetes keeps its own there.
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let mut bytes = Vec::new();
        File::open(from.join(&name))?.take(ORDER_BYTES_MAX).read_to_end(&mut bytes)?;
        whole_file::create(&to.join(&name), Promise::Private, |file| file.write_all(&bytes))?;
    }
    Ok(())
}

/// The last bytes of a log.
fn log_end(path: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_MAX)))?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
