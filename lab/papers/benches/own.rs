//! Our own policy compared with those of the papers, on the cluster simulator with estimated sizes. Reports
//! mean flow times with paired intervals, the slowest jobs, and the contribution of each of its rules.
//!
//! `cargo bench -p gristmill-papers --bench own`; arguments: names of settings, `seeds=20`,
//! `jobs=100`, `estimator=linear`, and `rivals=all` for every policy that can run live. The same
//! arguments produce the same tables.

#![allow(clippy::disallowed_macros, clippy::print_stdout, reason = "tables go to standard output")]

use gristmill_papers::workload;
use gristmill_scheduler::event::Slots;
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::sim::cluster::{Config, Deciders, NetworkConfig, SimWorker, alone, run};
use gristmill_scheduler::station::Station;
use gristmill_scheduler::workload::Job;
use gristmill_scheduler::{catalogue, estimate, policy};

/// Policies of the papers that are best somewhere, or are the alternatives without ours.
const RIVALS: &[&str] = &["fair", "max-srpt", "split-srpt", "asrpt", "asrpt:preemptive=yes"];

/// Our own policy without preemption, then with one rule removed or changed, and last complete.
const VARIANTS: &[&str] = &[
    "gristmill:preemptive=no",
    "gristmill:preemptive=no,pilot=no",
    "gristmill:preemptive=no,aging=no",
    "gristmill:preemptive=no,reduces=no",
    "gristmill:preemptive=no,stretch=1",
    "gristmill:preemptive=no,stretch=2",
    "gristmill",
];

/// Bytes of a request, as of live workers.
const REQUEST_BYTES: f64 = 4e6;

/// Work of the overlap paper's unit job, in seconds of the whole cluster, and the length of its tasks in seconds.
const OVERLAP_UNIT: f64 = 5.0;
const OVERLAP_TASK: f64 = 2.0;

/// Workload on a cluster.
#[derive(Clone, Copy)]
struct OwnSetting {
    name: &'static str,
    workload: &'static str,
    loads: &'static [f64],
    workers: u32,
    slots: Slots,
    /// True if every second worker has half the speed.
    half: bool,
    /// Bytes per second and worker.
    network: f64,
}

impl OwnSetting {
    fn config(&self) -> Config {
        let mut config = Config::uniform(self.workers, self.slots);
        let worker = |host: u32| {
            let speed = if self.half && host % 2 == 1 { 0.5 } else { 1.0 };
            SimWorker { speed, ..SimWorker::new(self.slots, host) }
        };
        config.workers = (0..self.workers).map(worker).collect();
        config.network =
            NetworkConfig { in_rate: self.network, out_rate: self.network, ..NetworkConfig::default() };
        config.request_bytes = REQUEST_BYTES;
        config
    }

    /// Returns the jobs of this seed at this load of all slots.
    fn jobs(&self, load: f64, seed: u64, count: usize) -> Vec<Job> {
        let slots = match self.slots {
            Slots::Unified(slots) => slots,
            Slots::Pools { map, reduce } => map + reduce,
        };
        let speed: f64 = self.config().workers.iter().map(|worker| worker.speed).sum();
        let slots = speed * f64::from(slots);
        let network = self.network.min(1e12) * f64::from(self.workers);
        let text = match self.workload {
            mix if mix.starts_with("mix") => {
                format!("{mix},load={load},slots={slots},network={network},jobs={count}")
            }
            "overlap" => format!("overlap:load={load},jobs={count}"),
            other => other.to_owned(),
        };
        let generator =
            catalogue::call(&workload::catalogue(), "workload", &text).expect("a workload of the catalogue");
        let jobs = generator.jobs(seed);
        if self.workload == "overlap" {
            jobs.map(|job| in_tasks(&job, slots, network)).collect()
        } else {
            jobs.collect()
        }
    }
}

/// Cuts a job of map and shuffle into tasks. Its reduces only fetch.
fn in_tasks(job: &Job, slots: f64, network: f64) -> Job {
    let work = OVERLAP_UNIT * slots * job.work[Station::Map];
    let maps = (work / OVERLAP_TASK).ceil().max(1.0);
    Job {
        arrival: OVERLAP_UNIT * job.arrival,
        maps: vec![work / maps; maps as usize],
        reduces: vec![0.0; (maps / 4.0).ceil().min(8.0) as usize],
        shuffle_bytes: OVERLAP_UNIT * job.work[Station::Shuffle] * network,
        input_bytes: 64e6 * maps,
        ..Job::default()
    }
}

/// Returns flow times by order of arrival.
fn flows(config: &Config, policy: &str, estimator: &str, jobs: &[Job]) -> Vec<f64> {
    let mut flows = vec![0.0; jobs.len()];
    let policy = policy::by_name(policy).expect("a policy of the catalogue");
    let estimator = Some(estimate::by_name(estimator).expect("an estimator of the catalogue"));
    let jobs = jobs.iter().cloned();
    run(config, Deciders { estimator, ..Deciders::of(policy) }, jobs, &mut (), &mut |record| {
        flows[record.seq as usize] = record.flow();
    })
    .expect("the simulation ends");
    flows
}

/// Results of one policy: mean flow time by seed, and the slowdown that 99 % of all jobs do not exceed.
struct Measured {
    means: Vec<f64>,
    slowest: f64,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Runs all policies on the same jobs. Slowdown is relative to the same job alone on the same cluster.
fn measure(setting: &OwnSetting, load: f64, given: &Given, policies: &[String]) -> Vec<Measured> {
    let config = setting.config();
    let sets: Vec<Vec<Job>> = (1..=given.seeds).map(|seed| setting.jobs(load, seed, given.jobs)).collect();
    let alone = |jobs: &Vec<Job>| alone(&config, jobs.iter().cloned()).expect("the simulation ends");
    let alone: Vec<Vec<f64>> = sets.iter().map(alone).collect();
    let one = |policy: &String| {
        let (mut means, mut slowdowns) = (Vec::new(), Vec::new());
        for (jobs, alone) in sets.iter().zip(&alone) {
            let flows = flows(&config, policy, &given.estimator, jobs);
            means.push(mean(&flows));
            slowdowns.extend(flows.iter().zip(alone).map(|(flow, alone)| flow / alone));
        }
        slowdowns.sort_by(f64::total_cmp);
        Measured { means, slowest: slowdowns[slowdowns.len() * 99 / 100] }
    };
    policies.iter().map(one).collect()
}

/// Arguments of the benchmark.
struct Given {
    seeds: u64,
    jobs: usize,
    estimator: String,
    rivals: Vec<String>,
    settings: Vec<String>,
}

fn given() -> Given {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let value = |name: &str, default: &str| {
        let found = words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or(default).to_owned()
    };
    let rivals = match value("rivals", "").as_str() {
        "all" => policy::catalogue()
            .into_iter()
            .filter(|entry| entry.only_simulated.is_none() && entry.name != "gristmill")
            .map(|entry| entry.name.to_owned())
            .chain(["asrpt:preemptive=yes", "lrpt:preemptive=yes"].map(str::to_owned))
            .collect(),
        _ => RIVALS.iter().map(|&name| name.to_owned()).collect(),
    };
    Given {
        seeds: value("seeds", "20").parse().expect("a number of seeds"),
        jobs: value("jobs", "100").parse().expect("a number of jobs"),
        estimator: value("estimator", "linear"),
        rivals,
        settings: words.into_iter().filter(|word| !word.contains('=')).collect(),
    }
}

/// Returns the ratio of two policies' mean flow times with its 95 % interval over seeds, paired.
fn ratio(of: &Measured, to: &Measured) -> Interval {
    let ratios: Vec<f64> = of.means.iter().zip(&to.means).map(|(of, to)| of / to).collect();
    Interval::of(&ratios).expect("there is a seed")
}

fn settings() -> Vec<OwnSetting> {
    const LOADS: &[f64] = &[0.5, 0.7, 0.9];
    let base = OwnSetting {
        name: "laptop",
        workload: "mix:kind=laptop",
        loads: LOADS,
        workers: 4,
        slots: Slots::Unified(2),
        half: false,
        network: 100e6,
    };
    let wide = OwnSetting { workers: 8, ..base };
    let shuffle = OwnSetting { name: "shuffle", workload: "mix:kind=shuffle-heavy", network: 30e6, ..base };
    let machines = OwnSetting {
        name: "asrpt",
        workload: "asrpt:slots=60",
        loads: &[0.9],
        workers: 10,
        slots: Slots::Unified(10),
        network: f64::INFINITY,
        ..base
    };
    vec![
        base,
        OwnSetting { name: "laptop-half", half: true, ..base },
        OwnSetting { name: "laptop-2", workers: 2, slots: Slots::Unified(1), ..base },
        OwnSetting { name: "laptop-pools", slots: Slots::Pools { map: 2, reduce: 1 }, ..base },
        OwnSetting { name: "maps-16", workload: "mix:kind=map-heavy", ..wide },
        shuffle,
        OwnSetting { name: "shuffle-half", half: true, network: 15e6, workers: 8, ..shuffle },
        OwnSetting { name: "heavy", workload: "mix:kind=heavy-tailed", network: 60e6, ..wide },
        OwnSetting { name: "overlap", workload: "overlap", slots: Slots::Unified(4), network: 50e6, ..base },
        machines,
        OwnSetting { name: "asrpt-small", workload: "asrpt:slots=60,setting=exp-small", ..machines },
        OwnSetting {
            name: "deadlines",
            workload: "deadlines",
            loads: &[0.0],
            workers: 60,
            slots: Slots::Unified(1),
            ..machines
        },
    ]
}

fn main() {
    let given = given();
    let policies: Vec<String> =
        given.rivals.iter().cloned().chain(VARIANTS.iter().map(|&name| name.to_owned())).collect();
    let fair = policies.iter().position(|name| name == "fair").expect("fair is among the rivals");
    let first = given.rivals.len();
    println!("{} seeds, estimator {}; slowdown: 99th percentile over fair's", given.seeds, given.estimator);
    println!(
        "setting       load  best rival             flow   preemptive=no / rival  slowdown  gristmill / rival  slowdown"
    );
    // For each variant the sums of the logarithms of its ratios to the best rival, and the number of
    // settings.
    let mut sums = vec![(0.0, 0.0, 0_u32); VARIANTS.len()];
    let mut wins = vec![0_u32; given.rivals.len()];
    for setting in settings() {
        if !given.settings.is_empty() && !given.settings.iter().any(|name| name == setting.name) {
            continue;
        }
        for &load in setting.loads {
            let outcomes = measure(&setting, load, &given, &policies);
            let best = (0..first)
                .min_by(|&a, &b| mean(&outcomes[a].means).total_cmp(&mean(&outcomes[b].means)))
                .expect("there is a rival");
            wins[best] += 1;
            let show = |place: usize| {
                let ratio = ratio(&outcomes[place], &outcomes[best]);
                let slower = outcomes[place].slowest / outcomes[fair].slowest;
                format!("{:6.3} ± {:.3}      {:5.2}", ratio.mean, ratio.half_width.unwrap_or(0.0), slower)
            };
            let flow = mean(&outcomes[best].means);
            let (kept, whole) = (show(first), show(policies.len() - 1));
            println!(
                "{:13} {load:4.1}  {:20} {flow:7.2}      {kept}      {whole}",
                setting.name, policies[best]
            );
            for (variant, sum) in sums.iter_mut().enumerate() {
                let outcome = &outcomes[first + variant];
                sum.0 += (mean(&outcome.means) / flow).ln();
                sum.1 += (outcome.slowest / outcomes[fair].slowest).ln();
                sum.2 += 1;
            }
        }
    }
    println!("\nbest rival, by number of settings:");
    for (name, wins) in given.rivals.iter().zip(wins).filter(|(_, wins)| 0 < *wins) {
        println!("{name:24} {wins}");
    }
    println!("\nvariant                            flow / best rival   slowdown / fair   (geometric means)");
    for (name, (flow, slowest, count)) in VARIANTS.iter().zip(sums) {
        let count = f64::from(count.max(1));
        println!("{name:35} {:12.3} {:17.3}", (flow / count).exp(), (slowest / count).exp());
    }
}
