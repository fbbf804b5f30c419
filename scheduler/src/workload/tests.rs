//! Tests of reading workloads from text, and of error messages.

use super::*;
use crate::station::{PerStation, Station};
use proptest::prelude::*;
use std::path::Path;

fn trace(format: Format, text: &str) -> Trace {
    read(format, text, &Reading::default()).unwrap()
}

fn error(format: Format, text: &str) -> String {
    read(format, text, &Reading { skipped_max: 1, ..Reading::default() }).unwrap_err().to_string()
}

#[test]
fn the_format_is_told_by_the_ending() {
    let endings = [
        ("a.tsv", Format::Swim),
        ("b.json.gz", Format::Rumen),
        ("c.csv", Format::Csv),
        ("d.toml", Format::Toml),
    ];
    for (name, format) in endings {
        assert_eq!(Format::of_name(name), Some(format));
    }
    assert_eq!(Format::of_name("overlap"), None);
    assert_eq!(Format::of_name("a.gz"), None);
}

#[test]
fn a_table_gives_its_jobs_in_the_order_of_arrival() {
    let text = "\
# two jobs
name, arrival, map, shuffle, maps, reduces, deadline, weight, pool

\"late, \"\"very\"\"\", 5, , , 2x1.5;3, 4, 90, 2, night
early, 1, 7, 2.5, , , , , night
";
    let late = Job {
        arrival: 5.0,
        work: PerStation::new(6.0, 0.0, 4.0),
        maps: vec![1.5, 1.5, 3.0],
        reduces: vec![4.0],
        deadline: Some(90.0),
        weight: 2.0,
        pool: Some(0),
        name: Some("late, \"very\"".to_owned()),
        ..Job::default()
    };
    let early = Job {
        arrival: 1.0,
        work: PerStation::new(7.0, 2.5, 0.0),
        weight: 1.0,
        pool: Some(0),
        name: Some("early".to_owned()),
        ..Job::default()
    };
    assert_eq!(trace(Format::Csv, text).jobs, [early, late]);
}

#[test]
fn a_toml_table_means_the_same_as_csv() {
    let toml = r#"
[[job]]
name = "a"
maps = [1, 2.5]
reduces = "3x2"
shuffle_bytes = 2e9

[[job]]
arrival = 4
map = 3
pool = "p"
"#;
    let csv = "name,maps,reduces,shuffle_bytes,arrival,map,pool\na,1;2.5,3x2,2e9,,,\n,,,,4,3,p\n";
    assert_eq!(trace(Format::Toml, toml), trace(Format::Csv, csv));
    assert_eq!(trace(Format::Toml, toml).jobs[0].work, [3.5, 2.0, 6.0], "a network of 1 GB/s");
}

#[test]
fn mistakes_in_a_table_are_named_with_their_line() {
    let mistakes = [
        ("map\n1\n-1\n", "line 3: `map` is `-1`, which is not a finite number at least 0"),
        ("map\ninf\n", "line 2: `map` is `inf`, which is not a finite number at least 0"),
        ("map\nNaN\n", "line 2: `map` is `NaN`, which is not a finite number at least 0"),
        ("map,shuffle\n1,x\n", "line 2: `shuffle` is `x`, which is not a number"),
        ("map,shuffle\n1\n", "line 2: the number of cells is 1, not 2 as in the header"),
        ("name,map\n\"a,1\n", "line 2: a quote is not closed, or is not the end of its cell"),
        ("name,map\na,\"6\"7\n", "line 2: a quote is not closed, or is not the end of its cell"),
        ("maps\n3y2\n", "line 2: `maps` is `3y2`, which is not a length or COUNTxLENGTH"),
        ("map,maps\n5,2x2\n", "line 2: `map` is `5`, which is not the sum of its tasks"),
        ("map,weight\n5,0\n", "line 2: `weight` is `0`, which is not a finite number above 0"),
        ("map,map\n", "line 1: column `map` stands twice"),
        ("map\n", "there is no job in it"),
        ("", "there is no job in it"),
    ];
    for (text, expected) in mistakes {
        assert_eq!(error(Format::Csv, text), expected, "{text}");
    }
    assert!(
        error(Format::Csv, "shufle\n1\n")
            .starts_with("line 1: there is no column `shufle`; did you mean `shuffle`?")
    );
    assert!(
        error(Format::Csv, "maps\n999999999999x1\n").starts_with("line 2: with this job there are more than")
    );
    assert_eq!(
        error(Format::Toml, "[[job]]\nmap = 1\n\n[[job]]\nmap = -2\n"),
        "line 4: `map` is `-2`, which is not a finite number at least 0"
    );
    assert!(error(Format::Toml, "[[job]]\nmip = 1\n").contains("line 2, column 1"));
    assert_eq!(error(Format::Toml, ""), "there is no job in it");
}

#[test]
fn a_swim_line_becomes_maps_of_a_split_and_reduces_of_a_partition() {
    let mib = f64::from(1 << 20);
    let text = "job7\t49\t49\t157286400\t1073741824\t0\nmap-only\t50\t1\t0\t0\t77\textra\n";
    let jobs = trace(Format::Swim, text).jobs;
    let full = 1.0 + 64.0 * mib / 20e6;
    assert_eq!(jobs[0].maps, [full, full, 1.0 + 22.0 * mib / 20e6]);
    assert_eq!(jobs[0].reduces, [1.0 + 256.0 * mib / 20e6; 4]);
    assert!((jobs[0].work[Station::Shuffle] - 1.073_741_824).abs() < 1e-12);
    assert_eq!((jobs[0].arrival, jobs[0].name.as_deref()), (49.0, Some("job7")));
    assert_eq!((jobs[1].maps.as_slice(), jobs[1].reduces.len()), ([1.0].as_slice(), 0));
}

#[test]
fn swim_trace_of_too_many_tasks_is_refused_with_the_factor_that_makes_few_enough() {
    let line = |arrival: u32| format!("job\t{arrival}\t0\t1e15\t0\t0\n");
    let text: String = (0..40).map(line).collect();
    let read = |bytes: f64| {
        let scale = Scale { bytes, ..Scale::default() };
        read(Format::Swim, &text, &Reading { scale, ..Reading::default() })
    };
    let error = read(1.0).unwrap_err().to_string();
    assert_eq!(
        error,
        "line 7: with this job there are more than 100000000 tasks, and 6.0e8 in all; 0.1 times the bytes make few \
         enough (scale-bytes), or splits and partitions as much larger"
    );
    let jobs = read(1e-4).unwrap().jobs;
    assert!(!jobs[0].maps.is_empty());
}

#[test]
fn scaled_bytes_of_a_swim_line_make_fewer_tasks() {
    let scale = Scale { bytes: 0.5, ..Scale::default() };
    let text = "job\t0\t0\t268435456\t536870912\t0\n";
    let jobs = read(Format::Swim, text, &Reading { scale, ..Reading::default() }).unwrap().jobs;
    assert_eq!((jobs[0].maps.len(), jobs[0].reduces.len()), (2, 1));
    assert_eq!((jobs[0].input_bytes, jobs[0].shuffle_bytes), (134_217_728.0, 268_435_456.0));
    assert!((jobs[0].work[Station::Shuffle] - 0.268_435_456).abs() < 1e-12);
}

#[test]
fn bad_lines_of_a_trace_are_counted_up_to_the_limit() {
    let good = "job\t0\t0\t1\t0\t0\n";
    let bad = "job\t0\t0\t-1\t0\t0\n";
    let skipped = trace(Format::Swim, &format!("{good}{bad}short\t1\n"));
    assert_eq!((skipped.jobs.len(), skipped.skipped), (1, 2));
    let first = "line 2: `input bytes` is `-1`, which is not a finite number at least 0";
    assert_eq!(skipped.first_skipped.unwrap().to_string(), first);
    assert_eq!(
        error(Format::Swim, &format!("{good}{bad}{bad}")),
        format!("more than 1 lines cannot be read, the first of them {first}")
    );
    assert_eq!(
        error(Format::Swim, bad),
        "there is no job in it; line 1: `input bytes` is `-1`, which is not a finite number at least 0"
    );
}

#[test]
fn bytes_that_make_too_many_tasks_are_refused_before_they_are_made() {
    assert!(
        error(Format::Swim, "job\t0\t0\t1e300\t0\t0\n")
            .starts_with("line 1: with this job there are more than")
    );
}

const RUMEN: &str = r#"{
  "jobName": "a", "submitTime": 10000, "unknown": {"x": [1]},
  "mapTasks": [
    {"inputBytes": 100, "attempts": [
      {"result": "FAILED", "startTime": 0, "finishTime": 1},
      {"result": "SUCCESS", "startTime": 11000, "finishTime": 13500, "shuffleFinished": -1, "mapOutputBytes": 40}]},
    {"inputBytes": -1, "attempts": [{"result": "KILLED", "startTime": 5, "finishTime": -1}]}
  ],
  "reduceTasks": [{"attempts": [
    {"result": "SUCCESS", "startTime": 12000, "finishTime": 20000, "shuffleFinished": 16000, "reduceShuffleBytes": 50}]}]
}
"#;

#[test]
fn a_rumen_job_counts_its_successful_attempts_and_its_reduces_from_the_end_of_the_shuffle() {
    let later =
        RUMEN.replace("10000", "9000").replace("\"reduceShuffleBytes\": 50", "\"reduceShuffleBytes\": -1");
    let jobs = trace(Format::Rumen, &format!("{RUMEN}{later}")).jobs;
    assert_eq!(jobs.iter().map(|job| job.arrival).collect::<Vec<_>>(), [0.0, 1.0]);
    assert_eq!(jobs[1].maps, [2.5]);
    assert_eq!(jobs[1].reduces, [4.0]);
    assert_eq!(jobs[1].work, [2.5, 50.0 / 1e9, 4.0]);
    assert_eq!(jobs[0].shuffle_bytes, 40.0, "what the maps put out");
    assert_eq!(jobs[1].input_bytes, 100.0);
}

#[test]
fn a_broken_rumen_object_is_named_and_the_next_one_read() {
    let text = format!("{RUMEN}\n{{\"jobName\": \"b\",\n \"submitTime\": tomorrow}}\n{RUMEN}");
    let trace = trace(Format::Rumen, &text);
    assert_eq!((trace.jobs.len(), trace.skipped), (2, 1));
    let first = trace.first_skipped.unwrap();
    assert_eq!(first.line, RUMEN.lines().count() as u64 + 2);
    assert!(matches!(first.error, LineError::Json { .. }), "{first}");
    let backwards = RUMEN.replace("13500", "10500");
    assert!(error(Format::Rumen, &backwards).contains("`map attempt` is `11000 to 10500`"));
    assert!(error(Format::Rumen, "[1, 2").contains("line 1: it is no job"));
}

#[test]
fn a_job_of_the_standard_workload_format_is_as_many_maps_as_it_had_processors() {
    let text = "; Version: 2.2\n\
        1 10 3 60 4 -1 -1 8 100 -1 1 7 2 -1 3 -1 -1 -1 ; a comment\n\
        2 12 0 5 -1 -1 -1 2 100 -1 1 8 2 -1 -1 -1 -1 -1\n\
        3 13 0 -1 -1 -1 -1 2 100 -1 5 8 2 -1 1 -1 -1 -1\n";
    let trace = trace(Format::Swf, text);
    assert_eq!((trace.jobs.len(), trace.skipped), (2, 0), "the third did not run");
    let [one, two] = &trace.jobs[..] else { panic!("{trace:?}") };
    assert_eq!(
        (one.arrival, &one.maps[..], one.pool, one.name.as_deref()),
        (0.0, &[60.0; 4][..], Some(3), Some("user 7"))
    );
    assert_eq!(
        (two.maps.len(), two.pool),
        (2, None),
        "the requested processors where the allocated are unknown"
    );
    assert_eq!(
        error(Format::Swf, "1 2 3\n"),
        "there is no job in it; line 1: the number of cells is 3, not 18"
    );
    let late = text.replace("1 10 3", "1 late 3");
    assert!(trace_of_two(Format::Swf, &late).contains("line 2: `submit time` is `late`"));
}

/// Returns the first unreadable line of a trace that has others.
fn trace_of_two(format: Format, text: &str) -> String {
    trace(format, text).first_skipped.unwrap().to_string()
}

#[test]
fn a_coflow_is_a_job_without_work_whose_reducers_receive_the_megabytes() {
    let text = "150 2\n1 500 2 10 11 3 1:5.0 2:7.5 9:0\n2 1500 1 10 1 7:120\n";
    let jobs = trace(Format::Coflows, text).jobs;
    assert_eq!((jobs[0].arrival, jobs[0].maps.len(), jobs[0].reduces.len()), (0.5, 2, 3));
    assert_eq!((jobs[0].shuffle_bytes, jobs[1].shuffle_bytes), (12.5e6, 120e6));
    assert_eq!(jobs[1].work, [0.0, 0.12, 0.0]);
    let short = text.replace("2:7.5 ", "");
    assert!(
        trace_of_two(Format::Coflows, &short)
            .contains("the number of cells is 2, not megabytes of 3 reducers")
    );
    let odd = text.replace("7:120", "7:-1");
    assert!(trace_of_two(Format::Coflows, &odd).contains("`megabytes of a reducer` is `-1`"));
    let few = text.replace("150 2", "150 3");
    assert!(
        error(Format::Coflows, &few).contains("`first line` is `150 3`, which is not the numbers of ports")
    );
}

#[test]
fn stages_of_alibaba_that_wait_for_no_other_are_maps_and_the_others_reduces() {
    let text = "M1,2,j_1,1,Terminated,100,110,100.00,0.2\nR2_1,1,j_1,1,Terminated,110,130,100,0.2\n\
        task_abc,3,j_2,1,Terminated,90,91,100,0.2\nM1,9,j_3,1,Failed,80,81,100,0.2\n";
    let jobs = trace(Format::Alibaba, text).jobs;
    assert_eq!(jobs.len(), 2, "the last did not end");
    assert_eq!(
        (jobs[0].arrival, jobs[0].maps.as_slice(), jobs[0].reduces.len()),
        (0.0, [1.0; 3].as_slice(), 0)
    );
    assert_eq!(
        (jobs[1].arrival, jobs[1].maps.as_slice(), jobs[1].reduces.as_slice()),
        (10.0, [10.0; 2].as_slice(), [20.0].as_slice())
    );
    let back = text.replace("110,130", "110,100");
    assert!(trace_of_two(Format::Alibaba, &back).contains("`end_time` is `110 to 100`"));
}

#[test]
fn a_job_of_google_is_the_instances_of_a_collection_that_finished() {
    let event = |time: &str, kind: u32, collection: u32, instance: u32| {
        format!(
            "{{\"time\":\"{time}\",\"type\":\"{kind}\",\"collection_id\":\"{collection}\",\"scheduling_class\":\"2\",\
             \"collection_type\":\"0\",\"priority\":\"103\",\"instance_index\":\"{instance}\",\"machine_id\":\"7\",\
             \"resource_request\":{{\"cpus\":0.1,\"memory\":0.02}}}}\n"
        )
    };
    let lines = [
        // Evicted, and scheduled again: the last scheduling counts. Lines are in no order.
        event("640000000", 6, 5, 0),
        event("610000000", 3, 5, 0),
        event("630000000", 3, 5, 0),
        event("620000000", 4, 5, 0),
        event("605000000", 0, 5, 0),
        event("604000000", 0, 5, 1),
        event("606000000", 3, 5, 1),
        event("608500000", 6, 5, 1),
        // Killed; scheduled before the trace; finished after it.
        event("700000000", 3, 5, 2),
        event("701000000", 7, 5, 2),
        event("0", 0, 6, 0),
        event("0", 3, 6, 0),
        event("650000000", 6, 6, 0),
        event("600000000", 0, 7, 0),
        event("601000000", 3, 7, 0),
        event("9223372036854775807", 6, 7, 0),
        // Submitted before the trace; a reservation.
        event("0", 0, 9, 0),
        event("650000000", 3, 9, 0),
        event("660000000", 6, 9, 0),
        event("600000000", 0, 4, 0).replace("\"collection_type\":\"0\"", "\"collection_type\":\"1\""),
        event("601000000", 3, 4, 0).replace("\"collection_type\":\"0\"", "\"collection_type\":\"1\""),
        event("602000000", 6, 4, 0).replace("\"collection_type\":\"0\"", "\"collection_type\":\"1\""),
        event("614000000", 0, 8, 0),
        event("615000000", 3, 8, 0),
        event("616000000", 6, 8, 0),
    ];
    let jobs = trace(Format::Google, &lines.concat()).jobs;
    assert_eq!(jobs.len(), 2);
    assert_eq!((jobs[0].arrival, jobs[0].maps.as_slice()), (0.0, [10.0, 2.5].as_slice()));
    assert_eq!((jobs[1].arrival, jobs[1].maps.as_slice()), (10.0, [1.0].as_slice()));
    let wrong = lines.concat().replace("\"610000000\"", "\"soon\"");
    assert!(trace_of_two(Format::Google, &wrong).contains("is not a whole number"));
}

const PHILLY: &str = r#"[
  {"status": "Pass", "vc": "ee9e8c", "jobid": "a", "user": "u", "submitted_time": "2017-10-09 23:59:50", "attempts": [
    {"start_time": "2017-10-09 20:00:00", "end_time": "2017-10-09 21:00:00", "detail": []},
    {"start_time": "2017-10-10 00:00:00", "end_time": "2017-10-10 00:01:30",
     "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu5"]}]}]},
  {"status": "Killed", "vc": "ee9e8c", "jobid": "b", "user": "u", "submitted_time": "None", "attempts": []},
  {"status": "Pass", "vc": "other", "jobid": "c", "user": "u", "submitted_time": "2017-10-10 00:00:05", "attempts": [
    {"start_time": "2017-10-10 00:00:06", "end_time": "2017-10-10 00:00:08", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]}
]"#;

#[test]
fn a_philly_job_is_the_processors_of_its_last_attempt() {
    let jobs = trace(Format::Philly, PHILLY).jobs;
    assert_eq!(jobs.len(), 2, "the killed one is left out");
    assert_eq!(
        (jobs[0].arrival, jobs[0].maps.as_slice(), jobs[0].pool),
        (0.0, [90.0; 3].as_slice(), Some(0))
    );
    assert_eq!((jobs[1].arrival, jobs[1].maps.as_slice(), jobs[1].pool), (15.0, [2.0].as_slice(), Some(1)));
    let never = PHILLY.replace("2017-10-10 00:01:30", "None");
    assert!(trace_of_two(Format::Philly, &never).contains("`end_time` is `None`"));
    assert!(error(Format::Philly, "{}").contains("it is no job"));
}

#[test]
fn a_job_of_the_scheduler_load_simulator_has_its_containers_as_tasks() {
    let text = r#"{"am.type": "mapreduce", "job.start.ms": 2000, "job.id": "j", "job.tasks": [
        {"container.start.ms": 100, "container.end.ms": 1600, "container.type": "map", "container.priority": 20},
        {"duration.ms": 500, "count": 2, "container.type": "reduce"}]}
        {"job.start.ms": 5000, "job.tasks": [{"duration.ms": 1, "container.type": "map"}]}"#;
    let jobs = trace(Format::Sls, text).jobs;
    assert_eq!(
        (jobs[0].maps.as_slice(), jobs[0].reduces.as_slice()),
        ([1.5].as_slice(), [0.5; 2].as_slice())
    );
    assert_eq!((jobs[1].arrival, jobs[1].name.as_deref()), (3.0, Some("job 2")));
    let endless = text.replace("\"container.end.ms\": 1600", "\"container.end.ms\": null");
    assert!(trace_of_two(Format::Sls, &endless).contains("`duration.ms` is `-1`"));
    assert!(error(Format::Sls, "{\"job.tasks\": 1}").contains("it is no job"));
    let counts = ["1", "100000000"]
        .map(|count| format!("{{\"job.tasks\": [{{\"duration.ms\": 1, \"count\": {count}}}]}}"));
    let first = trace_of_two(Format::Sls, &counts.concat());
    assert!(first.contains("`count` is `100000000`"), "{first}");
}

#[test]
fn a_format_is_told_by_the_name_of_its_file() {
    let of = |name: &str| Format::of_name(name);
    assert_eq!(of("traces/batch_task.csv.gz"), Some(Format::Alibaba));
    assert_eq!(of("batch_tasks.csv"), Some(Format::Csv));
    assert_eq!(of("clusterdata_2019_a/instance_events-000000000007.json.gz"), Some(Format::Google));
    assert_eq!(of("philly/cluster_job_log"), Some(Format::Philly));
    assert_eq!([of("a.sls.json"), of("a.json")], [Some(Format::Sls), Some(Format::Rumen)]);
    assert_eq!(
        [of("ctc.swf"), of("fb.coflows"), of("fb.txt")],
        [Some(Format::Swf), Some(Format::Coflows), None]
    );
}

/// Reads the real traces if they exist next to the project; otherwise checks nothing.
#[test]
fn the_real_traces_are_read_whole() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/traces");
    for (name, jobs) in [("swim-fb2009-day0.tsv", 5_894), ("swim-fb2009-first50.tsv", 50)] {
        let Ok(text) = std::fs::read_to_string(directory.join(name)) else {
            return;
        };
        let trace = trace(Format::Swim, &text);
        assert_eq!((trace.jobs.len(), trace.skipped), (jobs, 0), "{name}");
    }
}

/// The former name of the column is accepted.
#[test]
fn a_goal_is_a_deadline() {
    let deadlines =
        |format, text| trace(format, text).jobs.iter().map(|job| job.deadline).collect::<Vec<_>>();
    assert_eq!(deadlines(Format::Csv, "map,goal\n1,5\n"), [Some(5.0)]);
    assert_eq!(deadlines(Format::Toml, "[[job]]\nmap = 1\ngoal = 5"), [Some(5.0)]);
    assert!(error(Format::Csv, "map,goal,deadline\n1,5,6\n").contains("twice"));
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic_or_gives_sizes_that_are_no_numbers(text in "[-0-9a-z\\t,;\"{}\\[\\]=.\n]{0,200}") {
        let formats = [
            Format::Swim, Format::Rumen, Format::Csv, Format::Toml, Format::Swf, Format::Coflows, Format::Alibaba,
            Format::Philly, Format::Sls, Format::Google,
        ];
        for format in formats {
            for header in ["", "map,maps,goal\n", "[[job]]\nmap="] {
                if let Ok(trace) = read(format, &format!("{header}{text}"), &Reading::default()) {
                    for job in trace.jobs {
                        prop_assert!(job.arrival.is_finite() && job.work.iter().all(|work| work.is_finite()));
                    }
                }
            }
        }
    }
}
