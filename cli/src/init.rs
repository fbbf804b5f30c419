//! `gristmill init`: a settings file, or a package with a job, to start with.

use crate::settings::FILE_NAME;
use crate::usage::usage;
use anyhow::Context as _;
use clap::{Args, Subcommand};
use gristmill_runtime::exit;
use gristmill_runtime::registry::Registry;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// All settings with their descriptions, commented out.
const TEXT: &str = include_str!("init.toml");

/// Program of a new package; it is compiled and tested as an example of this one.
const PROGRAM: &str = include_str!("../template/main.rs");

/// Names that cargo refuses for a program.
const CARGOS: [&str; 5] = ["build", "deps", "examples", "incremental", "test"];

/// Write a settings file with all settings, commented out
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct InitCommand {
    #[command(subcommand)]
    package: Option<InitPackage>,
    /// Output file; it must not exist
    #[arg(default_value = FILE_NAME)]
    file: PathBuf,
}

#[derive(Subcommand)]
enum InitPackage {
    Job(InitJob),
}

/// Write a package with a job, its program and its test
#[derive(Args)]
struct InitJob {
    /// Name of the job and of the package, such as `link-counts`; its directory must not exist
    name: String,
    /// Directory of Gristmill's sources
    #[arg(long, value_name = "DIR", default_value = ".")]
    from: PathBuf,
}

/// `gristmill init`.
pub fn init(flags: &InitCommand) -> anyhow::Result<u8> {
    match &flags.package {
        Some(InitPackage::Job(flags)) => init_job(flags),
        None => init_settings(&flags.file),
    }
}

fn init_settings(file: &Path) -> anyhow::Result<u8> {
    let path = file.display();
    // A file that others may write would be refused when it is read.
    let made = File::options().write(true).create_new(true).mode(0o600).open(file);
    let mut file = made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => usage(format!("{path} exists already: edit it, or name another file")),
        _ => anyhow::Error::from(error).context(format!("could not write {path}")),
    })?;
    file.write_all(TEXT.as_bytes())?;
    say!("{path}: remove the # in front of the settings to use");
    Ok(exit::OK)
}

fn init_job(flags: &InitJob) -> anyhow::Result<u8> {
    let InitJob { name, from } = flags;
    let is_letter = |byte: u8| byte.is_ascii_lowercase();
    let is_name = name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit() || byte == b'-');
    if !is_name {
        return Err(usage(format!(
            "invalid job name `{name}`: use letters a-z, digits and `-`, with a letter first"
        )));
    }
    if CARGOS.contains(&&**name) || Registry::standard().job_names().any(|standard| standard == name) {
        return Err(usage(format!(
            "invalid job name `{name}`: cargo, or a job that comes with Gristmill, has this name"
        )));
    }
    let sources = from.join("cli");
    if !sources.join("Cargo.toml").is_file() {
        return Err(usage(format!(
            "{} has no cli/Cargo.toml: name the directory of Gristmill's sources with --from, as no version is published yet",
            from.display()
        )));
    }
    let sources =
        fs::canonicalize(&sources).with_context(|| format!("could not resolve {}", sources.display()))?;
    let directory = Path::new(name);
    fs::create_dir(directory).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            usage(format!("{name} exists already: remove it, or choose another name"))
        }
        _ => anyhow::Error::from(error).context(format!("could not make the directory {name}")),
    })?;
    let write = || {
        fs::create_dir(directory.join("src"))?;
        fs::write(directory.join("Cargo.toml"), manifest(name, &sources))?;
        fs::write(directory.join("src/main.rs"), program(name))
    };
    if let Err(error) = write() {
        // A package with half of its files would be in the way of the next try.
        let _ = fs::remove_dir_all(directory);
        return Err(anyhow::Error::from(error).context(format!("could not write the package {name}")));
    }
    say!("{name}: the job is in src/main.rs. `cargo test` tests it, and this runs it:");
    say!("  cd {name} && cargo run --release -- run {name} FILES");
    Ok(exit::OK)
}

fn manifest(name: &str, sources: &Path) -> String {
    // A string in TOML escapes as one in JSON does.
    let path = serde_json::Value::from(sources.to_string_lossy());
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         gristmill = {{ path = {path} }}\nclap = {{ version = \"4\", features = [\"derive\"] }}\n\
         serde = {{ version = \"1\", features = [\"derive\"] }}\n\n# It belongs to no workspace around it.\n[workspace]\n"
    )
}

/// Returns the program with the names of its job.
fn program(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    // The prelude has names such as `Job` and `Record`.
    let type_name: String = name.split('-').filter(|word| !word.is_empty()).map(capital).collect();
    PROGRAM.replace("my-job", name).replace("MyJob", &format!("{type_name}Job"))
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
    fn a_new_program_has_the_names_of_its_job() {
        let text = program("link-counts2");
        assert!(text.contains("const NAME: &'static str = \"link-counts2\";"), "{text}");
        assert!(text.contains("impl Job for LinkCounts2Job {") && !text.contains("MyJob"), "{text}");
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
