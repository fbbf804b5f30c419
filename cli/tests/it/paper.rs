//! `gristmill lab paper` as a user calls it: mistakes, directories that already exist, and the same bytes twice.

use crate::support::{Sandbox, until};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The paper that takes the least time.
const QUICKEST: &str = "pairs";

/// Experiments take a while in a build without optimisation.
const EXPERIMENT_TIMEOUT: Duration = Duration::from_secs(120);

/// All files below a directory, by their relative paths.
fn files(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![top.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(top).unwrap().to_path_buf();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn mistakes_are_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    let mistakes: [(&[&str], &str); 5] = [
        (&["paper"], "Usage"),
        (&["paper", "overlpa"], "did you mean `overlap`? Papers: asrpt"),
        (&["paper", "everything"], "all"),
        (&["paper", "overlap", "--quick", "--full"], "--full"),
        (&["paper", "overlap", "--seed", "first"], "--seed"),
    ];
    for (arguments, word) in mistakes {
        let finished = sandbox.run(arguments).expect_code(2).expect_words(&[word]);
        assert!(finished.stdout.is_empty(), "{arguments:?} wrote to stdout");
    }
}

#[test]
fn directory_in_the_way_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    let thesis = sandbox.write("out/thesis.tex", "years of work");
    for (flags, word) in [(&[][..], "--overwrite"), (&["--overwrite"][..], "run.json")] {
        let arguments = ["paper", "all", "--full", "--out", "out"];
        sandbox.run(arguments.iter().chain(flags)).expect_code(3).expect_words(&[word]);
    }
    assert_eq!(fs::read_to_string(thesis).unwrap(), "years of work");
}

/// Sections that a reader of each paper looks for, by the paper's own numbers.
const FIGURES: [(&str, &[&str]); 5] = [
    ("asrpt", &["figure-5", "figure-6", "figure-7", "figure-8", "figure-9", "figure-10", "figure-13"]),
    (
        "overlap",
        &[
            "figure-2",
            "figure-3",
            "figure-4",
            "figure-5",
            "figure-6",
            "figure-7",
            "section-5-3-means",
            "figure-9",
            "corollary-4",
            "corollary-6",
            "literal-readings",
        ],
    ),
    ("pairs", &["figure-1", "table-2", "table-3", "figure-2", "figure-3", "figure-4", "theorems"]),
    ("deadlines", &["figure-1", "figure-2", "figure-3", "figure-4", "figure-5", "figure-6", "figure-7"]),
    (
        "stragglers",
        &["table-3-1", "figure-4-1", "figure-6-1", "figure-6-9", "figure-7-1", "figure-7-4", "equations"],
    ),
];

/// Sections whose numbers are exact, so that all of them agree for any seed.
const EXACT: [(&str, &str); 4] =
    [("overlap", "figure-2"), ("overlap", "figure-3"), ("overlap", "figure-4"), ("pairs", "figure-1")];

#[test]
fn every_paper_comes_out_with_its_figures_and_exact_numbers_agree() {
    let sandbox = Sandbox::new();
    let arguments = ["paper", "all", "--quick", "--out", "out"];
    sandbox.gristmill(arguments).start().finish_within(2 * EXPERIMENT_TIMEOUT).expect_code(0);
    let results = fs::read_to_string(sandbox.path("out/results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    let papers = results["papers"].as_array().unwrap();
    assert_eq!(results["failures"], serde_json::json!([]));
    for (paper, (name, figures)) in papers.iter().zip(FIGURES) {
        assert_eq!(paper["name"], name);
        let sections = paper["sections"].as_array().unwrap();
        for figure in figures {
            let section = sections.iter().find(|section| section["id"] == *figure);
            let section = section.unwrap_or_else(|| panic!("{name} has no {figure}"));
            assert!(!section["blocks"].as_array().unwrap().is_empty(), "{figure} of {name} is empty");
            if EXACT.contains(&(name, figure)) {
                let compared = |block: &serde_json::Value| block["comparison"].as_array().cloned();
                let rows: Vec<_> =
                    section["blocks"].as_array().unwrap().iter().filter_map(compared).flatten().collect();
                assert!(!rows.is_empty(), "{figure} of {name} compares nothing");
                assert!(rows.iter().all(|row| row["verdict"] == "holds"), "{figure} of {name}: {rows:?}");
            }
        }
    }
    assert_eq!(papers.len(), FIGURES.len());
}

#[test]
fn same_seed_gives_the_same_bytes_but_for_the_circumstances() {
    let sandbox = Sandbox::new();
    let runs = ["one", "other"].map(|out| {
        let arguments = ["paper", QUICKEST, "--quick", "--seed", "7", "--out", out];
        let finished = sandbox.gristmill(arguments).start().finish_within(EXPERIMENT_TIMEOUT).expect_code(0);
        assert!(finished.stdout_text().contains(QUICKEST));
        files(&sandbox.path(out))
    });
    let [one, other] = runs;
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, text) in one.iter().filter(|(name, _)| name.as_path() != Path::new("run.json")) {
        let lines = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.starts_with("<footer id=\"run\">")).map(str::to_owned).collect()
        };
        assert!(lines(text) == lines(&other[name]), "{} differs", name.display());
    }
    for name in ["index.html", "results.json", "run.json"] {
        assert!(one.contains_key(Path::new(name)), "{name} is missing");
    }
    assert!(
        one.keys().any(|name| name.starts_with(QUICKEST) && name.extension().is_some_and(|end| end == "svg"))
    );
    let page = &one[Path::new("index.html")];
    assert!(!page.contains("src=\"http") && !page.contains("url("), "the page asks for something elsewhere");
    assert!(!page.contains(">NaN<") && !page.contains("\"NaN"), "a number is none");
    sandbox.assert_nothing_left();
}

#[test]
fn interrupted_experiments_on_real_processes_write_no_page_and_keep_their_runs_for_the_next_call() {
    let sandbox = Sandbox::new();
    let running = sandbox.gristmill(["paper", "asrpt", "--real", "--quick", "--out", "out"]).start();
    until("workers of a run", || (!sandbox.pids_of("worker").is_empty()).then_some(()));
    running.signal(Signal::INT);
    running.finish().expect_code(130).expect_words(&["interrupted", "out-runs: the same command continues"]);
    sandbox.assert_nothing_left();
    assert!(sandbox.path("out-runs/asrpt-figure-9/compare.json").exists(), "there is nothing to go on from");
    assert!(!sandbox.path("out").exists(), "there is half a page");
}
