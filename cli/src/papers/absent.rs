//! Commands of papers in a program without them: an error that names the missing feature.

use crate::usage::usage;
use clap::Args;

/// All arguments of a command that this program does not have.
#[derive(Args)]
pub struct Absent {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

fn absent(command: &str) -> anyhow::Error {
    usage(format!(
        "this program was built without `gristmill lab {command}` (the feature `papers`): \
         build it with `cargo build --release -p gristmill --features papers`"
    ))
}

/// `gristmill lab paper`.
pub mod paper {
    pub use super::Absent as PaperCommand;
    use gristmill_runtime::registry::Registry;

    /// Returns the error that names the feature.
    pub fn paper(_: &Registry, _: &PaperCommand) -> anyhow::Result<u8> {
        Err(super::absent("paper"))
    }
}

/// `gristmill lab verify`.
pub mod verify {
    pub use super::Absent as VerifyCommand;

    /// Returns the error that names the feature.
    pub fn verify(_: &VerifyCommand) -> anyhow::Result<u8> {
        Err(super::absent("verify"))
    }
}
