//! Every invariant of the ledger, recounted from scratch: what tests ask after each event.
//!
//! Cost: all of the ledger, so the live master never calls it.

mod attempts;
mod jobs;
mod workers;

use crate::ledger::Ledger;
use std::fmt;

/// Collects what does not hold.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn rule(&mut self, holds: bool, subject: impl fmt::Display, rule: &'static str) {
        if !holds {
            self.0.push(format!("{subject}: {rule}"));
        }
    }
}

/// Recounts everything.
///
/// # Errors
/// The invariants that do not hold.
pub(crate) fn audit(ledger: &Ledger) -> Result<(), Vec<String>> {
    let mut findings = Findings::default();
    workers::audit_workers(ledger, &mut findings);
    attempts::audit_attempts(ledger, &mut findings);
    attempts::audit_suspensions(ledger, &mut findings);
    for job in ledger.jobs.values() {
        jobs::audit_counts(job, &mut findings);
        jobs::audit_maps(job, &ledger.workers, &mut findings);
        jobs::audit_reduces(job, &ledger.workers, &mut findings);
        jobs::audit_marks(ledger, job, &mut findings);
    }
    if findings.0.is_empty() { Ok(()) } else { Err(findings.0) }
}
