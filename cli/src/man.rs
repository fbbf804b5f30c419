//! `gristmill man`: manual pages, made of the same descriptions as `--help`.

use crate::terminal::stdout_line;
use anyhow::Context as _;
use clap::{Args, Command};
use gristmill_runtime::exit;
use std::fs;
use std::path::PathBuf;

/// Write manual pages, one for each command
#[derive(Args)]
pub struct ManCommand {
    /// Folder for them, such as ~/.local/share/man/man1; it is made if need be
    folder: PathBuf,
}

/// `gristmill man DIR`.
pub fn man(flags: &ManCommand, command: Command) -> anyhow::Result<u8> {
    let failed = || format!("could not write manual pages to {}", flags.folder.display());
    fs::create_dir_all(&flags.folder).with_context(failed)?;
    clap_mangen::generate_to(command.disable_help_subcommand(true), &flags.folder).with_context(failed)?;
    stdout_line(&format!("read them with: man -l {}", flags.folder.join("gristmill.1").display()))?;
    Ok(exit::OK)
}
