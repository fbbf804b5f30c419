//! `gristmill init`: a settings file to start with.

use crate::settings::FILE_NAME;
use crate::usage::usage;
use clap::Args;
use gristmill_runtime::exit;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// All settings with their descriptions, commented out.
const TEXT: &str = include_str!("init.toml");

/// Write a settings file with all settings, commented out
#[derive(Args)]
pub struct InitCommand {
    /// Output file; it must not exist
    #[arg(default_value = FILE_NAME)]
    file: PathBuf,
}

/// `gristmill init`.
pub fn init(flags: &InitCommand) -> anyhow::Result<u8> {
    let path = flags.file.display();
    // A file that others may write would be refused when it is read.
    let made = File::options().write(true).create_new(true).mode(0o600).open(&flags.file);
    let mut file = made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => usage(format!("{path} exists already: edit it, or name another file")),
        _ => anyhow::Error::from(error).context(format!("could not write {path}")),
    })?;
    file.write_all(TEXT.as_bytes())?;
    say!("{path}: remove the # in front of the settings to use");
    Ok(exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use std::collections::BTreeSet;

    /// Returns a setting without the `#` in front of it, or `None` for a sentence.
    fn setting(line: &str) -> Option<&str> {
        line.strip_prefix("# ").filter(|rest| rest.contains(" = ") || rest.starts_with('['))
    }

    /// Returns the text with all settings enabled.
    fn switched_on() -> String {
        TEXT.lines().filter_map(setting).map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn a_fresh_file_changes_nothing_and_each_of_its_settings_can_be_switched_on() {
        let fresh: Settings = toml::from_str(TEXT).unwrap();
        assert_eq!(format!("{fresh:?}"), format!("{:?}", Settings::default()));
        let all: Settings = toml::from_str(&switched_on()).unwrap();
        assert_eq!(all.pools.unwrap().len(), 2);
    }

    #[test]
    fn every_setting_stands_in_it() {
        let unknown = toml::from_str::<Settings>("nosuch = 1").unwrap_err().to_string();
        let (_, known) = unknown.split_once("expected one of ").unwrap();
        let known: BTreeSet<&str> = known.split('`').skip(1).step_by(2).collect();
        let table: toml::Table = switched_on().parse().unwrap();
        assert_eq!(table.keys().map(String::as_str).collect::<BTreeSet<_>>(), known);
    }
}
