//! Reads from a store: objects in splits, compressed ones, prefixes, wildcards, files of web servers.

use super::server::{Deed, Rule, StoreServer, url};
use super::{command, run};
use crate::support::Sandbox;
use crate::support::data::Random;
use crate::support::oracle;
use hyper::Method;

#[test]
fn lines_of_an_object_are_read_once_each_by_ranges_of_one_etag() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let text = Random::seeded(81).text(200_000, &[" ", "\n"]);
    let input = server.put("in/text", &text);
    let local = sandbox.write("text", &text);
    for split in ["1MiB", "64KiB", "7000"] {
        let shape = ["--split-size", split, "--reduces", "2", "--quiet"];
        let expected = sandbox.run_well([&["run", "wordcount", &*local], &shape[..]].concat()).stdout;
        let found = run(&sandbox, &server, [&["run", "wordcount", &*input], &shape[..]].concat());
        assert!(found.expect_code(0).stdout == expected, "splits of {split}");
    }
    let reads: Vec<_> = server.asked().into_iter().filter(|asked| asked.range.is_some()).collect();
    assert!(1 + 4 + 29 <= reads.len(), "each split is a range: {}", reads.len());
    assert!(reads.iter().all(|read| read.path == "/data/in/text"), "{reads:?}");
}

#[test]
fn large_object_is_read_ahead_with_the_condition_that_it_is_still_the_same() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let text = Random::seeded(82).text(40 << 20, &[" ", "\n"]);
    let lines = oracle::lines(&text).iter().filter(|line| line.windows(2).any(|two| two == b"ab")).count();
    let input = server.put("large", &text);
    let flags =
        ["run", "grep", "ab", &input, "--count", "--split-size", "64MiB", "--workers", "1", "--quiet"];
    let found = run(&sandbox, &server, flags).expect_code(0);
    assert_eq!(
        found.stdout_text().split_whitespace().last(),
        Some(&*lines.to_string()),
        "{}",
        found.stdout_text()
    );
    let asked = server.asked();
    // The first byte shows the format of the object.
    let is_read = |range: &Option<String>| range.as_ref().is_some_and(|range| range != "bytes=0-0");
    let reads: Vec<_> = asked.iter().filter(|asked| is_read(&asked.range)).collect();
    assert!(reads.iter().any(|read| read.if_match.is_some()), "{reads:?}");
    let bytes: u64 = reads.iter().map(|read| range_bytes(read.range.as_deref().unwrap())).sum();
    assert_eq!(bytes, text.len() as u64, "nothing is read twice: {reads:?}");
}

/// Number of bytes of `bytes=FIRST-LAST`.
fn range_bytes(range: &str) -> u64 {
    let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    last.parse::<u64>().unwrap() + 1 - first.parse::<u64>().unwrap()
}

#[test]
fn compressed_objects_are_read_as_what_they_hold() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let text = Random::seeded(83).text(50_000, &[" ", "\n"]);
    let local = sandbox.write("text", &text);
    let expected = sandbox.run_well(["run", "sort", &local, "--reduces", "2", "--quiet"]).stdout;
    for (tool, end) in [("gzip", "gz"), ("zstd", "zst")] {
        if !crate::support::data::tool(tool, "compressed objects") {
            continue;
        }
        let packed = oracle::shell(r#"$1 -qc < "$2""#, &[tool, &local]);
        let input = server.put(&format!("packed/text.{end}"), packed);
        let found = run(&sandbox, &server, ["run", "sort", &input, "--reduces", "2", "--quiet"]);
        assert!(found.expect_code(0).stdout == expected, "{tool}");
    }
}

#[test]
fn prefixes_and_wildcards_stand_for_the_objects_that_fit_and_nothing_that_is_hidden() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    for (key, word) in [
        ("logs/a.txt", "a"),
        ("logs/b.txt", "b"),
        ("logs/c.csv", "c"),
        ("logs/_hidden", "hidden"),
        ("logs/.dot", "dot"),
        ("logs/deep/d.txt", "d"),
        ("logs/deep/deeper/e.txt", "e"),
        ("logs-of-others/x.txt", "x"),
        ("flat/f.txt", "f"),
        ("flat/empty", ""),
    ] {
        server.put(key, word);
    }
    let words = |inputs: &[&str], flags: &[&str]| {
        let inputs: Vec<String> = inputs.iter().map(|input| url(input)).collect();
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let quiet = ["--reduces", "1", "--quiet"];
        let found = run(&sandbox, &server, [&["run", "wordcount"], &inputs[..], &quiet, flags].concat());
        let text = found.expect_code(0).stdout_text();
        text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(words(&["flat"], &[]), ["f"]);
    assert_eq!(words(&["flat/"], &[]), ["f"]);
    assert_eq!(words(&["logs/a.txt", "flat/f.txt"], &[]), ["a", "f"]);
    assert_eq!(words(&["logs/*.txt"], &[]), ["a", "b"]);
    assert_eq!(words(&["logs/[bc].*"], &[]), ["b", "c"]);
    assert_eq!(words(&["**/d*.txt"], &[]), ["d"]);
    assert_eq!(words(&["logs/deep/**"], &[]), ["d", "e"]);
    let asked = server.asked();
    assert!(asked.iter().any(|asked| asked.path.contains("prefix=logs%2Fdeep")), "{asked:?}");
    run(&sandbox, &server, ["run", "wordcount", &url("flat"), "--output", &url("counted")]).expect_code(0);
    assert_eq!(words(&["counted"], &[]), ["1", "f"]);
    assert_eq!(words(&["logs"], &["--recursive"]), ["a", "b", "c", "d", "e"]);
    let refused = |input: &str, words: &[&str]| {
        run(&sandbox, &server, ["run", "wordcount", &url(input)]).expect_code(4).expect_words(words);
    };
    refused("logs", &["s3://data/logs/deep is a directory within another one", "--recursive"]);
    refused("none", &["input s3://data/none does not exist"]);
    refused("logs/*.nothing", &["no file has a name like that of input s3://data/logs/*.nothing"]);
}

#[test]
fn keys_are_what_they_are_whatever_characters_they_have() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    for (number, name) in
        ["a b", "a%20b", "a+b", "a#b", "a&b=c;d", "\u{fc}~'()!", "a\\b", "a\"<b>", "s3:", "[1] {x}.txt"]
            .into_iter()
            .enumerate()
    {
        let input = server.put(&format!("in/{number}/{name}"), format!("{number}\n"));
        let directory = url(&format!("in/{number}"));
        for named in [input, directory] {
            let found = run(&sandbox, &server, ["run", "wordcount", &named, "--reduces", "1", "--quiet"]);
            assert_eq!(found.expect_code(0).stdout_text(), format!("{number}\t1\n"), "{named}");
        }
    }
}

#[test]
fn prefix_of_more_objects_than_fit_on_a_page_is_read_whole() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    for number in 0..1003 {
        server.put(&format!("many/{number:04}"), if number % 500 == 2 { "a\n" } else { "" });
    }
    let input = url("many");
    let found = run(&sandbox, &server, ["run", "wordcount", &input, "--reduces", "1", "--quiet"]);
    assert_eq!(found.expect_code(0).stdout_text(), "a\t3\n");
    let pages = server.asked().iter().filter(|asked| asked.path.contains("list-type=2")).count();
    assert_eq!(pages, 2);
}

#[test]
fn object_that_changes_under_the_job_is_refused() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let text = "some words in a line\n".repeat(20_000);
    let input = server.put("text", &text);
    let path = server.path("text");
    let change = move || std::fs::write(&path, "other words in a line\n".repeat(20_000)).unwrap();
    // After the first split, which is of the listed object.
    let deed = Deed::After(std::sync::Arc::new(change));
    let changed = server.rule(Rule { skip: 2, ..Rule::once(Method::GET, "/data/text", deed) });
    let flags = ["run", "wordcount", &input, "--split-size", "64KiB", "--workers", "1", "--output"];
    let finished = run(&sandbox, &server, [&flags[..], &[&url("out")]].concat()).expect_code(4);
    finished.expect_words(&[
        "could not read s3://data/text",
        "it was changed since it was listed",
        "run it again",
    ]);
    assert_eq!(server.done(changed), 1);
    assert_eq!(server.keys("out"), [""; 0], "what it has left");
}

#[test]
fn side_table_and_tables_of_a_join_may_lie_in_a_store() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let left = "id,name\n1,\"a\nb\"\n2,c\n3,d\n";
    let right = "id,color\n1,red\n3,blue\n";
    let (left_url, right_url) = (server.put("left.csv", left), server.put("right.csv", right));
    let (left, right) = (sandbox.write("left.csv", left), sandbox.write("right.csv", right));
    for strategy in ["broadcast", "repartition"] {
        let shape = ["--on", "id=id", "--strategy", strategy, "--reduces", "1", "--quiet"];
        let expected =
            sandbox.run_well([&["run", "join", "--left", &left, "--right", &right], &shape[..]].concat());
        let arguments = [&["run", "join", "--left", &left_url, "--right", &right_url], &shape[..]].concat();
        let found = run(&sandbox, &server, arguments).expect_code(0);
        assert_eq!(found.stdout_text(), expected.stdout_text(), "{strategy}");
    }
}

#[test]
fn file_of_a_web_server_is_read_by_ranges_and_refused_where_it_comes_whole_alone() {
    let (sandbox, server) = (Sandbox::new(), StoreServer::start());
    let input = server.put_web("web/text", "to be or not to be\n".repeat(500));
    let flags = ["--split-size", "2000", "--reduces", "1", "--quiet"];
    let found = run(&sandbox, &server, [&["run", "wordcount", &*input], &flags[..]].concat()).expect_code(0);
    assert_eq!(found.stdout_text(), "be\t1000\nnot\t500\nor\t500\nto\t1000\n");
    let refused = |url: &str, code: i32, words: &[&str]| {
        run(&sandbox, &server, ["run", "wordcount", url]).expect_code(code).expect_words(words);
    };
    let packed = oracle::shell("printf 'to be\\nto\\n' | gzip -c", &[]);
    for encoding in ["gzip", "identity"] {
        let input = server.put_web(&format!("web/as-{encoding}/text"), packed.clone());
        let found = run(&sandbox, &server, ["run", "wordcount", &input, "--reduces", "1", "--quiet"]);
        assert_eq!(found.expect_code(0).stdout_text(), "be\t1\nto\t2\n", "{encoding}");
    }
    refused(&server.put_web("web/as-br/text", "?"), 4, &["its Content-Encoding is \"br\"", "gzip and zstd"]);
    let whole = server.put_web("whole/text", "a");
    refused(&whole, 4, &["its server sends no ranges of files", "fetch it first"]);
    refused(&format!("{input}-not"), 4, &["does not exist"]);
    refused(&format!("{input}?token=hunter2"), 4, &["all who see the job would see it"]);
    let output = ["run", "wordcount", &input, "--output", &input];
    command(&sandbox, &server, output)
        .finish()
        .expect_code(2)
        .expect_words(&["is on a web server, which is only read"]);
}
