//! Tests of sojourn times and rates against closed forms, inclusion and exclusion, and numbers of the thesis.

use super::quadrature::integrate;
use super::sizing::{Law, Spend, WorkerPrice, best_count, best_mix, curve, fork_join};
use super::*;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Checks the relative difference, or the absolute one below 1.
fn near(computed: f64, expected: f64, tolerance: f64) {
    let off = (computed - expected).abs();
    assert!(off <= tolerance * expected.abs().max(1.0), "computed {computed}, expected {expected}");
}

fn all_near(computed: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(computed.len(), expected.len());
    for (computed, expected) in computed.iter().zip(expected) {
        near(*computed, *expected, tolerance);
    }
}

fn exponentials(rates: &[f64]) -> Vec<Dtd> {
    rates.iter().map(|&a| Dtd { a, b: 0.0, offset: 0.0 }).collect()
}

fn harmonic(count: u32) -> f64 {
    (1..=count).map(|i| 1.0 / f64::from(i)).sum()
}

/// Equation 10: the sum over all subsets.
fn inclusion_exclusion(rates: &[f64]) -> f64 {
    (1_u32..1 << rates.len())
        .map(|subset| {
            let total: f64 = (0..rates.len()).filter(|i| subset >> i & 1 == 1).map(|i| rates[i]).sum();
            if subset.count_ones() % 2 == 1 { 1.0 / total } else { -1.0 / total }
        })
        .sum()
}

#[test]
fn quadrature_is_exact_for_polynomials_of_degree_22() {
    for power in 0..=22 {
        let mut weights = 0.0;
        let value = integrate(&|x: f64| x.powi(power), 0.0, 2.0, 1e300, &mut |point| weights += point.weight);
        near(value, 2_f64.powi(power + 1) / f64::from(power + 1), 1e-14);
        near(weights, 2.0, 1e-14);
    }
}

#[test]
fn quadrature_halves_panels_where_a_function_bends() {
    let value = integrate(&|x: f64| (-100.0 * x).exp(), 0.0, 1.0, 1e-15, &mut |_| {});
    near(value * 100.0, 1.0, 1e-12);
}

#[test]
fn worked_dtd_exp() {
    let dtd = Dtd::new(0.01, 0.0, 0.0).unwrap();
    let xs = [0.0, 10.0, 100.0, 300.0];
    let cdf = [0.0, 0.0951625819640404, 0.632120558828558, 0.950212931632136];
    let pdf = [0.01, 0.00904837418035959, 0.00367879441171442, 0.00049787068367864];
    all_near(&xs.map(|x| dtd.cdf(x)), &cdf, 1e-12);
    all_near(&xs.map(|x| dtd.pdf(x)), &pdf, 1e-12);
    near(dtd.mean(), 100.0, 1e-12);
}

#[test]
fn worked_dtd_mix() {
    let dtd = Dtd::new(0.4, 1.2, 2.0).unwrap();
    let xs = [1.5, 2.0, 2.5, 4.0, 10.0];
    let cdf = [0.0, 0.0, 0.496694596808933, 0.879768321866812, 0.997081453302118];
    let pdf = [0.0, 1.6, 0.60396648382928, 0.0961853425065507, 0.00155655823887059];
    all_near(&xs.map(|x| dtd.cdf(x)), &cdf, 1e-12);
    all_near(&xs.map(|x| dtd.pdf(x)), &pdf, 1e-12);
    near(dtd.mean(), 2.91401907551089, 1e-12);
}

#[test]
fn worked_dtd_pareto() {
    let dtd = Dtd::new(0.0, 2.5, 1.0).unwrap();
    let xs = [1.0, 2.0, 11.0, 101.0];
    let cdf = [0.0, 0.823223304703363, 0.997508170705969, 0.999990245689734];
    let pdf = [2.5, 0.220970869120796, 0.000566324839552524, 2.41443323409855e-07];
    all_near(&xs.map(|x| dtd.cdf(x)), &cdf, 1e-12);
    all_near(&xs.map(|x| dtd.pdf(x)), &pdf, 1e-12);
    near(dtd.mean(), 1.66666666666667, 1e-12);
}

#[test]
fn a_mean_is_infinite_where_the_tail_is_too_heavy() {
    assert_eq!(Dtd::new(0.0, 1.0, 0.0).unwrap().mean(), f64::INFINITY);
    assert_eq!(mean_sojourn(&[Dtd { a: 0.0, b: 1.0, offset: 0.0 }]), Ok(f64::INFINITY));
}

proptest! {
    #[test]
    fn a_mean_is_the_integral_of_the_survival_function(a in 0.001_f64..3.0, b in 0.0_f64..4.0) {
        let dtd = Dtd::new(a, b, 0.5).unwrap();
        let mut sum = 0.0;
        for panel in 0..400 {
            let low = 0.02 * f64::from(panel) * f64::from(panel);
            let high = 0.02 * f64::from(panel + 1) * f64::from(panel + 1);
            sum += integrate(&|x| 1.0 - dtd.cdf(0.5 + x), low, high, 1e-12, &mut |_| {});
        }
        let rest = dtd.excess(3200.0);
        prop_assert!((0.5 + sum + rest - dtd.mean()).abs() < 1e-8 * dtd.mean());
    }

    #[test]
    fn a_quantile_is_the_inverse_of_the_distribution(
        a in prop_oneof![Just(0.0), 1e-6_f64..10.0], b in prop_oneof![Just(0.0), 1e-6_f64..10.0], p in 0.0_f64..0.9999
    ) {
        prop_assume!(0.0 < a + b);
        let dtd = Dtd::new(a, b, 2.0).unwrap();
        let t = dtd.quantile(p);
        prop_assume!(t.is_finite());
        prop_assert!((dtd.cdf(t) - p).abs() < 1e-9, "{t} {}", dtd.cdf(t));
    }

    #[test]
    fn the_largest_of_a_few_is_that_of_inclusion_and_exclusion(
        rates in prop::collection::vec(0.001_f64..1000.0, 1..=10)
    ) {
        let expected = inclusion_exclusion(&rates);
        let computed = mean_sojourn(&exponentials(&rates)).unwrap();
        prop_assert!((computed - expected).abs() < 1e-10 * expected, "{computed} {expected}");
    }

    #[test]
    fn two_shifted_exponentials_have_a_closed_form(
        r in 1e-3_f64..1e3, s in 1e-3_f64..1e3, first in 0.0_f64..100.0, later in 0.0_f64..100.0
    ) {
        // From the later offset on: `S + S' - S S'`.
        let (low, high) = (Dtd { a: r, b: 0.0, offset: first }, Dtd { a: s, b: 0.0, offset: first + later });
        let survival = (-r * later).exp();
        let expected = first + later + survival / r + 1.0 / s - survival / (r + s);
        let computed = mean_sojourn(&[high, low]).unwrap();
        prop_assert!((computed - expected).abs() < 1e-11 * expected, "{computed} {expected}");
    }

    #[test]
    fn two_paretos_have_a_closed_form(b in 1.001_f64..20.0) {
        let pareto = Dtd { a: 0.0, b, offset: 0.0 };
        let expected = 2.0 / (b - 1.0) - 1.0 / (2.0 * b - 1.0);
        let computed = mean_sojourn(&[pareto, pareto]).unwrap();
        prop_assert!((computed - expected).abs() < 1e-10 * expected, "{computed} {expected}");
    }

    #[test]
    fn the_mean_lies_between_the_bounds_of_lemma_9(
        params in prop::collection::vec((0.01_f64..5.0, 0.0_f64..3.0, 0.0_f64..10.0), 1..40)
    ) {
        let times: Vec<Dtd> = params.into_iter().map(|(a, b, offset)| Dtd { a, b, offset }).collect();
        let means: Vec<f64> = times.iter().map(Dtd::mean).collect();
        let (mean, bounds) = (mean_sojourn(&times).unwrap(), sojourn_bounds(&means));
        prop_assert!(bounds.lower * (1.0 - 1e-10) <= mean && mean <= bounds.upper * (1.0 + 1e-10), "{mean} {bounds:?}");
    }
}

#[test]
fn worked_mst3() {
    near(mean_sojourn(&exponentials(&[0.5, 1.0, 2.0])).unwrap(), 2.38571428571429, 1e-12);
}

#[test]
fn worked_mst200() {
    let rates: Vec<f64> = (0..200).map(|i| 0.1 + 0.9 * f64::from(i) / 199.0).collect();
    near(mean_sojourn(&exponentials(&rates)).unwrap(), 27.8764397164513, 1e-12);
}

#[test]
fn worked_mst_hom() {
    for (count, expected) in [(1, 3.33333333333333), (10, 9.76322751322751), (200, 19.5934364937381)] {
        near(mean_sojourn(&exponentials(&vec![0.3; count])).unwrap(), expected, 1e-12);
    }
}

#[test]
fn worked_mst_dtd_mix() {
    let params = [(0.4, 1.2, 2.0), (0.0, 2.5, 1.0), (0.7, 0.0, 3.0)];
    let times = params.map(|(a, b, offset)| Dtd { a, b, offset });
    near(mean_sojourn(&times).unwrap(), 4.68666755842018, 1e-8);
}

#[test]
fn a_hundred_thousand_equal_workers_take_the_harmonic_number() {
    near(mean_sojourn(&exponentials(&vec![2.0; 100_000])).unwrap(), harmonic(100_000) / 2.0, 1e-11);
}

#[test]
fn drawn_values_have_the_mean_of_their_distribution() {
    let seed = 7;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let dtd = Dtd::new(0.5, 1.5, 1.0).unwrap();
    let draws = 200_000;
    let mean = (0..draws).map(|_| dtd.sample(&mut random)).sum::<f64>() / f64::from(draws);
    assert!((mean - dtd.mean()).abs() < 0.01, "seed {seed}: {mean} {}", dtd.mean());
}

#[test]
fn bad_input_is_refused_with_the_field() {
    let servers = [Server::exponential(1.0), Server::exponential(0.0)];
    let refused = |servers: &[Server], lambda, delay| {
        QueueSetting::new(servers, lambda, delay).unwrap_err().to_string()
    };
    assert_eq!(refused(&[], 1.0, 0.0), "there are 0 workers, not 1 to 1000000");
    assert_eq!(refused(&servers, 1.0, 0.0), "worker 1: `mu` is 0, which is not a finite rate above 0");
    assert_eq!(
        refused(&servers[..1], f64::NAN, 0.0),
        "`lambda` is NaN, which is not a finite number above 0"
    );
    assert_eq!(refused(&servers[..1], 0.5, -1.0), "`D` is -1, which is not a finite time of at least 0 s");
    assert_eq!(
        refused(&servers[..1], 1.0, 0.0),
        "`lambda` is 1 tasks/s, but all workers together serve only 1 tasks/s: it must be less"
    );
    assert!(mean_sojourn(&[Dtd { a: -1.0, b: 0.0, offset: 0.0 }]).is_err());
    assert!(mean_sojourn(&[Dtd { a: 0.0, b: 0.0, offset: 0.0 }]).is_err());
    assert!(mean_sojourn(&[Dtd { a: f64::NAN, b: 0.0, offset: 0.0 }]).is_err());
}

#[test]
fn worked_lemma10() {
    let best = best_count(1.0, 2.0, Law::Lemma10, 1..=1000).unwrap().unwrap();
    assert_eq!(best.count, 8);
    near(best.mean, 3.62380952380952, 1e-12);
}

#[test]
fn equation_46_as_printed_is_zero_beyond_one_worker() {
    for count in 2_u32..20 {
        // `n! / ((n-i)! (i-1)!)` is `i C(n, i)`; the integer sum is exact here.
        let mut binomial = 1_i64;
        let mut total = 0_i64;
        for i in 1..=i64::from(count) {
            binomial = binomial * (i64::from(count) - i + 1) / i;
            total += if i % 2 == 1 { i * binomial } else { -i * binomial };
        }
        assert_eq!(total, 0, "{count} workers");
    }
}

#[test]
fn worked_lemma11_v() {
    let values = fork_join(30);
    let expected = [1.0, 1.375, 1.59413580246914, 2.19660025666873, 2.67042128327822];
    all_near(&[1, 2, 3, 10, 30].map(|n| values[n - 1]), &expected, 1e-12);
}

#[test]
fn worked_lemma11() {
    let points = curve(1.0, 10.0, Law::Lemma11, 11..=300).unwrap();
    let at = |count| points.iter().find(|point| point.count == count).unwrap().mean;
    let expected = [14.5037777371413, 6.10124963132855, 5.20199078997504, 5.26722717713929];
    all_near(&[12, 20, 43, 60].map(at), &expected, 1e-12);
    assert_eq!(best_count(1.0, 10.0, Law::Lemma11, 1..=300).unwrap().unwrap().count, 43);
}

#[test]
fn worked_fig71() {
    let expected = [
        (1.0, 89, 6.10667481639198),
        (0.9, 96, 6.87222953192927),
        (0.8, 106, 7.84600614717045),
        (0.7, 118, 9.12278567217794),
    ];
    for (mu, count, mean) in expected {
        let best = best_count(mu, 10.0, Law::Delayed(3.5), 40..=200).unwrap().unwrap();
        assert_eq!(best.count, count);
        near(best.mean, mean, 1e-12);
    }
}

const MENU: [WorkerPrice; 2] =
    [WorkerPrice { mu: 1.0, price: 400.0 }, WorkerPrice { mu: 1.25, price: 800.0 }];
const BUDGETS: [f64; 14] = [
    2000.0, 4000.0, 6000.0, 8000.0, 10000.0, 12000.0, 14000.0, 16000.0, 18000.0, 20000.0, 25000.0, 30000.0,
    35000.0, 40000.0,
];

fn check_mixes(lambda: f64, spend: Spend, expected: [Option<(u32, u32, f64)>; 14]) {
    for (budget, expected) in BUDGETS.into_iter().zip(expected) {
        let best = best_mix(&MENU, lambda, budget, spend).unwrap();
        assert_eq!(best.is_some(), expected.is_some(), "budget {budget}");
        if let (Some(best), Some((low, high, mean))) = (best, expected) {
            assert_eq!(best.counts, [low, high], "budget {budget}");
            near(best.mean, mean, 1e-12);
        }
    }
}

#[test]
fn worked_budget_spent_exactly() {
    check_mixes(
        1.0,
        Spend::Exactly,
        [
            Some((1, 2, 2.2)),
            Some((0, 5, 2.17460317460317)),
            Some((1, 7, 2.48489795918367)),
            Some((0, 10, 2.54692891649413)),
            Some((1, 12, 2.75611592111592)),
            Some((0, 15, 2.80413717737661)),
            Some((1, 17, 2.96056213682511)),
            Some((0, 20, 2.99811638095307)),
            Some((1, 22, 3.12322562745445)),
            Some((0, 25, 3.15368444442439)),
            None,
            Some((1, 37, 3.47373570822104)),
            None,
            Some((0, 50, 3.65789051896701)),
        ],
    );
    check_mixes(
        5.0,
        Spend::Exactly,
        [
            None,
            Some((10, 0, 5.85793650793651)),
            Some((1, 7, 4.57744360902256)),
            Some((0, 10, 3.90529100529101)),
            Some((1, 12, 3.7583398924308)),
            Some((0, 15, 3.61988617443163)),
            Some((1, 17, 3.64706929898746)),
            Some((0, 20, 3.59773965714368)),
            Some((1, 22, 3.65483850021265)),
            Some((0, 25, 3.63424588357477)),
            None,
            Some((1, 37, 3.80261009479818)),
            None,
            Some((0, 50, 3.91235246811254)),
        ],
    );
    check_mixes(
        25.0,
        Spend::Exactly,
        [
            None,
            None,
            None,
            None,
            None,
            Some((30, 0, 23.9699227855223)),
            Some((35, 0, 14.513734966559)),
            Some((40, 0, 11.4094481038303)),
            Some((45, 0, 9.88863325999047)),
            Some((50, 0, 8.99841067665885)),
            None,
            Some((15, 30, 7.19173327999307)),
            None,
            Some((0, 50, 5.9989404511059)),
        ],
    );
}

#[test]
fn worked_budget_spent_at_most() {
    check_mixes(1.0, Spend::AtMost, [Some((0, 2, 2.0)); 14]);
    let satisfied = Some((0, 18, 3.59496830900192));
    check_mixes(
        5.0,
        Spend::AtMost,
        [
            None,
            Some((10, 0, 5.85793650793651)),
            Some((1, 7, 4.57744360902256)),
            Some((0, 10, 3.90529100529101)),
            Some((0, 12, 3.72385281385281)),
            Some((0, 15, 3.61988617443163)),
            Some((0, 17, 3.59830110060879)),
            satisfied,
            satisfied,
            satisfied,
            satisfied,
            satisfied,
            satisfied,
            satisfied,
        ],
    );
    check_mixes(
        25.0,
        Spend::AtMost,
        [
            None,
            None,
            None,
            None,
            None,
            Some((30, 0, 23.9699227855223)),
            Some((35, 0, 14.513734966559)),
            Some((40, 0, 11.4094481038303)),
            Some((45, 0, 9.88863325999047)),
            Some((50, 0, 8.99841067665885)),
            Some((62, 0, 7.8964421363684)),
            Some((15, 30, 7.19173327999307)),
            Some((1, 43, 6.467224850638)),
            Some((0, 50, 5.9989404511059)),
        ],
    );
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let error = |menu: &[WorkerPrice], lambda, budget| {
        best_mix(menu, lambda, budget, Spend::AtMost).unwrap_err().to_string()
    };
    assert_eq!(error(&[], 1.0, 1.0), "there are 0 workers, not 1 to 1000000");
    assert_eq!(error(&MENU, 0.0, 1.0), "`lambda` is 0, which is not a finite number above 0");
    assert_eq!(error(&MENU, 1.0, f64::INFINITY), "`budget` is inf, which is not a finite number above 0");
    let free = [WorkerPrice { mu: 1.0, price: 0.0 }];
    assert_eq!(error(&free, 1.0, 1.0), "worker 0: `price` is 0, which is not a finite number above 0");
    let many = [WorkerPrice { mu: 1.0, price: 1.0 }; 4];
    assert!(error(&many, 1.0, 1000.0).contains("more than 20000000 ways"));
    assert_eq!(best_count(1.0, 10.0, Law::Lemma10, 1..=10), Ok(None));
    assert!(curve(-1.0, 1.0, Law::Lemma10, 1..=10).is_err());
    assert!(curve(1.0, 1.0, Law::Delayed(-1.0), 1..=10).is_err());
    assert!(curve(1.0, 1.0, Law::Lemma10, 1..=u32::MAX).is_err());
}
