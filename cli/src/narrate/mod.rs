//! `run --narrate`: the story of a job with little input, step by step, as text.
//!
//! It is made of the job's trace and of the pairs that its attempts kept ([`gristmill_worker::narration`]); nothing is computed
//! a second time.

mod body;
mod facts;
mod maps;
mod reduces;
mod shuffle;
mod story;

use crate::terminal::stdout_raw;
use facts::StoryFacts;
use gristmill_runtime::client::{Client, JobReport};
use gristmill_runtime::deciders::DeciderNames;
use gristmill_runtime::scratch::ScratchDirectory;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::input::FilePath;
use gristmill_worker::narration::Narration;

/// Narrator of a job that is still to run.
pub struct JobNarrator {
    directory: ScratchDirectory,
    deciders: DeciderNames,
}

impl JobNarrator {
    /// Creates the directory in which attempts keep their pairs.
    ///
    /// # Errors
    /// A directory that cannot be created.
    pub fn new(deciders: &DeciderNames) -> anyhow::Result<Self> {
        Ok(Self { directory: ScratchDirectory::new("narration-")?, deciders: deciders.clone() })
    }

    /// Directory in which workers put what their attempts keep.
    pub fn directory(&self) -> FilePath {
        FilePath::from(self.directory.path())
    }

    /// Prints the story of a job that has ended; `report` if it succeeded.
    ///
    /// # Errors
    /// A trace that the master does not send, or a stdout that cannot be written.
    pub fn narrate(&self, client: &Client, job: JobId, report: Option<&JobReport>) -> anyhow::Result<()> {
        let narration = Narration::new(self.directory.path());
        let parts = report.map(JobReport::parts).unwrap_or_default();
        let facts = StoryFacts::gather(client.trace(job)?, &narration, &parts, self.deciders.clone())?;
        stdout_raw(&body::text(&story::steps(&facts)))
    }
}
