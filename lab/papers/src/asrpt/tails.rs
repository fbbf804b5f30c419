//! Distributions of flow times (figures 10 to 13), and the claims about their tails.

use super::WORDS;
use super::runs::{AsrptRuns, FLOW_MAX, KeptRun, SCENARIOS, SCHEDULERS};
use crate::prelude::*;
use crate::workload::asrpt::SETTINGS;

/// Flow time beyond which the tails are compared, in slots.
const TAIL: usize = 20;

/// Scenarios whose distributions are drawn: indices in [`SCENARIOS`], and their names in files.
const DRAWN: [(usize, &str); 2] = [(0, "preemptive"), (1, "non-preemptive")];

/// Returns the fraction of the jobs of all seeds whose flow time is at most this.
fn fraction(runs: &AsrptRuns, setting: usize, scenario: usize, scheduler: usize, flow: usize) -> f64 {
    let sum = |most: usize| {
        let flows = runs.runs_of(setting, scenario, scheduler).iter().map(|kept| &kept.flows);
        flows.map(|flows| flows[..=most].iter().sum::<u64>()).sum::<u64>() as f64
    };
    sum(flow) / sum(FLOW_MAX + 1).max(1.0)
}

/// Sections with the distributions, one figure for each setting.
pub(super) fn figures_10_to_13(runs: &AsrptRuns) -> Vec<Section> {
    (0..SETTINGS.len()).map(|setting| distributions_in(runs, setting)).collect()
}

fn distributions_in(runs: &AsrptRuns, setting: usize) -> Section {
    let (number, title) = (10 + setting, SETTINGS[setting].title);
    let charts = DRAWN.iter().map(|&(scenario, name)| {
        let distribution = |scheduler: usize| {
            let part = |flow| (flow as f64, fraction(runs, setting, scenario, scheduler, flow));
            Series::new(SCHEDULERS[scheduler].title, (0..=FLOW_MAX).map(part).collect())
        };
        let holes = holes![number, name, title, scenario = SCENARIOS[scenario].0];
        WORDS.chart("figures-10-to-13", holes, (0..4).map(distribution).collect())
    });
    let holes = holes![number, title, seeds = runs.seeds_in_words(), most = FLOW_MAX];
    WORDS.section("figures-10-to-13", holes, charts.collect())
}

/// Tails of a setting and scenario, by scheduler and seed.
pub(super) struct Tails {
    pub(super) name: String,
    /// Fraction of the jobs with a longer flow time than [`TAIL`].
    pub(super) longer: [Vec<f64>; 4],
    /// Fraction of the jobs that end within five slots.
    pub(super) soon: [Vec<f64>; 4],
}

fn tails_of(runs: &AsrptRuns, setting: usize, scenario: usize) -> Tails {
    let part = |flow: usize| {
        let within = move |KeptRun { flows, .. }: &KeptRun| {
            flows[..=flow].iter().sum::<u64>() as f64 / (flows.iter().sum::<u64>() as f64).max(1.0)
        };
        [0, 1, 2, 3].map(|scheduler| runs.numbers([setting, scenario, scheduler], within))
    };
    Tails {
        name: format!("{}, {}", SETTINGS[setting].name, SCENARIOS[scenario].0),
        longer: part(TAIL).map(|within| within.into_iter().map(|within| 1.0 - within).collect()),
        soon: part(5),
    }
}

impl Tails {
    fn in_words(&self, seen: CaseVerdict) -> String {
        let mean = |longer: &Vec<f64>| 100.0 * longer.iter().sum::<f64>() / longer.len().max(1) as f64;
        let parts = SCHEDULERS.iter().zip(&self.longer);
        let parts = parts.map(|(scheduler, longer)| format!("{} {:.2} %", scheduler.title, mean(longer)));
        format!("{} ({}): {}", self.name, seen.word(), parts.collect::<Vec<_>>().join(", "))
    }

    /// True if the tail of ASRPT is lighter than those of FIFO and Fair, on the same jobs.
    fn asrpt_is_lightest(&self) -> CaseVerdict {
        CaseVerdict::all([1, 2].map(|other| CaseVerdict::less(&self.longer[0], &self.longer[other])))
    }

    fn lrpt_is_heaviest(&self) -> CaseVerdict {
        CaseVerdict::all([0, 1, 2].map(|other| CaseVerdict::less(&self.longer[other], &self.longer[3])))
    }

    /// True if more jobs end soon under ASRPT than under any other policy.
    fn asrpt_is_ahead(&self) -> CaseVerdict {
        CaseVerdict::all([1, 2, 3].map(|other| CaseVerdict::less(&self.soon[other], &self.soon[0])))
    }
}

/// Claims of section VII C.
pub(super) fn section_7_c(runs: &AsrptRuns) -> Section {
    let cases = (0..SETTINGS.len()).flat_map(|setting| DRAWN.map(|(scenario, _)| (setting, scenario)));
    let cases: Vec<Tails> = cases.map(|(setting, scenario)| tails_of(runs, setting, scenario)).collect();
    WORDS.section("section-7-c", holes![tail = TAIL], vec![Block::Claims(of_tails(&cases))])
}

pub(super) fn of_tails(cases: &[Tails]) -> Vec<Claim> {
    let seen = |rule: fn(&Tails) -> CaseVerdict| cases.iter().map(rule).collect::<Vec<CaseVerdict>>();
    let yes = |seen: &[CaseVerdict]| CaseVerdict::Yes.count(seen);
    let (lightest, heaviest) = (seen(Tails::asrpt_is_lightest), seen(Tails::lrpt_is_heaviest));
    let ahead = yes(&seen(Tails::asrpt_is_ahead));
    let words: Vec<String> = cases.iter().zip(&lightest).map(|(case, &seen)| case.in_words(seen)).collect();
    let (words, count) = (words.join("; "), cases.len());
    let of_lightest = holes![lightest = yes(&lightest), cases = count, words, ahead];
    let of_heaviest = holes![heaviest = yes(&heaviest), cases = count];
    vec![
        WORDS.claim("lightest-tail", by_case(lightest.iter().copied()), of_lightest),
        WORDS.claim("heaviest-tail", by_case(heaviest.iter().copied()), of_heaviest),
    ]
}
