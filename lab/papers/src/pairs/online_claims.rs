//! The paper's claims about streams, judged on every distribution.

use super::offline::describe;
use super::online::{Outcome, PANELS, SIZES, Times, of};
use super::{WORDS, title};
use crate::Claim;
use crate::judge::{Seen, by_case, keeps, log_ratio, mean_of, percent};
use crate::words::holes;
use gristmill_scheduler::workload::pairs::Sizes;

/// Result for one distribution, and the numbers in words.
type Found = (Seen, String);

/// Relative difference by which an online policy may be worse than the offline one. The paper's differ by
/// 6 and 7 %.
const SLIGHTLY: f64 = 0.1;

/// Number of a job's times.
type Number = fn(&Times) -> f64;

const WAITING: Number = |times| times.waiting;
const EXECUTION: Number = |times| times.execution;

/// Judges a claim on every distribution.
fn judged(all: &[Vec<Outcome>], key: &str, test: impl Fn(&[Outcome]) -> Found) -> Claim {
    let found: Vec<Found> = all.iter().map(|outcomes| test(outcomes)).collect();
    let sentence = |(sizes, (holds, words)): (&Sizes, &Found)| {
        format!("{}: {}; {words}.", describe(*sizes), holds.word())
    };
    let sentences: Vec<String> = SIZES.iter().zip(&found).map(sentence).collect();
    WORDS.claim(key, by_case(found.iter().map(|found| found.0)), holes![found = sentences.join(" ")])
}

/// Judges by the rules of a claim.
fn by_rules(all: &[Vec<Outcome>], key: &str, words: impl Fn(&[Outcome]) -> String) -> Claim {
    judged(all, key, |outcomes| {
        let names: Vec<&str> = outcomes.iter().map(|outcome| outcome.rule.name()).collect();
        let samples = |number: &str, name: &str| match number {
            "waiting" => of(outcomes, name).means(WAITING),
            "execution" => of(outcomes, name).means(EXECUTION),
            _ => of(outcomes, name).makespans(),
        };
        (keeps(WORDS.rules(key), &names, samples), words(outcomes))
    })
}

pub(super) fn of_figure_4(all: &[Vec<Outcome>]) -> Claim {
    by_rules(all, "waiting-jobs", |outcomes| in_minutes(outcomes, &PANELS, WAITING))
}

pub(super) fn of_table_3(all: &[Vec<Outcome>]) -> Vec<Claim> {
    let by_size = ["max-srpt", "pair", "couple", "generalized", "group", "match"];
    vec![
        by_rules(all, "stream-match-is-best", beside_match),
        judged(all, "o-match", |outcomes| slightly_worse("o-match", "match", outcomes)),
        judged(all, "o-group", |outcomes| slightly_worse("o-group", "group", outcomes)),
        by_rules(all, "pairwise-waits", |outcomes| {
            let [execution, waiting] =
                [EXECUTION, WAITING].map(|number| in_minutes(outcomes, &["pairwise", "max-srpt"], number));
            format!("execution {execution}; waiting {waiting}")
        }),
        by_rules(all, "max-srpt-executes", |outcomes| in_minutes(outcomes, &by_size, EXECUTION)),
        by_rules(all, "largest-makespans", best_first),
    ]
}

/// Describes the makespan of Match, and the policies that have a smaller one or are within the noise.
fn beside_match(outcomes: &[Outcome]) -> String {
    let best = of(outcomes, "match").makespans();
    let others = outcomes.iter().filter(|outcome| outcome.rule.name() != "match");
    let seen: Vec<(Seen, &str)> =
        others.map(|other| (Seen::less(&best, &other.makespans()), title(&other.rule))).collect();
    let mut words = format!("makespan {:.2} min", mean_of(&best).mean);
    for (wanted, what) in [(Seen::No, "smaller under"), (Seen::Unclear, "within the noise of")] {
        let named = seen.iter().filter(|(seen, _)| *seen == wanted);
        let names: Vec<&str> = named.map(|(_, name)| *name).collect();
        if !names.is_empty() {
            words.push_str(&format!("; {what} {}", names.join(", ")));
        }
    }
    words
}

/// Judges if an online policy is worse than its offline one by at most [`SLIGHTLY`], and not better.
fn slightly_worse(online: &str, offline: &str, outcomes: &[Outcome]) -> Found {
    let [online, offline] = [online, offline].map(|name| of(outcomes, name).makespans());
    let ratio = log_ratio(&online, &offline);
    let better = Seen::below(&ratio, 0.0) == Seen::Yes;
    let seen = if better { Seen::No } else { Seen::below(&ratio, SLIGHTLY.ln_1p()) };
    let evidence = format!(
        "{:.2} against {:.2} min, {} (up to {:.0} % is slightly worse)",
        mean_of(&online).mean,
        mean_of(&offline).mean,
        percent(&ratio),
        100.0 * SLIGHTLY
    );
    (seen, evidence)
}

fn best_first(outcomes: &[Outcome]) -> String {
    let total = |outcome: &Outcome| mean_of(&outcome.makespans()).mean;
    let mut ranked: Vec<&Outcome> = outcomes.iter().collect();
    ranked.sort_by(|a, b| total(a).total_cmp(&total(b)));
    let names: Vec<&str> = ranked.iter().map(|outcome| title(&outcome.rule)).collect();
    format!("best first: {}", names.join(", "))
}

fn in_minutes(outcomes: &[Outcome], names: &[&str], number: Number) -> String {
    let one = |name: &&str| {
        let outcome = of(outcomes, name);
        format!("{} {:.2} min", title(&outcome.rule), mean_of(&outcome.means(number)).mean)
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}
