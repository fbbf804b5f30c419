//! Cases of the slotted model: ends of jobs under each policy, the total flow time, and the machines in every slot.
//!
//! Policies are named as in the paper's figures: `SRPT` and `DSRPT` (both preemptive), `ASRPT`, `FIFO`, `Fair` and
//! `LRPT` with `/p` for the preemptive and `/np` for the non-preemptive scenario.

use super::input::field;
use gristmill_scheduler::policy::{self, Policy};
use gristmill_scheduler::sim::slotted::{self, Config};
use gristmill_scheduler::workload::Job;
use serde_json::{Map, Value, json};
use std::num::NonZeroU32;

/// Maximum units of all jobs of a case, and last slot in which a job may arrive. Simulation and comparison are at most
/// this long.
const UNITS_MAX: f64 = 1e6;

/// Job of a case: its index there and the simulated job.
type Listed = (usize, Job);

/// Kind `slotted`.
pub(super) fn compute(input: &Value, expect: &Map<String, Value>) -> Result<Value, String> {
    let machines: NonZeroU32 = field(input, "N")?;
    let jobs = jobs_of(input)?;
    let by_scheduler = expect.keys().map(|name| {
        let (text, preemptive) = match name.split_once('/') {
            None if name == "SRPT" || name == "DSRPT" => (name.as_str(), true),
            Some((text, "p")) => (text, true),
            Some((text, "np")) if text != "SRPT" && text != "DSRPT" => (text, false),
            _ => return Err(format!("unknown scheduler `{name}`")),
        };
        if !["SRPT", "DSRPT", "ASRPT", "FIFO", "Fair", "LRPT"].contains(&text) {
            return Err(format!("unknown scheduler `{name}`"));
        }
        let mut policy = policy::by_name(&text.to_lowercase()).map_err(|error| error.to_string())?;
        let config = Config::for_policy(&*policy, machines.get(), preemptive);
        Ok((name.clone(), run(&mut *policy, &config, &jobs)?))
    });
    by_scheduler.collect::<Result<Map<_, _>, String>>().map(Value::from)
}

/// Returns the jobs in the order of arrival; those of one slot in the order of the case.
fn jobs_of(input: &Value) -> Result<Vec<Listed>, String> {
    let (mut units, mut jobs) = (0.0, Vec::new());
    for (index, job) in field::<Vec<Value>>(input, "jobs")?.iter().enumerate() {
        let slot = field::<NonZeroU32>(job, "a")?.get();
        let reduces = field::<Vec<u32>>(job, "R")?.into_iter().map(f64::from).collect::<Vec<f64>>();
        let work = [f64::from(field::<u32>(job, "M")?), 0.0, reduces.iter().sum()];
        units += work.iter().sum::<f64>();
        if UNITS_MAX < units.max(f64::from(slot)) {
            return Err(format!(
                "the jobs have more than {UNITS_MAX} units together, or arrive after that slot"
            ));
        }
        jobs.push((
            index,
            Job { arrival: f64::from(slot - 1), work: work.into(), reduces, ..Job::default() },
        ));
    }
    jobs.sort_by(|(_, a), (_, b)| a.arrival.total_cmp(&b.arrival));
    Ok(jobs)
}

/// Computes all values that a case can expect of one scheduler.
fn run(policy: &mut dyn Policy, config: &Config, listed: &[Listed]) -> Result<Value, String> {
    let jobs: Vec<Job> = listed.iter().map(|(_, job)| job.clone()).collect();
    let mut finish = vec![0; listed.len()];
    let mut flow = 0;
    let mut slots: Vec<Value> = Vec::new();
    let mut sink = |record: &gristmill_scheduler::metrics::JobRecord| {
        finish[listed[record.seq as usize].0] = record.completion as u64;
        flow += record.flow() as u64;
    };
    let mut observer = |slot: u64, served: &[slotted::SlotService]| {
        slots.resize(slot as usize - 1, json!({}));
        let by_job =
            served.iter().map(|job| (listed[job.seq as usize].0.to_string(), json!([job.maps, job.reduces])));
        slots.push(by_job.collect::<Map<_, _>>().into());
    };
    slotted::run(policy, config, &jobs, &mut sink, &mut observer).map_err(|error| error.to_string())?;
    Ok(json!({"finish": finish, "flow": flow, "slots": slots}))
}

#[cfg(test)]
mod tests {
    use crate::verify::check_file;

    fn failures(text: &str) -> Vec<String> {
        let reports = check_file(text).unwrap();
        let differences = |report: &crate::verify::CaseReport| {
            report.differences.iter().map(|d| format!("{}: {d}", report.id)).collect::<Vec<_>>()
        };
        reports.iter().flat_map(differences).collect()
    }

    fn case(machines: &str, jobs: &str, expect: &str) -> String {
        format!(
            r#"{{"tol": 0, "cases": [{{"id": "own", "kind": "slotted",
                "input": {{"N": {machines}, "jobs": {jobs}}}, "expect": {expect}}}]}}"#
        )
    }

    #[test]
    fn a_case_reckoned_by_hand_comes_out() {
        // A map in slot 1; two reduces, one of two units: with preemption all units may run in slot 2.
        let jobs = r#"[{"a": 1, "M": 1, "R": [2, 1]}]"#;
        let expect = r#"{
            "SRPT": {"finish": [2], "flow": 2, "slots": [{"0": [1, 1]}, {"0": [0, 2]}]},
            "DSRPT": {"finish": [3], "flow": 3, "slots": [{"0": [1, 0]}, {"0": [0, 1]}, {"0": [0, 2]}]},
            "ASRPT/p": {"finish": [3], "slots": [{"0": [1, 0]}, {"0": [0, 2]}, {"0": [0, 1]}]},
            "FIFO/np": {"finish": [3], "flow": 3, "slots": [{"0": [1, 0]}, {"0": [0, 2]}, {"0": [0, 1]}]},
            "LRPT/np": {"flow": 3}, "Fair/p": {"flow": 3}}"#;
        assert_eq!(failures(&case("2", jobs, expect)), [""; 0]);
    }

    #[test]
    fn jobs_of_a_case_may_stand_in_any_order() {
        let jobs = r#"[{"a": 3, "M": 1, "R": []}, {"a": 1, "M": 1, "R": [1]}]"#;
        let slots = r#"[{"1": [1, 0]}, {"1": [0, 1]}, {"0": [1, 0]}]"#;
        let expect = format!(r#"{{"FIFO/p": {{"finish": [3, 2], "flow": 3, "slots": {slots}}}}}"#);
        assert_eq!(failures(&case("1", jobs, &expect)), [""; 0]);
    }

    #[test]
    fn what_is_not_as_expected_is_a_difference() {
        let jobs = r#"[{"a": 1, "M": 2, "R": []}, {"a": 1, "M": 1, "R": []}]"#;
        let expect = r#"{"FIFO/p": {"finish": [1, 2], "flow": 2, "slots": [{"0": [2, 0]}, {}], "mood": 1}}"#;
        let found = failures(&case("2", jobs, expect));
        let expected = [
            "own: FIFO/p.flow: expected 2, computed 3",
            "own: FIFO/p.mood: is expected, but nothing like it is computed",
            "own: FIFO/p.slots[1].1: nothing expected, computed [1,0]",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_makes_no_sense_is_an_error_and_not_a_hang() {
        let one = r#"[{"a": 1, "M": 1, "R": [1]}]"#;
        let fifo = r#"{"FIFO/p": {"flow": 2}}"#;
        for (machines, jobs, expect) in [
            ("0", one, fifo),
            ("1.5", one, fifo),
            ("-3", one, fifo),
            ("1e18", one, fifo),
            ("null", one, fifo),
            ("1", "{}", fifo),
            ("1", "[1]", fifo),
            ("1", r#"[{"a": 0, "M": 1, "R": []}]"#, fifo),
            ("1", r#"[{"a": 1, "M": -1, "R": []}]"#, fifo),
            ("1", r#"[{"a": 1, "M": 1e15, "R": []}]"#, fifo),
            ("1", r#"[{"a": 1, "M": 1, "R": [0.5]}]"#, fifo),
            ("1", r#"[{"a": 1, "M": 1}]"#, fifo),
            ("1", r#"[{"a": 1, "M": 1000000, "R": [1]}]"#, fifo),
            ("1", r#"[{"a": 99999999999, "M": 1, "R": [1]}]"#, fifo),
            ("1", one, "[]"),
            ("1", one, "{}"),
            ("1", one, r#"{"DSRPT/np": {"flow": 2}}"#),
            ("1", one, r#"{"FIFO": {"flow": 2}}"#),
            ("1", one, r#"{"max-srpt/p": {"flow": 2}}"#),
            ("1", one, r#"{"FIFO/x": {"flow": 2}}"#),
            ("1", one, r#"{"FIFO/p": 3}"#),
        ] {
            assert_ne!(failures(&case(machines, jobs, expect)), [""; 0], "N {machines}, {jobs}, {expect}");
        }
    }
}
