//! Efficiency ratios of the ASRPT paper's workloads against those of another program.

use super::asrpt::{AsrptArrivals, AsrptCut, MACHINES, SETTINGS};
use gristmill_scheduler::policy;
use gristmill_scheduler::sim::slotted::{Config, lower_bound, run};
use gristmill_scheduler::workload::{Generator as _, Job};

fn flow(name: &str, preemptive: bool, machines: u32, jobs: &[Job]) -> f64 {
    let mut policy = policy::by_name(name).unwrap();
    let config = Config::for_policy(&*policy, machines, preemptive);
    let mut flow = 0.0;
    run(&mut *policy, &config, jobs, &mut |record| flow += record.flow(), &mut |_, _| {}).unwrap();
    flow
}

/// Checks mean efficiency ratios of a few seeds in the four settings, in the order of `SETTINGS`. The reference values
/// are means of 30 seeds of an independent implementation, with the half widths of their 95 % intervals.
fn check_ratios(cut: AsrptCut, preemptive: bool, references: &[(&str, [[f64; 2]; 4])]) {
    const SEEDS: u64 = 3;
    for (index, setting) in SETTINGS.into_iter().enumerate() {
        let jobs = |seed| AsrptArrivals::new(setting, cut).jobs(seed).collect::<Vec<Job>>();
        let seeds: Vec<(Vec<Job>, f64)> = (1..=SEEDS)
            .map(|seed| (jobs(seed), lower_bound::total_flow(MACHINES, &jobs(seed)).unwrap()))
            .collect();
        for &(name, references) in references {
            let ratios = seeds.iter().map(|(jobs, bound)| flow(name, preemptive, MACHINES, jobs) / bound);
            let mean = ratios.sum::<f64>() / SEEDS as f64;
            // A half width is about two standard errors of 30 seeds, so this is over four standard errors of this many
            // seeds.
            let [reference, half] = references[index];
            let width = 2.2 * half * (30.0 / SEEDS as f64).sqrt();
            let what = format!("{name} {} {}", setting.name, cut.name());
            assert!(
                (mean - reference).abs() <= width,
                "{what}: {mean} against {reference} ± {width}, seeds 1 to 3"
            );
        }
    }
}

#[test]
fn asrpt_mc_ratio_preemptive() {
    check_ratios(
        AsrptCut::Even,
        true,
        &[
            ("dsrpt", [[1.48, 0.029], [1.889, 0.032], [1.42, 0.029], [1.568, 0.03]]),
            ("asrpt", [[1.452, 0.027], [1.53, 0.025], [1.388, 0.028], [1.404, 0.025]]),
            ("fifo", [[2.9, 0.102], [2.149, 0.056], [2.13, 0.042], [1.524, 0.01]]),
            ("fair", [[2.523, 0.109], [2.424, 0.077], [2.256, 0.029], [2.111, 0.026]]),
            ("lrpt", [[6.535, 0.89], [7.292, 0.897], [3.237, 0.207], [3.587, 0.212]]),
        ],
    );
}

#[test]
fn asrpt_mc_ratio_non_preemptive_even() {
    check_ratios(
        AsrptCut::Even,
        false,
        &[
            ("asrpt", [[6.402, 0.286], [3.289, 0.105], [5.623, 0.327], [2.865, 0.119]]),
            ("fifo", [[6.704, 0.233], [3.732, 0.065], [5.73, 0.309], [2.966, 0.106]]),
            ("fair", [[6.889, 0.215], [3.801, 0.055], [6.051, 0.263], [3.317, 0.079]]),
            ("lrpt", [[8.716, 0.448], [8.126, 0.843], [6.379, 0.188], [4.471, 0.077]]),
        ],
    );
}

#[test]
fn asrpt_mc_ratio_non_preemptive_random() {
    check_ratios(
        AsrptCut::Random,
        false,
        &[
            ("asrpt", [[10.272, 0.462], [4.42, 0.14], [8.603, 0.384], [3.729, 0.139]]),
            ("fifo", [[10.484, 0.417], [4.806, 0.089], [8.705, 0.369], [3.824, 0.129]]),
            ("fair", [[10.438, 0.424], [4.819, 0.082], [8.76, 0.355], [4.137, 0.113]]),
            ("lrpt", [[11.725, 0.396], [8.217, 0.445], [9.165, 0.29], [5.193, 0.051]]),
        ],
    );
}

#[test]
fn asrpt_mc_ratio_non_preemptive_ten() {
    check_ratios(
        AsrptCut::Ten,
        false,
        &[
            ("asrpt", [[3.067, 0.072], [2.05, 0.057], [2.603, 0.116], [1.717, 0.049]]),
            ("fifo", [[3.525, 0.042], [2.551, 0.043], [2.796, 0.095], [1.858, 0.032]]),
            ("fair", [[3.869, 0.058], [2.701, 0.07], [3.352, 0.065], [2.313, 0.015]]),
            ("lrpt", [[6.157, 0.637], [7.096, 1.068], [3.907, 0.09], [3.951, 0.201]]),
        ],
    );
}
