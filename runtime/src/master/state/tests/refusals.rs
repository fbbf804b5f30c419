//! Submissions and workers that are refused, and words that are cleaned or clipped.

use super::*;

#[test]
fn submission_that_makes_no_sense_is_refused_before_anything_starts() {
    let mut scene = Scene::new(&[("reports", 2.0), ("adhoc", 1.0)]);
    let exact = |maps: usize, seconds: f64| {
        Some(ExactWork { map_seconds: vec![seconds; maps], shuffle_bytes: 0.0, reduce_seconds: vec![1.0] })
    };
    type Case = (ErrorCode, &'static str, Box<dyn FnOnce(&mut Submission)>);
    let cases: Vec<Case> = vec![
        (ErrorCode::Deadline, "over already", Box::new(|submission| submission.deadline_ns = Some(0))),
        (ErrorCode::Spec, "weight 0", Box::new(|submission| submission.weight = 0.0)),
        (ErrorCode::Spec, "weight NaN", Box::new(|submission| submission.weight = f64::NAN)),
        (
            ErrorCode::Spec,
            "exact work of 2 maps",
            Box::new(move |submission| submission.exact = exact(2, 1.0)),
        ),
        (ErrorCode::Exact, "holds -1", Box::new(move |submission| submission.exact = exact(1, -1.0))),
        (
            ErrorCode::Pool,
            "did you mean `reports`?",
            Box::new(|submission| submission.pool = Some("report".to_owned())),
        ),
        (
            ErrorCode::Build,
            "build other instead of build",
            Box::new(|submission| submission.build = "other".to_owned()),
        ),
        (ErrorCode::Build, "build not named", Box::new(|submission| submission.build = String::new())),
        (
            ErrorCode::Spec,
            "web server, which is only read",
            Box::new(|submission| submission.output = std::path::Path::new("http://127.0.0.1:9/out").into()),
        ),
        (
            ErrorCode::JobName,
            "did you mean `wordcount`?",
            Box::new(|submission| submission.name = "word-count".to_owned()),
        ),
        (ErrorCode::Key, "not a secret", Box::new(|submission| submission.key = "x".to_owned())),
    ];
    for (code, words, change) in cases {
        let error = scene.submit(change).unwrap_err();
        assert_eq!(error.code, code, "{}", error.message);
        assert!(error.message.contains(words), "{}", error.message);
    }
    assert_eq!(scene.state.jobs.live_count(), 0);
    let job = scene.submit(|submission| submission.pool = Some("reports".to_owned())).unwrap();
    assert_eq!(scene.state.queries().status(scene.now, job).unwrap().pool.as_deref(), Some("reports"));
}

#[test]
fn job_with_a_deadline_gets_an_outlook_when_it_arrives() {
    let mut scene = Scene::new(&[]);
    scene.join();
    let job = scene.submit(|submission| submission.deadline_ns = Some(5_000_000_000)).unwrap();
    let status = scene.state.queries().status(scene.now, job).unwrap();
    let outlook = status.deadline_outlook.unwrap();
    assert_eq!((outlook.feasible, status.deadline_ns), (None, Some(scene.now.0 + 5_000_000_000)));
    assert!(outlook.words.contains("5.0 s"), "{}", outlook.words);
}

#[test]
fn worker_that_is_unlike_the_others_is_refused_with_the_difference() {
    let mut scene = Scene::new(&[]);
    scene.join();
    let pools = Slots::Pools { map: 1, reduce: 1 };
    let refused = scene.try_join(Hello { slots: pools, ..Scene::hello(1) }).unwrap_err();
    assert!(
        refused.contains("map slots and reduce slots") && refused.contains("--divided-slots"),
        "{refused}"
    );
    // The first worker to join does not decide for the others.
    let mut empty = Scene::new(&[]);
    empty.try_join(Hello { slots: pools, ..Scene::hello(1) }).unwrap_err();
    empty.join();
    for (hello, words) in [
        (Hello { slots: Slots::Unified(0), ..Scene::hello(1) }, "no slots"),
        (Hello { speed: 0.0, ..Scene::hello(1) }, "speed 0"),
        (Hello { speed: f64::NAN, ..Scene::hello(1) }, "speed NaN"),
        (Hello { nic_bytes_per_second: Some(0), ..Scene::hello(1) }, "0 bytes"),
        (Hello { build: "other".to_owned(), ..Scene::hello(1) }, "same executable"),
        (Hello { slots: Slots::Unified(u32::MAX), ..Scene::hello(1) }, "4294967295 slots"),
        (Hello { host: harm(10), ..Scene::hello(1) }, "its host's name `"),
        (Hello { host: "x".repeat(300), ..Scene::hello(1) }, "its host's name has 300 bytes"),
    ] {
        let refused = scene.try_join(hello).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
}

/// A text of this length with terminal control sequences.
fn harm(bytes: usize) -> String {
    "\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}\n".repeat(bytes / 16 + 1)
}

fn check_clean(text: &str) {
    assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{text:?}");
    assert!(text.len() < 5000, "{} bytes", text.len());
}

#[test]
fn words_of_a_worker_are_cleaned_and_clipped_when_they_come_in() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|submission| submission.attempts_max = 1).unwrap();
    let report = AttemptReport { counters: vec![(harm(1 << 20), 1)], ..AttemptReport::default() };
    let (attempt, class, message) = (map(job), FailureClass::User, harm(10 << 20));
    scene.deliver(worker, WorkerFrame::AttemptFailed { attempt, class, message, report });
    let status = scene.state.queries().status(scene.now, job).unwrap();
    assert_eq!(status.incidents.len(), 1);
    check_clean(&status.incidents[0]);
    check_clean(&status.failure.unwrap().detail.unwrap());
    let AttemptEnd::Failed(_, words) = scene.record(attempt).end else { panic!("it failed") };
    check_clean(&words);
}

#[test]
fn names_of_counters_are_cleaned_and_clipped() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|_| {}).unwrap();
    let counters = vec![(harm(1 << 20), 1), ("lines".to_owned(), 2)];
    let report = AttemptReport { bytes_out: 10, counters, ..AttemptReport::default() };
    let fingerprint = Fingerprint::default();
    scene.deliver(worker, WorkerFrame::MapFinished { attempt: map(job), fingerprint, report });
    let counters = scene.state.queries().status(scene.now, job).unwrap().counters;
    assert_eq!((counters.len(), counters["lines"]), (2, 2));
    counters.keys().for_each(|name| check_clean(name));
    assert!(counters.keys().all(|name| name.len() < 300));
}

#[test]
fn counters_of_too_many_names_are_left_out_and_that_is_said_once() {
    let mut scene = Scene::new(&[]);
    let worker = scene.join();
    let job = scene.submit(|_| {}).unwrap();
    let counters: Vec<(String, u64)> = (0..5000).map(|number| (format!("{number:05}"), 1)).collect();
    let fingerprint = Fingerprint::default();
    let report = |from: usize| AttemptReport {
        bytes_out: 10,
        counters: counters[from..].to_vec(),
        ..AttemptReport::default()
    };
    scene.deliver(worker, WorkerFrame::MapFinished { attempt: map(job), fingerprint, report: report(0) });
    let status = |scene: &Scene| scene.state.queries().status(scene.now, job).unwrap();
    let kept = status(&scene);
    assert_eq!((kept.counters.len(), kept.counters["00000"], kept.counters["00999"]), (1000, 1, 1));
    let said =
        |status: &JobStatus| status.incidents.iter().filter(|text| text.contains("1000 names")).count();
    assert_eq!(said(&kept), 1);
    let trace = scene.state.queries().trace(scene.now, job).unwrap();
    assert!(trace.attempts.iter().all(|it| it.report.as_ref().is_none_or(|it| it.counters.len() <= 1000)));
    let job = scene.state.jobs.get_mut(job).unwrap();
    for from in [0, 500, 4000] {
        job.records.reduced(map(JobId(1)), Time(2), report(from), 0);
        job.report_left_out_counters(Time(2));
    }
    let kept = scene.state.queries().status(scene.now, JobId(1)).unwrap();
    assert_eq!((kept.counters.len(), kept.counters["00000"], kept.counters["00999"]), (1000, 2, 3));
    assert_eq!(said(&kept), 1);
}

#[test]
fn submission_with_names_that_are_too_long_or_unclean_is_refused() {
    let mut scene = Scene::new(&[]);
    scene.join();
    let long = || "x".repeat(10 << 20);
    let host = |host: String| Some(Endpoint { host, port: 1, pin: None });
    let changes: [Submitted<'_>; 9] = [
        ("the label has 10485760 bytes", &|it| it.label = Some(long())),
        ("the label `", &|it| it.label = Some(harm(10))),
        ("the pool has 10485760 bytes", &|it| it.pool = Some(long())),
        ("the pool `", &|it| it.pool = Some(harm(10))),
        ("the name of the job has 10485760 bytes", &|it| it.name = long()),
        ("the submitter's host `", &|it| it.submitter = host(harm(10))),
        ("10485760 bytes of parameters", &|it| it.parameters = long()),
        ("1000 remarks", &|it| it.remarks = vec![String::new(); 1000]),
        ("10485760 bytes of names of columns", &|it| it.columns = Some(vec![long()])),
    ];
    for (words, change) in changes {
        let refused = scene.submit(change).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Name);
        assert!(refused.message.contains(words), "{}", refused.message);
        check_clean(&refused.message);
    }
    let job = scene.submit(|it| it.remarks = vec![harm(1 << 20)]).unwrap();
    check_clean(&scene.state.queries().status(scene.now, job).unwrap().remarks[0]);
}

#[test]
fn long_word_about_a_failure_is_clipped() {
    let (mut scene, worker, job) = with_reduce_running();
    let (class, report) = (FailureClass::User, AttemptReport::default());
    let message = "x".repeat(1 << 20);
    scene.deliver(worker, WorkerFrame::AttemptFailed { attempt: reduce(job, 0), class, message, report });
    let AttemptEnd::Failed(_, words) = scene.record(reduce(job, 0)).end else { panic!("it ended well") };
    assert!((1000..10_000).contains(&words.len()), "{} bytes", words.len());
    let incidents = scene.state.queries().status(scene.now, job).unwrap().incidents;
    assert!(incidents.iter().all(|incident| incident.len() < 10_000));
}
