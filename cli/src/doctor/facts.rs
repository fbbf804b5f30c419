//! What there is to know of this machine and of the cluster, without a judgement.

use super::DoctorCommand;
use crate::flags::JOIN_FILE;
use crate::settings::Settings;
use gristmill_runtime::api::GivenUpWorker;
use gristmill_runtime::client::{Client, ClientError, HeardCheck};
use gristmill_runtime::size::parse_bytes;
use gristmill_scheduler::ids::WorkerId;
use gristmill_scheduler::units::{Bytes, Span};
use gristmill_worker::agent::check::{PROBE, WorkerCheck, fingerprint, wall_ms};
use gristmill_worker::http::{Endpoint, HttpError, ListenAddress, Phase};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All of it.
pub(super) struct Facts {
    pub machine: MachineFacts,
    pub master: MasterFacts,
}

/// This machine.
pub(super) struct MachineFacts {
    /// Addresses that cannot be listened on, and why.
    pub deaf: Vec<(String, String)>,
    pub memory_bytes: u64,
    pub memory_available_bytes: u64,
    /// What is to be used; `None`: a share of what there is.
    pub memory_named_bytes: Option<u64>,
    /// The path that all are to see, if nothing is there on this machine.
    pub missing: Option<PathBuf>,
    /// Worker processes.
    pub workers: u32,
    pub folders: Vec<FolderFacts>,
    /// The state folder, or the one in which it would lie, if nothing can be written to it, and why.
    pub state: Option<(PathBuf, String)>,
    /// What spills leave free in each file system.
    pub reserve_bytes: u64,
    pub descriptors: u64,
    /// What this user may run; `None`: as much as there is room for.
    pub threads: Option<ThreadsFacts>,
    /// Threads of the master and of all workers.
    pub threads_needed: u64,
    /// Milliseconds since 1970.
    pub wall_ms: u64,
    /// The file of this program is another one by now.
    pub replaced: bool,
}

/// Threads of a user, for whom each process is one at least.
pub(super) struct ThreadsFacts {
    /// How many may run at once, of all programs of this user together.
    pub allowed: u64,
    /// How many do.
    pub running: u64,
}

/// A folder for what does not fit in memory.
pub(super) struct FolderFacts {
    pub path: PathBuf,
    /// What is free there, or why nothing can be written.
    pub free: Result<u64, String>,
}

/// The master.
pub(super) enum MasterFacts {
    /// None is known here.
    None,
    /// One is known, but cannot be asked: why.
    Unusable {
        why: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// It answers.
    There(ClusterFacts),
}

/// The master and its workers.
pub(super) struct ClusterFacts {
    pub own_build: String,
    pub build: String,
    /// Why it promises nothing for now.
    pub trouble: Option<String>,
    /// The path that all are to see.
    pub path: Option<PathBuf>,
    /// What is under it here.
    pub fingerprint: Option<u32>,
    pub workers: Vec<WorkerFacts>,
    /// Workers of which nothing was heard, so that they are none any more, and how long ago that was.
    pub given_up: Vec<(GivenUpWorker, Span)>,
}

/// A worker.
pub(super) struct WorkerFacts {
    pub worker: WorkerId,
    pub host: String,
    /// Its process id there.
    pub pid: u32,
    pub endpoint: Endpoint,
    pub away: bool,
    /// What it says, and its clock minus ours in milliseconds; or why it did not say it here.
    pub check: Result<(WorkerCheck, i64), Unheard>,
}

/// Why a worker did not say how it is.
#[derive(Debug)]
pub(super) enum Unheard {
    /// No connection to it came about: why.
    Unreached(String),
    /// Connections to it stand, and it said nothing on them for so long: its process is stopped, or hangs.
    StandsStill(Duration),
}

impl Unheard {
    fn of(error: &HttpError) -> Self {
        match error {
            HttpError::Timeout { phase: Phase::Handshake | Phase::Head | Phase::Body, limit, .. } => {
                Self::StandsStill(*limit)
            }
            _ => Self::Unreached(gristmill_runtime::chain(error)),
        }
    }
}

/// What to do where a master that is known cannot be asked.
fn remedy(error: &anyhow::Error) -> &'static str {
    let refused =
        |source: &HttpError| matches!(source, HttpError::Unauthorized { .. } | HttpError::Forbidden { .. });
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Master { source, .. }) if refused(source) => {
            "take a join line of this master: that of its state folder, or one of `gristmill token new`"
        }
        // What is wrong with the line, or its file, says itself what to do.
        None => "mend the file with the join line, or name another with --join FILE",
        Some(_) => {
            "start the master again in its state folder, or name the one that runs with --join FILE; one that was stopped \
             goes on by `kill -CONT` (its process stands in the file `lock` of that folder)"
        }
    }
}

/// Looks at everything.
pub(super) fn gather(settings: &Settings, flags: &DoctorCommand) -> anyhow::Result<Facts> {
    let machine = machine(settings, flags)?;
    let known = flags.master.join.is_some()
        || flags.master.state_dir(settings).is_ok_and(|folder| folder.join(JOIN_FILE).exists());
    let master = match known.then(|| cluster(settings, flags)) {
        None => MasterFacts::None,
        Some(Ok(cluster)) => MasterFacts::There(cluster),
        Some(Err(error)) => {
            MasterFacts::Unusable { why: gristmill_runtime::chain(error.as_ref()), remedy: remedy(&error) }
        }
    };
    Ok(Facts { machine, master })
}

fn machine(settings: &Settings, flags: &DoctorCommand) -> anyhow::Result<MachineFacts> {
    let named = flags.memory.as_ref().or(settings.memory.as_ref());
    let count = flags.workers.count(settings)?;
    // As a worker would have them; its memory plays no part here.
    let workers = flags.workers.workers(settings, Bytes::mib(64))?;
    let folders = match workers.spill_dirs.as_slice() {
        [] => vec![std::env::temp_dir()],
        folders => folders.to_vec(),
    };
    let loopback = ListenAddress::any_port(Ipv4Addr::LOCALHOST.into());
    let addresses = [Some(loopback), flags.listen];
    let deaf =
        addresses.into_iter().flatten().filter_map(|address| Some((address.to_string(), deaf(address)?)));
    Ok(MachineFacts {
        deaf: deaf.collect(),
        memory_bytes: gristmill_worker::machine_memory_bytes(),
        memory_available_bytes: memory_available_bytes(),
        memory_named_bytes: named.map(|text| parse_bytes(text)).transpose().map_err(anyhow::Error::msg)?,
        missing: flags.path.clone().filter(|path| !path.exists()),
        workers: count,
        folders: folders.into_iter().map(|path| FolderFacts { free: free(&path), path }).collect(),
        state: unwritable_state(settings, flags),
        reserve_bytes: workers.each.disk_reserve.get(),
        descriptors: gristmill_worker::descriptors::allowed() as u64,
        threads: threads(),
        threads_needed: THREADS_OF_MASTER
            + u64::from(count) * (THREADS_OF_WORKER + u64::from(workers.each.slots.total())),
        wall_ms: wall_ms(),
        replaced: fs::read_link("/proc/self/exe")
            .is_ok_and(|link| link.to_string_lossy().ends_with(" (deleted)")),
    })
}

/// The state folder, or the one in which it would be made, if a master could not begin there, and why.
fn unwritable_state(settings: &Settings, flags: &DoctorCommand) -> Option<(PathBuf, String)> {
    let folder = flags.master.state_dir(settings).ok()?;
    let there = folder.ancestors().find(|folder| folder.exists())?;
    Some((there.to_owned(), free(there).err()?))
}

/// Why nothing can listen on an address; `None` if something can.
fn deaf(address: ListenAddress) -> Option<String> {
    let mut last = None;
    for port in address.ports() {
        match TcpListener::bind((address.ip, port)) {
            Ok(_) => return None,
            Err(error) => last = Some(error.to_string()),
        }
    }
    last
}

/// Memory that can be had without taking it from others, bytes; all if the system does not say.
fn memory_available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024)
}

/// Threads of a master or a `run`, and of a worker beside its slots: those that are always there, and some more for files
/// and connections when there is much to do.
const THREADS_OF_MASTER: u64 = 16;
const THREADS_OF_WORKER: u64 = 16;

/// What this user may run; `None` if nothing holds it back, as nothing does root.
fn threads() -> Option<ThreadsFacts> {
    let allowed = rustix::process::getrlimit(rustix::process::Resource::Nproc).current?;
    let user = rustix::process::getuid();
    if user.is_root() {
        return None;
    }
    // A process that has ended meanwhile has no thread any more.
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_user = processes.filter_map(|process| {
        threads_of(&fs::read_to_string(process.path().join("status")).ok()?, user.as_raw())
    });
    Some(ThreadsFacts { allowed, running: of_user.sum() })
}

/// The threads of a process of this user, by its file `status`; `None` if it is another's.
fn threads_of(status: &str, user: u32) -> Option<u64> {
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let is_theirs = field("Uid:")?.parse() == Ok(user);
    field("Threads:").filter(|_| is_theirs)?.parse().ok()
}

/// Bytes that are free in a folder in which a file can be made.
fn free(folder: &Path) -> Result<u64, String> {
    let probe = || -> io::Result<u64> {
        let file = folder.join(format!("{PROBE}{}", std::process::id()));
        fs::File::create_new(&file)?;
        fs::remove_file(&file)?;
        let stat = rustix::fs::statvfs(folder)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    };
    probe().map_err(|error| error.to_string())
}

fn cluster(settings: &Settings, flags: &DoctorCommand) -> anyhow::Result<ClusterFacts> {
    let client = Client::connect(&flags.master.join_line(settings)?)?;
    let path = flags.path.as_deref().map(std::path::absolute).transpose()?;
    // Two directories of one name: a file that comes into one of them is not in the other.
    let name = format!("{PROBE}{}-{}", std::process::id(), wall_ms());
    let probe = path.as_ref().filter(|path| path.is_dir()).map(|path| path.join(name));
    let probe = probe.filter(|probe| fs::File::create_new(probe).is_ok());
    let fingerprint = path.as_deref().and_then(fingerprint);
    let checked = client.check_workers(path.as_deref(), probe.as_deref());
    let _ = probe.map(fs::remove_file);
    let (master, checks) = checked?;
    let workers = master.workers.into_iter().zip(checks).map(|(status, check)| WorkerFacts {
        worker: status.worker,
        host: status.host,
        pid: status.pid,
        endpoint: status.endpoint,
        away: status.away,
        check: check
            .map(|HeardCheck { check, heard_wall_ms }| {
                let offset_ms = check.wall_ms.cast_signed() - heard_wall_ms.cast_signed();
                (check, offset_ms)
            })
            .map_err(|error| Unheard::of(&error)),
    });
    let given_up = master.given_up.into_iter().map(|one| {
        let since = Span(master.now_ns.saturating_sub(one.given_up_ns));
        (one, since)
    });
    Ok(ClusterFacts {
        own_build: gristmill_worker::build_id(),
        build: master.build,
        trouble: master.trouble,
        path,
        fingerprint,
        workers: workers.collect(),
        given_up: given_up.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_process_count_for_the_user_who_runs_it_and_for_nobody_else() {
        let status = "Name:\tUid: sh\nUid:\t1000\t0\t0\t0\nGid:\t7\t7\t7\t7\nThreads:\t12\nSigQ:\t0/1\n";
        assert_eq!(threads_of(status, 1000), Some(12));
        assert_eq!(threads_of(status, 0), None, "it is not who runs it whose rights it has");
        assert_eq!(threads_of("", 0), None);
        let own = fs::read_to_string("/proc/self/status").unwrap();
        assert!(
            threads_of(&own, rustix::process::getuid().as_raw()).is_some_and(|threads| 0 < threads),
            "{own}"
        );
    }
}
