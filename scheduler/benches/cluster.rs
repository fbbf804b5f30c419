//! Cost of the cluster simulator: large clusters and many tasks, and the core with many waiting jobs.
//!
//! `cargo bench -p gristmill-scheduler --bench cluster`; arguments choose settings by their name. Not here: the
//! other simulators.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a measurement reads clocks and prints"
)]

use gristmill_scheduler::estimate;
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::placement::{self, Placement, Pull};
use gristmill_scheduler::policy;
use gristmill_scheduler::sim::cluster::{Config, Deciders, NetworkConfig, run};
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::Job;
use std::time::Instant;

/// One setting.
struct ClusterSetting {
    name: &'static str,
    workers: u32,
    slots: u32,
    jobs: u32,
    maps: u32,
    reduces: u32,
    /// Bytes per second and worker.
    network: f64,
    /// Seconds between arrivals.
    apart: f64,
    placement: &'static str,
    estimator: Option<&'static str>,
    policies: &'static [&'static str],
}

/// Returns the length of a task, 5 to 15 s, the same at each run.
fn length(index: u32) -> f64 {
    5.0 + f64::from(index.wrapping_mul(2_654_435_761) >> 16) / 6553.6
}

fn jobs(setting: &ClusterSetting) -> impl Iterator<Item = Job> {
    let (count, maps, reduces, apart) = (setting.jobs, setting.maps, setting.reduces, setting.apart);
    (0..count).map(move |job| Job {
        arrival: f64::from(job) * apart,
        deadline: Some(f64::from(job) * apart + 1e5),
        maps: (0..maps).map(|map| length(job * 7919 + map)).collect(),
        reduces: (0..reduces).map(|reduce| length(job * 104_729 + reduce)).collect(),
        shuffle_bytes: f64::from(maps) * 8e6,
        weight: 1.0,
        ..Job::default()
    })
}

fn place(name: &str) -> Box<dyn Placement> {
    if name == "pull" {
        Box::new(Pull::new())
    } else {
        placement::by_name(name).expect("a placement of the catalogue")
    }
}

/// Returns the processor seconds of this thread, where the system reports them: other programs may use
/// the machine meanwhile.
fn on_cpu() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

fn measure(setting: &ClusterSetting) {
    for name in setting.policies {
        let mut config = Config::uniform(setting.workers, Slots::Unified(setting.slots));
        config.network =
            NetworkConfig { in_rate: setting.network, out_rate: setting.network, ..NetworkConfig::default() };
        let policy = policy::by_name(name).expect("a policy of the catalogue");
        let start = (Instant::now(), on_cpu());
        let estimator =
            setting.estimator.map(|name| estimate::by_name(name).expect("an estimator of the catalogue"));
        let placement = place(setting.placement);
        let summary =
            run(&config, Deciders { policy, placement, estimator }, jobs(setting), &mut (), &mut |_| {})
                .expect("the simulation ends");
        let seconds =
            on_cpu().zip(start.1).map_or(start.0.elapsed().as_secs_f64(), |(end, start)| end - start);
        println!(
            "{:10} {:12} {:10} {:8.2} {:9} {:9} {:9} {:8.0} {:7.0} {:4.2} {:4.2}",
            setting.name,
            name,
            setting.placement,
            seconds,
            summary.tasks,
            summary.segments,
            summary.instants,
            seconds * 1e9 / summary.instants as f64,
            summary.end,
            summary.utilisation[Station::Map],
            summary.utilisation[Station::Shuffle],
        );
    }
}

fn settings() -> [ClusterSetting; 6] {
    let base = ClusterSetting {
        name: "million",
        workers: 1_000,
        slots: 16,
        jobs: 100,
        maps: 9_990,
        reduces: 10,
        network: 125e6,
        apart: 6.0,
        placement: "pull",
        estimator: None,
        policies: &["fifo", "fair"],
    };
    [
        ClusterSetting { name: "instant", network: f64::INFINITY, ..base },
        ClusterSetting { name: "push", network: f64::INFINITY, placement: "fair-split", ..base },
        ClusterSetting {
            name: "tenmillion",
            workers: 10_000,
            jobs: 1_000,
            apart: 0.6,
            policies: &["fifo"],
            ..base
        },
        // All arrive at once and wait, which shows the cost of an instant of the core.
        ClusterSetting {
            name: "waiting",
            workers: 20,
            slots: 4,
            jobs: 1_000,
            maps: 100,
            reduces: 1,
            network: f64::INFINITY,
            apart: 0.0,
            estimator: Some("oracle"),
            policies: &[
                "fifo",
                "fair",
                "lrpt",
                "asrpt",
                "max-srpt",
                "split-srpt",
                "k-lps",
                "makespan",
                "couple",
                "min-scheduler",
                "max-scheduler",
                "gristmill",
            ],
            ..base
        },
        ClusterSetting {
            name: "dealt",
            workers: 20,
            slots: 4,
            jobs: 1_000,
            maps: 100,
            reduces: 1,
            network: f64::INFINITY,
            apart: 0.0,
            placement: "fair-split",
            ..base
        },
        base,
    ]
}

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    println!(
        "setting    policy       placement   seconds     tasks  segments  instants  ns/inst     end  map  net"
    );
    for setting in settings() {
        if wanted.iter().any(|name| name == setting.name) || wanted.is_empty() && setting.name != "tenmillion"
        {
            measure(&setting);
        }
    }
}
