//! `gristmill paper` as a person calls it: mistakes, folders that are in the way, and the same bytes twice.
//!
//! Deliberately not here: what the experiments find (`paper` in the library), and how pages look (`report`).

use crate::support::Sandbox;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The paper that takes the least time.
const QUICKEST: &str = "pairs";

/// Experiments take a while in a build without optimisation.
const EXPERIMENT_PATIENCE: Duration = Duration::from_secs(120);

/// All files below a folder, by their paths in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_path_buf();
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
        (&["paper", "overlpa"], "did you mean `overlap`? There is"),
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
fn folder_in_the_way_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    let thesis = sandbox.write("out/thesis.tex", "years of work");
    for (flags, word) in [(&[][..], "--overwrite"), (&["--overwrite"][..], "run.json")] {
        let arguments = ["paper", "all", "--full", "--out", "out"];
        sandbox.run(arguments.iter().chain(flags)).expect_code(3).expect_words(&[word]);
    }
    assert_eq!(fs::read_to_string(thesis).unwrap(), "years of work");
}

#[test]
fn same_seed_gives_the_same_bytes_but_for_the_circumstances() {
    let sandbox = Sandbox::new();
    let runs = ["one", "other"].map(|out| {
        let arguments = ["paper", QUICKEST, "--quick", "--seed", "7", "--out", out];
        let finished = sandbox.gristmill(arguments).start().finish_within(EXPERIMENT_PATIENCE).expect_code(0);
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
