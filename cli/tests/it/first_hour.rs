//! Mistakes of a new user in the first hour: each was seen in a trial and must not come back.

use crate::support::sandbox::PROGRAM;
use crate::support::standing::{Standing, await_join_line, start_worker};
use crate::support::{Sandbox, is_root, until};
use crate::user_code::faulty_program;
use regex::Regex;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[test]
fn what_the_code_of_a_successful_job_prints_is_shown_by_run() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("input", "good\nbad\n");
    let flags = ["run", "faulty", &input, "--how", "print", "--workers", "1"];
    let finished = sandbox.program(&faulty_program(), flags).finish().expect_code(0);
    let shown =
        ["printed by the job's code:", "more; a master keeps them", "of a mapper that talks too much"];
    finished.expect_words(&shown);
    sandbox.assert_nothing_left();
}

#[test]
fn json_of_a_run_without_an_output_directory_has_the_result() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("input", "to be or not to be\n");
    let flags = ["run", "wordcount", &input, "--json", "--reduces", "1", "--workers", "1"];
    let report = sandbox.run_well(flags).json();
    assert_eq!(report["result"], serde_json::json!(["be\t2", "not\t1", "or\t1", "to\t2"]));
    assert!(report["output"].is_null());
    sandbox.write("input", b"a\xe9 a\xe8 a\\xe9");
    let bytes = |text: &str| serde_json::json!({"bytes": text});
    let expected = serde_json::json!(["a\\xe9\t1", bytes("a\\xe8\\t1"), bytes("a\\xe9\\t1")]);
    assert_eq!(sandbox.run_well(flags).json()["result"], expected, "words that are not UTF-8 stay two");
}

/// Returns the first command of the README that runs a job, without the part that builds the program.
fn first_command() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (_, command) = readme.split_once("cargo run --release -p gristmill -- ").unwrap();
    let words = command.lines().next().unwrap().split_whitespace();
    words
        .map(|word| {
            if word.ends_with(".md") { root.join(word).to_str().unwrap().to_owned() } else { word.to_owned() }
        })
        .collect()
}

/// Counts words by a pattern: letters and digits, which a sign of a word's middle may join.
fn counted_by_pattern(text: &str) -> BTreeMap<&str, u64> {
    let word = Regex::new(r"\w+(?:[.:'’·][\p{Alphabetic}_]+)*").unwrap();
    let mut counts = BTreeMap::new();
    word.find_iter(text).for_each(|word| *counts.entry(word.as_str()).or_default() += 1);
    counts
}

#[test]
fn the_first_command_of_the_readme_counts_words_and_not_signs() {
    let sandbox = Sandbox::new();
    let command = first_command();
    let files: Vec<&String> = command.iter().filter(|word| word.ends_with(".md")).collect();
    let text: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let text = text.join("\n");
    let expected = counted_by_pattern(&text);
    let printed = sandbox.run_well(command.clone()).stdout_text();
    let line = |line: &str| -> (String, u64) {
        let (word, count) = line.split_once('\t').unwrap();
        (word.to_owned(), count.parse().unwrap())
    };
    let counts: Vec<(String, u64)> = printed.lines().map(line).collect();
    for (word, count) in &counts {
        assert!(word.chars().all(char::is_alphanumeric), "{printed}");
        assert_eq!(expected.get(word.as_str()), Some(count), "{word} in {files:?}");
    }
    let mut largest: Vec<u64> = expected.into_values().collect();
    largest.sort_unstable_by(|one, other| other.cmp(one));
    let counts: Vec<u64> = counts.into_iter().map(|(_, count)| count).collect();
    assert_eq!(counts, largest[..10], "the ten most frequent, in order");
}

#[test]
fn a_master_without_workers_is_named_by_who_waits_for_a_job_and_tells_of_the_worker_that_joins() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("input", "a\n");
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    let out = sandbox.text("out");
    let detached = ["submit", "wordcount", &input, "--output", &out, "--detach"];
    let words = "job-1 waits: the master has no workers; start one with `gristmill cluster worker`";
    sandbox.gristmill(detached).finish().expect_code(0).expect_words(&[words]);
    let waiting = sandbox.gristmill(["wait", "1"]).start();
    until("a word about workers", || waiting.stderr().contains(words).then_some(()));
    let worker = start_worker(&sandbox);
    waiting.finish().expect_code(0);
    let said = master.stderr();
    assert!(said.contains("a worker joined worker=worker-1"), "{said}");
    Standing::new(&sandbox, master, vec![worker], join).end();
}

#[test]
fn log_is_a_line_of_json_for_each_event_for_whoever_asks_for_that() {
    let sandbox = Sandbox::new();
    let master = sandbox.gristmill(["master"]).env("GRISTMILL_LOG_FORMAT", "json").start();
    let join = await_join_line(&master);
    let standing = Standing::new(&sandbox, master, vec![start_worker(&sandbox)], join);
    standing.await_workers(1);
    let said = standing.master.stderr();
    let event = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let events: Vec<serde_json::Value> = said.lines().map(event).collect();
    let says = |event: &&serde_json::Value| event["message"].to_string().starts_with("\"master listens on ");
    assert_eq!(events.iter().filter(says).count(), 1, "{said}");
    let joined = events.iter().find(|event| event["message"] == "a worker joined");
    let joined = joined.unwrap_or_else(|| panic!("{said}"));
    assert_eq!((&joined["level"], &joined["worker"]), (&"INFO".into(), &"worker-1".into()));
    assert!(joined["timestamp"].is_string(), "{joined}");
    standing.end();
}

#[test]
fn submit_tells_what_it_asks_the_master_and_no_secret_when_its_log_is_to_say_all() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a b\n");
    let standing = Standing::start(&sandbox, 1);
    let submit = ["submit", "wordcount", &input, "--output", &sandbox.text("out")];
    let said = sandbox.gristmill(submit).env("GRISTMILL_LOG", "debug").finish().expect_code(0);
    let asks = format!("asks the master master={} method=POST path=\"/api/v1/jobs\"", standing.join.address);
    let said = said.expect_words(&[
        &asks,
        "the master answers status=200",
        "the job is planned job=wordcount maps=1 ",
    ]);
    assert!(!said.stderr.contains(&standing.join.key), "{}", said.stderr);
    standing.end();
}

#[test]
fn what_cannot_be_asked_says_why_and_what_to_do() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a\n");
    let standing = Standing::start(&sandbox, 1);
    let wrong = sandbox.write_private("wrong", standing.join.with_wrong_token());
    let other = sandbox.gristmill(["status", "--join", &wrong]).finish().expect_code(6);
    assert!(
        !other.stderr.contains("could not be reached") && !other.stderr.contains("://"),
        "{}",
        other.stderr
    );
    other.expect_words(&["does not know", "hint: use the master's join line"]);
    sandbox.gristmill(["submit", "wordcount", &input]).finish().expect_code(0);
    let logs = sandbox.gristmill(["logs", "1"]).finish().expect_code(0);
    logs.expect_words(&["no output of the code of job-1 is kept"]);
    let line = sandbox.write_private("line", &standing.join.text);
    standing.end();
    let gone = sandbox.gristmill(["status", "--join", &line]).finish().expect_code(5);
    gone.expect_words(&[
        "could not be reached",
        "hint: is the master running? `gristmill cluster master` starts it",
    ]);
}

#[test]
fn a_job_that_fails_before_it_reads_anything_prints_no_lines_of_nothing() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("input", "bad\n");
    let flags = ["run", "faulty", &input, "--how", "error", "--workers", "1"];
    let finished = sandbox.program(&faulty_program(), flags).finish().expect_code(1);
    assert!(
        !finished.stderr.contains(" 0 records") && !finished.stderr.contains("0 parts"),
        "{}",
        finished.stderr
    );
}

/// Runs a word count over these inputs in the sandbox; one part.
fn count(sandbox: &Sandbox, inputs: &[&str]) -> crate::support::Finished {
    let fixed = ["run", "wordcount", "--reduces", "1", "--workers", "1"];
    sandbox.run(fixed.iter().chain(inputs))
}

#[test]
fn names_with_wildcards_that_no_shell_expanded_are_expanded() {
    let sandbox = Sandbox::new();
    for name in ["in/b.txt", "in/a.txt", "in/deep/c.txt", "in/a.csv"] {
        sandbox.write(name, format!("{name}\n"));
    }
    let found = count(&sandbox, &["in/*.txt"]).expect_code(0).stdout_text();
    assert_eq!(found, "in/a.txt\t1\nin/b.txt\t1\n");
    let found = count(&sandbox, &["in/**/[ac].txt"]).expect_code(0).stdout_text();
    assert_eq!(found, "in/a.txt\t1\nin/deep/c.txt\t1\n");
    count(&sandbox, &["in/*.json"])
        .expect_code(4)
        .expect_words(&["no file has a name like that of input in/*.json"]);
}

#[test]
fn directories_in_those_that_are_input_are_read_if_asked_for() {
    let sandbox = Sandbox::new();
    for name in ["in/z.txt", "in/deep/er/a.txt", "in/_no/b.txt"] {
        sandbox.write(name, format!("{name}\n"));
    }
    count(&sandbox, &["in"])
        .expect_code(4)
        .expect_words(&["in/deep is a directory within another one", "--recursive"]);
    let found = count(&sandbox, &["in", "--recursive"]).expect_code(0).stdout_text();
    assert_eq!(found, "in/deep/er/a.txt\t1\nin/z.txt\t1\n");
}

#[test]
fn a_url_as_input_says_what_to_do_instead() {
    let sandbox = Sandbox::new();
    // URLs of stores and web servers are read, unless this program was built without them.
    let (url, why) = if cfg!(feature = "stores") {
        ("ftp://example.org/words.txt", "only files and URLs of s3")
    } else {
        ("https://example.org/words.txt", "the feature `stores`")
    };
    count(&sandbox, &[url]).expect_code(4).expect_words(&[url, "is a URL", why, "fetch it first"]);
}

#[test]
fn standard_input_is_read_by_run_and_by_an_attached_submit_and_refused_where_nobody_keeps_it() {
    let sandbox = Sandbox::new();
    let text = sandbox.write("text", "to be or not to be\n");
    let piped = |arguments: &str| {
        let script = format!("exec \"$0\" {arguments} < {text}");
        sandbox.program(Path::new("sh"), ["-c", &script, PROGRAM]).finish()
    };
    let run = piped("run wordcount - --reduces 1 --workers 1").expect_code(0).stdout_text();
    assert_eq!(run, "be\t2\nnot\t1\nor\t1\nto\t2\n");
    sandbox.assert_nothing_left();
    let standing = Standing::start(&sandbox, 1);
    let submitted = piped("submit wordcount - --reduces 1").expect_code(0).stdout_text();
    assert_eq!(submitted, run);
    let refused = piped(&format!("submit wordcount - --detach --output {}", sandbox.text("out")));
    refused.expect_code(4).expect_words(&["standard input", "stays attached"]);
    standing.end();
}

#[test]
fn stumbles_come_with_a_next_step() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a\n");
    let check = |arguments: &[&str], code: i32, words: &[&str]| {
        sandbox.run(arguments).expect_code(code).expect_words(words);
    };
    let run = "`wordcount` is a job: gristmill run wordcount";
    check(&["wordcount", &input], 2, &["unrecognized subcommand 'wordcount'", run]);
    check(&["run", "wordcount", "texd"], 4, &["input texd does not exist", "hint: check the name"]);
    let table = ["run", "join", "--left", "lefd", "--right", &input, "--on", "a=a"];
    check(&table, 4, &["lefd does not exist", "hint: check the name of the file"]);
    let into = ["run", "wordcount", &input, "--output", "not/there"];
    check(&into, 3, &["could not create ", "not/there", "No such file", "hint:", "mkdir -p"]);
    let next = "`gristmill cluster token new work --output FILE` writes one";
    for command in ["worker", "status"] {
        check(&[command, "--join", "nosuch.join"], 2, &["nosuch.join does not exist", next]);
    }
    check(
        &["worker"],
        2,
        &["no master is known", "state/join", "hint: start one with `gristmill cluster master`"],
    );
    let standing = Standing::start(&sandbox, 1);
    sandbox.gristmill(["submit", "wordcount", &input]).finish().expect_code(0);
    let report = sandbox.gristmill(["report", "job-1", "--output", "not/there.html"]).finish();
    report.expect_code(3).expect_words(&["could not write the report not/there.html; name another place"]);
    standing.end();
}

#[test]
fn init_writes_settings_that_change_nothing_and_never_over_others() {
    let sandbox = Sandbox::new();
    sandbox.run_well(["init"]);
    let input = sandbox.write("input", "a\n");
    sandbox.run_well(["run", "wordcount", &input]);
    sandbox.run(["init"]).expect_code(2).expect_words(&["gristmill.toml exists already"]);
}

#[test]
fn init_writes_a_package_with_a_job_and_never_over_another() {
    let sandbox = Sandbox::new();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    sandbox
        .run(["init", "job", "link-counts"])
        .expect_code(2)
        .expect_words(&["has no cli/Cargo.toml", "--from"]);
    for name in ["Links", "build", "wordcount"] {
        let refused = sandbox.run(["init", "job", name, "--from", sources]);
        refused.expect_code(2).expect_words(&["invalid job name", name]);
    }
    sandbox.run_well(["init", "job", "link-counts", "--from", sources]);
    let again = sandbox.run(["init", "job", "link-counts", "--from", sources]);
    again.expect_code(2).expect_words(&["link-counts exists already"]);
    let manifest: toml::Table =
        std::fs::read_to_string(sandbox.text("link-counts/Cargo.toml")).unwrap().parse().unwrap();
    let path = manifest["dependencies"]["gristmill"]["path"].as_str().unwrap();
    assert!(std::path::Path::new(path).join("src/lib.rs").exists(), "{path}");
    let program = std::fs::read_to_string(sandbox.text("link-counts/src/main.rs")).unwrap();
    assert!(
        program.contains("\"link-counts\"") && program.contains("impl Job for LinkCountsJob"),
        "{program}"
    );
}

/// Returns a port followed by this many free ports.
fn free_ports(count: u16) -> u16 {
    let free = |first: u16| {
        (first..first + count).all(|port| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok())
    };
    (20_000..30_000)
        .step_by(usize::from(count))
        .map(|first| first + (std::process::id() % 97) as u16)
        .find(|first| free(*first))
        .unwrap()
}

#[test]
fn workers_and_submitters_listen_on_the_ports_they_are_given_and_on_no_others() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("input", "to be or not to be\n");
    let first = free_ports(4);
    let taken = std::net::TcpListener::bind(("127.0.0.1", first)).unwrap();
    let master = sandbox.gristmill(["master"]).start();
    let join = await_join_line(&master);
    let listen = format!("127.0.0.1:{first}-{}", first + 2);
    let few = sandbox.gristmill(["worker", "--workers", "4", "--listen", &listen]).finish().expect_code(2);
    few.expect_words(&["has fewer ports than the 4 worker processes"]);
    let worker = sandbox.gristmill(["worker", "--workers", "2", "--listen", &listen]).start();
    let standing = Standing::new(&sandbox, master, vec![worker], join);
    standing.await_workers(2);
    let (_, status) = standing.request("GET", "status", "");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let mut ports: Vec<u64> = status["workers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["endpoint"]["port"].as_u64().unwrap())
        .collect();
    ports.sort_unstable();
    assert_eq!(ports, [u64::from(first) + 1, u64::from(first) + 2], "{status}");
    let serve = format!("127.0.0.1:{first}-{}", first + 3);
    sandbox.gristmill(["submit", "wordcount", &input, "--serve", &serve]).finish().expect_code(0);
    let serve = format!("127.0.0.1:{first}-{}", first + 2);
    let refused =
        sandbox.gristmill(["submit", "wordcount", &input, "--serve", &serve]).finish().expect_code(3);
    refused.expect_words(&["other processes listen on all of them"]);
    drop(taken);
    standing.end();
}

#[test]
fn what_cannot_be_written_is_named_with_a_code_of_its_own() {
    let sandbox = Sandbox::new();
    for words in ["--help", "run --help"] {
        let script = format!("\"$0\" {words} > /dev/full");
        let full = sandbox.program(Path::new("sh"), ["-c", &script, PROGRAM]);
        full.finish().expect_code(7).expect_words(&["could not write to standard output", "No space left"]);
    }
    let refused = sandbox.gristmill(["gen", "text", "/proc/there/is/none", "--size", "1KB"]).finish();
    refused.expect_code(3).expect_words(&["could not write /proc/there/is/none"]);
}

#[test]
fn closed_streams_are_errors_for_whoever_uses_them() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("input", "b\na");
    let shell = |script: &str| sandbox.program(Path::new("sh"), ["-c", script, PROGRAM, &input]).finish();
    for (script, code, words) in [
        ("\"$0\" run sort \"$1\" --quiet >&-", 7, "could not write to standard output: it is closed"),
        ("\"$0\" run sort \"$1\" --quiet 1</dev/null", 7, "could not write to standard output: it is closed"),
        ("\"$0\" run sort \"$1\" --quiet --json >&-", 7, "it is closed"),
        ("\"$0\" sim --list >&-", 7, "it is closed"),
        ("\"$0\" --help >&-", 7, "it is closed"),
        ("\"$0\" --version >&-", 7, "it is closed"),
        ("\"$0\" run sort - --quiet <&-", 4, "standard input is closed"),
    ] {
        shell(script).expect_code(code).expect_words(&[words]);
    }
    // A descriptor that is closed and unused does no harm, and no file of the program gets its number.
    let out = sandbox.text("out");
    let unused = format!("\"$0\" run sort \"$1\" --quiet --reduces 1 --output {out} <&- >&- 2>&-");
    shell(&unused).expect_code(0);
    assert_eq!(std::fs::read_to_string(sandbox.path("out/part-00000")).unwrap(), "a\nb\n");
}

#[test]
fn records_on_a_terminal_are_shown_without_what_drives_it() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("input", "x\u{1b}[31mred\u{9b}\ty\n");
    let line = format!("{PROGRAM} run sort {input} --quiet");
    let shown = sandbox.program(Path::new("script"), ["-qec", &line, "/dev/null"]).finish().expect_code(0);
    assert_eq!(shown.stdout_text(), "x\\u001b[31mred\\u009b\ty\r\n");
    let piped = sandbox.gristmill(["run", "sort", &input, "--quiet"]).finish().expect_code(0);
    assert_eq!(piped.stdout_text(), "x\u{1b}[31mred\u{9b}\ty\n");
}

#[test]
fn signals_that_were_ignored_at_the_start_stay_ignored() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("input", "b a\n");
    let out = sandbox.text("out");
    let script = format!("trap '' HUP; exec \"$0\" run wordcount {input} --workers 1 --output {out}");
    sandbox.arm("reduce");
    let running = sandbox.program(Path::new("sh"), ["-c", &script, PROGRAM]).start();
    sandbox.stopped_at("reduce");
    running.signal(rustix::process::Signal::HUP);
    sandbox.go_on("reduce");
    running.finish().expect_code(0);
    assert!(sandbox.path("out/_SUCCESS").exists());
}

#[test]
fn machine_without_loopback_or_proc_is_named() {
    if !is_root("namespaces") {
        return;
    }
    let sandbox = Sandbox::new();
    let input = sandbox.write("input", "a\n");
    let within = |flag: &str, before: &str| {
        let script = format!("{before} exec \"$0\" run wordcount {input} --quiet");
        sandbox.program(Path::new("unshare"), [flag, "sh", "-c", &script, PROGRAM]).finish().expect_code(3)
    };
    within("-n", "").expect_words(&["the loopback interface cannot be used", "ip link set lo up"]);
    within("-m", "mount -t tmpfs none /proc &&").expect_words(&["/proc is not mounted"]);
}

#[test]
fn names_are_looked_up_to_listen_and_messages_are_said_once() {
    let sandbox = Sandbox::new();
    let port = free_ports(1);
    let master = sandbox.gristmill(["master", "--listen", &format!("localhost:{port}")]).start();
    let join = await_join_line(&master);
    assert_eq!(join.address.port(), port);
    Standing::new(&sandbox, master, Vec::new(), join).end();
    let wrong = sandbox.gristmill(["master", "--listen", "7072"]).finish().expect_code(2);
    wrong.expect_words(&["write HOST:PORT"]);
    let doubled = sandbox.gristmill(["run", "wordcount", "x", "--narrate", "--json"]).finish();
    assert_eq!(doubled.expect_code(2).stderr.matches("error:").count(), 1);
}
