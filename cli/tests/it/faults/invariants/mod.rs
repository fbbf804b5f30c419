//! The ten invariants: what must hold after every fault, checked by one function.
//!
//! | | invariant |
//! |---|---|
//! | I1 | the output equals the reference's, or does not exist |
//! | I2 | each part matches `_SUCCESS`: name, bytes, checksum and records; no other file exists |
//! | I3 | the submitter ends within the bound, with the exit code that the fault costs |
//! | I4 | no process, port, temporary file, spill file or lock is left |
//! | I5 | counters are those of an undisturbed run: nothing counts twice |
//! | I6 | user code is charged only for its own faults, and an unnoticeable fault costs no attempt |
//! | I7 | the last message names the cause, in one error; no process shows the text of a panic |
//! | I8 | report, status, list of jobs, register and journal agree, and the journal replays |
//! | I9 | the fault has fired as often as it should |
//! | I10 | another job on the same cluster succeeds afterwards |

use super::run::{Files, Reference, Run, Told};
use crate::support::oracle;
use serde_json::Value;
use std::fmt;

/// One of the ten invariants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invariant {
    I1,
    I2,
    I3,
    I4,
    I5,
    I6,
    I7,
    I8,
    I9,
    I10,
}

/// A violated invariant, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct Violation {
    /// The invariant.
    pub of: Invariant,
    /// Actual values.
    pub words: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.of, self.words)
    }
}

/// Counts of a job that faults must not change.
const COUNTS: [&str; 5] = ["map_records_in", "map_bytes_in", "map_records_out", "records_out", "bytes_out"];

/// Counts of attempts that stay 0 if a fault need not be noticed.
const LOSSES: [&str; 3] = ["lost", "failed_other", "maps_rerun"];

/// Values on which report and status must agree.
const TOLD_TWICE: [&str; 5] = ["totals", "parts", "counters", "attempts", "ended_ns"];

/// Returns all violations in a run; empty if all invariants hold.
pub fn violations(reference: &Reference, run: &Run) -> Vec<Violation> {
    let mut found = Found::default();
    output_is_the_reference(reference, run, &mut found);
    manifest_is_the_output(run, &mut found);
    it_ends_in_time(run, &mut found);
    found.unless(run.left.is_empty(), Invariant::I4, || format!("left: {:?}", run.left));
    counters_are_the_reference(reference, run, &mut found);
    nobody_is_charged(run, &mut found);
    message_is_clear(run, &mut found);
    all_agree(run, &mut found);
    let fired = || format!("the fault fired {} times, not {:?}", run.fired, run.wanted);
    found.unless(run.wanted.contains(&run.fired), Invariant::I9, fired);
    next_job_succeeds(reference, run, &mut found);
    found.0
}

#[derive(Default)]
struct Found(Vec<Violation>);

impl Found {
    fn unless(&mut self, holds: bool, of: Invariant, words: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Violation { of, words: words() });
        }
    }

    fn unless_equal(&mut self, of: Invariant, what: &str, found: &Value, expected: &Value) {
        self.unless(found == expected, of, || format!("{what}: {found}, not {expected}"));
    }
}

fn names_of(files: &Files) -> Vec<&str> {
    files.keys().map(String::as_str).collect()
}

fn output_is_the_reference(reference: &Reference, run: &Run, found: &mut Found) {
    match (&run.output, run.ending.has_output()) {
        (None, false) => {}
        (None, true) => found.unless(false, Invariant::I1, || "there is no output".to_owned()),
        (Some(files), false) => {
            let left = || format!("a job that did not succeed has left {:?}", names_of(files));
            found.unless(false, Invariant::I1, left);
        }
        (Some(files), true) => {
            let parts: Vec<&Vec<u8>> =
                files.iter().filter(|(name, _)| name.starts_with("part-")).map(|(_, bytes)| bytes).collect();
            let differs = (0..parts.len().max(reference.parts.len()))
                .find(|number| parts.get(*number).copied() != reference.parts.get(*number));
            let words = || format!("part {} is another", differs.unwrap_or_default());
            found.unless(differs.is_none(), Invariant::I1, words);
        }
    }
}

fn manifest_is_the_output(run: &Run, found: &mut Found) {
    let Some(files) = run.output.as_ref().filter(|_| run.ending.has_output()) else { return };
    let Some(success) = files.get("_SUCCESS").and_then(|text| serde_json::from_slice::<Value>(text).ok())
    else {
        return found.unless(false, Invariant::I2, || format!("no _SUCCESS in {:?}", names_of(files)));
    };
    let mut names = vec!["_SUCCESS"];
    for part in success["parts"].as_array().into_iter().flatten() {
        let name = part["name"].as_str().unwrap_or_default();
        names.push(name);
        let bytes = files.get(name).map(Vec::as_slice).unwrap_or_default();
        let is = [bytes.len() as u64, crc32c::crc32c(bytes).into(), oracle::lines(bytes).len() as u64];
        let said = ["bytes", "crc32c", "records"].map(|key| part[key].as_u64().unwrap_or(u64::MAX));
        let words = || format!("{name} has bytes, checksum and records {is:?}, and _SUCCESS says {said:?}");
        found.unless(is == said, Invariant::I2, words);
    }
    let words = || format!("the directory has {:?}, and _SUCCESS names {names:?}", names_of(files));
    found.unless(names_of(files) == names, Invariant::I2, words);
}

fn it_ends_in_time(run: &Run, found: &mut Found) {
    let (code, wanted) = (run.code, run.ending.code);
    let words = || format!("the submitter ended with {code:?}, not {wanted:?}: {}", run.stderr);
    found.unless(code == wanted, Invariant::I3, words);
    let words = || format!("it took {:?}, over {:?}", run.took, run.bound);
    found.unless(run.took <= run.bound, Invariant::I3, words);
}

fn counters_are_the_reference(reference: &Reference, run: &Run, found: &mut Found) {
    let Some(told) = run.told.as_ref().filter(|_| run.ending.has_output()) else { return };
    for name in COUNTS {
        let (is, expected) = (&told.status["totals"][name], &reference.status["totals"][name]);
        found.unless_equal(Invariant::I5, name, is, expected);
    }
    let (is, expected) = (&told.status["counters"], &reference.status["counters"]);
    found.unless_equal(Invariant::I5, "counters of the job", is, expected);
}

fn nobody_is_charged(run: &Run, found: &mut Found) {
    let Some(told) = &run.told else { return };
    let none = Value::from(0);
    let attempts = &told.status["attempts"];
    found.unless_equal(Invariant::I6, "charged to user code", &attempts["failed_user"], &none);
    for name in LOSSES.iter().filter(|_| run.ending.untouched) {
        let words = || format!("{name}: {}, not 0: {}", attempts[*name], told.status["incidents"]);
        found.unless(attempts[*name] == none, Invariant::I6, words);
    }
}

fn message_is_clear(run: &Run, found: &mut Found) {
    for words in ["panicked at", "stack backtrace", "RUST_BACKTRACE"] {
        let shown = || format!("somebody has said {words:?}: {}", run.logs);
        found.unless(!run.logs.contains(words), Invariant::I7, shown);
    }
    for word in run.ending.words {
        let words = || format!("the submitter did not say {word:?}: {}", run.stderr);
        found.unless(run.stderr.contains(word), Invariant::I7, words);
    }
    let errors = run.stderr.lines().filter(|line| line.starts_with("error:")).count();
    let wanted = usize::from(run.ending.code.is_some_and(|code| code != 0));
    let words = || format!("{errors} errors, not {wanted}: {}", run.stderr);
    found.unless(errors == wanted, Invariant::I7, words);
}

fn all_agree(run: &Run, found: &mut Found) {
    let Some(told) = &run.told else { return };
    let state = run.ending.state;
    let Told { status, listed, registered, journal } = told;
    found.unless_equal(Invariant::I8, "state by `status`", &status["state"], &state.into());
    let written = journal.iter().map(|written| ("the journal", &written.outcome));
    for (who, says) in [("`jobs`", listed), ("the register", registered)].into_iter().chain(written) {
        let words = || format!("{who} says {says:?}, not {state:?}");
        found.unless(says.split_whitespace().any(|word| word == state), Invariant::I8, words);
    }
    let replay = journal.as_ref().map(|written| written.replay.as_str()).unwrap_or_default();
    found.unless(replay.is_empty(), Invariant::I8, || format!("the journal does not replay: {replay}"));
    let Some(report) = run.report.as_ref().filter(|_| run.ending.has_output()) else { return };
    for key in TOLD_TWICE {
        let what = format!("{key} of report and status");
        found.unless_equal(Invariant::I8, &what, &report["status"][key], &status[key]);
    }
}

fn next_job_succeeds(reference: &Reference, run: &Run, found: &mut Found) {
    let next = &run.next;
    let words = || format!("the next job ended with {:?}: {}", next.code, next.stderr);
    found.unless(next.code == Some(0), Invariant::I10, words);
    let same = next.parts == reference.parts;
    found.unless(same, Invariant::I10, || "the next job has another output".to_owned());
}

#[cfg(test)]
mod tests;
