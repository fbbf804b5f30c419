//! Cost of the pairs paper's expensive rules: a minimum-weight perfect matching of all waiting jobs, and
//! an arrival among 10,000 waiting jobs under the two online rules.
//!
//! Prints milliseconds: median and largest of the runs. The deadlines are a matching of 1,000 jobs in under 10 s and an
//! arrival in under 1 ms. `cargo bench -p gristmill-scheduler --bench pairs`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a measurement reads clocks and prints"
)]

use gristmill_scheduler::job::Size;
use gristmill_scheduler::policy::pairs::{OnlineGroups, Pairs, Rule, Schedule, matched};
use gristmill_scheduler::sim::fluid;
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::Job;
use gristmill_scheduler::workload::pairs::Sizes;
use std::time::Instant;

const WAITING: usize = 10_000;
const ARRIVALS: usize = 200;
const RUNS: u64 = 5;

fn milliseconds(run: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    run();
    begin.elapsed().as_secs_f64() * 1e3
}

fn print(what: &str, sizes: Sizes, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let (median, largest) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{what:<40} {:<14} {median:>12.4} ms {largest:>12.4} ms", sizes.name());
}

/// Measures arrivals among waiting jobs, one by one. No draw causes a reschedule.
fn arrivals(sizes: Sizes, mut arrive: impl FnMut(u64, Size)) -> Vec<f64> {
    let jobs = sizes.draw(WAITING + ARRIVALS, 10.0, 1);
    let (before, come) = jobs.split_at(WAITING);
    for (id, &size) in (0..).zip(before) {
        arrive(id, size);
    }
    (WAITING as u64..).zip(come).map(|(id, &size)| milliseconds(|| arrive(id, size))).collect()
}

/// Returns the mean cost of an arrival including all work of the policy and the fluid simulator, while
/// one long job holds the map.
fn through_the_simulator(sizes: Sizes, rule: Rule) -> f64 {
    let size = Size { map: 1e9, shuffle: 1.0 };
    let late = (1..).zip(sizes.draw(WAITING, 10.0, 1));
    let jobs: Vec<Job> = std::iter::once((0, size))
        .chain(late)
        .map(|(at, size)| Job {
            arrival: f64::from(at),
            work: PerStation::new(size.map, size.shuffle, 0.0),
            ..Job::default()
        })
        .collect();
    let mut ended = 0;
    let all = milliseconds(|| {
        fluid::run(&mut Pairs::new(rule), jobs, &mut |_| ended += 1).expect("sizes are finite");
    });
    assert_eq!(ended, WAITING + 1);
    all / WAITING as f64
}

fn main() {
    println!("{:<40} {:<14} {:>15} {:>15}", "", "sizes", "median", "largest");
    for count in [100, 200, 500, 1_000] {
        for sizes in [Sizes::Uniform, Sizes::StrongPairs, Sizes::Google] {
            let once = |seed| {
                let jobs = sizes.draw(count, 10.0, seed);
                milliseconds(|| assert_eq!(matched(&jobs, 0.5).concat().len(), count))
            };
            print(&format!("match {count} jobs"), sizes, (1..=RUNS).map(once).collect());
        }
    }
    for sizes in [Sizes::Uniform, Sizes::Google] {
        let mut groups = OnlineGroups::new(0.5, 20);
        let times = arrivals(sizes, |id, size| {
            groups.arrive(id, size, 0.999);
        });
        print("o-group: arrival among 10,000", sizes, times);
        let mut schedule = Schedule::new(0.5);
        let times = arrivals(sizes, |id, size| {
            schedule.arrive(id, size, 0.999);
        });
        print("o-match: arrival among 10,000", sizes, times);
        for rule in [
            Rule::OnlineGroup { alpha: 0.5, k: 20, seed: 1 },
            Rule::OnlineMatch { alpha: 0.5, seed: 1 },
            Rule::Couple { delta: 0.1 },
        ] {
            let mean = through_the_simulator(sizes, rule);
            print(&format!("{}: mean, up to 10,000, simulated", rule.name()), sizes, vec![mean]);
        }
    }
}
