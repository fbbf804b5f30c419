//! `run --narrate`: a job of little input told step by step, as text or as one page.
//!
//! What is told comes from the job's trace and from the pairs that its attempts kept on their way
//! ([`gristmill_worker::narration`]); nothing is computed a second time. Two flags instead of one with an optional file:
//! `--narrate story.html` would be a narration in the terminal of an input called `story.html`.

mod facts;
mod lists;
mod maps;
mod page;
mod reduces;
mod shuffle;
mod step;
mod story;
mod text;

use crate::private_file;
use crate::terminal::{stdout_is_styled, stdout_raw};
use clap::Args;
use facts::Facts;
use gristmill_runtime::client::{Client, JobReport};
use gristmill_runtime::deciders::DeciderNames;
use gristmill_runtime::scratch::ScratchFolder;
use gristmill_scheduler::ids::JobId;
use gristmill_worker::input::FilePath;
use gristmill_worker::narration::Narration;
use std::path::PathBuf;

/// Whether a job is told, and where.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Narration")]
pub struct NarrateFlags {
    /// Narrate the job step by step, pair by pair, on stdout; for small inputs, best with a small --split-size
    #[arg(long, global = true, conflicts_with = "json")]
    pub narrate: bool,
    /// Write the narration as an HTML page to step through, with a chart of what ran where and when
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub narrate_html: Option<PathBuf>,
}

impl NarrateFlags {
    /// Whether pairs are to be kept.
    pub fn is_asked(&self) -> bool {
        self.narrate || self.narrate_html.is_some()
    }
}

/// Who tells a job that is still to run.
pub struct JobNarrator {
    flags: NarrateFlags,
    /// Whether its page may take the place of a file that is there.
    overwrite: bool,
    folder: ScratchFolder,
    deciders: DeciderNames,
}

impl JobNarrator {
    /// Makes the folder in which attempts are to keep their pairs, if anybody wants them told.
    ///
    /// # Errors
    /// A folder that cannot be made, or a page that could not be written where it is asked for.
    pub fn new(
        flags: &NarrateFlags,
        overwrite: bool,
        deciders: &DeciderNames,
    ) -> anyhow::Result<Option<Self>> {
        if !flags.is_asked() {
            return Ok(None);
        }
        if let Some(path) = &flags.narrate_html {
            private_file::expect_place("the narration", path, overwrite)?;
        }
        let folder = ScratchFolder::new("narration-")?;
        Ok(Some(Self { flags: flags.clone(), overwrite, folder, deciders: deciders.clone() }))
    }

    /// Where workers are to put what their attempts keep.
    pub fn folder(&self) -> FilePath {
        FilePath::from(self.folder.path())
    }

    /// Whether the story stands where the result would.
    pub fn takes_stdout(&self) -> bool {
        self.flags.narrate
    }

    /// Tells a job that has ended; `report` if it ended well.
    ///
    /// # Errors
    /// A trace that the master does not give, or a story that cannot be written.
    pub fn tell(&self, client: &Client, job: JobId, report: Option<&JobReport>) -> anyhow::Result<()> {
        let narration = Narration::new(self.folder.path());
        let parts = report.map(JobReport::parts).unwrap_or_default();
        let facts = Facts::gather(client.trace(job)?, &narration, &parts, self.deciders.clone())?;
        let steps = story::steps(&facts);
        if self.flags.narrate {
            stdout_raw(&text::text(&steps, stdout_is_styled()))?;
        }
        if let Some(path) = &self.flags.narrate_html {
            let page = page::page(&facts, &steps);
            private_file::write_asked("the narration", path, self.overwrite, page.as_bytes())?;
        }
        Ok(())
    }
}
