//! Worker processes of this machine, for a master here or elsewhere: their number and settings.

use super::directories::{private_directories, remove_directories};
use super::error::ClusterError;
use super::worker_slot::WorkerSlot;
use crate::out_of_memory::MemoryKills;
use gristmill_scheduler::units::Bytes;
use gristmill_worker::agent::EndRequests;
use gristmill_worker::exit;
use gristmill_worker::http::{JoinLine, Pool, Secret, Timeouts};
use gristmill_worker::settings::WorkerSettings;
use std::path::PathBuf;
use tokio::process::Child;
use tokio::task::JoinSet;

/// Worker processes of one machine.
#[derive(Clone, Debug)]
pub struct WorkerProcesses {
    /// Number of processes.
    pub count: u32,
    /// Settings of each. With more than one slot, user code that aborts also ends the attempts in the other slots.
    pub each: WorkerSettings,
    /// Speeds of the workers in turn, repeated if there are more workers. If empty, the speed in `each`.
    pub speeds: Vec<f64>,
    /// Directories in which private directories are created for data that does not fit in memory. If empty, the
    /// system's directory for temporary files.
    pub spill_dirs: Vec<PathBuf>,
}

impl WorkerProcesses {
    /// Memory of all processes.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        Bytes(self.each.memory.get().saturating_mul(u64::from(self.count)))
    }

    /// Settings of the worker with this number, counted from 1.
    fn settings(&self, number: u32) -> WorkerSettings {
        let given = self.speeds.len().max(1);
        let speed = self.speeds.get((number.max(1) - 1) as usize % given).copied();
        WorkerSettings { speed: speed.unwrap_or(self.each.speed), ..self.each.clone() }
    }

    /// Starts the processes and replaces those that die, until they are asked to leave or all have ended for good.
    /// Returns the exit code of the last one to end, 0 after a stop.
    ///
    /// # Errors
    /// A directory that cannot be created, or a process that cannot be started.
    pub async fn run(&self, join: &JoinLine, requests: EndRequests) -> Result<u8, ClusterError> {
        let nonce = Secret::generate().map_err(|source| ClusterError::Secret { source })?;
        let (directories, _holds) = private_directories(&self.spill_dirs, &nonce)?;
        let started = async { self.start(self.launch()?, join, &directories, &requests).await };
        let result = match started.await {
            Ok(supervised) => Ok(last_code(supervised).await),
            Err(error) => Err(error),
        };
        remove_directories(&directories);
        result
    }

    /// Starts the processes, which then wait for their settings. No master is needed yet.
    pub(super) fn launch(&self) -> Result<LaunchedWorkers, ClusterError> {
        let memory_kills = MemoryKills::watch();
        let children = (0..self.count).map(|_| WorkerSlot::launch()).collect::<Result<_, _>>()?;
        Ok(LaunchedWorkers { children, memory_kills })
    }

    /// Sends the processes their settings, and starts a supervisor for each that replaces it and returns its last exit
    /// code. The processes end when the returned value is dropped.
    pub(super) async fn start(
        &self,
        launched: LaunchedWorkers,
        join: &JoinLine,
        directories: &[PathBuf],
        requests: &EndRequests,
    ) -> Result<JoinSet<Option<u8>>, ClusterError> {
        let mut supervised = JoinSet::new();
        let LaunchedWorkers { children, memory_kills } = launched;
        for (number, child) in (1..).zip(children) {
            let mut slot = WorkerSlot {
                number,
                settings: self.settings(number),
                join: join.clone(),
                directories: directories.to_vec(),
                pool: Pool::new(Timeouts::default(), join.plaintext),
                memory_kills: memory_kills.clone(),
                requests: requests.clone(),
                made_again: Vec::new(),
            };
            let first = slot.start(child).await?;
            supervised.spawn(slot.supervise(first));
        }
        Ok(supervised)
    }
}

/// Processes that wait for their settings; they are killed if they never receive them.
pub(super) struct LaunchedWorkers {
    children: Vec<Child>,
    memory_kills: MemoryKills,
}

/// Exit code of the last process that ended for good.
async fn last_code(mut supervised: JoinSet<Option<u8>>) -> u8 {
    let mut code = exit::OK;
    while let Some(ended) = supervised.join_next().await {
        code = ended.unwrap_or(None).unwrap_or(code);
    }
    code
}
