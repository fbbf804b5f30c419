//! Our own jobs under Hadoop Streaming, by the command lines that `as-streaming` writes: run by this program as `hadoop`.

use super::hadoop::install;
use crate::support::data::Random;
use crate::support::{Finished, Sandbox, oracle};
use std::path::Path;

/// The command line of a job, with its output in `there`.
fn written(sandbox: &Sandbox, words: &[&str]) -> Finished {
    let (jar, output) = (install(sandbox), format!("file://{}", sandbox.text("there")));
    sandbox.run([&["as-streaming", "--output", &output, "--jar", &jar], words].concat())
}

/// Runs a job over `text` by its command line, as a shell does, and by itself; gives the output of each.
fn both(sandbox: &Sandbox, words: &[&str]) -> [Vec<u8>; 2] {
    let text = format!("file://{}", sandbox.text("text"));
    let line = written(sandbox, &[words, &[&text]].concat()).expect_code(0).stdout_text();
    let path = format!("{}:{}", sandbox.text("home/bin"), std::env::var("PATH").unwrap());
    sandbox
        .program(Path::new("sh"), ["-c", &line])
        .env("PATH", path)
        .env("GRISTMILL_HDFS_ROOT", sandbox.path("hdfs"))
        .env("GRISTMILL_STREAMING_FLAGS", "--workers 1 --no-sync")
        .finish()
        .expect_code(0);
    sandbox
        .run_well([&["run", "--workers", "1", "--no-sync", "--output", "here"], words, &["text"]].concat());
    ["there", "here"].map(|output| oracle::whole(&sandbox.path(output)))
}

fn sorted(lines: &[u8]) -> Vec<&[u8]> {
    let mut lines = oracle::lines(lines);
    lines.sort_unstable();
    lines
}

#[test]
fn jobs_of_lines_give_under_hadoops_name_what_they_give_here() {
    for (words, ordered) in [
        (&["--reduces", "3", "wordcount"][..], false),
        (&["grep", "Worda"], false),
        (&["--reduces", "1", "grep", "--count-matches", "Word[a-c]"], false),
        (&["sort"], true),
    ] {
        let sandbox = Sandbox::new();
        let mut text = Random::seeded(7).text(200_000, &[" ", "\n", "\t"]);
        text.extend(b"\na\tb\tit's\n\n\"quoted\"\tth\n");
        sandbox.write("text", text);
        let [there, here] = both(&sandbox, words);
        assert!(!here.is_empty(), "{words:?} found nothing");
        if ordered {
            assert!(there == here, "{words:?}: the order differs");
        } else {
            assert!(sorted(&there) == sorted(&here), "{words:?}: the lines differ");
        }
    }
}

#[test]
fn what_cannot_be_written_so_says_why() {
    let sandbox = Sandbox::new();
    let refused = |words: &[&str]| written(&sandbox, words).expect_code(2);
    refused(&["sort", "records", "--record-length", "100"])
        .expect_words(&["sort", "records that are no lines"]);
    refused(&["--reduces", "2", "sort", "text"]).expect_words(&["sort", "2 reduces", "only 1"]);
    sandbox.run(["as-streaming", "wordcount", "text"]).expect_code(2).expect_words(&["--output"]);
}
