//! `run --narrate` and `--narrate-html`: the story of a job with little input, step by step, as text or as a picture.
//!
//! It is made of the job's trace and of the pairs that its attempts kept ([`gristmill_worker::narration`]); nothing is computed
//! a second time.

mod body;
mod facts;
mod maps;
mod picture;
mod reduces;
mod shuffle;
mod story;

use crate::private_file;
use crate::terminal::stdout_raw;
use facts::StoryFacts;
use gristmill_runtime::client::{Client, JobReport};
use gristmill_runtime::deciders::DeciderNames;
use gristmill_runtime::scratch::ScratchDirectory;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::input::FilePath;
use gristmill_worker::narration::Narration;
use std::path::PathBuf;

/// Narrator of a job that is still to run.
pub struct JobNarrator {
    directory: ScratchDirectory,
    deciders: DeciderNames,
    forms: StoryForms,
}

/// Forms in which a story is shown.
#[derive(Clone, Debug, Default)]
pub struct StoryForms {
    /// True if its text is printed in place of the output.
    pub text: bool,
    /// File of the picture; true if it may replace another.
    pub picture: Option<(PathBuf, bool)>,
}

impl JobNarrator {
    /// Creates the directory in which attempts keep their pairs.
    ///
    /// # Errors
    /// A directory that cannot be created.
    pub fn new(deciders: &DeciderNames, forms: StoryForms) -> anyhow::Result<Self> {
        Ok(Self { directory: ScratchDirectory::new("narration-")?, deciders: deciders.clone(), forms })
    }

    /// True if the story is printed in place of the output.
    pub fn prints(&self) -> bool {
        self.forms.text
    }

    /// Directory in which workers put what their attempts keep.
    pub fn directory(&self) -> FilePath {
        FilePath::from(self.directory.path())
    }

    /// Shows the story of a job that has ended; `report` if it succeeded.
    ///
    /// # Errors
    /// A trace that the master does not send, a stdout or a file that cannot be written.
    pub fn narrate(&self, client: &Client, job: JobId, report: Option<&JobReport>) -> anyhow::Result<()> {
        let narration = Narration::new(self.directory.path());
        let parts = report.map(JobReport::parts).unwrap_or_default();
        let facts = StoryFacts::gather(client.trace(job)?, &narration, &parts, self.deciders.clone())?;
        let steps = story::steps(&facts);
        if let Some((path, overwrite)) = &self.forms.picture {
            private_file::write_asked(
                "the story",
                path,
                *overwrite,
                picture::html(&facts, &steps).as_bytes(),
            )?;
        }
        if self.forms.text { stdout_raw(&body::text(&steps)) } else { Ok(()) }
    }
}
