//! `gen` and `verify-sort`, which need no cluster.

use crate::terminal::stdout_line;
use crate::usage::usage;
use clap::Args;
use gristmill_runtime::exit;
use gristmill_runtime::generate::{self, GenerateArgs};
use gristmill_runtime::jobs::Sort;
use gristmill_runtime::output_dir::{SUCCESS, Success};
use gristmill_runtime::plural::counted;
use gristmill_runtime::verify_sort::{VerifyOptions, verify};
use gristmill_scheduler::units::Bytes;
use gristmill_worker::api::Job;
use gristmill_worker::input::InputLimits;
use std::path::PathBuf;

/// Check the order, count and checksum of a sorted output
#[derive(Args)]
pub struct VerifySortCommand {
    /// Output directory of a `sort`
    directory: PathBuf,
}

/// `gristmill gen`.
pub fn generate(flags: &GenerateArgs) -> anyhow::Result<u8> {
    let report = generate::run(flags).map_err(|error| match error {
        generate::GenerateError::Write { path, source } => {
            anyhow::Error::new(source).context(format!("could not write {}", path.display()))
        }
        other => usage(gristmill_runtime::chain(&other)),
    })?;
    for file in report.files {
        let lines = counted(file.lines, "line", "lines");
        say!("{}: {}, {lines}", file.path.display(), Bytes(file.bytes));
    }
    Ok(exit::OK)
}

/// `gristmill verify-sort DIR`.
pub fn verify_sort(flags: &VerifySortCommand) -> anyhow::Result<u8> {
    let directory = &flags.directory;
    let success = match Success::read(directory) {
        Ok(success) => success,
        Err(error) => {
            say!("error: could not read {}: {error}", directory.join(SUCCESS).display());
            return Ok(exit::INPUT);
        }
    };
    if success.job != Sort::NAME {
        return Err(usage(format!("{} was written by {}, not by sort", directory.display(), success.job)));
    }
    let sort: Sort = serde_json::from_value(success.parameters)?;
    let parts = success.parts.iter().map(|part| directory.join(&part.name).display().to_string()).collect();
    let options = VerifyOptions { parts, sort, limits: InputLimits::default() };
    let report = match verify(&options) {
        Ok(report) => report,
        Err(error) => {
            say!("error: {}", gristmill_runtime::chain(&error));
            return Ok(exit::INPUT);
        }
    };
    let problems = report.problems();
    if problems.is_empty() {
        stdout_line(&format!(
            "sorted: {}, {}, hash sum {:016x}",
            counted(report.output.records, "record", "records"),
            Bytes(report.output.bytes),
            report.output.hash_sum
        ))?;
        return Ok(exit::OK);
    }
    for problem in problems {
        stdout_line(&format!("not sorted: {problem}"))?;
    }
    Ok(exit::FAILED)
}
