//! Context that all commands of an attempt share: its directory, its input range and the shipped files.

use super::bundle::UnpackedBundle;
use super::job::{ShippedFile, StreamingJob};
use gristmill_scheduler::ids::AttemptId;
use gristmill_worker::api::{InputRange, SignOfLife, TaskContext};
use gristmill_worker::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Common context of an attempt's commands.
#[derive(Clone)]
pub(super) struct AttemptPlace {
    pub attempt: AttemptId,
    pub stretch: Option<InputRange>,
    pub directory: PathBuf,
    pub life: SignOfLife,
    pub files: Vec<ShippedFile>,
    /// Keeps the shipped files while the attempt needs them.
    _bundle: Option<Arc<UnpackedBundle>>,
    pub partitions: u32,
}

impl AttemptPlace {
    pub fn new(job: &StreamingJob, task: &TaskContext) -> TaskResult<Self> {
        let directory = task.directory().map(Path::to_owned);
        let directory =
            directory.ok_or_else(|| TaskError::config("a command needs a worker, which has a directory"))?;
        let mut files = job.files.clone();
        let bundle = match job.bundle {
            Some(_) => {
                let place = directory.join(format!("streaming-{}-files", task.task().job));
                let unpack = |blocks: &[Block<'_>]| {
                    let bytes = blocks.first().map(|block| block.bytes()).unwrap_or_default();
                    UnpackedBundle::unpack(bytes, place).map_err(|error| {
                        TaskError::new(format!("what was shipped could not be unpacked: {error}"))
                    })
                };
                Some(task.side(0, unpack)?)
            }
            None => None,
        };
        files.extend(bundle.iter().flat_map(|bundle| bundle.files.iter().cloned()));
        Ok(Self {
            attempt: task.attempt(),
            stretch: task.stretch().cloned(),
            directory,
            files,
            _bundle: bundle,
            life: task.life(),
            partitions: task.partitions(),
        })
    }
}
