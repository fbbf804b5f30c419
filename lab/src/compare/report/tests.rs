//! A report of made-up runs is complete and has valid markup.

use super::*;
use crate::compare::ComparisonStore;
use crate::compare::comparison::Comparison;
use crate::compare::record;
use crate::compare::testing::{comparison, job, run};
use crate::report::{Block, Circumstances};
use gristmill_scheduler::metrics::JOB_COLUMNS;
use serde_json::Value;

/// Returns three repetitions of two policies, one of which is a quarter faster.
fn made() -> Comparison {
    let runs = (0..3).flat_map(|repetition| {
        let shift = f64::from(repetition) * 0.01;
        let slow = run(
            "fifo",
            repetition,
            (0..6).map(|place| job(place, place as f64, place as f64 + 4.0)).collect(),
        );
        let mut fast = run(
            "max-srpt",
            repetition,
            (0..6).map(|place| job(place, place as f64, place as f64 + 3.0 + shift)).collect(),
        );
        fast.jobs[0].deadline = Some(2.0);
        let simulated = |phases| record::SimulatedRun {
            jobs: (0..6).map(|index| record::SimulatedPhases { index, phases }).collect(),
            missing: None,
        };
        fast.replayed = simulated([0.3, 1.4, 0.3, 0.9]);
        fast.predicted = simulated([0.3, 0.6, 1.2, 0.9]);
        fast.transfers =
            vec![record::Transfer { job: 0, from_worker: 1, to_worker: 2, bytes: 5, from: 1.0, to: 2.0 }];
        [slow, fast]
    });
    comparison(runs.collect())
}

#[test]
fn page_has_all_sections_and_says_what_is_shown() {
    let found = sections(&made());
    let ids: Vec<&str> = found.iter().map(|section| section.id.as_str()).collect();
    let expected = [
        "result",
        "flow-time",
        "simulated",
        "stations",
        "slots-per-job",
        "slots-and-lanes",
        "deadlines",
        "workload",
        "judged",
        "metrics",
    ];
    assert_eq!(ids, expected);
    assert_eq!(found[0].findings, ["max-srpt is faster than fifo by 25 % (24 to 25 %)"]);
    assert_eq!(
        found[0].text[0],
        "All repetitions had the same jobs and arrivals, and the verdicts are for these only."
    );
    let charts =
        found.iter().flat_map(|section| &section.blocks).filter(|block| matches!(block, Block::Chart(_)));
    assert!(8 <= charts.count());
}

#[test]
fn files_can_be_read_by_people_and_programs() {
    let directory = tempfile::tempdir().unwrap();
    let store = ComparisonStore::open(&directory.path().join("out"), &Value::Null, false).unwrap();
    let circumstances = Circumstances::now("gristmill lab compare".to_owned(), Vec::new());
    let page = write(&made(), &circumstances, &store).unwrap();
    let html = std::fs::read_to_string(page).unwrap();
    crate::report::tests::check_markup(&html);
    for words in
        ["max-srpt is faster than fifo", "Simulated beside real", "Every metric", "gristmill lab compare"]
    {
        assert!(html.contains(words), "{words} is missing");
    }
    assert!(!html.contains("<script") && !html.contains("src=\"http"), "the page must stand alone");
    let csv = std::fs::read_to_string(store.path().join("report.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 6 * 6);
    let columns = csv.lines().next().unwrap().split(',').count();
    let times = JOB_COLUMNS.map(|(name, _)| name).join(",");
    assert!(csv.starts_with(&format!("policy,placement,repetition,job,kind,{times},planned,")), "{csv}");
    assert!(csv.lines().all(|line| line.split(',').count() == columns));
    let results: Value =
        serde_json::from_slice(&std::fs::read(store.path().join("results.json")).unwrap()).unwrap();
    assert_eq!(results["differences"][0]["shown"], "faster");
    assert_eq!(results["summaries"][0]["metrics"]["flow"]["mean"], 4.0, "metrics by their declared names");
    assert_eq!(results["comparison"]["runs"].as_array().unwrap().len(), 6);
    assert!(store.path().join("figures/flow-time-distribution.svg").exists());
}

#[test]
fn table_has_a_line_for_each_policy_with_both_simulated_means_beside() {
    let text = table(&made());
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(
        text.contains("flow, s") && text.contains("replayed, s") && text.contains("predicted, s"),
        "{text}"
    );
    assert!(text.contains("2.9 (−3.7 %)"), "{text}");
    assert_eq!(verdicts(&made()).len(), 1);
}

#[test]
fn page_of_more_repetitions_than_one_before_says_that_verdicts_were_seen() {
    let directory = tempfile::tempdir().unwrap();
    let store = ComparisonStore::open(&directory.path().join("out"), &Value::Null, false).unwrap();
    let circumstances = Circumstances::now("gristmill lab compare".to_owned(), Vec::new());
    let page = |repetitions: u32| {
        let comparison = Comparison { repetitions, looks: store.looks().unwrap(), ..made() };
        write(&comparison, &circumstances, &store).unwrap();
        comparison.reservations()
    };
    assert_eq!(page(3), Vec::<String>::new(), "the first look");
    assert_eq!(page(3), Vec::<String>::new(), "the same once more");
    let words = page(6);
    assert!(
        words[0].starts_with("verdicts were shown with 3 repetitions before 6 were asked for"),
        "{words:?}"
    );
}
