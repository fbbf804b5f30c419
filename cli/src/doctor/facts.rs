//! Facts about this machine and the cluster, without a judgement.

use super::flags::DoctorCommand;
use crate::flags::{JOIN_FILE, WorkerFlags, size};
use crate::settings::Settings;
use gristmill_runtime::api::GivenUpWorker;
use gristmill_runtime::client::{Client, ClientError, HeardCheck};
use gristmill_scheduler::ids::WorkerId;
use gristmill_scheduler::units::Span;
use gristmill_worker::agent::check::WorkerCheck;
use gristmill_worker::http::{Endpoint, HttpError, Phase};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) struct DoctorFacts {
    pub machine: LocalFacts,
    pub master: MasterFacts,
}

/// This machine.
pub(super) struct LocalFacts {
    pub memory_bytes: u64,
    pub memory_available_bytes: u64,
    /// `None` for a share of the memory.
    pub memory_named_bytes: Option<u64>,
    /// Worker processes.
    pub workers: u32,
    /// Directories for spills, with the free bytes, or the reason why they are not writable.
    pub spill_dirs: Vec<(PathBuf, Result<u64, String>)>,
    /// Bytes that spills leave free in each file system.
    pub reserve_bytes: u64,
    pub descriptors: u64,
}

pub(super) enum MasterFacts {
    /// No master is known here.
    None,
    /// A master is known and does not respond.
    Unusable {
        why: String,
        remedy: &'static str,
    },
    There(ClusterFacts),
}

/// The master and its workers.
pub(super) struct ClusterFacts {
    pub own_build: String,
    pub build: String,
    /// Reason why it accepts no jobs for now.
    pub trouble: Option<String>,
    pub workers: Vec<WorkerFacts>,
    /// Lost workers, with the time since their loss.
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
    /// Its own report, and its clock minus the local one in milliseconds; or the reason why it sent none.
    pub check: Result<(WorkerCheck, i64), Unheard>,
}

/// Reason why a worker sent no report.
#[derive(Debug)]
pub(super) enum Unheard {
    /// It was not reached, for this reason.
    Unreached(String),
    /// It accepts connections, and sent nothing for this long.
    Hangs(Duration),
}

impl Unheard {
    fn from_error(error: &HttpError) -> Self {
        match error {
            HttpError::Timeout { phase: Phase::Handshake | Phase::Head | Phase::Body, limit, .. } => {
                Self::Hangs(*limit)
            }
            _ => Self::Unreached(gristmill_runtime::chain(error)),
        }
    }
}

/// Remedy for a known master that does not respond.
fn remedy(error: &anyhow::Error) -> &'static str {
    let refused =
        |source: &HttpError| matches!(source, HttpError::Unauthorized { .. } | HttpError::Forbidden { .. });
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Master { source, .. }) if refused(source) => {
            "use a join line of this master: that of its state directory, or one of `gristmill cluster token new`"
        }
        // Errors of the line or its file name the next step themselves.
        None => "fix the file with the join line, or name another with --join FILE",
        Some(_) => {
            "start the master again in its state directory, or name the one that runs with --join FILE; one that was stopped \
             continues after `kill -CONT` (the file `lock` of that directory has its process)"
        }
    }
}

/// Collects all facts.
pub(super) fn gather(settings: &Settings, flags: &DoctorCommand) -> anyhow::Result<DoctorFacts> {
    let machine = machine(settings, flags)?;
    let known = flags.master.join.is_some()
        || flags.master.state_dir(settings).is_ok_and(|directory| directory.join(JOIN_FILE).exists());
    let master = match known.then(|| cluster(settings, flags)) {
        None => MasterFacts::None,
        Some(Ok(cluster)) => MasterFacts::There(cluster),
        Some(Err(error)) => {
            MasterFacts::Unusable { why: gristmill_runtime::chain(error.as_ref()), remedy: remedy(&error) }
        }
    };
    Ok(DoctorFacts { machine, master })
}

fn machine(settings: &Settings, flags: &DoctorCommand) -> anyhow::Result<LocalFacts> {
    let memory = flags.memory.as_ref().or(settings.memory.as_ref());
    let workers = WorkerFlags { workers: flags.workers, ..WorkerFlags::default() };
    let mut spill_dirs = flags.disk.spill_dirs(settings)?;
    if spill_dirs.is_empty() {
        spill_dirs.push(std::env::temp_dir());
    }
    Ok(LocalFacts {
        memory_bytes: gristmill_worker::machine_memory_bytes(),
        memory_available_bytes: memory_available_bytes(),
        memory_named_bytes: memory.map(|text| size("--memory", text)).transpose()?,
        workers: workers.count(settings)?,
        spill_dirs: spill_dirs.into_iter().map(|path| (path.clone(), free(&path))).collect(),
        reserve_bytes: flags.disk.reserve(settings)?.get(),
        descriptors: gristmill_worker::descriptors::allowed() as u64,
    })
}

/// Memory available without taking it from other processes, bytes; all memory if the system does not report
/// it.
fn memory_available_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024)
}

/// Free bytes of a directory in which a file can be created.
fn free(directory: &Path) -> Result<u64, String> {
    let probe = || -> io::Result<u64> {
        let file = directory.join(format!(".gristmill-doctor-{}", std::process::id()));
        fs::File::create_new(&file)?;
        fs::remove_file(&file)?;
        let stat = rustix::fs::statvfs(directory)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    };
    probe().map_err(|error| error.to_string())
}

fn cluster(settings: &Settings, flags: &DoctorCommand) -> anyhow::Result<ClusterFacts> {
    let client = Client::connect(&flags.master.join_line(settings)?)?;
    let (master, checks) = client.block_on(client.requests().check_workers())?;
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
            .map_err(|error| Unheard::from_error(&error)),
    });
    let given_up = master.given_up.into_iter().map(|one| {
        let since = Span(master.now_ns.saturating_sub(one.given_up_ns));
        (one, since)
    });
    Ok(ClusterFacts {
        own_build: gristmill_worker::build_id(),
        build: master.build,
        trouble: master.trouble,
        workers: workers.collect(),
        given_up: given_up.collect(),
    })
}
