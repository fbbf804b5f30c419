//! `run --narrate`: a job of little input, shown step by step, as text or as one page.
//!
//! The narration is made from the job's trace and from the pairs that its attempts recorded
//! ([`gristmill_worker::narration`]); nothing is computed a second time. There are two flags instead of one
//! with an optional file: `--narrate story.html` would narrate an input called `story.html` in the terminal.

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

/// Flags for the narration of a job.
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
    /// True if pairs are to be recorded.
    pub fn is_asked(&self) -> bool {
        self.narrate || self.narrate_html.is_some()
    }
}

/// Narrator of a job that is still to run.
pub struct JobNarrator {
    flags: NarrateFlags,
    /// True if its page may replace an existing file.
    overwrite: bool,
    folder: ScratchFolder,
    deciders: DeciderNames,
}

impl JobNarrator {
    /// Creates the directory in which attempts record their pairs, if a narration is requested.
    ///
    /// # Errors
    /// A directory that cannot be created, or a page that cannot be written to its path.
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

    /// Directory for the records of attempts.
    pub fn folder(&self) -> FilePath {
        FilePath::from(self.folder.path())
    }

    /// True if the story replaces the result on stdout.
    pub fn takes_stdout(&self) -> bool {
        self.flags.narrate
    }

    /// Narrates an ended job; `report` if it succeeded.
    ///
    /// # Errors
    /// A trace that the master does not return, or a story that cannot be written.
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
