//! Made-up results that refute and that support the claims of this paper.

use super::super::estimates::{self, Isolated};
use super::super::goals::{claims as of_runs, weights_follow};
use super::super::sensitivity::of_kinds;
use super::super::trial::{DeadlineTrial, Scheduler, WIDTH};
use crate::judge::RUNS_MIN;
use crate::tests::refuted::{Rules, only};

/// Builds the fewest identical runs that are conclusive, with these responses and held slots of each job.
fn trials(responses: [f64; 4], held: fn(f64) -> [f64; 4]) -> Vec<DeadlineTrial> {
    let one = |seed: f64| DeadlineTrial {
        responses: responses.map(|response| response + 0.01 * seed),
        held: (0..700).map(|interval| held(f64::from(interval) * WIDTH)).collect(),
    };
    (0_u32..).take(RUNS_MIN).map(|seed| one(f64::from(seed))).collect()
}

/// Error of an estimate at a fraction of the time.
type ErrorAt = fn(f64) -> f64;

/// Runs of an application alone with this error of the estimate at each fraction of its time.
fn alone(error: ErrorAt) -> Vec<Isolated> {
    let errors = (1..=100).map(f64::from).map(|at| (at, error(at / 100.0))).collect::<Vec<_>>();
    let one = || Isolated { maps: Vec::new(), end: 100.0, errors: errors.clone() };
    (0..RUNS_MIN).map(|_| one()).collect()
}

fn of_estimates() -> Rules {
    let mut rules = Rules { refuted: Vec::new(), borne_out: Vec::new() };
    let cases: [(&str, ErrorAt, ErrorAt); 3] = [
        // Optimistic and off by a tenth for more than half of the time. The mean over the second half
        // would be small.
        ("WordCount", |at| if at < 0.6 { -0.1 } else { -0.01 }, |at| if at < 0.3 { 0.1 } else { 0.01 }),
        ("Join", |at| if at < 0.5 { 0.1 } else { 0.2 }, |at| if at < 0.5 { 0.6 } else { 0.1 }),
        ("Simulator", |at| if at < 0.2 { 0.3 } else { 0.05 }, |at| if at < 0.9 { -0.3 } else { 0.0 }),
    ];
    for (name, contrary, as_claimed) in cases {
        rules.refuted.extend(estimates::claims(name, &alone(contrary)));
        rules.borne_out.extend(estimates::claims(name, &alone(as_claimed)));
    }
    // First: it becomes more accurate, but was never extremely inaccurate. Second: it was, and becomes no
    // better.
    for contrary in
        [|at| if at < 0.5 { 0.1 } else { 0.05 }, |at| if at < 0.5 { 0.6 } else { 0.7 }] as [ErrorAt; 2]
    {
        rules.refuted.extend(estimates::claims("Join", &alone(contrary)));
    }
    rules
}

fn of_goals() -> Rules {
    let mut rules = Rules { refuted: Vec::new(), borne_out: Vec::new() };
    // J1 gets too little at first, too much then and nothing at the end. The Joins get next to nothing.
    let contrary = |at: f64| {
        if at < 200.0 {
            [30.0, 0.0, 1.0, 1.0]
        } else if at < 1000.0 {
            [50.0, 0.0, 1.0, 1.0]
        } else {
            [10.0, 10.0, 1.0, 1.0]
        }
    };
    let min = |at: f64| match at {
        at if at < 200.0 => [60.0, 0.0, 0.0, 0.0],
        at if at < 1000.0 => [20.0, 0.0, 0.0, 0.0],
        at if at < 1200.0 => [0.0, 60.0, 0.0, 0.0],
        at if at < 5000.0 => [0.0, 0.0, 50.0, 50.0],
        _ => [60.0, 0.0, 0.0, 0.0],
    };
    let max = |at: f64| match at {
        at if at < 1000.0 => [60.0, 0.0, 0.0, 0.0],
        at if at < 2000.0 => [30.0, 30.0, 0.0, 0.0],
        _ => [0.0, 0.0, 50.0, 50.0],
    };
    let met = [5000.0, 2900.0, 140.0, 140.0];
    let missed = [6500.0, 2900.0, 290.0, 290.0];
    // All goals that max meets are missed, and vice versa.
    let reference = trials(met, max);
    let cases = [
        (
            Scheduler::Min,
            trials([5000.0, 1500.0, 140.0, 140.0], contrary),
            trials([6500.0, 2900.0, 140.0, 140.0], min),
        ),
        (Scheduler::Max, trials([6500.0, 1500.0, 290.0, 290.0], contrary), trials(met, max)),
        (Scheduler::Fair, trials(met, max), trials(missed, max)),
        (Scheduler::Weighted, trials(missed, max), trials(met, max)),
    ];
    for (scheduler, refuting, bearing_out) in cases {
        rules.refuted.extend(of_runs(scheduler, &refuting, &reference));
        rules.borne_out.extend(of_runs(scheduler, &bearing_out, &reference));
    }
    // Only one of the two Joins is given most.
    let joins = "The Joins are given most";
    for one in [|_| [0.0, 0.0, 50.0, 10.0], |_| [0.0, 0.0, 10.0, 50.0]] as [fn(f64) -> [f64; 4]; 2] {
        rules.refuted.extend(only(of_runs(Scheduler::Min, &trials(met, one), &reference), joins));
    }
    // Each job alone misses its goal. One of the two Joins meets it without weights.
    for job in 0..4 {
        let mut late = met;
        late[job] = 7000.0;
        let runs = trials(late, max);
        rules.refuted.extend(only(of_runs(Scheduler::Max, &runs, &reference), "All jobs meet"));
        rules
            .refuted
            .extend(only(of_runs(Scheduler::Weighted, &runs, &reference), "Fair sharing with these"));
    }
    for one in [[6500.0, 2900.0, 140.0, 290.0], [6500.0, 2900.0, 290.0, 140.0]] {
        rules.refuted.extend(of_runs(Scheduler::Fair, &trials(one, max), &reference));
    }
    // The weights follow from printed numbers, independent of the runs.
    for claims in [&mut rules.refuted, &mut rules.borne_out] {
        claims.retain(|claim| !claim.statement.starts_with("The weights follow"));
    }
    rules.refuted.push(weights_follow([2451.0, 300.0, 49.0]));
    rules.borne_out.push(weights_follow([2451.0, 1736.0, 20.1]));
    rules
}

pub(crate) fn rules() -> Vec<Rules> {
    let runs = |joins| trials([5000.0, 2900.0, joins, joins], |_| [0.0; 4]);
    let (late, in_time) = (runs(200.0), runs(140.0));
    let of_sensitivity = Rules {
        refuted: of_kinds([&late, &late, &late]),
        borne_out: of_kinds([&in_time, &in_time, &in_time]),
    };
    vec![of_estimates(), of_goals(), of_sensitivity]
}
