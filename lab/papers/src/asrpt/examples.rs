//! The quick example of section IV, and figure 4: SRPT, DSRPT and ASRPT on the same jobs.

use super::WORDS;
use super::runs::{completions, flow_within};
use crate::prelude::*;

/// Numbers of small jobs in the quick example.
const SMALL_JOBS: [u32; 8] = [1, 3, 10, 30, 100, 300, 1000, 3000];

fn job(slot: u32, maps: u32, reduces: u32) -> Job {
    let work = [f64::from(maps), 0.0, f64::from(reduces)];
    Job { arrival: f64::from(slot - 1), work: work.into(), reduces: vec![work[2]], ..Job::default() }
}

/// Numbers of small jobs, each with the ratio it leads to.
pub(super) type Ratios = Vec<(f64, f64)>;

/// Online policies that the example is run against. None of them interrupts a reduce.
const ONLINE: [(&str, &str); 4] = [("FIFO", "fifo"), ("Fair", "fair"), ("LRPT", "lrpt"), ("ASRPT", "asrpt")];

/// Ratios that the adversary forces on each policy of [`ONLINE`], and equation 6.
struct Played {
    online: Vec<Ratios>,
    formula: Ratios,
}

/// Runs both cases of section IV against every policy. In the first case nothing arrives after the job
/// with the long reduce. In the second, small jobs arrive every other slot while that reduce would run.
/// The worse of the two ratios counts.
fn play() -> anyhow::Result<Played> {
    let mut played = Played { online: vec![Ratios::new(); ONLINE.len()], formula: Ratios::new() };
    for small in SMALL_JOBS {
        let long = job(1, 1, 2 * small + 1);
        let mut jobs = vec![long.clone()];
        jobs.extend((1..=small).map(|index| job(1 + 2 * index, 1, 1)));
        let q = f64::from(small);
        // The schedules that know the future: the long job at once, or every small job at once and the
        // long reduce after them.
        let (alone, offline) = (2.0 * q + 2.0, 2.0 * q + (1.0 + 2.0 * q + 2.0 * q + 1.0));
        for ((_, policy), ratios) in ONLINE.iter().zip(&mut played.online) {
            let flow = |jobs: &[Job]| -> anyhow::Result<f64> {
                let ends = completions(policy, 1, false, jobs)?;
                Ok(flow_within(jobs, &ends, f64::INFINITY))
            };
            let case_one = flow(std::slice::from_ref(&long))? / alone;
            ratios.push((q, case_one.max(flow(&jobs)? / offline)));
        }
        played.formula.push((q, ((2.0 * q + 2.0) + (2.0 * q + 1.0) * q) / offline));
    }
    Ok(played)
}

/// Compares a ratio with the equation, a lower bound for a policy that starts the long job at once.
fn beside_equation_6(((small, ours), (_, formula)): (&(f64, f64), &(f64, f64))) -> Compared {
    let what = format!("Q = {small}: lower bound of equation 6");
    let note = WORDS.note("equation-6", holes![]);
    Compared { printed: Some(*formula), note, ..Compared::new(what, *ours, formula <= ours) }
}

/// Smallest power that counts as growth without bound: over the last tenfold of jobs, the ratio grows at
/// least like the square root of their number. A ratio is constant if it grows by less than a tenth of
/// the power.
const GROWS: f64 = 0.5;
const CONSTANT: f64 = 0.1;

/// Returns the power of the number of jobs with which the ratio grows over its last tenfold.
fn power(ratios: &[(f64, f64)]) -> f64 {
    let last = ratios.last().copied().unwrap_or((f64::NAN, f64::NAN));
    let before = ratios.iter().rev().find(|(small, _)| 10.0 * small <= last.0).copied();
    before.map_or(f64::NAN, |before| (last.1 / before.1).ln() / (last.0 / before.0).ln())
}

/// Claim that no online policy has a constant competitive ratio: the adversary raises the ratio of each.
pub(super) fn no_constant_ratio(online: &[Ratios]) -> Claim {
    let seen = online.iter().map(|ratios| match power(ratios) {
        power if GROWS < power => CaseVerdict::Yes,
        power if power < CONSTANT => CaseVerdict::No,
        _ => CaseVerdict::Unclear,
    });
    let policies = ONLINE.iter().zip(online).map(|((name, _), ratios)| {
        let last = ratios.last().copied().unwrap_or((f64::NAN, f64::NAN));
        format!("{name} {:.0} at Q = {:.0}, as Q to the power {:.2}", last.1, last.0, power(ratios))
    });
    let policies = policies.collect::<Vec<_>>().join("; ");
    WORDS.claim("no-constant-ratio", every(seen), holes![policies, grows = GROWS, constant = CONSTANT])
}

/// Runs the quick example against all policies.
pub(super) fn quick_example() -> anyhow::Result<Section> {
    let Played { online, formula } = play()?;
    let claim = no_constant_ratio(&online);
    let ours = online.into_iter().next().unwrap_or_default();
    let rows = ours.iter().zip(&formula).map(beside_equation_6).collect();
    let series = vec![Series::new("FIFO", ours), Series::new("equation 6", formula).as_reference()];
    let chart = WORDS.chart("section-4", holes![], series);
    let blocks = vec![chart, Block::Comparison(rows), Block::Claims(vec![claim])];
    Ok(WORDS.section("section-4", holes![], blocks))
}

const MACHINES: u32 = 3;

/// Runs an instance on which the three schedules differ.
pub(super) fn figure_4() -> anyhow::Result<Section> {
    let jobs = [job(1, 2, 4), job(1, 4, 1)];
    let flow =
        |policy| anyhow::Ok(flow_within(&jobs, &completions(policy, MACHINES, true, &jobs)?, f64::INFINITY));
    let claim = in_order([flow("srpt")?, flow("dsrpt")?, flow("asrpt")?]);
    Ok(WORDS.section("figure-4", holes![machines = MACHINES], vec![Block::Claims(vec![claim])]))
}

/// Claim of the figure, by total flow times.
pub(super) fn in_order([srpt, dsrpt, asrpt]: [f64; 3]) -> Claim {
    WORDS.claim("figure-4", srpt <= asrpt && asrpt <= dsrpt, holes![srpt, dsrpt, asrpt])
}
