//! Worker processes of this machine, for a master here or elsewhere: how many, and what each is made to be.

use super::ClusterError;
use super::folders::{private_folders, remove_folders};
use super::worker_slot::WorkerSlot;
use crate::exit;
use crate::out_of_memory::MemoryKills;
use gristmill_scheduler::units::Bytes;
use gristmill_worker::agent::EndRequests;
use gristmill_worker::http::{JoinLine, Pool, Secret, Timeouts};
use gristmill_worker::settings::WorkerSettings;
use std::path::PathBuf;
use tokio::process::Child;
use tokio::task::JoinSet;

/// Worker processes of one machine.
#[derive(Clone, Debug)]
pub struct WorkerProcesses {
    /// How many processes.
    pub count: u32,
    /// What each is made to be. More than one slot lets user code that aborts take others' attempts with it.
    pub each: WorkerSettings,
    /// Speeds of the workers in turn, over again when there are more workers; empty: that of `each`.
    pub speeds: Vec<f64>,
    /// Where private folders are made for what does not fit in memory; the system's folder for temporary files if empty.
    pub spill_dirs: Vec<PathBuf>,
}

impl WorkerProcesses {
    /// Memory of all of them.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        Bytes(self.each.memory.get().saturating_mul(u64::from(self.count)))
    }

    /// What the worker of this number, counted from 1, is made to be.
    fn settings(&self, number: u32) -> WorkerSettings {
        let given = self.speeds.len().max(1);
        let speed = self.speeds.get((number.max(1) - 1) as usize % given).copied();
        WorkerSettings { speed: speed.unwrap_or(self.each.speed), ..self.each.clone() }
    }

    /// Starts the processes and replaces those that die, until they are asked to go or all have ended for good.
    /// Answers the exit code of the last that did, 0 after a stop.
    ///
    /// # Errors
    /// No folders can be made, or a process cannot be started.
    pub async fn run(&self, join: &JoinLine, requests: EndRequests) -> Result<u8, ClusterError> {
        let nonce = Secret::generate().map_err(|source| ClusterError::Secret { source })?;
        let (folders, _holds) = private_folders(&self.spill_dirs, &nonce)?;
        let started = async { self.start(self.launch()?, join, &folders, &requests).await };
        let result = match started.await {
            Ok(supervised) => Ok(last_code(supervised).await),
            Err(error) => Err(error),
        };
        remove_folders(&folders);
        result
    }

    /// Starts the processes, which then wait to be told what they are: that needs no master yet.
    pub(super) fn launch(&self) -> Result<LaunchedWorkers, ClusterError> {
        let memory_kills = MemoryKills::watch();
        let children = (0..self.count).map(|_| WorkerSlot::launch()).collect::<Result<_, _>>()?;
        Ok(LaunchedWorkers { children, memory_kills })
    }

    /// Tells the processes what they are, and starts for each what replaces it and answers its last exit code. They end
    /// when what is answered is dropped.
    pub(super) async fn start(
        &self,
        launched: LaunchedWorkers,
        join: &JoinLine,
        folders: &[PathBuf],
        requests: &EndRequests,
    ) -> Result<JoinSet<Option<u8>>, ClusterError> {
        let mut supervised = JoinSet::new();
        let LaunchedWorkers { children, memory_kills } = launched;
        for (number, child) in (1..).zip(children) {
            let mut slot = WorkerSlot {
                number,
                settings: self.settings(number),
                join: join.clone(),
                folders: folders.to_vec(),
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

/// Processes that wait to be told what they are; they are killed if they never are.
pub(super) struct LaunchedWorkers {
    children: Vec<Child>,
    memory_kills: MemoryKills,
}

/// The exit code of the last that ended for good.
async fn last_code(mut supervised: JoinSet<Option<u8>>) -> u8 {
    let mut code = exit::OK;
    while let Some(ended) = supervised.join_next().await {
        code = ended.unwrap_or(None).unwrap_or(code);
    }
    code
}
