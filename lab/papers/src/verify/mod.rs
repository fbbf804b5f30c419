//! Worked cases in a uniform format, computed and compared.
//!
//! A file holds cases. Each has an `id`, a `kind`, an `input`, and in `expect` the expected results, within its own
//! tolerance `tol` or the file's, absolute or relative, whichever is looser. Only present fields are compared; a field
//! unknown to the kind is a difference.

mod compare;
mod deadline_plan;
mod deadline_sim;
mod fluid;
mod input;
mod online_order;
mod order;
mod slotted;
mod stragglers;

pub use compare::{CaseDifference, Checker};

use input::Input;
use serde_json::Value;

/// Result of a case.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct CaseReport {
    pub id: String,
    pub kind: String,
    /// Description of the case.
    pub description: String,
    /// All differences, and the reason if it could not be computed; empty if it passed.
    pub differences: Vec<CaseDifference>,
}

/// Computation of a kind of case: reads `input` and compares with `expect` through the checker. An error is an input
/// that cannot be computed, as text that names the field.
type CaseKind = fn(input: &Input<'_>, expect: &Value, checker: &mut Checker) -> Result<(), String>;

/// Kinds by name.
const KINDS: &[(&str, CaseKind)] = &[
    ("fluid", fluid::check),
    ("slotted", slotted::check),
    ("deadline-plan", deadline_plan::check),
    ("deadline-sim", deadline_sim::check),
    ("order", order::check),
    ("online-order", online_order::check),
    ("dtd", stragglers::dtd),
    ("dtd-fit", stragglers::dtd_fit),
    ("mst", stragglers::mst),
    ("rates", stragglers::rates),
    ("g-m-1", stragglers::g_m_1),
    ("m-g-1", stragglers::m_g_1),
    ("workers", stragglers::workers),
    ("budget", stragglers::budget),
];

/// Returns the kinds of cases that can be computed.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|&(name, _)| name)
}

/// Computes all cases of a file.
///
/// # Errors
/// The text is not a file of cases; the error describes why.
pub fn check_file(text: &str) -> Result<Vec<CaseReport>, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let cases = file.get("cases").and_then(Value::as_array).ok_or("it has no list `cases`")?;
    let tolerance = file.get("tol");
    cases.iter().map(|case| check_case(case, tolerance)).collect()
}

fn check_case(case: &Value, tolerance: Option<&Value>) -> Result<CaseReport, String> {
    let text = |field: &str| case.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (id, kind) = (text("id"), text("kind"));
    let tolerance = case.get("tol").or(tolerance).unwrap_or(&Value::Null);
    let Some(tolerance) = (if tolerance.is_null() { Some(0.0) } else { tolerance.as_f64() }) else {
        return Err(format!("case `{id}`: the tolerance `tol` is {tolerance}, not a number"));
    };
    let mut checker = Checker::new(tolerance);
    let null = Value::Null;
    match (KINDS.iter().find(|&&(name, _)| name == kind), case.get("expect")) {
        (None, _) => checker
            .refuse(format!("unknown kind `{kind}`; there is {}", kinds().collect::<Vec<_>>().join(", "))),
        (_, None) => checker.refuse("it has no `expect`".to_owned()),
        (Some((_, compute)), Some(expect)) => {
            let input = Input::new(case.get("input").unwrap_or(&null), "input");
            if let Err(reason) = compute(&input, expect, &mut checker) {
                checker.refuse(reason);
            }
        }
    }
    Ok(CaseReport { id, kind, description: text("desc"), differences: checker.into_differences() })
}

#[cfg(test)]
mod tests {
    use super::check_file;
    use std::path::Path;

    #[test]
    #[allow(clippy::disallowed_macros, reason = "a test that compares nothing prints so")]
    fn kept_cases_of_all_papers_pass() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/cases"));
        for paper in ["asrpt", "overlap", "pairs", "deadlines", "stragglers"] {
            let Ok(text) = std::fs::read_to_string(folder.join(paper).with_extension("json")) else {
                println!("no cases of {paper} in {}: nothing compared", folder.display());
                continue;
            };
            let reports = check_file(&text).unwrap();
            assert!(!reports.is_empty(), "{paper}");
            for report in reports {
                assert_eq!(report.differences, [], "{paper}, {} ({})", report.id, report.kind);
            }
        }
    }
}
