//! Running maps and reduces are divided for idle slots, and the output does not depend on it.

use crate::support::data::Random;
use crate::support::sandbox::Sandbox;
use crate::support::standing::{Standing, await_join_line};
use crate::support::{oracle, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Read;

/// Slots of these jobs are so slow that a map of [`TEXT_BYTES`] takes many times the interval of heartbeats.
const SLOW: &str = "30x";

/// Several blocks: a map gives up the end of its split between two.
const TEXT_BYTES: usize = 8 << 20;

/// Kind of tasks that are divided: its name in reports, and workers whose slots can take the rests.
#[derive(Clone, Copy)]
enum Divided {
    Maps,
    Reduces,
}

impl Divided {
    fn workers(self) -> &'static [&'static str] {
        match self {
            Divided::Maps => &["--workers", "3"],
            Divided::Reduces => &["--workers", "1", "--slots", "3"],
        }
    }

    /// Number of these tasks that the job has.
    fn count(self, status: &Value) -> Option<u64> {
        let kind = match self {
            Divided::Maps => "maps",
            Divided::Reduces => "reduces",
        };
        status[kind]["total"].as_u64()
    }
}

/// Contents of the parts. Compressed ones of divided reduces have other bytes: a member for each reduce.
fn contents(output: &str) -> Vec<Vec<u8>> {
    let read = |part: Vec<u8>| match part.starts_with(&[0x1f, 0x8b]) {
        true => {
            let mut text = Vec::new();
            flate2::read::MultiGzDecoder::new(&part[..]).read_to_end(&mut text).unwrap();
            text
        }
        false => part,
    };
    oracle::parts(output.as_ref()).into_iter().map(read).collect()
}

/// Runs a job that has `whole` tasks of a kind without and with divisions. Returns the number of them with divisions.
fn compare(sandbox: &Sandbox, name: &str, job: &[&str], (kind, whole): (Divided, u64)) -> u64 {
    let tasks = |report: &Value| kind.count(&report["status"]).unwrap();
    let [before, after, journal] =
        ["before", "after", "journal"].map(|what| sandbox.text(&format!("{name}-{what}")));
    let plain = sandbox.run_well([&["run"], job, &["--json", "--output", &before]].concat()).json();
    assert_eq!(tasks(&plain), whole, "{name} without --divide");
    let flags = ["--slow", SLOW, "--divide", "--json", "--output", &after, "--journal", &journal];
    let divided = sandbox.run_well([&["run"], job, kind.workers(), &flags[..]].concat()).json();
    assert_eq!(oracle::names(before.as_ref()), oracle::names(after.as_ref()), "{name}");
    assert!(contents(&before) == contents(&after), "{name}: the contents differ");
    let counts = |report: &Value| report["status"]["totals"]["map_records_in"].as_u64().unwrap();
    assert_eq!(counts(&plain), counts(&divided), "{name}: records are read once");
    let replayed = sandbox.run_well(["lab", "replay", &journal, "--json"]).json();
    assert_eq!(replayed["agrees"], true, "{name}: {replayed}");
    tasks(&divided)
}

#[test]
fn maps_of_jobs_with_reduces_are_divided_and_no_byte_changes() {
    let sandbox = Sandbox::new();
    let mut random = Random::seeded(4101);
    let text = sandbox.write("text", random.text(TEXT_BYTES, &[" ", "\n", " \n"]));
    let one_split = ["--split-size", "64MiB", "--reduces", "2"];
    for (name, job) in [
        ("wordcount", &["wordcount", &text][..]),
        ("sort", &["sort", &text]),
        ("grep", &["grep", "--count-matches", "[a-c]+", &text]),
        ("synthetic", &["synthetic", "--maps", "1", "--map-time", "2s", "--map-bytes", "100001"]),
    ] {
        let divided = compare(&sandbox, name, &[job, &one_split].concat(), (Divided::Maps, 1));
        assert!(1 < divided, "{name} had {divided} maps");
    }
    sandbox.assert_nothing_left();
}

#[test]
fn maps_of_jobs_without_reduces_are_not_divided() {
    let sandbox = Sandbox::new();
    let text = sandbox.write("text", Random::seeded(4102).text(TEXT_BYTES / 2, &[" ", "\n"]));
    let job = &["grep", "a", &text, "--split-size", "64MiB"];
    assert_eq!(compare(&sandbox, "grep", job, (Divided::Maps, 1)), 1);
}

#[test]
fn reduces_are_divided_and_no_byte_changes() {
    let sandbox = Sandbox::new();
    let mut random = Random::seeded(4105);
    let text = sandbox.write("text", random.text(TEXT_BYTES, &["\n", " \n"]));
    let table = |random: &mut Random| {
        let rows = (0..60_000).map(|row| format!("{},row {row}\n", random.below(20_000)));
        rows.collect::<String>()
    };
    let [left, right] = ["left.csv", "right.csv"].map(|name| sandbox.write(name, table(&mut random)));
    for (name, job) in [
        ("sort", &["sort", &text][..]),
        ("join", &["join", "--on", "1", "--left", &left, "--right", &right, "--strategy", "repartition"]),
        ("compressed", &["sort", &text, "--compress-output", "gzip"]),
    ] {
        let divided = compare(&sandbox, name, &[job, &["--reduces", "1"]].concat(), (Divided::Reduces, 1));
        assert!(1 < divided, "{name} had {divided} reduces");
    }
    sandbox.assert_nothing_left();
}

#[test]
fn reduces_with_a_combiner_or_of_tables_are_not_divided() {
    let sandbox = Sandbox::new();
    let text = sandbox.write("text", Random::seeded(4106).text(TEXT_BYTES / 4, &[" ", "\n"]));
    for (name, job) in [
        ("wordcount", &["wordcount", &text, "--reduces", "1"][..]),
        ("synthetic", &["synthetic", "--maps", "1", "--reduce-time", "1s", "--reduces", "1"]),
    ] {
        assert_eq!(compare(&sandbox, name, job, (Divided::Reduces, 1)), 1, "{name}");
    }
}

/// Starts a slow job of one map or of one reduce on a cluster of workers, waits until it was divided, lets `harm` do its
/// work, and returns the standing cluster after the job has ended with the right output.
fn divided_and_harmed(kind: Divided, harm: impl for<'s> FnOnce(&'s Sandbox, Standing<'s>) -> Standing<'s>) {
    let sandbox = Sandbox::new();
    let text = Random::seeded(4103).text(TEXT_BYTES, &[" ", "\n"]);
    let (input, out) = (sandbox.write("text", &text), sandbox.text("out"));
    let master = sandbox.gristmill(["cluster", "master", "--divide"]).start();
    let join = await_join_line(&master);
    let slots = if matches!(kind, Divided::Maps) { "1" } else { "3" };
    let worker = || {
        let flags = ["cluster", "worker", "--workers", "1", "--slots", slots, "--slow", SLOW];
        sandbox.gristmill(flags).start()
    };
    let standing = Standing::new(&sandbox, master, (0..3).map(|_| worker()).collect(), join);
    standing.await_workers(3);
    let job = match kind {
        Divided::Maps => ["wordcount", "--split-size", "64MiB", "--reduces", "2"],
        Divided::Reduces => ["sort", "--split-size", "1MiB", "--reduces", "1"],
    };
    let job = [&["submit"], &job[..], &[&input, "--output", &out, "--detach"]].concat();
    let id = sandbox.gristmill(job).finish().expect_code(0).stdout_text().trim().to_owned();
    until("a division", || (2 <= kind.count(&standing.job(&id))?).then_some(()));
    let standing = harm(&sandbox, standing);
    sandbox.gristmill(["job", "wait", &id]).finish().expect_code(0);
    let parts = oracle::parts(out.as_ref());
    match kind {
        Divided::Maps => assert!(oracle::counts_of_parts(&parts) == oracle::word_counts(&text)),
        Divided::Reduces => {
            let mut lines: Vec<&[u8]> =
                text.strip_suffix(b"\n").unwrap_or(&text).split(|byte| *byte == b'\n').collect();
            lines.sort_unstable();
            assert!(parts.len() == 1 && parts[0] == [&lines.join(&b'\n')[..], b"\n"].concat());
        }
    }
    let status = standing.job(&id);
    assert_eq!(status["totals"]["map_bytes_in"].as_u64(), Some(text.len() as u64), "{status}");
    standing.end();
}

#[test]
fn map_makes_way_for_a_short_job_and_its_job_has_the_same_output() {
    let sandbox = Sandbox::new();
    let mut random = Random::seeded(4104);
    let [short, long] = [TEXT_BYTES / 256, TEXT_BYTES].map(|bytes| random.text(bytes, &[" ", "\n"]));
    let (first, rest) = (sandbox.write("in/a", &short), sandbox.write("in/b", &long));
    let master = sandbox.gristmill(["cluster", "master", "--divide"]).start();
    let join = await_join_line(&master);
    let worker =
        sandbox.gristmill(["cluster", "worker", "--workers", "1", "--slots", "1", "--slow", SLOW]).start();
    let standing = Standing::new(&sandbox, master, vec![worker], join);
    standing.await_workers(1);
    // Both files do not fit into one split.
    let split = long.len().to_string();
    let submit = |inputs: &[&str], out: &str| {
        let job =
            [&["submit", "wordcount", "--split-size", &split, "--output", out, "--detach"], inputs].concat();
        sandbox.gristmill(job).finish().expect_code(0).stdout_text().trim().to_owned()
    };
    let out = sandbox.text("long");
    let id = submit(&[&first, &rest], &out);
    until("the first map", || (standing.job(&id)["maps"]["done"] == 1).then_some(()));
    let quick = submit(&[&first], &sandbox.text("short"));
    sandbox.gristmill(["job", "wait", &quick]).finish().expect_code(0);
    let status = standing.job(&id);
    assert_eq!(status["state"], "running", "the short job did not wait for the long map: {status}");
    sandbox.gristmill(["job", "wait", &id]).finish().expect_code(0);
    let status = standing.job(&id);
    assert!(3 <= status["maps"]["total"].as_u64().unwrap(), "the long map was cut: {status}");
    assert!(
        oracle::counts_of_parts(&oracle::parts(out.as_ref())) == oracle::word_counts(&[short, long].concat())
    );
    standing.end();
}

fn kill_a_worker<'s>(_: &'s Sandbox, mut standing: Standing<'s>) -> Standing<'s> {
    standing.workers[0].kill();
    drop(standing.workers.remove(0).finish());
    standing
}

fn kill_the_master<'s>(sandbox: &'s Sandbox, standing: Standing<'s>) -> Standing<'s> {
    let Standing { master, workers, .. } = standing;
    master.signal(Signal::KILL);
    master.finish();
    let master = sandbox.gristmill(["cluster", "master", "--divide"]).start();
    let join = await_join_line(&master);
    let standing = Standing::new(sandbox, master, workers, join);
    standing.await_workers(3);
    standing
}

#[test]
fn job_with_divided_maps_survives_a_worker_that_is_killed() {
    divided_and_harmed(Divided::Maps, kill_a_worker);
}

#[test]
fn job_with_divided_maps_survives_a_master_that_is_killed() {
    divided_and_harmed(Divided::Maps, kill_the_master);
}

#[test]
fn job_with_a_divided_reduce_survives_its_worker_being_killed() {
    // The home of the only partition is one of three workers: whichever it is, all are killed in turn but the last.
    divided_and_harmed(Divided::Reduces, |sandbox, standing| {
        kill_a_worker(sandbox, kill_a_worker(sandbox, standing))
    });
}

#[test]
fn job_with_a_divided_reduce_survives_a_master_that_is_killed() {
    divided_and_harmed(Divided::Reduces, kill_the_master);
}
