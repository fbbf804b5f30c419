//! Constants of Theorems 2 and 3, from equations 8 to 11, for a setting with bounded work.

use crate::workload::asrpt::{AsrptSetting, MACHINES, RATE, Units};

/// Number of values of epsilon, and of steps of a search, that are tried.
const EPSILONS: u32 = 1000;
const STEPS: u32 = 100;

/// Returns the constants of Theorem 2 (preemptive) and Theorem 3; `None` if the work of a reduce has no bound.
pub(super) fn constants(setting: &AsrptSetting) -> Option<[f64; 2]> {
    let Units::Uniform(_, reduces_max) = setting.reduces else { return None };
    let machines = f64::from(MACHINES);
    let room = machines - RATE * (setting.maps.mean() + setting.reduces.mean());
    let best = |bound: fn(f64, f64) -> f64| {
        let of_epsilon = |step: u32| {
            let epsilon = room * f64::from(step) / f64::from(EPSILONS);
            let first = 1.0 + ((machines - 1.0) * reduces_max as f64 / epsilon).ceil();
            bound(first, rate(setting, machines - epsilon).exp())
        };
        (1..EPSILONS).map(of_epsilon).fold(f64::INFINITY, f64::min)
    };
    // Equations 8 and 9, with `e` for the exponential of the rate function.
    let first = best(|start, e| start + (2.0 * e - 1.0) / (e * (e - 1.0).powi(2)));
    let second = best(|start, e| start.powi(2) + (4.0 * e * e - 3.0 * e + 1.0) / (e * (e - 1.0).powi(3)));
    let none = (-RATE).exp();
    let least =
        2.0_f64.max((1.0 - none) / RATE).max(none / RATE) * 1.0_f64.max(1.0 / (machines * (1.0 - none)));
    let preemptive = second + first.powi(2);
    Some([preemptive / least, (preemptive + first * (setting.reduces.mean() - 1.0)) / least])
}

/// Equation 10: the rate function of the work that arrives in a slot, a Poisson number of jobs.
fn rate(setting: &AsrptSetting, work: f64) -> f64 {
    let exponent = |theta: f64| {
        theta * work - RATE * (growth(setting.maps, theta) * growth(setting.reduces, theta) - 1.0)
    };
    // The exponent is concave, 0 at 0, and negative long before 1 for jobs of several units.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..STEPS {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if exponent(left) < exponent(right) { low = left } else { high = right }
    }
    exponent(low).max(0.0)
}

/// Returns the mean of the exponential of `theta` times the units; infinite where they are not bounded.
fn growth(units: Units, theta: f64) -> f64 {
    match units {
        Units::Exponential(_) => f64::INFINITY,
        Units::Uniform(least, most) => {
            (least..=most).map(|units| (theta * units as f64).exp()).sum::<f64>() / (most - least + 1) as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::asrpt::SETTINGS;

    #[test]
    fn work_without_a_bound_has_no_constants() {
        assert_eq!(constants(&SETTINGS[0]), None);
    }

    #[test]
    fn rate_function_is_0_at_the_mean_and_that_of_poisson_for_jobs_of_two_units() {
        let setting =
            &AsrptSetting { maps: Units::Uniform(1, 1), reduces: Units::Uniform(1, 1), ..SETTINGS[3] };
        assert!(rate(setting, 2.0 * RATE) < 1e-12);
        // Two units for each of `n` jobs: n log(n / 2) - n + 2.
        let jobs = 5.0_f64;
        let known = jobs * (jobs / RATE).ln() - jobs + RATE;
        assert!(
            (rate(setting, 2.0 * jobs) - known).abs() < 1e-9,
            "{} and {known}",
            rate(setting, 2.0 * jobs)
        );
    }

    #[test]
    fn sums_of_equations_8_and_9_are_those_of_equation_11() {
        let e = 1.3_f64;
        let sum = |power: i32| (2..2000).map(|k| f64::from(k).powi(power) * e.powi(-k)).sum::<f64>();
        assert!((sum(1) - (2.0 * e - 1.0) / (e * (e - 1.0).powi(2))).abs() < 1e-9);
        assert!((sum(2) - (4.0 * e * e - 3.0 * e + 1.0) / (e * (e - 1.0).powi(3))).abs() < 1e-9);
    }
}
