//! What the paper claims of streams, judged on every distribution.

use super::super::offline::describe;
use super::super::{mean, title};
use super::{Outcome, PANELS, SIZES, Times, of};
use crate::paper::{Claim, Verdict};
use gristmill_scheduler::workload::pairs::Sizes;

/// Whether a claim holds for the outcomes of one distribution, and what was seen, in words.
type Found = (bool, String);

/// An online policy may be worse than the offline one by this part: the paper's differ by 6 and 7 %.
const SLIGHTLY: f64 = 0.1;

/// Judges a claim on every distribution.
fn judged(all: &[Vec<Outcome>], place: &str, statement: &str, test: impl Fn(&[Outcome]) -> Found) -> Claim {
    let found: Vec<Found> = all.iter().map(|outcomes| test(outcomes)).collect();
    let sentence = |(sizes, (holds, words)): (&Sizes, &Found)| {
        format!("{}: {}; {words}.", describe(*sizes), if *holds { "yes" } else { "no" })
    };
    let evidence: Vec<String> = SIZES.iter().zip(&found).map(sentence).collect();
    Claim::new(place, statement, Verdict::of_all(found.iter().map(|found| found.0)), evidence.join(" "))
}

pub(super) fn of_figure_4(all: &[Vec<Outcome>]) -> Claim {
    judged(
        all,
        "Section 6.3, figure 4",
        "Pairwise has the most waiting jobs of the six policies shown, Match the fewest.",
        |outcomes| {
            let waiting = |name: &str| of(outcomes, name).total(|times| times.waiting);
            let most = PANELS.iter().all(|name| waiting(name) <= waiting("pairwise"));
            let fewest = PANELS.iter().all(|name| waiting("match") <= waiting(name));
            (most && fewest, words(outcomes, &PANELS, |times| times.waiting))
        },
    )
}

pub(super) fn of_table_3(all: &[Vec<Outcome>]) -> Vec<Claim> {
    let claim = |statement: &str, test: &dyn Fn(&[Outcome]) -> Found| {
        judged(all, "Section 6.3, Table 3", statement, test)
    };
    vec![
        claim("Match has the smallest average makespan.", &|outcomes| smallest("match", outcomes)),
        claim("OMatch is only slightly worse than Match.", &|outcomes| {
            slightly_worse("o-match", "match", outcomes)
        }),
        claim("OGroup is only slightly worse than Group.", &|outcomes| {
            slightly_worse("o-group", "group", outcomes)
        }),
        claim(
            "Pairwise has the smallest execution time and a large waiting time.",
            &pairwise_executes_fast_and_waits_long,
        ),
        claim("MaxSRPT executes longer than the policies that pair jobs.", &max_srpt_executes_long),
        claim("MaxDiff, MaxShuffle and Pairwise have the largest makespans.", &largest_makespans),
    ]
}

/// Whether no other policy has a smaller mean makespan, and which are within the noise.
fn smallest(name: &str, outcomes: &[Outcome]) -> Found {
    let best = of(outcomes, name).makespans();
    let (mut worse, mut unsure) = (Vec::new(), Vec::new());
    for other in outcomes.iter().filter(|outcome| outcome.rule.name() != name) {
        let (apart, half_width) = difference(&other.makespans(), &best);
        if apart <= 0.0 {
            worse.push(title(&other.rule));
        } else if apart <= half_width {
            unsure.push(title(&other.rule));
        }
    }
    let mut evidence = format!("makespan {:.2} min", mean(&best).mean);
    if !worse.is_empty() {
        evidence.push_str(&format!("; smaller under {}", worse.join(", ")));
    }
    if !unsure.is_empty() {
        evidence.push_str(&format!("; within the noise of {}", unsure.join(", ")));
    }
    (worse.is_empty(), evidence)
}

/// Whether an online policy is not better than its offline one beyond the noise, and only slightly worse.
fn slightly_worse(online: &str, offline: &str, outcomes: &[Outcome]) -> Found {
    let [online, offline] = [online, offline].map(|name| of(outcomes, name).makespans());
    let (apart, width) = difference(&online, &offline);
    let part = apart / mean(&offline).mean;
    let evidence = format!(
        "{:.2} against {:.2} min, difference {apart:.2} ± {width:.2} min ({:.1} %)",
        mean(&online).mean,
        mean(&offline).mean,
        100.0 * part
    );
    (-width <= apart && part <= SLIGHTLY, evidence)
}

fn pairwise_executes_fast_and_waits_long(outcomes: &[Outcome]) -> Found {
    let pairwise = of(outcomes, "pairwise");
    let execution = |outcome: &Outcome| outcome.total(|times| times.execution);
    let waiting = |outcome: &Outcome| outcome.total(|times| times.waiting);
    let least = outcomes.iter().all(|outcome| execution(pairwise) <= execution(outcome));
    let waits = waiting(of(outcomes, "max-srpt")) < waiting(pairwise);
    (least && waits, words(outcomes, &["pairwise", "max-srpt"], |times| times.execution))
}

fn max_srpt_executes_long(outcomes: &[Outcome]) -> Found {
    let names = ["max-srpt", "pair", "couple", "generalized", "group", "match"];
    let execution = |name: &str| of(outcomes, name).total(|times| times.execution);
    let longer = names[1..].iter().all(|name| execution(name) < execution("max-srpt"));
    (longer, words(outcomes, &names, |times| times.execution))
}

fn largest_makespans(outcomes: &[Outcome]) -> Found {
    let total = |outcome: &Outcome| outcome.total(Times::makespan);
    let mut ranked: Vec<&Outcome> = outcomes.iter().collect();
    ranked.sort_by(|a, b| total(b).total_cmp(&total(a)));
    let worst = ["max-diff", "max-shuffle", "pairwise"];
    let holds = ranked.iter().take(worst.len()).all(|outcome| worst.contains(&outcome.rule.name()));
    let names: Vec<&str> = ranked.iter().rev().map(|outcome| title(&outcome.rule)).collect();
    (holds, format!("best first: {}", names.join(", ")))
}

/// Mean of the differences of two policies on the same jobs, and its half width.
fn difference(a: &[f64], b: &[f64]) -> (f64, f64) {
    let apart: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let interval = mean(&apart);
    (interval.mean, interval.half_width.unwrap_or(f64::INFINITY))
}

fn words(outcomes: &[Outcome], names: &[&str], value: fn(&Times) -> f64) -> String {
    let one = |name: &&str| {
        let outcome = of(outcomes, name);
        format!("{} {:.2} min", title(&outcome.rule), mean(&outcome.means(value)).mean)
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}
