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
#[cfg(test)]
mod tests;

pub use compare::CaseDifference;

use compare::Checker;
use serde::Deserialize;
use serde_json::{Map, Value};

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

/// Computation of a kind of case: parses the fields of the input, and returns all values that a case can
/// expect. Kinds with values that take long look which of them are expected. An error is the
/// reason why the case cannot be computed.
type CaseKind = fn(input: &Value, expect: &Map<String, Value>) -> Result<Value, String>;

/// Kinds by name.
const KINDS: &[(&str, CaseKind)] = &[
    ("fluid", fluid::compute),
    ("slotted", slotted::compute),
    ("deadline-plan", deadline_plan::compute),
    ("deadline-sim", deadline_sim::compute),
    ("order", order::compute),
    ("online-order", online_order::compute),
    ("dtd", |input, _| stragglers::dtd(input)),
    ("dtd-fit", |input, _| stragglers::dtd_fit(input)),
    ("mst", |input, _| stragglers::mst(input)),
    ("rates", |input, expect| stragglers::rates(input, expect)),
    ("g-m-1", |input, _| stragglers::g_m_1(input)),
    ("m-g-1", |input, _| stragglers::m_g_1(input)),
    ("workers", |input, _| stragglers::workers(input)),
    ("budget", |input, _| stragglers::budget(input)),
];

#[derive(Deserialize)]
struct CaseFile {
    cases: Vec<Case>,
    tol: Option<f64>,
}

#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    id: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    desc: String,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    expect: Value,
    tol: Option<f64>,
}

/// Computes all cases of a file.
///
/// # Errors
/// The text is not a file of cases; the error describes why.
pub fn check_file(text: &str) -> Result<Vec<CaseReport>, String> {
    let file: Value = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    if !file.get("cases").is_some_and(Value::is_array) {
        return Err("it has no list `cases`".to_owned());
    }
    let CaseFile { cases, tol } = CaseFile::deserialize(file).map_err(|error| error.to_string())?;
    Ok(cases.into_iter().map(|case| check_case(case, tol)).collect())
}

fn check_case(case: Case, tolerance: Option<f64>) -> CaseReport {
    let mut checker = Checker::new(case.tol.or(tolerance).unwrap_or(0.0));
    if let Err(reason) = compute(&case, &mut checker) {
        checker.refuse(reason);
    }
    let Case { id, kind, desc: description, .. } = case;
    CaseReport { id, kind, description, differences: checker.into_differences() }
}

fn compute(case: &Case, checker: &mut Checker) -> Result<(), String> {
    let known = KINDS.iter().find(|&&(name, _)| name == case.kind);
    let (_, compute) = known.ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|&(name, _)| name).collect();
        format!("unknown kind `{}`; there is {}", case.kind, names.join(", "))
    })?;
    let expect = case.expect.as_object().ok_or("it has no object `expect`")?;
    let computed = compute(&case.input, expect)?;
    checker.value("", &case.expect, &computed);
    Ok(())
}
