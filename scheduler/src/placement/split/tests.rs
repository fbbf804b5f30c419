//! Tests of splits as placements: their rates, and the queues of workers.

use super::*;
use crate::event::Slots;
use crate::placement::catalogue::place;
use crate::placement::g_m_1::ArrivalProcess;
use crate::sim::cluster::{self, Config, Observer, TaskRun};
use crate::station::PerStation;
use crate::workload::Job;
use proptest::prelude::*;

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

fn servers(mu: &[f64]) -> Vec<Server> {
    mu.iter().map(|&mu| Server::exponential(mu)).collect()
}

/// Builds workers of which half serve 0.8 tasks per second, half 1.
fn halves(count: usize) -> Vec<Server> {
    servers(&(0..count).map(|i| if i < count / 2 { 0.8 } else { 1.0 }).collect::<Vec<f64>>())
}

/// Checks rates and mean sojourn time.
fn check(text: &str, mu: &[f64], lambda: f64, rates: &[f64], mean: f64) {
    let placed = place(text, &servers(mu), lambda).unwrap();
    all_near(&placed.rates, rates, 1e-12);
    near(placed.mean, mean, 1e-12);
}

fn level(text: &str, mu: &[f64], lambda: f64) -> f64 {
    place(text, &servers(mu), lambda).unwrap().level.unwrap()
}

const FOUR: [f64; 4] = [1.0, 0.9, 0.8, 0.7];

#[test]
fn worked_four_types() {
    check("fair-split:d=3.5", &FOUR, 2.0, &[0.5; 4], 9.33460581030469);
    let det = [0.588235294117647, 0.529411764705882, 0.470588235294118, 0.411764705882353];
    check("pure-deterministic:d=3.5", &FOUR, 2.0, &det, 8.1720446928209);
    check("pure-stochastic:d=3.5", &FOUR, 2.0, &[0.65, 0.55, 0.45, 0.35], 7.99441535150509);
    check("pure-stochastic:d=3.5,rates=raw", &FOUR, 2.0, &[0.65, 0.55, 0.45, 0.35], 7.99441535150509);
    let mep = [0.629733725474849, 0.542320834220167, 0.456222147354345, 0.37172329295064];
    check("m-ep:d=3.5", &FOUR, 2.0, &mep, 8.00796577870185);
    check("m-ep:d=3.5,rates=raw", &FOUR, 2.0, &mep, 8.00796577870185);
    near(level("m-ep:d=3.5", &FOUR, 2.0), 4.90482711121749, 1e-12);
    let dmep = [0.664488395075122, 0.556894380767409, 0.446634646301346, 0.331982577856123];
    check("dm-ep:d=3.5", &FOUR, 2.0, &dmep, 8.01590400785478);
    near(level("dm-ep:d=3.5", &FOUR, 2.0), 12.3835163719802, 1e-12);
}

#[test]
fn worked_four_types_d0() {
    check("fair-split", &FOUR, 2.0, &[0.5; 4], 7.08766233766234);
    let det = [0.588235294117647, 0.529411764705882, 0.470588235294118, 0.411764705882353];
    check("pure-deterministic", &FOUR, 2.0, &det, 6.11322116340913);
    for text in ["pure-stochastic", "pure-stochastic:rates=raw", "m-ep", "m-ep:rates=raw", "dm-ep", "optimal"]
    {
        check(text, &FOUR, 2.0, &[0.65, 0.55, 0.45, 0.35], 5.95238095238095);
    }
    near(level("m-ep", &FOUR, 2.0), 2.85714285714286, 1e-12);
    near(level("dm-ep", &FOUR, 2.0), 8.16326530612244, 1e-12);
}

#[test]
fn worked_negative() {
    let mu = [1.0, 0.9, 0.3, 0.2];
    let fair = place("fair-split:d=1", &servers(&mu), 1.0).unwrap();
    assert_eq!(fair.rates, [0.25; 4]);
    assert_eq!(fair.mean, f64::INFINITY, "the slowest worker serves only 0.2 tasks/s");
    assert_eq!(fair.means[3], f64::INFINITY);
    assert!(fair.means[..3].iter().all(|mean| mean.is_finite()));
    let det = [0.416666666666667, 0.375, 0.125, 0.0833333333333333];
    check("pure-deterministic:d=1", &mu, 1.0, &det, 11.5049443038165);
    check("pure-stochastic:d=1,rates=raw", &mu, 1.0, &[0.65, 0.55, -0.05, -0.15], 6.11316200740192);
    check("pure-stochastic:d=1", &mu, 1.0, &[0.55, 0.45, 0.0, 0.0], 7.22126762271309);
    let raw = [0.598269520950349, 0.504300031506925, -0.0177848247489197, -0.0847847277083553];
    check("m-ep:d=1,rates=raw", &mu, 1.0, &raw, 6.26703528682195);
    check("m-ep:d=1", &mu, 1.0, &[0.545829337412175, 0.454170662587824, 0.0, 0.0], 7.22145359901391);
    let raw = [0.684414960118881, 0.582654202595458, -0.060200996164847, -0.206868166549492];
    check("dm-ep:d=1,rates=raw", &mu, 1.0, &raw, 6.27616218949922);
    near(level("dm-ep:d=1,rates=raw", &mu, 1.0), 11.040773835777, 1e-12);
}

/// Checks `alpha = mu (1 - r)` and the rates.
fn check_g_m_1(arrivals: &str, rates: &[f64], alpha: f64, r: &[f64], mean: f64) {
    let text = format!("g-m-1:arrivals={arrivals}");
    let placed = place(&text, &servers(&FOUR), 2.0).unwrap();
    all_near(&placed.rates, rates, 1e-9);
    near(placed.level.unwrap(), alpha, 1e-9);
    let computed: Vec<f64> = FOUR.iter().map(|mu| 1.0 - placed.level.unwrap() / mu).collect();
    all_near(&computed, r, 1e-9);
    near(placed.mean, mean, 1e-9);
}

#[test]
fn worked_gm1_d() {
    let rates = [0.666967220974396, 0.559159010013261, 0.44735046628588, 0.326523302726462];
    let r = [0.417627826636304, 0.352919807373671, 0.27203478329538, 0.168039752337577];
    check_g_m_1("d", &rates, 0.582372173363696, &r, 3.57732293646571);
}

#[test]
fn worked_gm1_e2() {
    let rates = [0.654763593052443, 0.552323184656708, 0.448953627919534, 0.343959594371316];
    let r = [0.560716877809473, 0.511907642010525, 0.450896097261841, 0.372452682584961];
    check_g_m_1("E2", &rates, 0.439283122190527, &r, 4.74257541001028);
}

#[test]
fn worked_gm1_m() {
    let rates = [0.65, 0.55, 0.45, 0.35];
    check_g_m_1("m", &rates, 0.35, &[0.65, 0.611111111111111, 0.5625, 0.5], 5.95238095238095);
    check_g_m_1("e1", &rates, 0.35, &[0.65, 0.611111111111111, 0.5625, 0.5], 5.95238095238095);
    check_g_m_1("h2:1", &rates, 0.35, &[0.65, 0.611111111111111, 0.5625, 0.5], 5.95238095238095);
}

#[test]
fn worked_mg1() {
    let variances = [0.5, 2.0, 1.0];
    let mu = [1.0, 0.9, 0.8];
    let servers: Vec<Server> = mu
        .iter()
        .zip(variances)
        .map(|(&mu, variance)| Server { mu, offset: 0.0, variability: variance * mu * mu })
        .collect();
    let placed = place("m-ep:model=m-g-1", &servers, 1.5).unwrap();
    all_near(&placed.rates, &[0.652174133283863, 0.423756863499723, 0.424069003216414], 1e-12);
    near(placed.level.unwrap(), 2.40625136531919, 1e-12);
}

#[test]
fn worked_gg1() {
    let mu = [1.0, 0.9, 0.8];
    let servers: Vec<Server> = mu
        .iter()
        .zip([0.5, 2.0, 1.0])
        .map(|(&mu, variability)| Server { mu, offset: 0.0, variability })
        .collect();
    let placed = place("m-ep:model=g-g-1,ca2=1.5", &servers, 1.5).unwrap();
    all_near(&placed.rates, &[0.656044697107176, 0.432171601909987, 0.411783700982838], 1e-12);
    near(placed.level.unwrap(), 2.90735450679066, 1e-12);
    assert!(
        place("m-ep:model=g-g-1,ca2=0,cs2=0", &servers, 1.5).is_err(),
        "then any split takes equally long"
    );
}

#[test]
fn equation_43_as_printed_is_no_inverse_of_equation_44() {
    let (ca2, cs2, mu, lambda) = (1.5, 0.5, 0.8, 0.3);
    let printed = lambda * (ca2 + cs2) / (2.0 * (mu - lambda)) + 1.0 / mu;
    let kingman = lambda * (ca2 + cs2) / (2.0 * mu * (mu - lambda)) + 1.0 / mu;
    // Equation 44, term by term.
    let rate = |alpha: f64| mu / (1.0 + (ca2 + cs2) / mu / (2.0 * alpha - 2.0 / mu));
    near(rate(kingman), lambda, 1e-14);
    assert!(0.01 < (rate(printed) - lambda).abs());
}

/// Rows of the reference: D, workers, lambda, mean, rates of slow and fast workers.
const OPTIMA: [[f64; 6]; 18] = [
    [0.0, 40.0, 2.0, 5.07477481803137, 0.0, 0.1],
    [0.0, 40.0, 10.0, 6.58237390605596, 0.150000004206717, 0.349999995793283],
    [0.0, 40.0, 30.0, 28.5236202595758, 0.649999999284091, 0.850000000715909],
    [0.0, 120.0, 2.0, 6.2316607461298, 0.0, 0.0333333333333333],
    [0.0, 120.0, 10.0, 6.58193272598735, 0.0, 0.166666666666667],
    [0.0, 120.0, 30.0, 8.25979736515907, 0.150000005978163, 0.349999994021837],
    [0.0, 200.0, 2.0, 6.81126988681312, 0.0, 0.02],
    [0.0, 200.0, 10.0, 6.98900976807078, 0.0, 0.1],
    [0.0, 200.0, 30.0, 7.83737459749526, 0.0500000038457351, 0.249999996154265],
    [100.0, 40.0, 2.0, 10.5968978263061, 0.039546073058374, 0.060453926941626],
    [100.0, 40.0, 10.0, 34.3668143050328, 0.215943609501386, 0.284056390498614],
    [100.0, 40.0, 30.0, 111.770882736389, 0.654763184813401, 0.845236815186599],
    [100.0, 120.0, 2.0, 7.93574569458716, 0.00894851353896081, 0.0243848197943725],
    [100.0, 120.0, 10.0, 15.838879901193, 0.0677703694662407, 0.0988962972004259],
    [100.0, 120.0, 30.0, 36.0402473718042, 0.214508552757588, 0.285491447242412],
    [100.0, 200.0, 2.0, 7.72069971399719, 0.00254692590488975, 0.0174530740951102],
    [100.0, 200.0, 10.0, 12.4756132363156, 0.0378320012280963, 0.0621679987719037],
    [100.0, 200.0, 30.0, 24.5073949171689, 0.125941237794952, 0.174058762205048],
];

#[test]
fn worked_optimum() {
    for [delay, count, lambda, mean, low, high] in OPTIMA {
        let count = count as usize;
        let placed = place(&format!("optimal:d={delay}"), &halves(count), lambda).unwrap();
        near(placed.mean, mean, 1e-8);
        near(placed.rates[0], low, 1e-4);
        near(placed.rates[count - 1], high, 1e-4);
    }
}

#[test]
fn the_numerical_optimum_is_water_filling_where_nothing_is_delayed() {
    for (count, lambda) in [(40, 2.0), (40, 30.0), (120, 10.0)] {
        let servers = halves(count);
        let setting = QueueSetting::new(&servers, lambda, 0.0).unwrap();
        let even = vec![lambda / count as f64; count];
        let least = crate::queueing::least_sojourn(&setting, &even).unwrap();
        let filled = place("optimal", &servers, lambda).unwrap();
        near(least.mean, filled.mean, 1e-9);
        assert!(least.gap <= 1e-9 * least.mean, "gap {}", least.gap);
    }
}

/// Service rates and offsets of workers, lambda and D, where steps alternated at the rounding error of the mean.
type Flat = (&'static [(f64, f64)], f64, f64);

#[test]
fn the_optimum_is_found_also_where_means_are_equal_but_for_rounding() {
    let cases: [Flat; 3] = [
        (
            &[
                (1.38070667, 0.11841929),
                (2.87563094, 1.11380857),
                (2.71361388, 0.0),
                (2.97696878, 0.0),
                (2.88731443, 3.40910389),
            ],
            4.05587454,
            18.95353711,
        ),
        (
            &[
                (1.3299038, 1.55311553),
                (2.89058158, 0.0),
                (1.3586627, 0.0),
                (2.84519358, 2.67240385),
                (2.00569345, 1.03600673),
            ],
            1.15956382,
            19.29126287,
        ),
        (&[(2.57052004, 4.24330988), (2.85045426, 0.0), (1.18371029, 0.0)], 0.88836775, 17.73506893),
    ];
    for (workers, lambda, delay) in cases {
        let server = |&(mu, offset): &(f64, f64)| Server { mu, offset, variability: 1.0 };
        let servers: Vec<Server> = workers.iter().map(server).collect();
        let setting = QueueSetting::new(&servers, lambda, delay).unwrap();
        let even = vec![lambda / servers.len() as f64; servers.len()];
        let least = crate::queueing::least_sojourn(&setting, &even).unwrap();
        assert!(least.gap <= 1e-10 * least.mean, "gap {:e} of {}", least.gap, least.mean);
    }
}

fn any_servers(most: usize) -> impl Strategy<Value = Vec<Server>> {
    let server = (0.05_f64..3.0, prop_oneof![Just(0.0), 0.0_f64..5.0], 0.0_f64..4.0);
    prop::collection::vec(server, 1..=most).prop_map(|servers| {
        servers.into_iter().map(|(mu, offset, variability)| Server { mu, offset, variability }).collect()
    })
}

const CALLS: [&str; 13] = [
    "fair-split",
    "pure-deterministic",
    "pure-stochastic",
    "pure-stochastic:rates=raw",
    "g-m-1:arrivals=d",
    "g-m-1:arrivals=e3",
    "g-m-1:arrivals=h2:7",
    "m-ep:d=5",
    "m-ep:d=5,rates=raw",
    "m-ep:model=m-g-1",
    "m-ep:model=g-g-1,ca2=0.3",
    "dm-ep:d=5",
    "dm-ep:d=5,rates=raw",
];

proptest! {
    // Each case computes optima, so there are few; the cheap properties need no more.
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn every_split_gives_away_what_arrives(servers in any_servers(30), load in 0.01_f64..0.999) {
        let capacity: f64 = servers.iter().map(|server| server.mu).sum();
        for text in CALLS {
            let placed = place(text, &servers, load * capacity).unwrap();
            let given: f64 = placed.rates.iter().sum();
            prop_assert!((given - load * capacity).abs() < 1e-11 * capacity, "{text}: {given}");
            prop_assert!(text.ends_with("raw") || placed.rates.iter().all(|rate| 0.0 <= *rate), "{text}");
            prop_assert!(!placed.mean.is_nan() && placed.bounds.lower <= placed.mean * (1.0 + 1e-10), "{text}");
        }
    }

    #[test]
    fn arrivals_of_a_law_have_the_transform_that_algorithm_1_asks_for(
        mu in 0.1_f64..10.0, part in 0.01_f64..0.99, stages in 1_u32..20, variability in 1.0_f64..50.0
    ) {
        let alpha = part * mu;
        let r = 1.0 - part;
        for arrivals in [
            ArrivalProcess::Exponential,
            ArrivalProcess::Constant,
            ArrivalProcess::Erlang { stages },
            ArrivalProcess::Hyperexponential { variability },
        ] {
            let rate = arrivals.rate(alpha, mu);
            let transform = match arrivals {
                ArrivalProcess::Exponential => rate / (rate + alpha),
                ArrivalProcess::Constant => (-alpha / rate).exp(),
                ArrivalProcess::Erlang { stages } => {
                    let stage = f64::from(stages) * rate;
                    (stage / (stage + alpha)).powi(stages as i32)
                }
                ArrivalProcess::Hyperexponential { variability } => {
                    let p = 0.5 * (1.0 + ((variability - 1.0) / (variability + 1.0)).sqrt());
                    let part = |p: f64| p * 2.0 * p * rate / (2.0 * p * rate + alpha);
                    part(p) + part(1.0 - p)
                }
            };
            prop_assert!((transform - r).abs() < 1e-10, "{arrivals:?}: {transform} {r}");
        }
    }

    #[test]
    fn no_split_beats_the_optimum(servers in any_servers(5), load in 0.05_f64..0.95, delay in 0.0_f64..20.0) {
        let capacity: f64 = servers.iter().map(|server| server.mu).sum();
        let lambda = load * capacity;
        let setting = QueueSetting::new(&servers, lambda, delay).unwrap();
        let best = place(&format!("optimal:d={delay}"), &servers, lambda).unwrap();
        let least = crate::queueing::least_sojourn(&setting, &best.rates).unwrap();
        prop_assert!(least.gap <= 1e-8 * best.mean, "gap {} of {}", least.gap, best.mean);
        for name in ["fair-split", "pure-deterministic", "pure-stochastic", "m-ep", "dm-ep"] {
            let other = place(&format!("{name}:d={delay}"), &servers, lambda).unwrap();
            prop_assert!(best.mean <= other.mean * (1.0 + 1e-9), "{name}: {} < {}", other.mean, best.mean);
        }
    }

    #[test]
    fn rounding_keeps_the_total_and_goes_at_most_one_astray(
        parts in prop::collection::vec(0.0_f64..1.0, 1..40), maps in 1_usize..200
    ) {
        prop_assume!(0.0 < parts.iter().sum::<f64>());
        let total: f64 = parts.iter().sum();
        let wishes: Vec<f64> = parts.iter().map(|part| part / total * maps as f64).collect();
        let counts = round(&wishes, maps);
        prop_assert_eq!(counts.iter().sum::<usize>(), maps);
        prop_assert!(wishes.iter().zip(&counts).all(|(wish, count)| (wish - *count as f64).abs() <= 1.0 + 1e-9));
    }
}

#[test]
fn every_split_and_placement_can_be_made_by_its_name_and_has_its_row_in_the_table() {
    let table = include_str!("../../../POLICIES.md");
    for entry in crate::placement::catalogue::catalogue() {
        assert_eq!(crate::placement::by_name(entry.name).unwrap().name(), entry.name);
        assert!(table.contains(&format!("| `{}` |", entry.name)), "no row for {}", entry.name);
    }
}

#[test]
fn bad_calls_are_refused_with_what_there_is() {
    let error = |text: &str| place(text, &servers(&[1.0]), 0.5).unwrap_err().to_string();
    assert!(error("m-epp").contains("did you mean `m-ep`?"));
    assert!(error("m-ep:model=x").contains("one of dtd, m-g-1, g-g-1"));
    assert!(error("m-ep:d=-1").contains("a time of at least 0 s"));
    assert!(error("g-m-1:arrivals=x").contains("m, d, e2"));
    assert!(error("g-m-1:arrivals=e0").contains("m, d, e2"));
    assert!(error("g-m-1:arrivals=h2:0.5").contains("m, d, e2"));
    assert!(error("pull").contains("there is no placement that splits `pull`"));
    let refused = place("m-ep", &servers(&[1.0, 1.0]), 2.5).unwrap_err().to_string();
    assert_eq!(
        refused,
        "`lambda` is 2.5 tasks/s, but all workers together serve only 2 tasks/s: it must be less"
    );
}

/// Returns the number of tasks that each worker of these speeds ran; jobs of 10 maps of 1 s each arrive at this rate.
fn tasks_by_worker(placement: &str, speeds: &[f64], jobs: u32, jobs_per_second: f64) -> Vec<u32> {
    struct Counts(Vec<u32>);
    impl Observer for Counts {
        fn task(&mut self, run: &TaskRun) {
            self.0[run.worker as usize] += 1;
        }
    }
    let mut config = Config::uniform(speeds.len() as u32, Slots::Unified(1));
    for (worker, speed) in config.workers.iter_mut().zip(speeds) {
        worker.speed = *speed;
    }
    let job = |i: u32| Job {
        arrival: f64::from(i) / jobs_per_second,
        work: PerStation::new(10.0, 0.0, 0.0),
        maps: vec![1.0; 10],
        ..Job::default()
    };
    let mut counts = Counts(vec![0; speeds.len()]);
    let (policy, placement) =
        (crate::policy::by_name("fifo").unwrap(), crate::placement::by_name(placement).unwrap());
    let summary = cluster::run(
        &config,
        cluster::Deciders { policy, placement, estimator: None },
        (0..jobs).map(job),
        &mut counts,
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(summary.jobs, u64::from(jobs));
    counts.0
}

#[test]
fn dealing_gives_every_worker_its_part_of_all_maps_over_many_small_jobs() {
    assert_eq!(tasks_by_worker("fair-split", &[1.0, 1.0, 2.0, 2.0], 40, 0.2), [100; 4]);
    // Speeds are measured over several assignments, so slow workers get slightly more than a sixth each, and never
    // less.
    let counts = tasks_by_worker("pure-deterministic", &[1.0, 1.0, 2.0, 2.0], 400, 0.2);
    assert_eq!(counts.iter().sum::<u32>(), 4000);
    for (slow, fast) in [(counts[0], counts[2]), (counts[1], counts[3])] {
        assert!((667..740).contains(&slow) && (1260..=1334).contains(&fast), "{counts:?}");
    }
}

#[test]
fn a_split_that_gives_slow_workers_nothing_leaves_them_idle() {
    // One task each 5 s, and one fast worker that can serve two each second.
    let counts = tasks_by_worker("pure-stochastic", &[0.2, 2.0], 200, 0.02);
    assert!(counts[0] <= 100, "{counts:?}: more than while it was learnt");
    assert_eq!(counts[0] + counts[1], 2000);
}
