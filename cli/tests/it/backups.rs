//! Tasks that are slow or hang get a second attempt elsewhere, and one of the two counts.

use crate::support::data::Random;
use crate::support::oracle;
use crate::support::sandbox::Sandbox;
use crate::support::standing::Standing;
use serde_json::Value;

/// One of four workers is ten times slower than the others; a map takes 0.3 s elsewhere and 3 s there.
const UNEQUAL: [&str; 14] = [
    "run",
    "synthetic",
    "--maps",
    "8",
    "--map-time",
    "300ms",
    "--reduce-time",
    "10ms",
    "--workers",
    "4",
    "--slots",
    "1",
    "--speed",
    "1,1,1,0.1",
];

/// Counts of the attempts of a run, from its status.
fn attempts(report: &Value) -> [u64; 4] {
    let attempts = &report["status"]["attempts"];
    ["launched", "backups", "backups_won", "cancelled"].map(|name| attempts[name].as_u64().unwrap())
}

#[test]
fn map_on_a_slow_worker_has_a_backup_that_ends_first_and_the_journal_replays_to_it() {
    let sandbox = Sandbox::with_backups();
    let (out, journal) = (sandbox.text("out"), sandbox.text("journal"));
    let flags = ["--json", "--output", &out, "--journal", &journal];
    let finished = sandbox.run_well([&UNEQUAL[..], &flags].concat());
    let report = finished.json();
    let [launched, backups, won, cancelled] = attempts(&report);
    assert!(0 < won && won <= backups, "{}", report["status"]["attempts"]);
    assert!(0 < report["status"]["attempts"]["backup_slot_ns"].as_u64().unwrap());
    // The losers are cancelled, but the job may end before that.
    assert!(cancelled <= backups && 8 < launched, "{}", report["status"]["attempts"]);
    assert!(report["status"]["maps"]["done"] == 8);
    finished.expect_words(&["speculative attempt"]);
    let replayed = sandbox.run_well(["replay", &journal, "--json"]).json();
    assert_eq!(replayed["agrees"], true, "{replayed}");
    let asked = sandbox.run_well(["whatif", &journal, "--policy", "fifo", "--json"]).json();
    assert!(asked["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{asked}");
}

#[test]
fn no_task_has_a_backup_when_nobody_wants_any() {
    let sandbox = Sandbox::with_backups();
    let flags = ["--json", "--output", &sandbox.text("out"), "--no-backup"];
    let report = sandbox.run_well([&UNEQUAL[..], &flags].concat()).json();
    let [_, backups, won, cancelled] = attempts(&report);
    assert_eq!((backups, won, cancelled), (0, 0, 0));
}

/// Counts words while the first attempt that reaches this place hangs until the job has ended.
fn count_while_one_stands_still(place: &str, job: &[&str]) -> (Sandbox, Value, Vec<u8>) {
    let sandbox = Sandbox::with_backups();
    let standing = Standing::start(&sandbox, 3);
    let text = Random::seeded(1711).text(60_000, &[" ", "\n"]);
    let (input, out) = (sandbox.write("text", &text), sandbox.text("out"));
    sandbox.arm(place);
    let flags = ["--split-size", "4KiB", "--json", "--output", &out];
    let client = sandbox.gristmill([&["submit"], job, &[&*input], &flags[..]].concat()).start();
    sandbox.stopped_at(place);
    let report = client.finish().expect_code(0).json();
    sandbox.go_on(place);
    // The loser's slot is free again if another job gets all three.
    let again = sandbox.text("again");
    let flags = ["--maps", "3", "--map-time", "50ms", "--output", &again];
    sandbox.gristmill([&["submit", "synthetic"], &flags[..]].concat()).finish().expect_code(0);
    standing.end();
    (sandbox, report, text)
}

#[test]
fn map_that_stands_still_does_not_hold_up_its_job() {
    let (sandbox, report, text) = count_while_one_stands_still("map", &["wordcount", "--reduces", "2"]);
    let [_, backups, won, _] = attempts(&report);
    assert_eq!((backups, won), (1, 1), "{}", report["status"]["attempts"]);
    assert!(oracle::counts_of_parts(&oracle::parts(&sandbox.path("out"))) == oracle::word_counts(&text));
}

#[test]
fn reduce_that_stands_still_does_not_hold_up_its_job() {
    let (sandbox, report, text) = count_while_one_stands_still("reduce", &["wordcount", "--reduces", "3"]);
    let [_, backups, won, _] = attempts(&report);
    assert_eq!((backups, won), (1, 1), "{}", report["status"]["attempts"]);
    assert!(oracle::counts_of_parts(&oracle::parts(&sandbox.path("out"))) == oracle::word_counts(&text));
}
