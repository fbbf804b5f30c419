//! Lemmas 1, 2 and 7, decided by computed tails and mean sojourn times.
//!
//! Lemma 1 is tried on Poisson arrivals, whose waiting times follow from a linear integral equation.

use super::WORDS;
use crate::prelude::*;
use gristmill_scheduler::queueing::Dtd;

/// Relative difference of tails that counts as none, far out.
const NEAR: f64 = 0.05;

/// Steps of the integral equation.
const STEPS: usize = 4_000;

/// Name of a tail, and its ratios to that of a DTD at two far times, the second twice the first.
pub(super) type TailRatios = (String, [f64; 2]);

pub(super) fn section() -> Section {
    let claims = vec![lemma_1(), lemma_2(), is_sufficient(lemma_7())];
    WORDS.section("lemmas", holes![], vec![Block::Claims(claims)])
}

const EXPONENTIAL: Dtd = Dtd { a: 1.0, b: 0.0, offset: 0.0 };
const PARETO: Dtd = Dtd { a: 0.0, b: 2.0, offset: 0.0 };

fn survival(law: &Dtd, t: f64) -> f64 {
    1.0 - law.cdf(t)
}

fn in_words(Dtd { a, b, offset }: &Dtd) -> String {
    format!("[{a}, {b}, {offset}]")
}

/// Compares a tail at half of a far time and there with that of a DTD. An exponential part absorbs any factor in the
/// offset, so that only the change of the ratio counts.
fn compare(name: String, tail: [f64; 2], far: f64, near: &Dtd) -> TailRatios {
    let [first, second] = [tail[0] / survival(near, far / 2.0), tail[1] / survival(near, far)];
    (name, if near.a > 0.0 { [1.0, second / first] } else { [first, second] })
}

/// Returns the probability that a task of a queue with Poisson arrivals takes longer than a quarter, a half and all of a
/// far time. The service has no exponential or no Pareto part.
fn completion_tail(service: &Dtd, lambda: f64, far: f64) -> [f64; 3] {
    let step = far / STEPS as f64;
    let survived: Vec<f64> = (0..=STEPS).map(|i| survival(service, i as f64 * step)).collect();
    // Work that arrives each second in the parts of services beyond t.
    let beyond = |i: usize| {
        let x = i as f64 * step - service.offset;
        let scale = if service.b == 0.0 { 1.0 / service.a } else { (1.0 + x.max(0.0)) / (service.b - 1.0) };
        lambda * (survived[i] * scale + (-x).max(0.0))
    };
    let weight = lambda * step;
    let mut waits = vec![beyond(0)];
    for i in 1..=STEPS {
        let inner: f64 = (1..i).map(|j| survived[j] * waits[i - j]).sum();
        let known = beyond(i) + weight * (inner + 0.5 * survived[i] * waits[0]);
        waits.push(known / (1.0 - 0.5 * weight));
    }
    [STEPS / 4, STEPS / 2, STEPS].map(|i| {
        let served = |j: usize| (survived[j - 1] - survived[j]) * 0.5 * (waits[i - j] + waits[i - j + 1]);
        survived[i] + (1..=i).map(served).sum::<f64>()
    })
}

/// Compares completion times of queues. The rate of decay is that of the tail itself; a Pareto tail loses one of its
/// exponent.
fn lemma_1() -> Claim {
    let (delayed, pareto) = (Dtd { offset: 0.5, ..EXPONENTIAL }, Dtd { b: 3.0, ..PARETO });
    let cases = [(EXPONENTIAL, 0.5, 24.0), (delayed, 0.4, 24.0), (pareto, 0.4, 400.0)];
    let cases = cases.map(|(service, lambda, far)| {
        let [quarter, half, whole] = completion_tail(&service, lambda, far);
        let decay = (quarter / half).ln() / (far / 4.0);
        let near = if service.a > 0.0 { Dtd { a: decay, ..EXPONENTIAL } } else { PARETO };
        let name = format!("service {}, arrivals at {lambda}", in_words(&service));
        compare(name, [half, whole], far, &near)
    });
    tails_meet("lemma-1", &cases)
}

/// Compares the larger of two times with the law of the heavier tail.
fn lemma_2() -> Claim {
    let (heavy, delayed) = (Dtd { b: 1.0, ..EXPONENTIAL }, Dtd { a: 2.0, b: 0.0, offset: 3.0 });
    let pairs = [(EXPONENTIAL, EXPONENTIAL), (heavy, delayed), (PARETO, EXPONENTIAL), (PARETO, PARETO)];
    let cases = pairs.map(|(near, lighter)| {
        let far = if near.a > 0.0 { 30.0 } else { 1e4 };
        let tail = [far / 2.0, far].map(|t| {
            let [one, other] = [&near, &lighter].map(|law| survival(law, t));
            one + other - one * other
        });
        compare(format!("tasks {} and {}", in_words(&near), in_words(&lighter)), tail, far, &near)
    });
    tails_meet("lemma-2", &cases)
}

/// Judges two readings of "asymptotically": the ratio of the tails tends to 1, or to any factor.
pub(super) fn tails_meet(key: &str, cases: &[TailRatios]) -> Claim {
    let all = |ratio: fn(&[f64; 2]) -> f64| {
        CaseVerdict::from(cases.iter().all(|(_, ratios)| (ratio(ratios) - 1.0).abs() < NEAR))
    };
    let (one, factor) = (all(|[_, last]| *last), all(|[half, last]| last / half));
    let found: Vec<String> =
        cases.iter().map(|(name, [half, last])| format!("{name}: {half:.3}, then {last:.3}")).collect();
    let [to_one, to_factor] = [one, factor].map(CaseVerdict::word);
    WORDS.claim(key, by_case([one, factor]), holes![to_one, to_factor, found = found.join("; ")])
}

/// Returns MST at the split that makes both distributions equal, and the smallest MST of other splits: for M/M/1
/// workers, then for equal G/M/1 workers whose tasks come in batches.
fn lemma_7() -> [[f64; 2]; 2] {
    let larger = |one: f64, other: f64| one + other - one * other / (one + other);
    let markov = |one: f64| larger(1.0 / (1.0 - one), 1.0 / (0.5 + one));
    let batches = |one: f64| larger(in_batches(one), in_batches(2.0 - one));
    let others = |all: f64| (1..200).map(move |i| all * f64::from(i) / 200.0);
    [
        [markov(0.25), others(1.0).map(markov).fold(f64::INFINITY, f64::min)],
        [batches(1.0), others(2.0).map(batches).fold(f64::INFINITY, f64::min)],
    ]
}

/// Returns the mean completion time of a worker of rate 10 whose tasks arrive in geometric batches.
pub(super) fn in_batches(lambda: f64) -> f64 {
    batch_size(lambda) / (10.0 - lambda)
}

/// Mean size of a batch, which grows with the rate up to a limit.
pub(super) fn batch_size(lambda: f64) -> f64 {
    1.0 + 3.0 * lambda / (lambda + 0.2)
}

/// Judges if no other split has a smaller MST than the one with equal distributions.
pub(super) fn is_sufficient([markov, batches]: [[f64; 2]; 2]) -> Claim {
    let seen = [markov, batches].map(|[equal, least]| CaseVerdict::from(equal <= least * (1.0 + 1e-9)));
    let holes = holes![markov = markov[0], least = markov[1], equal = batches[0], better = batches[1]];
    WORDS.claim("lemma-7", every(seen), holes)
}
