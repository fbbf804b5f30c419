//! `sim`, `order`, `place` and `size`: simulations and computations on the command line.

use crate::support::Sandbox;
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

/// Maximum number of columns of every help text.
const COLUMNS_MAX: usize = 80;

/// Five jobs that arrive in sequence.
const JOBS: &str = "\
name,arrival,maps,reduces,shuffle_bytes,deadline
a,0,4x3,2x2,4000000,30
b,1,2x1,1,1000000,5
c,2,6x2,3x1,9000000,
d,2,1,,0,4
e,50,3x1,1,1000000,60
";

#[test]
fn a_table_has_a_row_for_each_policy_on_every_model() {
    let sandbox = Sandbox::new();
    let jobs = sandbox.write("jobs.csv", JOBS);
    for (model, policies) in [
        ("fluid", ["fifo", "ps", "k-lps:k=2"]),
        ("slotted", ["fifo", "fair", "asrpt:slot=1s"]),
        ("cluster", ["fifo", "max-srpt", "asrpt:slot=1s"]),
    ] {
        let finished = sandbox.run_well([
            "sim",
            "--model",
            model,
            "--machines",
            "4",
            "--workers",
            "4",
            "--policy",
            &policies.join(","),
            "--workload",
            &jobs,
        ]);
        let lines: Vec<String> = finished.stdout_text().lines().map(str::to_owned).collect();
        let first: Vec<&str> = lines.iter().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(first, [&["policy"][..], &policies].concat(), "{model}");
        assert!(lines[0].contains("flow, s") && lines[0].contains("deadlines-met"), "{}", lines[0]);
        assert!(!finished.stdout_text().contains("NaN"));
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_gives_others() {
    let sandbox = Sandbox::new();
    let text = |seed: &str, kind: &str| {
        let mut arguments =
            vec!["sim", "--policy", "fcfs,max-srpt", "--seeds", "2", "--seed", seed, "--json"];
        arguments.extend(["--workload", "overlap:load=0.6,jobs=500", "--model", kind]);
        sandbox.run_well(arguments).stdout_text()
    };
    for kind in ["fluid", "cluster"] {
        assert_eq!(text("7", kind), text("7", kind));
        assert_ne!(text("7", kind), text("8", kind));
    }
}

#[test]
fn json_has_every_run_with_declared_metrics() {
    let sandbox = Sandbox::new();
    let arguments = ["sim", "--model", "slotted", "--preemptive", "--machines", "20", "--bound", "--json"];
    let workload = ["--policy", "fifo,asrpt,srpt", "--workload", "asrpt:rate=0.3,slots=60", "--seeds", "3"];
    let json: Value = sandbox.run_well(arguments.iter().chain(&workload)).json();
    assert_eq!(json["seeds"], serde_json::json!([1, 2, 3]));
    assert_eq!(json["metrics"]["flow"]["unit"], "s");
    assert_eq!(json["policies"][0]["flow_percentiles"].as_array().unwrap().len(), 100);
    let ratio = |place: usize| {
        json["policies"][place]["metrics"]["efficiency-ratio"]["mean"].as_f64().expect("it was asked for")
    };
    assert!(1.0 <= ratio(1) && ratio(1) <= ratio(0), "asrpt {}, fifo {}", ratio(1), ratio(0));
    assert_eq!(ratio(2), 1.0, "the bound is what srpt needs");
    for policy in json["policies"].as_array().unwrap() {
        assert_eq!(policy["runs"].as_array().unwrap().len(), 3);
        for run in policy["runs"].as_array().unwrap() {
            for metric in run["values"].as_object().unwrap().keys() {
                assert!(json["metrics"].get(metric).is_some(), "{metric} is not declared");
            }
        }
    }
}

/// The first is a job of 2 s. Its slowdown would be 200 if the time alone were its work over all slots.
#[test]
fn a_job_that_is_alone_is_not_slowed_down_in_any_model() {
    let sandbox = Sandbox::new();
    let cases = [
        ("cluster", "maps,reduces\n1,1\n", Some(2.0)),
        ("cluster", "maps,reduces,shuffle_bytes\n300x2;5,3x4,1000000000\n", None),
        ("slotted", "maps,reduces\n1,1\n", Some(2.0)),
        ("slotted", "maps,reduces\n300x2;5,3x4\n", Some(11.0)),
        ("fluid", "map,shuffle\n300,2\n", Some(3.0)),
        ("fluid", "map,shuffle\n300,4\n", Some(4.0)),
    ];
    for (model, table, seconds) in cases {
        let jobs = sandbox.write("jobs.csv", table);
        let arguments = ["sim", "--model", model, "--workers", "50", "--slots", "2", "--workload", &jobs];
        let json: Value =
            sandbox.run_well(arguments.into_iter().chain(["--json", "--policy", "fifo,max-srpt"])).json();
        for policy in json["policies"].as_array().unwrap() {
            let value = |metric: &str| policy["metrics"][metric]["mean"].as_f64().unwrap();
            assert_eq!(value("slowdown"), 1.0, "{model}: {table}");
            assert!(seconds.is_none_or(|seconds| value("flow") == seconds), "{model}: {}", value("flow"));
        }
    }
}

#[test]
fn a_metric_that_the_model_does_not_have_is_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    let cases = [
        ("fluid", "reduce-use"),
        ("slotted", "shuffle-use"),
        ("cluster", "free-slots"),
        ("fluid", "slot-cpu"),
    ];
    for (model, metric) in cases {
        let words = [format!("metric `{metric}` is measured by"), format!("not by the {model} model")];
        let arguments = ["sim", "--model", model, "--workload", "overlap:jobs=5", "--metrics", metric];
        sandbox.run(arguments).expect_code(2).expect_words(&[&words[0], &words[1]]);
    }
}

#[test]
fn no_schedule_of_the_cluster_model_beats_its_bound_and_drawn_times_have_none() {
    let sandbox = Sandbox::new();
    let jobs = sandbox.write("one.csv", "arrival,maps\n0,2x2\n");
    let ratio = |workload: &str, policy: &str| {
        let arguments =
            ["sim", "--model", "cluster", "--workers", "2", "--slots", "1", "--workload", workload];
        let arguments = arguments.into_iter().chain(["--policy", policy, "--bound", "--json"]);
        let json = sandbox.run_well(arguments).json();
        json["policies"][0]["metrics"]["efficiency-ratio"]["mean"].as_f64().unwrap()
    };
    assert_eq!(ratio(&jobs, "fifo"), 1.0, "all slots are used");
    for policy in ["fifo", "gristmill", "gristmill+divide"] {
        assert!(1.0 <= ratio("mix:load=0.7,slots=2,jobs=40", policy), "{policy}");
    }
    let drawn = sandbox.write("workers.csv", "count,slots,speed,a,b,t\n2,1,1,1,0,0\n");
    let arguments = ["sim", "--model", "cluster", "--workers", &drawn, "--workload", &jobs, "--bound"];
    sandbox.run(arguments).expect_code(2).expect_words(&["--bound needs times of tasks"]);
}

#[test]
fn backups_end_what_a_slow_worker_holds_up_and_other_models_have_none() {
    let sandbox = Sandbox::new();
    let workers = sandbox.write("workers.csv", "count,slots,speed\n3,1,1\n1,1,0.1\n");
    let jobs = sandbox.write("jobs.csv", "name,arrival,maps,reduces\na,0,8x1,\n");
    let run = |model: &str, policy: &str| {
        let arguments = ["sim", "--model", model, "--policy", policy, "--workload", &jobs, "--json"];
        sandbox.run([&arguments[..], &["--workers", &workers]].concat())
    };
    let flow = |policy: &str| {
        run("cluster", policy).expect_code(0).json()["policies"][0]["metrics"]["flow"]["mean"]
            .as_f64()
            .unwrap()
    };
    assert_eq!([flow("fifo"), flow("fifo+backup")], [10.0, 3.0]);
    assert!(flow("fifo+divide+backup") <= 3.0);
    run("slotted", "fifo+backup").expect_code(2).expect_words(&["needs --model cluster"]);
}

#[test]
fn a_network_without_limits_has_no_use() {
    let sandbox = Sandbox::new();
    let jobs = sandbox.write("jobs.csv", JOBS);
    for (network, has) in [("1MB", true), ("none", false)] {
        let arguments = ["sim", "--model", "cluster", "--network", network, "--workload", &jobs, "--json"];
        let json = sandbox.run_well(arguments).json();
        let metrics = json["policies"][0]["metrics"].as_object().unwrap();
        assert_eq!(metrics.contains_key("shuffle-use"), has, "{network}");
        assert!(metrics.contains_key("map-use"), "{network}");
    }
}

#[test]
fn the_slotted_model_speaks_of_seconds_also_where_a_slot_is_none() {
    let sandbox = Sandbox::new();
    let jobs = sandbox.write("jobs.csv", "arrival,maps,reduces,deadline\n4,4x2,3,20\n");
    let csv = sandbox.text("out.csv");
    let arguments = ["sim", "--model", "slotted", "--machines", "2", "--slot-length", "0.5", "--workload"];
    let json = sandbox.run_well(arguments.into_iter().chain([&jobs[..], "--csv", &csv, "--json"])).json();
    let value = |metric: &str| json["policies"][0]["metrics"][metric]["mean"].as_f64().unwrap();
    assert_eq!((value("flow"), value("makespan"), value("slowdown")), (7.0, 7.0, 1.0));
    assert!((value("map-use") - 800.0 / 14.0).abs() < 1e-9, "8 slot-seconds of 14");
    let text = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(text.lines().nth(1), Some("fifo,1,0,4,4,8,11,7,0,7,7,1,20,0,8,0,3,1"));
}

#[test]
fn every_job_is_a_line_of_csv_and_the_flow_adds_up() {
    let sandbox = Sandbox::new();
    let (jobs, csv) = (sandbox.write("jobs.csv", JOBS), sandbox.text("out.csv"));
    let json = sandbox
        .run_well(["sim", "--policy", "fcfs,k-lps:k=2", "--workload", &jobs, "--csv", &csv, "--json"])
        .json();
    let text = std::fs::read_to_string(&csv).unwrap();
    let flows: Vec<f64> = text
        .lines()
        .filter(|line| line.starts_with("fcfs,1,"))
        .map(|line| line.split(',').nth(7).unwrap().parse().unwrap())
        .collect();
    assert_eq!(flows.len(), 5);
    let total = json["policies"][0]["metrics"]["flow-total"]["mean"].as_f64().unwrap();
    assert!((flows.iter().sum::<f64>() - total).abs() < 1e-9, "{flows:?} make {total}");
    assert_eq!(text.lines().filter(|line| line.starts_with("k-lps:k=2,1,")).count(), 5);
}

#[test]
fn trace_with_too_many_fetches_is_refused_before_it_starts() {
    let sandbox = Sandbox::new();
    // 2000 maps, each fetched by 1000 workers.
    let rows = (0..400).map(|second| format!("{second},2000,1e9,1000\n"));
    let jobs =
        sandbox.write("day.csv", format!("arrival,map,shuffle_bytes,reduce\n{}", rows.collect::<String>()));
    let sim = ["lab", "sim", "--model", "cluster", "--workload", &jobs, "--workers"];
    let refused = sandbox.run(sim.iter().chain(&["1000"])).expect_code(2);
    refused.expect_words(&["400 jobs", "day.csv fetch 8.00e8 outputs", "at most 5e8", "--jobs 250"]);
}

#[test]
fn names_that_are_not_known_are_answered_with_the_nearest() {
    let sandbox = Sandbox::new();
    let cases: [(&[&str], &[&str]); 11] = [
        (&["--model", "fluid", "--policy", "fair"], &["`fair` counts whole slots", "`ps`"]),
        (&["--model", "fluid", "--policy", "ps+divide"], &["`ps+divide` needs --model cluster"]),
        (&["--policy", "max-srtp"], &["no policy `max-srtp`", "did you mean `max-srpt`"]),
        (&["--policy", "k-lps:kk=3"], &["no parameter `kk`", "did you mean `k`"]),
        (&["--policy", "k-lps:k=0"], &["parameter `k`"]),
        (&["--metrics", "flw"], &["no metric `flw`", "did you mean `flow`"]),
        (&["--model", "cluster", "--placement", "pul"], &["did you mean `pull`"]),
        (&["--model", "cluster", "--estimator", "orcale"], &["did you mean `oracle`"]),
        (&["--model", "cluster", "--policy", "srpt"], &["can only be simulated"]),
        (&["--workload", "overlp"], &["no workload `overlp`", "did you mean `overlap`"]),
        (&["--workload", "overlap:load=1"], &["parameter `load`", "below 1"]),
    ];
    for (flags, words) in cases {
        let workload: &[&str] =
            if flags.contains(&"--workload") { &[] } else { &["--workload", "overlap:jobs=10"] };
        let finished = sandbox.run([&["sim"], flags, workload].concat()).expect_code(2).expect_words(words);
        assert!(finished.stdout.is_empty(), "{flags:?} wrote to stdout");
    }
    sandbox
        .run(["run", "wordcount", "x", "--policy", "srpt"])
        .expect_code(2)
        .expect_words(&["can only be simulated"]);
    sandbox.run(["master", "--policy", "srpt"]).expect_code(2).expect_words(&["can only be simulated"]);
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let sandbox = Sandbox::new();
    let cases: [(&[&str], &str); 13] = [
        (&["--seeds", "0"], "--seeds"),
        (&["--jobs", "0"], "--jobs"),
        (&["--scale-load=-1"], "scale-load"),
        (&["--scale-bytes", "nan"], "scale-bytes"),
        (&["--workers", "0"], "--workers"),
        (&["--model", "cluster", "--slots", "0"], "--slots"),
        (&["--model", "cluster", "--pools", "2"], "--pools"),
        (&["--model", "cluster", "--network", "0B"], "--network"),
        (&["--model", "cluster", "--network", "100"], "write 100MB/s or 100Mbit/s"),
        (&["--model", "slotted", "--machines", "0"], "machines"),
        (&["--model", "slotted", "--policy", "dsrpt"], "--preemptive"),
        (&["--plot", "x.html"], "--plot"),
        (&["--task-length", "0"], "--task-length"),
    ];
    for (flags, word) in cases {
        let workload = ["--workload", "overlap:jobs=10"];
        sandbox.run([&["sim"], flags, &workload].concat()).expect_code(2).expect_words(&[word]);
    }
}

#[test]
fn a_workload_with_a_mistake_is_refused_with_line_and_field() {
    let sandbox = Sandbox::new();
    let cases = [
        ("map\n-1\n", "line 2: `map` is `-1`"),
        ("map,shuffle\n1,inf\n", "line 2: `shuffle` is `inf`"),
        ("map\n", "there is no job in it"),
        ("mpa\n1\n", "did you mean `map`"),
    ];
    for (text, words) in cases {
        let file = sandbox.write("bad.csv", text);
        let finished = sandbox.run(["sim", "--workload", &file]).expect_code(4).expect_words(&[words]);
        assert!(finished.stdout.is_empty());
    }
    sandbox.run(["sim", "--workload", "not-there.csv"]).expect_code(4).expect_words(&["not-there.csv"]);
    let workers = sandbox.write("workers.csv", "count,speed\n2,1\n1,0\n");
    let jobs = sandbox.write("jobs.csv", JOBS);
    sandbox
        .run(["sim", "--model", "cluster", "--workers", &workers, "--workload", &jobs])
        .expect_code(4)
        .expect_words(&["line 3: `speed` is `0`"]);
}

#[test]
fn table_without_tasks_is_cut_into_tasks_of_the_length_that_is_given() {
    let sandbox = Sandbox::new();
    let jobs = sandbox.write("jobs.csv", "arrival,map,shuffle\n0,30,10\n1,5,3\n2,40,1\n3,2,8\n4,10,10\n");
    let run = |flags: &[&str]| {
        let sim = ["sim", "--model", "cluster", "--workers", "4", "--policy", "fair,split-srpt", "--json"];
        let finished = sandbox.run_well([&sim[..], &["--workload", &jobs], flags].concat());
        let json = finished.json();
        let flow = |policy: usize| json["policies"][policy]["metrics"]["flow"]["mean"].as_f64().unwrap();
        (json["cluster"].clone(), [flow(0), flow(1)])
    };
    let (cluster, [fair, split]) = run(&[]);
    assert_eq!(
        (cluster["task_length"].as_f64(), cluster["estimator"].as_str()),
        (Some(1.0), Some("history"))
    );
    assert!((fair - split).abs() > 0.1, "the shuffle is there, and is shared differently: {fair}, {split}");
    let (cluster, _) = run(&["--task-length", "100"]);
    assert_eq!(cluster["task_length"].as_f64(), Some(100.0));
}

#[test]
fn tasks_that_cannot_be_meant_are_refused() {
    let sandbox = Sandbox::new();
    let run = |jobs: &str, flags: &[&str]| {
        let jobs = sandbox.write("jobs.csv", jobs);
        sandbox.run([&["sim", "--model", "cluster", "--workload", &jobs], flags].concat())
    };
    run("shuffle\n3\n", &[]).expect_code(4).expect_words(&["job 0", "not 0 for a job without maps"]);
    let own = "maps,reduces,shuffle\n2x1,1,3\n";
    run(own, &[]).expect_code(0);
    run("map\n1\n", &["--task-length", "0"]).expect_code(2).expect_words(&["--task-length"]);
}

/// The runs are refused since there is no steady state, so that nothing is simulated.
#[test]
fn traces_are_read_compressed_or_not_and_bad_lines_are_counted() {
    let sandbox = Sandbox::new();
    let good = "a\t0\t0\t1000000\t500000\t1\nb\t3\t3\t90000000\t0\t1\n";
    let text = format!("{good}c\t5\t2\t-7\t0\t0\n");
    let plain = sandbox.write("day.tsv", &text);
    let packed = sandbox.text("day.tsv.gz");
    let mut gzip =
        Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    gzip.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    std::fs::write(&packed, gzip.wait_with_output().unwrap().stdout).unwrap();
    let run = |file: &str| sandbox.run_well(["sim", "--model", "cluster", "--workload", file]);
    let (one, other) = (run(&plain), run(&packed));
    assert_eq!(one.stdout_text(), other.stdout_text());
    assert!(one.stderr.contains("skipped 1 line") && one.stderr.contains("line 3"), "{}", one.stderr);
}

#[test]
fn order_puts_jobs_in_order_with_the_averages() {
    let sandbox = Sandbox::new();
    let jobs = sandbox.write("jobs.csv", "name,map,shuffle\nA,6,4\nB,2,3\nC,3,2\n");
    let json = sandbox.run_well(["order", "--policy", "max-shuffle", "--jobs", &jobs, "--json"]).json();
    let order: Vec<&str> =
        json["order"].as_array().unwrap().iter().map(|row| row["job"].as_str().unwrap()).collect();
    assert_eq!(order, ["A", "B", "C"]);
    // Maps end at 6, 8, 11; shuffles at max(4, 6) = 6, max(6 + 3, 8) = 9, max(9 + 2, 11) = 11.
    assert_eq!(json["averages"]["flow"].as_f64(), Some(26.0 / 3.0));
    assert_eq!(json["averages"]["execution"].as_f64(), Some(4.0));
    let text = sandbox.run_well(["order", "--policy", "match", "--jobs", &jobs]).stdout_text();
    assert!(text.contains("averages: waiting"), "{text}");
    sandbox
        .run(["order", "--policy", "mtach", "--jobs", &jobs])
        .expect_code(2)
        .expect_words(&["did you mean `match`"]);
}

#[test]
fn place_splits_by_m_ep_as_the_reference_does() {
    let sandbox = Sandbox::new();
    let workers = sandbox.write("workers.csv", "count,mu\n20,0.8\n20,1.0\n");
    let place = |placement: &str, rate: &str| {
        sandbox.run(["place", "--placement", placement, "--workers", &workers, "--rate", rate, "--json"])
    };
    let json = place("m-ep", "10").expect_code(0).json();
    let mean = json["mean_sojourn_time"].as_f64().unwrap();
    assert!((mean - 6.582).abs() < 1e-3, "{mean}");
    let rates = json["workers"].as_array().unwrap().iter().map(|worker| worker["lambda"].as_f64().unwrap());
    assert!((rates.sum::<f64>() - 10.0).abs() < 1e-9);
    assert!(
        json["bounds"]["lower"].as_f64().unwrap() <= mean
            && mean <= json["bounds"]["upper"].as_f64().unwrap()
    );
    place("m-ep", "36").expect_code(4).expect_words(&["36"]);
    place("mep", "10").expect_code(2).expect_words(&["m-ep"]);
    place("m-ep", "-1").expect_code(2).expect_words(&["--rate"]);
}

#[test]
fn size_buys_the_mix_of_the_reference() {
    let sandbox = Sandbox::new();
    let menu = sandbox.write("menu.csv", "mu,price\n1,400\n1.25,800\n");
    let size = |budget: &str, rate: &str, more: &[&str]| {
        let flags = ["size", "--menu", &menu, "--budget", budget, "--rate", rate, "--json"];
        sandbox.run([&flags, more].concat())
    };
    let counts = |json: &Value| -> Vec<u64> {
        json["kinds"].as_array().unwrap().iter().map(|kind| kind["count"].as_u64().unwrap()).collect()
    };
    let json = size("20000", "5", &[]).expect_code(0).json();
    assert_eq!(counts(&json), [0, 18]);
    assert!((json["mean_sojourn_time"].as_f64().unwrap() - 3.59497).abs() < 1e-4);
    let json = size("4000", "5", &["--exactly"]).expect_code(0).json();
    assert_eq!(counts(&json), [10, 0]);
    size("2000", "25", &[]).expect_code(4).expect_words(&["no mix"]);
}

#[test]
fn the_list_names_everything_that_can_be_called() {
    let sandbox = Sandbox::new();
    let text = sandbox.run_well(["sim", "--list"]).stdout_text();
    for word in ["k-lps", "k=100", "pull", "oracle", "overlap", "load=", "flow-p99", "only simulated"] {
        assert!(text.contains(word), "{word} is not in the list");
    }
}

#[test]
fn help_of_the_simulating_commands_fits_80_columns() {
    let sandbox = Sandbox::new();
    for command in ["sim", "order", "place", "size", "verify", "paper"] {
        for flag in ["-h", "--help"] {
            let help = sandbox.run_well([command, flag]).stdout_text();
            assert!(help.contains("Usage: gristmill"), "{command} {flag}");
            for line in help.lines() {
                let columns = line.chars().count();
                assert!(columns <= COLUMNS_MAX, "{command} {flag} has {columns} columns: {line}");
            }
        }
    }
}
