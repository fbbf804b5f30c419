//! Options and workloads that are refused before the first run.

mod false_verdicts;

use super::rounds::same_output;
use super::testing::{contender, job, run as made};
use super::workload::JobKind;
use super::*;
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::cluster::WorkerProcesses;
use gristmill_runtime::deciders::DeciderNames;
use gristmill_scheduler::units::Bytes;
use gristmill_worker::http::JoinLine;
use gristmill_worker::protocol::Slots;
use gristmill_worker::settings::WorkerSettings;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

fn options(policies: &[&str]) -> Options {
    Options {
        contenders: policies.iter().map(|policy| contender(policy)).collect(),
        against: None,
        repetitions: 2,
        site: Site::Given(given()),
        directory: PathBuf::from("nowhere"),
        resume: false,
        warm_up: false,
        at_once: NonZeroU32::MIN,
        others_max: None,
        calibrate: false,
        isolated: false,
        sync: false,
        run_limit: Duration::from_secs(60),
    }
}

/// Returns a master that is never called.
fn given() -> JoinLine {
    JoinLine {
        endpoint: gristmill_worker::http::Endpoint { host: "127.0.0.1".to_owned(), port: 1, pin: None },
        token: "admin@0:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".parse().unwrap(),
        plaintext: gristmill_worker::http::Plaintext::OnLoopback,
    }
}

fn refused(kinds: Vec<JobKind>, options: &Options) -> String {
    let workload = Workload::batch("w", kinds);
    check(&Registry::standard(), &workload, options).unwrap_err().to_string()
}

fn sleeper() -> Vec<JobKind> {
    vec![JobKind::new("synthetic", &["--maps", "2"])]
}

#[test]
fn mistakes_are_told_before_anything_starts() {
    let fine = options(&["fifo", "fair"]);
    check(&Registry::standard(), &Workload::batch("w", sleeper()), &fine).unwrap();
    assert!(refused(sleeper(), &options(&["fifo", "fiar"])).contains("did you mean `fair`?"));
    assert!(refused(sleeper(), &options(&["fifo", "srpt"])).contains("can only be simulated"));
    assert!(refused(sleeper(), &options(&["fifo", "fifo"])).contains("`fifo` is there twice"));
    assert!(refused(sleeper(), &options(&[])).contains("no policy"));
    let against = |policies, name: &str| Options { against: Some(name.to_owned()), ..options(policies) };
    check(&Registry::standard(), &Workload::batch("w", sleeper()), &against(&["fifo", "fair"], "fifo"))
        .unwrap();
    let unknown = refused(sleeper(), &against(&["fifo", "fair"], "max-srpt"));
    assert!(unknown.contains("`max-srpt`, which is not compared: name one of fifo, fair"), "{unknown}");
    assert!(refused(sleeper(), &against(&["fifo"], "fifo")).contains("`fifo` is alone"));
    assert!(refused(sleeper(), &Options { repetitions: 0, ..options(&["fifo"]) }).contains("0 repetitions"));
    let at_once = Options { at_once: NonZeroU32::MIN.saturating_add(1), ..options(&["fifo"]) };
    assert!(refused(sleeper(), &at_once).contains("clusters of their own, not a given one"));
    let unknown = refused(vec![JobKind::new("wordcuont", &[])], &fine);
    assert!(unknown.contains("did you mean `wordcount`?"), "{unknown}");
    let arguments = refused(vec![JobKind::new("synthetic", &["--mapps", "2"])], &fine);
    assert!(arguments.contains("`synthetic`") && arguments.contains("--mapps"), "{arguments}");
    assert!(refused(Vec::new(), &fine).contains("no jobs"));
}

#[test]
fn cluster_of_other_pool_weights_is_another_setting() {
    let cluster = |weight: f64| ClusterConfig {
        workers: WorkerProcesses {
            count: 1,
            each: WorkerSettings::new(Slots::Unified(1), Bytes::mib(1)),
            speeds: Vec::new(),
            spill_dirs: Vec::new(),
        },
        deciders: DeciderNames {
            policy: "fair".to_owned(),
            placement: "pull".to_owned(),
            estimator: "history".to_owned(),
        },
        pools: BTreeMap::from([("night".to_owned(), weight)]),
        journal: None,
        backups: false,
        divides: false,
    };
    let directory = tempfile::tempdir().unwrap();
    let workload = Workload::batch("w", sleeper());
    let opened = |weight: f64| {
        let options = Options { site: Site::Embedded(cluster(weight)), ..options(&["fair"]) };
        ComparisonStore::open(&directory.path().join("out"), &prepare::setting(&workload, &options), true)
    };
    opened(1.0).unwrap();
    opened(1.0).unwrap();
    let words = opened(3.0).unwrap_err().to_string();
    assert!(words.contains("cluster.pool_weights.night was 1.0 there and is 3.0 now"), "{words}");
}

#[test]
fn other_bytes_of_the_same_job_are_an_error_within_a_repetition() {
    let first = made("fifo", 0, vec![job(0, 0.0, 1.0), job(1, 0.0, 1.0)]);
    let mut second = made("fair", 0, vec![job(0, 0.0, 2.0), job(1, 0.0, 2.0)]);
    same_output(std::slice::from_ref(&first), &second).unwrap();
    second.jobs[1].output.digest += 1;
    let words = same_output(std::slice::from_ref(&first), &second).unwrap_err().to_string();
    assert_eq!(words, "job 1 (made) gave other output under fair than under fifo in repetition 1");
    second.repetition = 1;
    same_output(&[first], &second).unwrap();
}
