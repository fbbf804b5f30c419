//! The command line itself: usage, help, exit codes, JSON, pipes, settings.

use crate::support::Sandbox;
use crate::support::data::Random;
use crate::support::oracle;
use std::net::TcpListener;

/// Maximum number of lines of every `--help`.
const LINES_MAX: usize = 60;

/// Maximum number of columns of every help text.
const COLUMNS_MAX: usize = 80;

#[test]
fn mistakes_in_a_command_end_with_the_code_of_usage() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a\n");
    let input = input.as_str();
    let mistakes: [(&[&str], &str); 16] = [
        (&[], "Usage"),
        (&["run"], "Usage"),
        (&["run", "wordcuont", input], "wordcount"),
        (&["run", "wordcount"], "INPUT"),
        (&["run", "wordcount", input, "--nope"], "--nope"),
        (&["run", "wordcount", input, "--workers", "0"], "--workers"),
        (&["run", "wordcount", input, "--reduces", "0"], "--reduces"),
        (&["run", "wordcount", input, "--split-size", "lots"], "--split-size"),
        (&["run", "wordcount", input, "--attempts", "0"], "--attempts"),
        (&["run", "wordcount", input, "--hang-after", "0"], "--hang-after"),
        (&["run", "wordcount", input, "--memory", "1KiB"], "--memory"),
        (&["run", "wordcount", input, "--weight", "0"], "--weight"),
        (&["run", "grep", "(", input], "PATTERN"),
        (&["run", "sort", input, "--key-bytes", "5..5"], "--key-bytes"),
        (&["run", "join", "--left", input, "--right", input, "--on", "nosuch=1"], "nosuch"),
        (&["status", "--settings", "not-there.toml"], "not-there.toml"),
    ];
    for (arguments, word) in mistakes {
        let finished = sandbox.run(arguments).expect_code(2).expect_words(&[word]);
        assert!(finished.stdout.is_empty(), "{arguments:?} wrote to stdout");
        assert!(!finished.stderr.contains("job-1"), "{arguments:?} got as far as a job");
    }
}

#[test]
fn usage_asks_for_no_state_directory_when_a_variable_names_it() {
    // The case in every sandbox.
    let sandbox = Sandbox::new();
    for command in ["wait", "cancel", "logs", "trace", "up"] {
        let finished = sandbox.run([command]).expect_code(2);
        let usage = finished.stderr.lines().find(|line| line.starts_with("Usage: ")).unwrap();
        assert!(!usage.contains("--state"), "{usage}");
    }
}

#[test]
fn one_of_a_kind_is_not_told_as_several() {
    let sandbox = Sandbox::new();
    let (input, out) = (sandbox.write("text", "a\n"), sandbox.text("out"));
    let sorted = sandbox.run_well(["run", "sort", &input, "--output", &out]);
    sorted.expect_words(&["input      1 record, ", "shuffle    1 pair emitted, ", "output     1 record, "]);
    let checked = sandbox.run_well(["verify-sort", &out]).stdout_text();
    assert!(checked.starts_with("sorted: 1 record, "), "{checked}");
}

#[test]
fn unknown_policies_and_placements_are_refused_with_the_known_ones() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a\n");
    for (flag, known) in [("--policy", ["fair", "fifo"]), ("--placement", ["pull", "pull"])] {
        let finished = sandbox.run(["run", "wordcount", &input, flag, "magic"]).expect_code(2);
        finished.expect_words(&["`magic`", known[0], known[1]]);
        sandbox.run(["master", flag, "magic"]).expect_code(2).expect_words(&["`magic`", known[0]]);
    }
    sandbox.run_well(["run", "wordcount", &input, "--policy", "fifo", "--placement", "pull"]);
}

/// Returns the commands that a help lists, which are the jobs in that of `run`.
fn listed(help: &str) -> Vec<String> {
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names =
        lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn help_of_every_command_fits_60_lines_of_80_columns() {
    let sandbox = Sandbox::new();
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    let (mut walked, mut wrong) = (Vec::new(), Vec::new());
    while let Some(command) = commands.pop() {
        for flag in ["-h", "--help", "--help-all"] {
            let words = command.iter().map(String::as_str).chain([flag]);
            let help = sandbox.gristmill(words).finish().expect_code(0).stdout_text();
            assert!(help.contains("Usage: "), "{command:?} {flag}: {help}");
            let lines = help.lines().count();
            if flag != "--help-all" && lines > LINES_MAX {
                wrong.push(format!("{command:?} {flag} has {lines} lines"));
            }
            for line in help.lines().filter(|line| line.chars().count() > COLUMNS_MAX) {
                wrong.push(format!("{command:?} {flag} has a long line: {line}"));
            }
            if flag == "--help" {
                commands.extend(listed(&help).into_iter().map(|name| [&command[..], &[name]].concat()));
            }
        }
        walked.push(command.join(" "));
    }
    assert_eq!(wrong, Vec::<String>::new());
    for command in
        ["run wordcount", "submit join", "streaming", "job explain", "cluster token new", "lab compare"]
    {
        assert!(walked.iter().any(|walked| walked == command), "{command} is not in {walked:?}");
    }
    let doctor = sandbox.run_well(["cluster", "doctor", "--help-all"]).stdout_text();
    assert!(!doctor.contains("--slow"), "{doctor}");
}

#[test]
fn json_report_has_a_schema_and_says_what_happened() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a b\na\n");
    let out = sandbox.text("out");
    let report = sandbox.run_well(["run", "wordcount", &input, "--json", "--quiet", "--output", &out]);
    assert_eq!(report.stderr, "", "--quiet");
    let report = report.json();
    assert_eq!((&report["schema"], &report["status"]["schema"]), (&1.into(), &1.into()));
    assert_eq!(report["output"], out.as_str());
    assert_eq!(report["status"]["state"], "succeeded");
    assert_eq!(report["status"]["totals"]["map_records_in"], 2);
    assert_eq!(report["status"]["totals"]["records_out"], 2);
}

#[test]
fn json_report_of_a_failed_job_has_a_stable_code() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text.gz", "this is no gzip");
    let report = sandbox.run(["run", "wordcount", &input, "--json"]).expect_code(4).json();
    assert_eq!((&report["schema"], &report["state"]), (&1.into(), &"failed".into()));
    assert_eq!(report["failure"]["code"], "input");
}

#[test]
fn failed_job_ends_with_its_own_code_where_standard_output_is_closed() {
    let sandbox = Sandbox::new();
    let (bad, good) = (sandbox.write("text.gz", "this is no gzip"), sandbox.write("text", "a\n"));
    let run = |input: &str| {
        let script = "exec \"$0\" run wordcount \"$1\" --workers 1 --json >&-";
        sandbox.program("sh".as_ref(), ["-c", script, crate::support::sandbox::PROGRAM, input]).finish()
    };
    run(&bad).expect_code(4).expect_words(&["could not write to standard output: it is closed"]);
    run(&good).expect_code(7);
}

#[test]
fn reader_that_closes_the_pipe_early_is_no_error() {
    let sandbox = Sandbox::new();
    // More than a pipe holds, so that the writer must notice.
    let input = sandbox.write("text", Random::seeded(101).text(1_000_000, &["\n"]));
    let script = r#""$@" | head -n 1; exit "${PIPESTATUS[0]}""#;
    let program = crate::support::sandbox::PROGRAM;
    let arguments = ["-c", script, "bash", program, "run", "grep", "", &input, "--quiet"];
    let finished = sandbox.program("bash".as_ref(), arguments).finish().expect_code(0);
    assert_eq!(oracle::lines(&finished.stdout).len(), 1);
    assert_eq!(finished.stderr, "", "nobody wants to read about it");
    sandbox.assert_nothing_left();
    for words in [["run", "sort", "--help"].as_slice(), &["run", "sort", "--help-all"]] {
        let gone = ["-c", r#""$@" | true; exit "${PIPESTATUS[0]}""#, "bash", program];
        let finished = sandbox.program("bash".as_ref(), [&gone, words].concat()).finish().expect_code(0);
        assert_eq!(finished.stderr, "", "{words:?}");
    }
}

#[test]
fn port_in_use_is_refused_at_once() {
    let sandbox = Sandbox::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let finished = sandbox.run(["master", "--listen", &address]).expect_code(3);
    finished.expect_words(&[&format!("cannot listen on {address}: another process listens there")]);
    assert!(!sandbox.path("state/join").exists(), "an address was told on which nobody listens");
}

#[test]
fn settings_file_replaces_typing_and_its_mistakes_are_named() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("text", "a b\n");
    sandbox.write("gristmill.toml", "reduces = 3\nworkers = 1\n");
    let report = sandbox.run_well(["run", "wordcount", &input, "--json"]).json();
    assert_eq!((&report["status"]["reduces"]["total"], &report["status"]["workers"]), (&3.into(), &1.into()));
    let report = sandbox.run_well(["run", "wordcount", &input, "--json", "--reduces", "2"]).json();
    assert_eq!(report["status"]["reduces"]["total"], 2, "a flag wins over the file");
    sandbox.write("gristmill.toml", "reduces = 3\nworker = 1\n");
    let finished = sandbox.run(["run", "wordcount", &input]).expect_code(2);
    finished.expect_words(&["gristmill.toml", "line 2", "worker"]);
}

#[test]
fn generated_input_is_the_same_for_the_same_seed() {
    let sandbox = Sandbox::new();
    for kind in ["text", "records"] {
        let made: Vec<Vec<u8>> = [("a", "7"), ("b", "7"), ("c", "8")]
            .iter()
            .map(|(name, seed)| {
                let path = sandbox.text(&format!("{kind}-{name}"));
                sandbox.run_well(["gen", kind, &path, "--size", "200kB", "--seed", seed]);
                std::fs::read(path).unwrap()
            })
            .collect();
        assert!(made[0] == made[1] && made[0] != made[2], "{kind}");
        assert_eq!(made[0].len(), 200_000);
    }
    sandbox.run(["gen", "text", &sandbox.text("text-a"), "--size", "1kB"]).expect_code(2);
}

#[test]
fn commands_are_in_groups_and_old_names_work() {
    let sandbox = Sandbox::new();
    let help = sandbox.run_well(["--help"]).stdout_text();
    for group in ["run", "submit", "streaming", "gen", "verify-sort", "init", "job", "cluster", "lab"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(group)), "{group}: {help}");
    }
    assert!(!help.contains("whatif") && !help.contains("unpack"), "{help}");
    for (group, command) in [("job", "wait"), ("cluster", "drain"), ("lab", "compare"), ("lab", "whatif")] {
        let help = sandbox.run_well([group, "--help"]).stdout_text();
        assert!(help.contains(command), "{group}: {help}");
    }
    let sorted = |words: &[&str]| sandbox.run_well(words).stdout_text();
    assert_eq!(sorted(&["lab", "sim", "--list"]), sorted(&["sim", "--list"]));
    for (old, new) in [
        ("jobs", &["job", "list"][..]),
        ("status", &["cluster", "status"]),
        ("wait 1", &["job", "wait", "1"]),
    ] {
        let old = sandbox.run(old.split(' ')).expect_code(2);
        assert_eq!(sandbox.run(new).expect_code(2).stderr, old.stderr, "no master is known");
    }
}

#[test]
fn mistyped_command_or_job_gets_a_suggestion() {
    let sandbox = Sandbox::new();
    for (typed, words) in [
        ("stauts", "'status'"),
        ("clsuter", "'cluster'"),
        ("job exlpain", "'explain'"),
        ("cluster dran", "'drain'"),
        ("lab comapre", "'compare'"),
        ("run wordcount --ouptut x", "'--output'"),
        ("wordcount", "gristmill run wordcount"),
        ("wordcuont", "is it a job? gristmill run wordcount"),
        ("run lengths", "by its own program: cargo run -- run lengths"),
        ("job kil job-1", "'kill'"),
    ] {
        sandbox.run(typed.split(' ')).expect_code(2).expect_words(&[words]);
    }
    let after_run = sandbox.run(["run", "wordcuont"]).expect_code(2).expect_words(&["'wordcount'"]);
    assert!(!after_run.stderr.contains("is it a job?"), "{}", after_run.stderr);
}
