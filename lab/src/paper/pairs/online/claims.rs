//! What the paper claims of streams, judged on every distribution.

use super::super::offline::describe;
use super::super::{mean, title};
use super::{Outcome, PANELS, SIZES, Times, of};
use crate::paper::Claim;
use crate::paper::judge::{Seen, by_case, log_ratio, paired, percent};
use gristmill_scheduler::workload::pairs::Sizes;

/// Whether a claim holds for the outcomes of one distribution, and what was seen, in words.
type Found = (Seen, String);

/// An online policy may be worse than the offline one by this part: the paper's differ by 6 and 7 %.
const SLIGHTLY: f64 = 0.1;

/// Judges a claim on every distribution.
fn judged(all: &[Vec<Outcome>], place: &str, statement: &str, test: impl Fn(&[Outcome]) -> Found) -> Claim {
    let found: Vec<Found> = all.iter().map(|outcomes| test(outcomes)).collect();
    let sentence = |(sizes, (holds, words)): (&Sizes, &Found)| {
        format!("{}: {}; {words}.", describe(*sizes), holds.word())
    };
    let evidence: Vec<String> = SIZES.iter().zip(&found).map(sentence).collect();
    Claim::new(place, statement, by_case(found.iter().map(|found| found.0)), evidence.join(" "))
}

pub(in crate::paper::pairs) fn of_figure_4(all: &[Vec<Outcome>]) -> Claim {
    judged(
        all,
        "Section 6.3, figure 4",
        "Pairwise has the most waiting jobs of the six policies shown, Match the fewest.",
        |outcomes| {
            let less = |one: &str, other: &str| less(outcomes, |times| times.waiting, one, other);
            let others = PANELS.iter().filter(|name| !["pairwise", "match"].contains(name));
            let most = others.clone().map(|other| less(other, "pairwise"));
            let fewest = others.map(|other| less("match", other));
            let seen = Seen::all(most.chain(fewest).chain([less("match", "pairwise")]));
            (seen, words(outcomes, &PANELS, |times| times.waiting))
        },
    )
}

pub(in crate::paper::pairs) fn of_table_3(all: &[Vec<Outcome>]) -> Vec<Claim> {
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
            "Pairwise has the smallest execution time, and waits longer than MaxSRPT.",
            &pairwise_executes_fast_and_waits_long,
        ),
        claim(
            "MaxSRPT executes longer than Pair, Couple, Generalized, Group and Match, which pair jobs by size.",
            &max_srpt_executes_long,
        ),
        claim("MaxDiff, MaxShuffle and Pairwise have the largest makespans.", &largest_makespans),
    ]
}

/// Whether one policy has less of something in the mean than another, seed by seed on the same jobs.
fn less(outcomes: &[Outcome], value: fn(&Times) -> f64, one: &str, other: &str) -> Seen {
    let [one, other] = [one, other].map(|name| of(outcomes, name).means(value));
    Seen::above(&paired(&other, &one), 0.0)
}

/// Whether every other policy has a larger mean makespan, and which are within the noise.
fn smallest(name: &str, outcomes: &[Outcome]) -> Found {
    let others = outcomes.iter().filter(|outcome| outcome.rule.name() != name);
    let seen: Vec<(Seen, &str)> = others
        .map(|other| (less(outcomes, Times::makespan, name, other.rule.name()), title(&other.rule)))
        .collect();
    let named = |wanted: Seen| seen.iter().filter(move |(seen, _)| *seen == wanted).map(|(_, name)| *name);
    let mut evidence = format!("makespan {:.2} min", mean(&of(outcomes, name).makespans()).mean);
    for (wanted, words) in [(Seen::No, "smaller under"), (Seen::Unclear, "within the noise of")] {
        let names: Vec<&str> = named(wanted).collect();
        if !names.is_empty() {
            evidence.push_str(&format!("; {words} {}", names.join(", ")));
        }
    }
    (Seen::all(seen.iter().map(|(seen, _)| *seen)), evidence)
}

/// Whether an online policy is worse than its offline one by no more than [`SLIGHTLY`], and not better.
fn slightly_worse(online: &str, offline: &str, outcomes: &[Outcome]) -> Found {
    let [online, offline] = [online, offline].map(|name| of(outcomes, name).makespans());
    let ratio = log_ratio(&online, &offline);
    let better = Seen::below(&ratio, 0.0) == Seen::Yes;
    let seen = if better { Seen::No } else { Seen::below(&ratio, SLIGHTLY.ln_1p()) };
    let evidence = format!(
        "{:.2} against {:.2} min, {} (up to {:.0} % is slightly worse)",
        mean(&online).mean,
        mean(&offline).mean,
        percent(&ratio),
        100.0 * SLIGHTLY
    );
    (seen, evidence)
}

fn pairwise_executes_fast_and_waits_long(outcomes: &[Outcome]) -> Found {
    let others = outcomes.iter().map(|outcome| outcome.rule.name()).filter(|name| *name != "pairwise");
    let fast = others.map(|other| less(outcomes, |times| times.execution, "pairwise", other));
    let waits = less(outcomes, |times| times.waiting, "max-srpt", "pairwise");
    let seen = Seen::all(fast.chain([waits]));
    let names = ["pairwise", "max-srpt"];
    let executes = words(outcomes, &names, |times| times.execution);
    (seen, format!("execution {executes}; waiting {}", words(outcomes, &names, |times| times.waiting)))
}

fn max_srpt_executes_long(outcomes: &[Outcome]) -> Found {
    let names = ["max-srpt", "pair", "couple", "generalized", "group", "match"];
    let seen = names[1..].iter().map(|name| less(outcomes, |times| times.execution, name, "max-srpt"));
    (Seen::all(seen), words(outcomes, &names, |times| times.execution))
}

fn largest_makespans(outcomes: &[Outcome]) -> Found {
    let worst = ["max-diff", "max-shuffle", "pairwise"];
    let better = outcomes.iter().map(|outcome| outcome.rule.name()).filter(|name| !worst.contains(name));
    let seen = better.flat_map(|name| worst.map(|worst| less(outcomes, Times::makespan, name, worst)));
    let total = |outcome: &Outcome| mean(&outcome.makespans()).mean;
    let mut ranked: Vec<&Outcome> = outcomes.iter().collect();
    ranked.sort_by(|a, b| total(a).total_cmp(&total(b)));
    let names: Vec<&str> = ranked.iter().map(|outcome| title(&outcome.rule)).collect();
    (Seen::all(seen), format!("best first: {}", names.join(", ")))
}

fn words(outcomes: &[Outcome], names: &[&str], value: fn(&Times) -> f64) -> String {
    let one = |name: &&str| {
        let outcome = of(outcomes, name);
        format!("{} {:.2} min", title(&outcome.rule), mean(&outcome.means(value)).mean)
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}
