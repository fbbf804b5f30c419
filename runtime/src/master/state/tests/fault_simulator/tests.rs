//! Tests of the master with the simulator, and of the simulator's ability to detect a missing rule.

use super::scenario::{LiveDeciders, Mode, Scenario};
use super::shrink::{run, shrink};
use super::world::Shown;
use crate::registry::Registry;
#[cfg(debug_assertions)]
use gristmill_scheduler::rules::{Rule, without};
use std::ops::Range;

/// Number of seeds of each mode in the default suite.
const SEEDS: u64 = 150;

/// Number of seeds within which a broken build must be detected.
#[cfg(debug_assertions)]
const BROKEN_SEEDS: u64 = 1_000;

fn scenario(seed: u64, mode: Mode) -> Scenario {
    Scenario::draw(seed, mode, &LiveDeciders::new(&Registry::standard()))
}

/// Seeds to run, and true if each is to be described.
fn seeds() -> (Range<u64>, bool) {
    let number = |text: &str| text.trim().parse::<u64>().expect("FAULT_SEED and FAULT_SEEDS hold numbers");
    if let Ok(seed) = std::env::var("FAULT_SEED") {
        return (number(&seed)..number(&seed) + 1, true);
    }
    match std::env::var("FAULT_SEEDS") {
        Ok(seeds) => {
            let (from, to) = seeds.split_once("..").expect("FAULT_SEEDS is FROM..TO");
            (number(from)..number(to), false)
        }
        Err(_) => (0..SEEDS, false),
    }
}

/// Runs all seeds, on two threads.
fn check(mode: Mode) -> Shown {
    let (seeds, tell) = seeds();
    let halves = [0, 1].map(|half| {
        let seeds = seeds.clone().filter(move |seed| seed % 2 == half);
        std::thread::spawn(move || seeds.map(|seed| check_one(seed, mode, tell)).collect::<Vec<_>>())
    });
    let mut sum = Shown::default();
    for shown in halves.into_iter().flat_map(|half| half.join().expect("it has said why")) {
        for (what, count) in shown.fired {
            *sum.fired.entry(what).or_default() += count;
        }
        (sum.jobs, sum.succeeded) = (sum.jobs + shown.jobs, sum.succeeded + shown.succeeded);
        sum.late_events += shown.late_events;
        sum.ended_after = sum.ended_after.max(shown.ended_after);
    }
    eprintln!("{mode:?}, seeds {seeds:?}: {sum:?}");
    sum
}

fn check_one(seed: u64, mode: Mode, tell: bool) -> Shown {
    let scenario = scenario(seed, mode);
    if tell {
        eprintln!("{scenario}");
    }
    run(&scenario, true).unwrap_or_else(|wrong| {
        let (smallest, still) = shrink(scenario, wrong.clone());
        panic!(
            "{wrong}\nrepeat: FAULT_SEED={seed} cargo test -p gristmill-runtime --lib fault_simulator\n\
             as small as it goes, {still}\n{smallest}"
        );
    })
}

/// True if there were too few runs to expect all of their effects.
fn is_small(shown: &Shown) -> bool {
    shown.jobs < 500
}

/// Seeds beyond those of the suite that have shown faults: a rest of a divided reduce that was launched while its worker
/// was cut off, and a division that was reported after a speculative attempt had started.
#[test]
fn seeds_that_once_showed_faults_show_none() {
    for seed in [353, 412, 1616] {
        for mode in [Mode::Liveness, Mode::Safety] {
            check_one(seed, mode, false);
        }
    }
}

#[test]
fn every_job_ends_rightly_once_the_faults_stop() {
    let shown = check(Mode::Liveness);
    if is_small(&shown) {
        return;
    }
    assert!(shown.jobs * 3 / 4 < shown.succeeded, "{} of {} jobs succeeded", shown.succeeded, shown.jobs);
}

#[test]
fn no_output_is_wrong_while_faults_go_on() {
    let shown = check(Mode::Safety);
    if is_small(&shown) {
        return;
    }
    let kinds = [
        "kill",
        "crash",
        "stop",
        "stop in commit",
        "cut pair",
        "deafen",
        "mute",
        "isolate",
        "disconnect",
        "lose outputs",
        "damaged transfer",
        "broken transfer",
        "fail",
        "hang",
        "fill",
        "slow",
        "repeat",
        "cancel",
        "decide by",
        "join",
        "silent worker",
        "lost connection",
        "zombie's word",
        "zombie's part",
        "failed fetch",
        "cut between workers",
        "held back before the master",
        "held back before a worker",
        "suspension",
        "backup",
        "backup won",
        "backup of a reduce",
        "division",
        "division of a reduce",
        "making way",
        "kill master",
        "torn journal",
        "came back",
    ];
    let silent: Vec<&str> = kinds.into_iter().filter(|kind| !shown.fired.contains_key(kind)).collect();
    assert!(silent.is_empty(), "did not fire: {silent:?} of {:?}", shown.fired);
}

#[test]
fn a_run_is_the_same_when_its_seed_is() {
    for mode in [Mode::Liveness, Mode::Safety] {
        for seed in 0..5 {
            assert_eq!(
                run(&scenario(seed, mode), true),
                run(&scenario(seed, mode), true),
                "seed {seed}, {mode:?}"
            );
        }
    }
}

/// Checks that a build without this rule is detected by its behavior, without a look into its ledger.
#[cfg(debug_assertions)]
fn check_broken(rule: Rule) {
    let noticed = |seed: u64| {
        let modes = [Mode::Liveness, Mode::Safety].into_iter();
        let mut wrong = modes.filter_map(|mode| without(rule, || run(&scenario(seed, mode), false)).err());
        wrong.next().map(|wrong| (seed, wrong))
    };
    let (seed, wrong) =
        (0..BROKEN_SEEDS).find_map(noticed).unwrap_or_else(|| panic!("nobody noticed that {rule:?} is off"));
    eprintln!("without {rule:?}, seed {seed}: {}", wrong.lines().next().unwrap_or_default());
}

#[test]
#[cfg(debug_assertions)]
fn a_master_that_heeds_workers_it_has_given_up_is_noticed() {
    check_broken(Rule::LostWorkersAreFenced);
}

#[test]
#[cfg(debug_assertions)]
fn a_master_that_does_not_make_lost_outputs_again_is_noticed() {
    check_broken(Rule::LostOutputsAreMadeAgain);
}

#[test]
#[cfg(debug_assertions)]
fn a_master_that_does_not_look_at_what_workers_have_that_come_back_is_noticed() {
    check_broken(Rule::WorkersThatComeBackAreReconciled);
}

#[test]
#[cfg(debug_assertions)]
fn a_master_that_takes_segments_of_another_output_is_noticed() {
    check_broken(Rule::StaleSegmentsAreRefused);
}

#[test]
#[cfg(debug_assertions)]
fn a_master_that_lets_two_attempts_of_a_task_publish_is_noticed() {
    check_broken(Rule::OneAttemptPublishes);
}

#[test]
#[cfg(debug_assertions)]
fn a_master_that_lets_the_slower_of_two_attempts_go_on_is_noticed() {
    check_broken(Rule::LosersAreStopped);
}
