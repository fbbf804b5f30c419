//! Control variates: the cluster simulator predicts the jobs that run, and many other draws of them. What a comparison
//! of few runs measures is then the difference to its predictions, which varies less from draw to draw than the
//! measured numbers.
//!
//! The measured numbers are fitted to their predictions by a line, whose value at the mean prediction of the other draws
//! estimates the mean over all draws (Lavenberg and Welch, 1981). A simulator that predicts little makes the line flat, and
//! the estimate the mean of what was measured.
//! Not here: rules of claims (`judging`).

use crate::prelude::*;
use gristmill_lab::compare::Contender;
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_scheduler::core::CoreConfig;
use gristmill_scheduler::metrics::{JobRecord, student};
use gristmill_scheduler::sim::cluster::{self, Config, Deciders, NetworkConfig, SimWorker};
use gristmill_scheduler::units::Bytes;
use gristmill_scheduler::{estimate, placement, policy};
use gristmill_worker::settings::Shuffle;
use gristmill_worker::shuffle::plan::FetchLimits;
use std::collections::BTreeMap;

/// Probability that an interval misses.
const LEVEL: f64 = 0.05;

/// Distance of the seeds of other draws to those of the draws that run.
const APART: u64 = 10_000;

/// Means over the judged jobs of one draw in the simulator, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct PredictedMeans {
    pub(crate) flow: f64,
    pub(crate) waiting: f64,
    /// From the first launch of a job to the end of its last map.
    pub(crate) maps: f64,
}

/// Draws that are simulated.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedDraws {
    /// Number of draws that run, and of others apart from them.
    pub(super) count: [u32; 2],
    pub(super) first_seed: u64,
    /// Jobs at the start of each draw that are not judged.
    pub(super) skipped: usize,
}

/// Predictions of each contender by its name: of the draws that run, by repetition, and of other draws. Empty where
/// nothing is predicted.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Control(pub(crate) BTreeMap<String, [Vec<PredictedMeans>; 2]>);

impl Control {
    /// Simulates the draws of a comparison and others apart from them, under each contender without divided tasks.
    ///
    /// # Errors
    /// A name that the scheduler does not know, and jobs that the simulator refuses.
    pub(super) fn simulate(
        config: &ClusterConfig,
        contenders: &[Contender],
        draws: SimulatedDraws,
        draw: impl Fn(u64) -> Vec<Job> + Sync,
    ) -> anyhow::Result<Self> {
        let (simulated, [runs, others]) = (simulated(config), draws.count);
        let seeds = |from: u64, count: u32| {
            (0..u64::from(count)).map(move |one| draws.first_seed.wrapping_add(from + one))
        };
        let all: Vec<u64> = seeds(0, runs).chain(seeds(APART, others)).collect();
        let mut control = Self::default();
        for contender in contenders {
            let means = each(&all, |&seed| means(&simulated, config, contender, draw(seed), draws.skipped));
            let mut means = means.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
            let others = means.split_off(runs as usize);
            control.0.insert(contender.name.clone(), [means, others]);
        }
        Ok(control)
    }

    /// Returns the mean over all draws of a difference between two contenders, which `measured` holds by repetition.
    /// `number` gives the same difference for two predictions.
    pub(super) fn adjusted(
        &self,
        names: [&str; 2],
        measured: &[f64],
        number: impl Fn([&PredictedMeans; 2]) -> f64,
    ) -> Interval {
        let [Some(one), Some(other)] = names.map(|name| self.0.get(name)) else { return mean_of(measured) };
        let predicted = |draws: usize| -> Vec<f64> {
            one[draws].iter().zip(&other[draws]).map(|(one, other)| number([one, other])).collect()
        };
        fitted(measured, &predicted(0), &mean_of(&predicted(1))).unwrap_or_else(|| mean_of(measured))
    }
}

/// Fits measured numbers to predicted ones by a line, and returns its value at another prediction. `None` for fewer than four
/// pairs, or if all predictions are equal.
fn fitted(measured: &[f64], predicted: &[f64], at: &Interval) -> Option<Interval> {
    let pairs = measured.len().min(predicted.len());
    if pairs < 4 {
        return None;
    }
    let count = pairs as f64;
    let mean = |numbers: &[f64]| numbers[..pairs].iter().sum::<f64>() / count;
    let (x, y) = (mean(predicted), mean(measured));
    let deviations =
        || predicted.iter().zip(measured).map(|(predicted, measured)| (predicted - x, measured - y));
    let square: f64 = deviations().map(|(x, _)| x * x).sum();
    // Less is rounding.
    if square <= 1e-18 * count * x * x {
        return None;
    }
    let slope = deviations().map(|(x, y)| x * y).sum::<f64>() / square;
    let rest: f64 = deviations().map(|(x, y)| (y - slope * x).powi(2)).sum();
    let freedom = pairs as u64 - 2;
    let error = rest / freedom as f64 * (1.0 / count + (at.mean - x).powi(2) / square);
    let critical = student::critical(LEVEL, freedom);
    let line = Interval {
        mean: y + slope * (at.mean - x),
        half_width: Some(critical * error.sqrt()),
        samples: freedom + 1,
    };
    let at =
        Interval { mean: 0.0, half_width: at.half_width.map(|half_width| (slope * half_width).abs()), ..*at };
    Some(line.minus(&at))
}

fn simulated(config: &ClusterConfig) -> Config {
    let each = &config.workers.each;
    let rate = each.nic_bytes_per_second.map_or(f64::INFINITY, |rate| rate.get() as f64);
    let worker = |host: u32| {
        let speeds = &config.workers.speeds;
        let speed = speeds.get(host as usize % speeds.len().max(1)).copied().unwrap_or(1.0);
        SimWorker { speed, ..SimWorker::new(each.slots, host) }
    };
    let request_bytes = match rate.is_finite() {
        true => FetchLimits::default().paced(rate as u64).request_bytes_max as f64,
        false => f64::INFINITY,
    };
    Config {
        workers: (0..config.workers.count).map(worker).collect(),
        network: NetworkConfig {
            in_rate: rate,
            out_rate: rate,
            own: each.shuffle == Shuffle::Http,
            ..NetworkConfig::default()
        },
        request_bytes,
        core: CoreConfig {
            backups: None,
            dividing: None,
            network: each.nic_bytes_per_second.map(|rate| Bytes(rate.get())),
            ..CoreConfig::default()
        },
        ..Config::uniform(1, each.slots)
    }
}

fn means(
    simulated: &Config,
    config: &ClusterConfig,
    contender: &Contender,
    mut jobs: Vec<Job>,
    skipped: usize,
) -> anyhow::Result<PredictedMeans> {
    jobs.sort_by(|one, other| one.arrival.total_cmp(&other.arrival));
    let count = jobs.len().saturating_sub(skipped).max(1) as f64;
    let deciders = Deciders {
        policy: policy::by_name(&contender.policy)?,
        placement: placement::by_name(&contender.placement)?,
        estimator: Some(estimate::by_name(&config.deciders.estimator)?),
    };
    let mut means = PredictedMeans::default();
    let mut add = |record: &JobRecord| {
        if skipped as u64 <= record.seq {
            means.flow += record.flow() / count;
            means.waiting += (record.start - record.arrival) / count;
            means.maps += (record.maps_done - record.start) / count;
        }
    };
    cluster::run(simulated, deciders, jobs, &mut (), &mut add)?;
    Ok(means)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real::common::{cluster, policies};
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    /// A long job, and a short one that arrives soon after it.
    fn two(seed: u64) -> Vec<Job> {
        let job = |arrival: f64, maps: usize| Job {
            arrival,
            work: PerStation::new(maps as f64, 0.0, 0.0),
            maps: vec![1.0; maps],
            ..Job::default()
        };
        vec![job(0.0, 8 + 2 * (seed as usize % 7)), job(1.5, 2)]
    }

    #[test]
    fn predictions_are_those_of_the_policies_on_each_draw() {
        let contenders = policies(&[("fifo", "fifo"), ("srpt", "max-srpt")]);
        let draws = SimulatedDraws { count: [2, 3], first_seed: 0, skipped: 0 };
        let control = Control::simulate(&cluster(2, 1), &contenders, draws, two).unwrap();
        let flows = |name: &str, part: usize| -> Vec<f64> {
            control.0[name][part].iter().map(|means| means.flow).collect()
        };
        // Eight maps on two slots take 4 s. The short job waits for their end under FIFO, and for the second wave else.
        assert_eq!(flows("fifo", 0), [(4.0 + 3.5) / 2.0, (5.0 + 4.5) / 2.0]);
        assert_eq!(flows("srpt", 0), [(5.0 + 1.5) / 2.0, (6.0 + 1.5) / 2.0]);
        assert_eq!((flows("fifo", 0).len(), flows("fifo", 1).len()), (2, 3));
        let late = SimulatedDraws { skipped: 1, ..draws };
        let late = Control::simulate(&cluster(2, 1), &contenders, late, two).unwrap();
        let seen = PredictedMeans { flow: 3.5, waiting: 2.5, maps: 1.0 };
        assert_eq!(late.0["fifo"][0][0], seen, "the long job is not judged");
    }

    #[test]
    fn adjusted_difference_is_that_of_all_draws_and_not_of_those_that_ran() {
        let means = |flow: f64| PredictedMeans { flow, ..PredictedMeans::default() };
        let ran = [3.0, 5.0, 4.0, 8.0];
        let one = [ran.map(means).to_vec(), (0..100).map(|draw| means(2.0 + f64::from(draw % 2))).collect()];
        let other = [vec![means(0.0); 4], vec![means(0.0); 100]];
        let control = Control([("one".to_owned(), one), ("other".to_owned(), other)].into());
        let less = |[one, other]: [&PredictedMeans; 2]| one.flow - other.flow;
        // Measured differences vary widely, but are the predicted ones and about 1 more.
        let measured = [4.01, 5.99, 5.0, 9.0];
        let found = control.adjusted(["one", "other"], &measured, less);
        assert!((found.mean - 3.5).abs() < 0.02, "{found:?}");
        assert!(
            found.half_width.is_some_and(|half_width| 0.05 < half_width && half_width < 0.2),
            "{found:?}"
        );
        assert!(mean_of(&measured).half_width.is_some_and(|half_width| 2.0 < half_width));
        // A simulator that predicts nothing of the runs widens the interval.
        let blind = control.adjusted(["one", "other"], &[9.0, 3.0, 7.0, 4.0], less);
        assert!(blind.half_width.is_some_and(|half_width| 4.0 < half_width), "{blind:?}");
        assert_eq!(Control::default().adjusted(["one", "other"], &measured, less), mean_of(&measured));
    }

    #[test]
    fn fit_misses_the_truth_in_about_one_of_twenty_cases() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut normal = || -> f64 { Distribution::<f64>::sample(&StandardNormal, &mut random) };
        let misses = |slope: f64, normal: &mut dyn FnMut() -> f64| {
            let misses = (0..2000).filter(|_| {
                let predicted: Vec<f64> = (0..6).map(|_| normal()).collect();
                let measured: Vec<f64> =
                    predicted.iter().map(|one| 1.0 + slope * one + 0.5 * normal()).collect();
                let others: Vec<f64> = (0..200).map(|_| normal()).collect();
                let found = fitted(&measured, &predicted, &mean_of(&others)).unwrap();
                found.half_width.unwrap() < (found.mean - 1.0).abs()
            });
            misses.count()
        };
        for slope in [0.0, 0.7, 1.0] {
            let misses = misses(slope, &mut normal);
            assert!((60..=140).contains(&misses), "{misses} of 2000 with slope {slope}");
        }
    }
}
