//! Writes the manual pages and the shell completions: `cargo run -p gristmill --example pages -- DIR`.

use clap::builder::PossibleValuesParser;
use clap::{Command, ValueEnum};
use gristmill::cli::visible_command;
use gristmill::registry::Registry;
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("usage: pages DIR")?);
    std::fs::create_dir_all(&directory)?;
    let registry = Registry::standard();
    let mut command = visible_command(&registry).disable_help_subcommand(true);
    command.build();
    clap_mangen::generate_to(command.clone(), &directory)?;
    let policies = registry.policies().iter().map(|policy| policy.name).collect::<Vec<_>>();
    let mut command = with_policies(command, &policies);
    for shell in clap_complete::Shell::value_variants() {
        clap_complete::generate_to(*shell, &mut command, "gristmill", &directory)?;
    }
    Ok(())
}

/// Completes the names of policies for `--policy`, which also accepts parameters and lists.
fn with_policies(command: Command, policies: &[&'static str]) -> Command {
    let command = command.mut_args(|flag| match flag.get_id() == "policy" {
        true => flag.value_parser(PossibleValuesParser::new(policies)),
        false => flag,
    });
    command.mut_subcommands(|command| with_policies(command, policies))
}
