//! `lab verify`: worked cases, computed and compared.

use crate::files::{InputFileError, read_text};
use crate::terminal::{stdout_json, stdout_line};
use clap::Args;
use gristmill_lab::parallel::each;
use gristmill_papers::verify::{CaseReport, check_file};
use gristmill_runtime::exit;
use gristmill_runtime::plural::counted;
use serde_json::json;
use std::path::PathBuf;

/// Maximum number of differences of one case that are printed; `--json` has them all.
const DIFFERENCES_SHOWN: usize = 20;

/// Compute worked cases and compare
///
/// Each case of a file has an id, a kind, an input and an expected result. The exit code is 0 if every case
/// of every file passed, else 1.
#[derive(Args)]
#[command(after_help = "Example:\n  gristmill lab verify --cases asrpt.json overlap.json")]
pub struct VerifyCommand {
    /// Files of cases
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    cases: Vec<PathBuf>,
    /// Print only differences
    #[arg(long)]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `gristmill lab verify`.
pub fn verify(flags: &VerifyCommand) -> anyhow::Result<u8> {
    let checked = each(&flags.cases, |path| -> Result<Vec<CaseReport>, InputFileError> {
        let reports = check_file(&read_text(path)?).map_err(|words| InputFileError::new(path, words))?;
        match reports.is_empty() {
            true => Err(InputFileError::new(path, "it has no case")),
            false => Ok(reports),
        }
    });
    let mut files = Vec::new();
    for (path, reports) in flags.cases.iter().zip(checked) {
        files.push((path.display().to_string(), reports?));
    }
    let all = || files.iter().flat_map(|(_, reports)| reports);
    let passed = all().filter(|report| report.differences.is_empty()).count();
    let count = all().count();
    match flags.json {
        true => print_json(&files)?,
        false => print_words(&files, flags.quiet)?,
    }
    if !flags.json {
        stdout_line(&format!("{passed} of {} passed", counted(count as u64, "case", "cases")))?;
    }
    Ok(if passed == count { exit::OK } else { exit::FAILED })
}

type CheckedFiles = [(String, Vec<CaseReport>)];

fn print_words(files: &CheckedFiles, quiet: bool) -> anyhow::Result<()> {
    for (path, reports) in files {
        for report in reports {
            let mut name = format!("{path} {} ({})", report.id, report.kind);
            if !report.description.is_empty() {
                name.push_str(": ");
                name.push_str(&report.description);
            }
            if report.differences.is_empty() {
                if !quiet {
                    stdout_line(&format!("passed  {name}"))?;
                }
                continue;
            }
            stdout_line(&format!("FAILED  {name}"))?;
            for difference in report.differences.iter().take(DIFFERENCES_SHOWN) {
                stdout_line(&format!("        {difference}"))?;
            }
            let more = report.differences.len().saturating_sub(DIFFERENCES_SHOWN);
            if 0 < more {
                stdout_line(&format!("        and {more} more"))?;
            }
        }
    }
    Ok(())
}

fn print_json(files: &CheckedFiles) -> anyhow::Result<()> {
    let case = |report: &CaseReport| {
        let differences: Vec<_> = report
            .differences
            .iter()
            .map(|difference| json!({"place": difference.place, "what": difference.what}))
            .collect();
        json!({
            "id": report.id,
            "kind": report.kind,
            "description": report.description,
            "passed": differences.is_empty(),
            "differences": differences,
        })
    };
    let files: Vec<_> = files
        .iter()
        .map(|(path, reports)| json!({"file": path, "cases": reports.iter().map(case).collect::<Vec<_>>()}))
        .collect();
    stdout_json(&files)
}
