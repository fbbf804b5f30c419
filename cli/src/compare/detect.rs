//! `compare --check --detect SHARE`: a short trial, and the number of repetitions needed to show a
//! difference.
//!
//! The statistics are implemented in the laboratory (`compare::power`).

use super::{CompareFlags, RunPrinter};
use crate::files::InputFileError;
use crate::interruption::watch_interruptions;
use crate::terminal::{stdout_json, stdout_line, stdout_text};
use crate::text_table::aligned;
use crate::usage::usage;
use anyhow::Context;
use gristmill_lab::compare::statistics::{Need, POWER, SPREAD_SURE};
use gristmill_lab::compare::{Options, REPETITIONS_MAX, Workload, run};
use gristmill_lab::report::number::number;
use gristmill_runtime::exit;
use gristmill_runtime::registry::Registry;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

/// Returns the share to be detected, from `--detect`; `None` without it.
pub(super) fn share(flags: &CompareFlags, contenders: usize) -> anyhow::Result<Option<f64>> {
    let Some(text) = &flags.detect else { return Ok(None) };
    let percent = text.strip_suffix('%').and_then(|digits| digits.trim().parse::<f64>().ok());
    let Some(percent) = percent.filter(|percent| (0.01..=1000.0).contains(percent)) else {
        return Err(usage(format!("--detect {text}: give a difference from 0.01% to 1000%, such as 5%")));
    };
    if contenders < 2 {
        return Err(usage(format!("--detect {text}: name two policies or more, such as --policy fifo,fair")));
    }
    if flags.repeat < 2 {
        return Err(usage(format!(
            "--detect {text}: a trial of {} repetition has no spread; --repeat 3 has one",
            flags.repeat
        )));
    }
    Ok(Some(percent / 100.0))
}

/// Runs the trial in a directory that is removed again, and prints the repetitions that each pair of policies needs.
pub(super) fn trial(
    registry: &Registry,
    workload: &Workload,
    flags: &CompareFlags,
    options: &Options,
    share: f64,
) -> anyhow::Result<u8> {
    let mut folder = options.folder.clone().into_os_string();
    folder.push("-trial");
    let folder = PathBuf::from(folder);
    if folder.exists() {
        let words = "exists already, and a trial would remove it: move it away, or choose another --out";
        return Err(InputFileError::new(&folder, words).into());
    }
    let trial = Options {
        folder: folder.clone(),
        resume: false,
        isolated: false,
        calibrate: false,
        ..options.clone()
    };
    let interrupted = watch_interruptions()?;
    let begun = Instant::now();
    let mut printer = RunPrinter::new(&trial, flags.quiet);
    let ran = run(registry, workload, &trial, Some(interrupted), &mut |progress| printer.print(&progress));
    let seconds = begun.elapsed().as_secs_f64();
    // The directory did not exist before, and an error may come before it is created.
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("could not remove the trial's directory {}", folder.display()))?;
    }
    let comparison = ran?;
    if comparison.interrupted {
        say!("interrupted; the trial is thrown away");
        return Ok(exit::INTERRUPTED);
    }
    let needs = comparison.needs(share).unwrap_or_default();
    let each = seconds / f64::from(trial.repetitions);
    if flags.json {
        let value = json!({
            "schema": 1,
            "share": share,
            "power": POWER,
            "trial": { "repetitions": trial.repetitions, "seconds": seconds },
            "needs": needs,
        });
        stdout_json(&value)?;
        return Ok(exit::OK);
    }
    stdout_text(&table(&needs, share, each))?;
    stdout_line(&format!(
        "These numbers of repetitions detect a difference of {} % with a probability of {} %. The spread is that of {} \
         repetitions; with a probability of {} % the true one is at most that of the last columns. A repetition takes {} s.",
        number(100.0 * share),
        number(100.0 * POWER),
        trial.repetitions,
        number(100.0 * SPREAD_SURE),
        number(each)
    ))?;
    Ok(exit::OK)
}

fn table(needs: &[Need], share: f64, seconds_each: f64) -> String {
    let for_share = format!("repetitions for {} %", number(100.0 * share));
    let header = [
        "policies",
        "judged at, %",
        "spread, %",
        for_share.as_str(),
        "minutes",
        "spread up to, %",
        "repetitions",
        "minutes",
    ];
    let count = |count: Option<u32>| {
        count.map_or_else(|| format!("over {REPETITIONS_MAX}"), |count| count.to_string())
    };
    let minutes = |count: Option<u32>| {
        count.map_or_else(String::new, |count| number((f64::from(count) * seconds_each / 6.0).ceil() / 10.0))
    };
    let row = |need: &Need| {
        let planned = if need.planned { " (planned)" } else { "" };
        vec![
            format!("{} against {}{planned}", need.one, need.other),
            number(100.0 * need.level),
            number(100.0 * need.spread),
            count(need.repetitions),
            minutes(need.repetitions),
            number(100.0 * need.spread_high),
            count(need.repetitions_high),
            minutes(need.repetitions_high),
        ]
    };
    aligned(&header, needs.iter().map(row))
}
