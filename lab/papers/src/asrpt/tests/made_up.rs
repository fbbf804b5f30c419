//! Made-up results that refute and that support the claims of this paper.

use super::super::counterexample::BurstRatios;
use super::super::examples::{Ratios, in_order, no_constant_ratio};
use super::super::ratios;
use super::super::runs::{AsrptRuns, FLOW_MAX, KeptRun, STEPS};
use super::super::tails::{Tails, of_tails};
use crate::Claim;
use crate::tests::refuted::{Rules, only};

/// Runs of three seeds with these ratios by scheduler (ASRPT, FIFO, Fair, LRPT, DSRPT), which grow with
/// this power of the slots.
fn runs(ratios: [f64; 5], power: f64) -> AsrptRuns {
    AsrptRuns::made_up(3, |_, scheduler, seed| {
        let ratio = ratios[scheduler] * (1.0 + 0.001 * seed as f64);
        let within = (1..=STEPS).map(|step| ratio * (step as f64).powf(power)).collect();
        KeptRun { ratio, within, flows: vec![1; FLOW_MAX + 2] }
    })
}

/// Tails of three seeds, by scheduler.
fn tails(longer: [f64; 4]) -> Vec<Tails> {
    let seeds = |part: f64| vec![part, part + 0.001, part - 0.001];
    vec![Tails {
        name: "made up".to_owned(),
        longer: longer.map(seeds),
        soon: longer.map(|part| seeds(1.0 - part)),
    }]
}

fn growing(power: f64) -> Vec<Ratios> {
    vec![[1.0_f64, 10.0, 100.0].map(|small| (small, small.powf(power))).to_vec(); 4]
}

pub(crate) fn rules() -> Vec<Rules> {
    let of_ratios = |runs: &AsrptRuns, ratio: f64| {
        let seeds = |ratio: f64| vec![ratio, ratio + 0.01, ratio - 0.01];
        ratios::of_ratios(runs, &BurstRatios([ratio, ratio, 1.2, 1.3].map(seeds)))
    };
    let good = || runs([1.5, 2.0, 2.0, 3.0, 1.6], 0.0);
    let one = |claim: Claim| vec![claim];
    vec![
        Rules {
            refuted: one(no_constant_ratio(&growing(0.02))),
            borne_out: one(no_constant_ratio(&growing(1.0))),
        },
        Rules { refuted: one(in_order([6.0, 7.0, 8.0])), borne_out: one(in_order([6.0, 8.0, 7.0])) },
        Rules {
            refuted: one(ratios::constant_ratio(&runs([1.5, 2.0, 2.0, 3.0, 1.6], 0.2))),
            borne_out: one(ratios::constant_ratio(&runs([1.5, 2.0, 2.0, 3.0, 1.6], 0.01))),
        },
        Rules {
            // ASRPT is the worst, also compared with DSRPT and with twice the best. LRPT is better than the bound.
            refuted: of_ratios(&runs([5.0, 3.0, 3.0, 0.9, 4.0], 0.0), 1.5),
            borne_out: of_ratios(&good(), 1.5),
        },
        Rules {
            refuted: only(of_ratios(&runs([0.9, 2.0, 2.0, 3.0, 1.6], 0.0), 1.5), "SRPT without"),
            borne_out: only(of_ratios(&good(), 1.5), "SRPT without"),
        },
        // Nothing but the bursts refutes these.
        Rules {
            refuted: only(of_ratios(&good(), 9.0), "DSRPT has"),
            borne_out: only(of_ratios(&good(), 1.5), "DSRPT has"),
        },
        Rules {
            refuted: only(of_ratios(&good(), 9.0), "DSRPT and ASRPT"),
            borne_out: only(of_ratios(&good(), 1.5), "DSRPT and ASRPT"),
        },
        Rules {
            refuted: only(of_ratios(&good(), 9.0), "ASRPT has an"),
            borne_out: only(of_ratios(&good(), 1.5), "ASRPT has an"),
        },
        Rules {
            refuted: of_tails(&tails([0.5, 0.2, 0.2, 0.1])),
            borne_out: of_tails(&tails([0.1, 0.2, 0.2, 0.5])),
        },
    ]
}
