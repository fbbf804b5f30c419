//! Journals of real runs: they replay to identical orders after any event, and the simulator replays their
//! jobs.

use crate::support::standing::Standing;
use crate::support::{Sandbox, data::Random};
use serde_json::Value;
use std::fs;

/// Replays a journal, which must agree; returns the counts.
fn replayed(sandbox: &Sandbox, journal: &str) -> Value {
    let found = sandbox.gristmill(["replay", journal, "--json"]).finish().expect_code(0).json();
    assert_eq!((&found["agrees"], &found["difference"]), (&true.into(), &Value::Null));
    found
}

/// Number of lines of a journal that contain this word before any job ends.
fn lines_with(sandbox: &Sandbox, journal: &str, word: &str) -> usize {
    let text = fs::read_to_string(sandbox.path(journal)).unwrap();
    text.lines().take_while(|line| !line.contains("\"job_ended\"")).filter(|line| line.contains(word)).count()
}

#[test]
fn journal_of_a_run_replays_to_its_orders_and_its_job_in_the_simulator() {
    let sandbox = Sandbox::new();
    let journal = sandbox.text("journal");
    let arguments = ["run", "synthetic", "--maps", "20", "--map-time", "40ms", "--reduce-time", "60ms"];
    let cluster = ["--map-bytes", "10KB", "--workers", "2", "--slots", "2", "--journal", &journal];
    sandbox.run_well([&arguments[..], &cluster[..]].concat());

    let found = replayed(&sandbox, &journal);
    assert!(24 < found["orders"].as_u64().unwrap() && 24 < found["facts"].as_u64().unwrap(), "{found}");
    let shown = sandbox.gristmill(["replay", &journal]).finish().expect_code(0).stdout_text();
    assert!(shown.contains("every order is the recorded one"), "{shown}");

    let asked = ["whatif", &journal, "--policy", "gristmill,fifo,k-lps:k=2", "--json"];
    let asked = sandbox.gristmill(asked).finish().expect_code(0).json();
    let rows = asked["rows"].as_array().unwrap();
    let names: Vec<(&str, bool)> = rows
        .iter()
        .map(|row| (row["policy"].as_str().unwrap(), row["replayed"].as_bool().unwrap()))
        .collect();
    assert_eq!(names, [("gristmill", false), ("gristmill", true), ("fifo", true), ("k-lps:k=2", true)]);
    // Five waves of maps and one of reduces; one task more or less in a row is allowed for.
    let error = asked["replayed_flow_error"].as_f64().unwrap();
    assert!(error.abs() < 0.25, "{asked:#}");
    let table = sandbox.gristmill(["whatif", &journal, "--policy", "fifo"]).finish().expect_code(0);
    assert!(table.stdout_text().contains("error of the replayed mean flow time"), "{}", table.stdout_text());
}

#[test]
fn journal_of_a_run_that_lost_a_worker_replays_to_its_orders() {
    let sandbox = Sandbox::new();
    let journal = sandbox.text("journal");
    let input = sandbox.write("text", Random::seeded(71).text(40_000, &[" ", "\n"]));
    let arguments = ["run", "wordcount", &input, "--split-size", "4KiB", "--reduces", "3"];
    let cluster = ["--workers", "3", "--output", &sandbox.text("out"), "--journal", &journal];
    sandbox.arm("map");
    let running = sandbox.gristmill([&arguments[..], &cluster[..]].concat()).start();
    sandbox.kill_at("map");
    running.finish().expect_code(0);
    sandbox.assert_nothing_left();
    assert_eq!(lines_with(&sandbox, "journal", "\"worker_lost\""), 1, "the fault has not fired");
    replayed(&sandbox, &journal);
    // Work that ran twice counts once, so that the job can still be replayed.
    let asked = sandbox.gristmill(["whatif", &journal, "--policy", "fifo", "--json"]).finish().expect_code(0);
    assert_eq!((&asked.json()["jobs"], &asked.json()["workers"]), (&1.into(), &3.into()));
}

#[test]
fn journal_of_a_master_whose_policy_changes_replays_to_its_orders() {
    let sandbox = Sandbox::new();
    let journal = sandbox.text("journal");
    let standing = Standing::start_with(&sandbox, 2, &["--policy", "fifo", "--journal", &journal]);
    let job = ["submit", "synthetic", "--maps", "6", "--map-time", "30ms", "--reduce-time", "30ms"];
    let first = sandbox.gristmill([&job[..], &["--output", &sandbox.text("first")]].concat()).start();
    sandbox.gristmill(["policy", "--policy", "max-srpt"]).finish().expect_code(0);
    let second = sandbox.gristmill([&job[..], &["--output", &sandbox.text("second")]].concat()).start();
    first.finish().expect_code(0);
    second.finish().expect_code(0);
    standing.end();
    let found = replayed(&sandbox, &journal);
    assert_eq!(found["policy_changes"], 1, "{found}");
    let asked = sandbox.gristmill(["whatif", &journal, "--policy", "fair", "--json"]).finish().expect_code(0);
    assert_eq!(asked.json()["jobs"], 2);
}

#[test]
fn journal_that_was_changed_cut_off_or_is_none_is_told_from_a_good_one() {
    let sandbox = Sandbox::new();
    let journal = sandbox.text("journal");
    let arguments = ["run", "synthetic", "--maps", "4", "--map-time", "1ms", "--reduce-time", "1ms"];
    sandbox.run_well([&arguments[..], &["--workers", "1", "--journal", &journal]].concat());
    let text = fs::read_to_string(&journal).unwrap();

    let line = text.lines().position(|line| line.contains("\"launch\"")).unwrap() + 1;
    let elsewhere = text.replacen("{\"launch\":{\"attempt\"", "{\"kill\":{\"attempt\"", 1);
    let changed = sandbox.write("changed", &elsewhere);
    let said = sandbox.gristmill(["replay", &changed]).finish().expect_code(1).stdout_text();
    for words in [&format!("of line {line},"), "recorded  {\"kill\"", "replayed  {\"launch\""] {
        assert!(said.contains(words), "nothing of {words:?} in {said}");
    }

    let torn = sandbox.write("torn", &text[..text.len() - 3]);
    let lines = text.lines().count();
    let words = format!("line {lines} was cut off");
    sandbox.gristmill(["replay", &torn]).finish().expect_code(0).expect_words(&[&words]);

    let none = sandbox.write("none", "no journal\n");
    let newer = sandbox.write("newer", text.replacen("\"schema\":1", "\"schema\":9", 1));
    let missing = sandbox.text("missing");
    for command in ["replay", "whatif"] {
        let of = |path: &str| sandbox.gristmill([command, path]).finish().expect_code(4);
        of(&none).expect_words(&["this is no journal of gristmill"]);
        of(&newer).expect_words(&["schema 9"]);
        of(&missing).expect_words(&["could not open the journal"]);
    }
    let misspelt = sandbox.gristmill(["whatif", &journal, "--policy", "fifa"]).finish();
    misspelt.expect_code(2).expect_words(&["did you mean `fifo`"]);
}
