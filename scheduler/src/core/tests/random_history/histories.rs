//! Random histories: checks that hold in each, and events that must occur often enough.

use super::*;
use proptest::prelude::*;

fn wildness() -> impl Strategy<Value = Wildness> {
    let chance = |max: u32| prop_oneof![Just(0), 0..max];
    (100..1500_u32, chance(200), chance(15), chance(100))
        .prop_map(|(steps, failure, loss, cancel)| Wildness { steps, failure, loss, cancel })
}

fn kind() -> impl Strategy<Value = Kind> {
    let policy = prop_oneof![
        Just(Rule::Fifo),
        Just(Rule::Fair),
        Just(Rule::Random),
        Just(Rule::Random),
        Just(Rule::Nervous)
    ];
    (policy, any::<(bool, bool)>()).prop_map(|(policy, (pools, deals))| Kind { policy, pools, deals })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn core_ends_every_job_and_keeps_its_books_whatever_happens(
        seed: u64, kind in kind(), wild in wildness(),
    ) {
        RandomHistory::new(seed, kind, wild).run();
    }
}

#[test]
fn rest_of_a_reduce_that_is_divided_on_an_excluded_worker_finds_another_home() {
    // The worker was excluded between the order to divide and its answer.
    let wild = Wildness { steps: 451, failure: 50, loss: 0, cancel: 0 };
    let kind = Kind { policy: Rule::Random, pools: false, deals: true };
    RandomHistory::new(8_169_772_445_731_217_464, kind, wild).run();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn core_gives_the_same_commands_when_the_history_is_the_same(
        seed: u64, kind in kind(), wild in wildness(),
    ) {
        let first = RandomHistory::new(seed, kind, wild).run();
        let second = RandomHistory::new(seed, kind, wild).run();
        prop_assert_eq!(first.log, second.log);
    }
}

#[test]
fn core_lets_jobs_succeed_in_most_mild_histories() {
    let wild = Wildness { steps: 800, failure: 20, loss: 2, cancel: 0 };
    let kind = Kind { policy: Rule::Fair, pools: false, deals: false };
    let outcomes: Vec<Outcome> =
        (0..20).flat_map(|seed| RandomHistory::new(seed, kind, wild).run().outcomes.into_values()).collect();
    let succeeded = outcomes.iter().filter(|&&outcome| outcome == Outcome::Succeeded).count();
    assert!(outcomes.len() / 2 < succeeded, "{succeeded} of {} jobs succeeded", outcomes.len());
}

#[test]
fn histories_have_suspensions_and_resumptions() {
    let wild = Wildness { steps: 1_500, failure: 5, loss: 2, cancel: 0 };
    let kind = Kind { policy: Rule::Random, pools: false, deals: false };
    let mut moves = [0; 2];
    for seed in 0..60 {
        let history = RandomHistory::new(seed, kind, wild).run();
        moves = std::array::from_fn(|i| moves[i] + history.moves[i]);
    }
    assert!(moves.iter().all(|&count| 5 < count), "suspended, resumed: {moves:?}");
}

#[test]
fn histories_have_backups_that_win_and_backups_that_lose() {
    let wild = Wildness { steps: 1_500, failure: 5, loss: 2, cancel: 0 };
    let kind = Kind { policy: Rule::Fair, pools: false, deals: false };
    let histories = (0..20).map(|seed| RandomHistory::new(seed, kind, wild).run().backups);
    let [launched, won] = histories.fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    assert!(5 < won && won + 5 < launched, "{won} of {launched} backups won");
}
